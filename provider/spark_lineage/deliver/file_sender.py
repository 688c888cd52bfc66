"""Appends events to a local file: one line an event, whole and fsynced, however many processes append."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import Later
from spark_lineage.launch.lock import appending


class FileSender:
    """Appends under a lock; what was written of a line that fails is taken back."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> FileSender | None:
        """Return the sender of a configuration; None for remote files, and for a file an event."""
        location = str(config.get("log_file_path") or "")
        parts = urlsplit(location)
        if not config.get("append") or not location or parts.scheme not in ("", "file"):
            return None
        return cls(Path(url2pathname(parts.path) if parts.scheme else location))

    def send(self, event: Outgoing) -> None:
        """Write one event; errors as of ``Sender``."""
        try:
            with appending(self._path, 0o644) as append:
                append(event.body)
        except OSError as error:
            raise Later(f"{self._path} cannot be written: {error.strerror}", is_away=True) from None

    def probe(self) -> tuple[bool, str]:
        """Say whether the file can be written, or be made; what may be written is not always said by its rights."""
        directory = self._path.parent
        if not directory.is_dir():
            return False, f"the directory {directory} does not exist; create it, or give another"
        target = self._path if self._path.exists() else directory
        try:
            if target is self._path:
                os.close(os.open(target, os.O_WRONLY | os.O_APPEND))
            else:
                TemporaryFile(dir=directory).close()
        except OSError as error:
            problem = f"{target} cannot be written by this process: {error.strerror}"
            return False, f"{problem}; change its rights, or give another"
        return True, f"events are appended to {self._path}"

    def close(self) -> None:
        """Nothing is open."""
