"""What the commands have in common: how they write, and how they refuse."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STDOUT = "standard output"


class InputError(Exception):
    """Input that cannot be used; the text says what and why."""


def write(path: Path, content: bytes) -> None:
    """Write whole or not at all; what is there and no file (``/dev/null``, a pipe) is written to, never replaced."""
    with told(str(path)):
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)
            return
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                temporary.chmod(0o666 & ~_umask())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise


def write_line(line: str) -> None:
    """Write a line to standard output; half a character of a name becomes its escape."""
    with told(STDOUT):
        sys.stdout.buffer.write(line.encode(errors="backslashreplace") + b"\n")
        sys.stdout.buffer.flush()


def write_json(value: Any) -> None:
    """Write one JSON object to standard output, on one line."""
    write_line(json.dumps(value))


@contextmanager
def told(target: str) -> Iterator[None]:
    """Turn trouble with writing into the command's own error; a reader that has gone is none."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if target == STDOUT:
            abandon_stdout()
        raise InputError(f"cannot write {target}: {error.strerror}") from error


def abandon_stdout() -> None:
    """Have what the interpreter still flushes at its end go nowhere, or it would complain too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
