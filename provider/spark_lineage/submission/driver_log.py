"""Copies the events of OpenLineage's console transport from the driver's log into the launch's directory.

Each event is one line of log4j, at level INFO, by the logger ``ConsoleTransport`` (``ConsoleTransport.emit`` of
openlineage-java), in Spark's default layout or in that of ``spark.log.structuredLogging.enabled``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from spark_lineage.launch.directory import append_private
from spark_lineage.launch.line import is_of_run
from spark_lineage.submission.event_channel import EventSource

GAP = "driver's log with a gap"
# The quote ends no text of an event: within one it is written \".
_EVENT = re.compile(rb'ConsoleTransport\W*(?=\{"event)')
_STRUCTURED = b'ConsoleTransport"'
# A line of a file that holds nothing else, beside a container's log.
_BARE = b'{"eventT'


class GrowingLog(Protocol):
    """The output of a driver, wherever it is kept."""

    def added(self, *, is_last: bool) -> Iterator[bytes | None]:
        """Return the lines that were added since the last call; None where some are lost.

        :param is_last: whether a last line without its end is wanted, too
        """


class _Structured(msgspec.Struct):
    """A line of log4j's JSON layout (``SparkLayout.json``)."""

    msg: str = ""
    logger: str = ""


class LoggedEvents(EventSource):
    """The events of a run and of its children in the log of a driver."""

    def __init__(self, log: GrowingLog, run_id: str, file: Path) -> None:
        super().__init__(run_id, file)
        self._log = log

    def pull(self, *, is_last: bool = False) -> None:
        """Copy what is new."""
        append_private(self._file, self._events(is_last=is_last))

    def _events(self, *, is_last: bool) -> Iterator[bytes]:
        for line in self._log.added(is_last=is_last):
            if line is None:
                self.set_aside[GAP] = self.set_aside.get(GAP, 0) + 1
            else:
                for event in events_of(line):
                    # A program may print events of other runs. The collector counts torn ones.
                    is_ours = True
                    with suppress(msgspec.DecodeError):
                        is_ours = is_of_run(event, self._run_id)
                    if is_ours:
                        yield event + b"\n"


def events_of(line: bytes) -> list[bytes]:
    """Return the events on a line of a log: one, or several where the line of another thread breaks it.

    What is torn is returned, too, for whoever reads the events to count.
    """
    if line.startswith(_BARE):
        return [line]
    if line.startswith(b"{") and _STRUCTURED in line:
        with suppress(msgspec.DecodeError):
            found = msgspec.json.decode(line, type=_Structured)
            return [found.msg.encode()] if found.logger.endswith("ConsoleTransport") else []
        return [line]
    # The text behind the last brace belongs to another thread.
    return [text[: text.rfind(b"}") + 1] or text for text in _EVENT.split(line)[1:]]
