"""Prints how big the provider is, and how much of it the shortest successful task enters; compares that with limits.

``python tests/architecture/figures.py`` ends with 1 where a figure is above the one in ``figures.json``. A commit that
needs more raises the number there, and its message says why; one that needs less lowers it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALLOWED = Path(__file__).with_name("figures.json")
sys.path.insert(0, str(ROOT / "tests" / "plugins"))

from laboratory import Bench, Laboratory  # noqa: E402


def figures() -> Mapping[str, int]:
    """Return the figures by name."""
    lines = [len(path.read_text().splitlines()) for path in (ROOT / "provider").rglob("*.py")]
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        (home / "airflow").mkdir()
        (home / "task").mkdir()
        laboratory = Laboratory(home / "airflow")
        try:
            events = ROOT / "tests" / "fixtures" / "events" / "a_414.ndjson"
            outcome = Bench(laboratory, home / "task").run(lineage=[events], is_traced=True)
        finally:
            laboratory.close()
    assert outcome.error is None, outcome.printed
    return {
        "lines of Python in provider": sum(lines),
        "modules in provider": len(lines),
        "modules that the shortest successful task enters": len({module for _, module, _ in outcome.entered}),
        "functions that it enters": len({(module, function) for _, module, function in outcome.entered}),
        "threads that it enters them in": len({thread for thread, _, _ in outcome.entered}),
    }


def too_big() -> list[str]:
    """Return a line for each figure that is above the allowed one; all are printed."""
    allowed = json.loads(ALLOWED.read_text())
    found = figures()
    for name, number in found.items():
        print(f"{number:6} of {allowed[name]:6}  {name}")  # noqa: T201
    return [f"{name}: {number}, {allowed[name]} allowed" for name, number in found.items() if number > allowed[name]]


if __name__ == "__main__":
    sys.exit(1 if too_big() else 0)
