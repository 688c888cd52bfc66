"""Decides who tells the end of a try: of all schedulers, API servers and workers that find it lost, exactly one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from msgspec import structs

from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import CLAIM_PREFIX
from spark_lineage.launch.launch import Launch, read_launch, store_launch


class LaunchStore(Protocol):
    """Where the latest launch of a task is kept: Airflow's task state store, of whichever side."""

    def get(self) -> Launch | None:
        """Return the launch, None where there is none of ours."""

    def close(self, launch: Launch) -> bool | None:
        """Close the try of a launch: True for the one caller who does, False if it was closed, None if it is not there.

        Where the store is a database, this is one atomic step.
        """


def is_same_try(one: Launch, other: Launch) -> bool:
    """Whether two handles are of one try; a driver that was taken over has the same directory, but another run."""
    return (one.directory, one.run_id, one.try_number) == (other.directory, other.run_id, other.try_number)


@LINEAGE_FILES.bounded
def claim(launch: Launch, store: LaunchStore | None) -> bool:
    """Close the try of a launch before its end is sent; the caller that gets False must not send it.

    A file that only one process can make decides where the launch's directory is shared, the store where it is not.
    """
    directory = Path(launch.directory)
    on_disk = read_launch(directory)
    if on_disk is not None and is_same_try(on_disk, launch) and on_disk.is_closed:
        return False
    is_first = _is_first(directory / f"{CLAIM_PREFIX}{launch.try_number}-{launch.run_id}")
    if is_first is False:
        return False
    is_closed_now = store.close(launch) if store is not None else None
    if is_closed_now is False or (is_closed_now is None and is_first is None):
        return False
    # Another try may have taken the driver over, and the file with it.
    if on_disk is not None and is_same_try(on_disk, launch):
        store_launch(None, structs.replace(launch, is_closed=True))
    return True


def _is_first(file: Path) -> bool | None:
    """Whether this process made a file that was not there; None where it cannot be made at all."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return None
    return True
