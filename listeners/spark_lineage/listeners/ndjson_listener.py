"""Writes each event as a line of JSON to a file, for programs that read files: the event's type is in ``event``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec

from spark_lineage.listeners.listener import Event, ListenerContext, TaskListener

OPTION = "ndjson_listener_path"


class NdjsonListener(TaskListener):
    """For both settings; the file is ``ndjson_listener_path`` of the connection's extra or of ``[spark_lineage]``.

    Tasks of one host may share a file of a local file system: a line is one ``write`` to a file that is open for
    appending, which nothing can tear. It is not synced to the disk: a process that is killed loses nothing, a host that
    crashes the last seconds.

    :raises ValueError: when no path is set
    """

    def __init__(self, context: ListenerContext) -> None:
        super().__init__(context)
        path = str(context.options.get(OPTION) or "")
        if not Path(path).is_absolute():
            raise ValueError(f"[spark_lineage] {OPTION} is {path!r}; give an absolute path of a local file system")
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._is_torn = False

    def on_event(self, event: Event) -> None:
        """Append the event.

        :raises OSError: when it could not be written whole
        """
        line = b"\n" * self._is_torn + _json(event) + b"\n"
        # Opened anew each time, so that the file may be moved away.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            written = os.write(descriptor, line)
        finally:
            os.close(descriptor)
        self._is_torn = written < len(line)
        if self._is_torn:
            raise OSError(f"only {written} of {len(line)} bytes could be written to {self._path}: is the disk full?")


def _json(event: Event) -> bytes:
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:
        # Half a character, as a path may hold, is no JSON: its escape is.
        return json.dumps(msgspec.to_builtins(event, enc_hook=msgspec.json.decode)).encode()
