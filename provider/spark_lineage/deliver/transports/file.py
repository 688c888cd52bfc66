"""The file transport: one line an event, whole and on the disk, however many processes append."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from openlineage.client.serde import Serde
from openlineage.client.transport.file import FileTransport, LocalFileHandler

from spark_lineage.deliver.transports.errors import NotTakenError
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from openlineage.client.client import Event

_LOCK_SECONDS, _PAUSE_SECONDS = 5.0, 0.01


class DurableFileTransport(FileTransport):
    """Appends to a local file under a lock, fsynced; remote files and files an event each are written as ever."""

    def emit(self, event: Event) -> None:
        """Write one event.

        :raises NotTakenError: when the file cannot be written; what was written of the line is taken back
        """
        if not self.config.append or not isinstance(self._file_handler, LocalFileHandler):
            super().emit(event)
            return
        path = local_path(self.config.log_file_path)
        try:
            _append(path, f"{Serde.to_json(event)}\n".encode())
        except OSError as error:
            problem = f"{redact(path)} cannot be written: {error.strerror}"
        else:
            return
        raise NotTakenError(problem)


def local_path(location: str) -> str:
    """Return the path of a local file, which may be a ``file:`` URL."""
    parts = urlsplit(location)
    return url2pathname(parts.path) if parts.scheme == "file" else location


def _append(path: str, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _lock(descriptor)
        size = os.fstat(descriptor).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Wait for whoever else appends, who may have been stopped."""
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
