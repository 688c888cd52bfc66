"""Space on the disk that only removing may use: else nothing could leave a file on a disk that is full."""

from __future__ import annotations

import os
from pathlib import Path

# SQLite first writes down what it is going to change: what its WAL may hold at most, and a large event.
BYTES = 4 * 1024 * 1024


class Reserve:
    """A file that takes its room, and gives it back when it is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_kept(self) -> bool:
        """Whether the room is taken."""
        try:
            return self._path.stat().st_size >= BYTES
        except FileNotFoundError:
            return False

    def keep(self) -> None:
        """Take the room.

        :raises OSError: when there is not so much
        """
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, BYTES)
            else:
                os.write(descriptor, bytes(BYTES))
        except OSError:
            os.ftruncate(descriptor, 0)
            raise
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Free the space, until it is kept again."""
        if self._path.exists():
            os.truncate(self._path, 0)
