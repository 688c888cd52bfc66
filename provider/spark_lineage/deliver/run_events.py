"""The file in the directory of a launch that stores the events of its run, so that they can be sent again."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from spark_lineage.deliver.outgoing import TERMINAL, Outgoing, SpoolError
from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import RUN_EVENTS_FILE
from spark_lineage.launch.lock import appending

_appending = partial(appending, mode=0o600, flags=os.O_NOFOLLOW)


@LINEAGE_FILES.bounded
def append_event(directory: Path, content: bytes) -> None:
    """Append the JSON of an event: whole and on disk when this returns, or not at all; nothing without a directory."""
    if directory.is_dir():
        with _appending(directory / RUN_EVENTS_FILE) as append_line:
            append_line(content)


@LINEAGE_FILES.bounded
def append_end(directory: Path, end: Outgoing) -> Outgoing:
    """Append the end of a run, unless there is one already; return the stored end, or this one."""
    if directory.is_dir():
        with _appending(directory / RUN_EVENTS_FILE) as append_line:
            if (stored := stored_end(directory, end.run_id)) is not None:
                return stored
            append_line(end.body)
    return end


@LINEAGE_FILES.bounded
def stored_end(directory: Path, run_id: str) -> Outgoing | None:
    """Return the stored end of a run, None without one."""
    with suppress(FileNotFoundError), (directory / RUN_EVENTS_FILE).open("rb") as lines:
        for line in lines:
            # A line may be torn.
            with suppress(SpoolError):
                event = Outgoing.of(line.strip())
                if event.run_id == run_id and event.event_type in TERMINAL:
                    return event
    return None
