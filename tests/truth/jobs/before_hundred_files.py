"""Two hundred small files."""

from pathlib import Path

for folder, letter in (("many", "f"), ("parts", "p")):
    Path(folder).mkdir()
    for number in range(100):
        Path(folder, f"{letter}{number:03}.csv").write_text(f"{number},{number * 10}\n")
