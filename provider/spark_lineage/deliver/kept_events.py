"""Keeps the events of a task beside the lineage of its launch, one JSON object a line.

Everything here raises ``OSError`` when a file cannot be read, or written.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from spark_lineage.deliver.spool import TERMINAL, Outgoing, SpoolError
from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import RUN_EVENTS_FILE
from spark_lineage.launch.lock import appending


@LINEAGE_FILES.bounded
def append(directory: Path, content: bytes) -> None:
    """Keep the JSON of an event in the directory of its launch: whole and on disk when this returns, or not at all.

    Nothing is kept where there is no such directory.
    """
    if directory.is_dir():
        with appending(directory / RUN_EVENTS_FILE, 0o600, os.O_NOFOLLOW) as append_line:
            append_line(content)


@LINEAGE_FILES.bounded
def append_end(directory: Path, end: Outgoing) -> Outgoing:
    """Keep the end of a run, unless there is one already; return the one that is kept, or this one."""
    if directory.is_dir():
        with appending(directory / RUN_EVENTS_FILE, 0o600, os.O_NOFOLLOW) as append_line:
            if (kept := end_of(directory, end.run_id)) is not None:
                return kept
            append_line(end.body)
    return end


@LINEAGE_FILES.bounded
def end_of(directory: Path, run_id: str) -> Outgoing | None:
    """Return the end of a run that is kept in the directory of its launch, None where there is none."""
    with suppress(FileNotFoundError), (directory / RUN_EVENTS_FILE).open("rb") as lines:
        for line in lines:
            # A line may be torn.
            with suppress(SpoolError):
                event = Outgoing.of(line.strip())
                if event.run_id == run_id and event.event_type in TERMINAL:
                    return event
    return None
