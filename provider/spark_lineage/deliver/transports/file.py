"""The file transport: one line an event, whole and fsynced, however many processes append."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from openlineage.client.serde import Serde
from openlineage.client.transport.file import FileTransport, LocalFileHandler

from spark_lineage.deliver.transports.errors import NotTakenError
from spark_lineage.launch.lock import appending
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from openlineage.client.client import Event


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
            with appending(Path(path), 0o644) as append:
                append(Serde.to_json(event).encode())
        except OSError as error:
            raise NotTakenError(f"{redact(path)} cannot be written: {error.strerror}") from None


def local_path(location: str) -> str:
    """Return the path of a local file, which may be a ``file:`` URL."""
    parts = urlsplit(location)
    return url2pathname(parts.path) if parts.scheme == "file" else location
