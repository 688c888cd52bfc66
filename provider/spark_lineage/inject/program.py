"""Look for a word in what a submission brings along: the program, its own modules and files, and its arguments."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from spark_lineage.launch.bounded_run import BoundedPlace

_FILES = BoundedPlace("the files of the program", 5.0)
# Of one file; a program has less, and what has more is data.
_MOST_BYTES = 4 * 1024 * 1024
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)", re.MULTILINE)
# A fat jar holds Spark itself, or what knows its settings.
_LIBRARIES = ("org/apache/", "io/openlineage/")


@_FILES.bounded
def program_says(word: bytes, application: str, others: Iterable[str]) -> bool:
    """Whether ``word`` is in the program, in what it imports from beside it, or in ``others``: files or plain texts.

    What is not on this machine is not looked into, nor are modules of the Python that runs the program.
    """
    waiting, seen = [application, *others], set()
    while waiting:
        text = waiting.pop()
        if text in seen:
            continue
        seen.add(text)
        if word in text.encode(errors="replace"):
            return True
        path = Path(text.removeprefix("file://").removeprefix("file:").partition("#")[0])
        try:
            for content in _contents(path):
                if word in content:
                    return True
                if path.suffix == ".py":
                    waiting += _beside(path, content)
        except (OSError, ValueError, zipfile.BadZipFile):
            # Whatever runs the program says so, if it minds.
            continue
    return False


def _contents(path: Path) -> Iterator[bytes]:
    if not path.is_file():
        return
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.filename.startswith(_LIBRARIES) and entry.file_size <= _MOST_BYTES:
                    yield archive.read(entry)
    elif path.stat().st_size <= _MOST_BYTES:
        yield path.read_bytes()


def _beside(program: Path, content: bytes) -> Iterator[str]:
    """Return the files of the modules that a Python file imports from its own directory, as Python would find them."""
    for imported in _IMPORTS.findall(content):
        for name in imported.decode().split(","):
            if top := name.strip().partition(".")[0]:
                yield str(program.parent / f"{top}.py")
                yield from map(str, (program.parent / top).rglob("*.py"))
