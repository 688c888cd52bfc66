"""Keeps what the last successful end of a task named, for the START of its next run to repeat.

One file for each submission of a task, below the lineage directory: another program or other arguments have none. Nor
has a worker that does not share the directory with the one that ran the task before: its START names no datasets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import LAST_ENDS_DIRECTORY, create_private, encoded, replace_private

# What an event says of a dataset that is true before it was read or written again. Without its schema Marquez would
# show it without columns.
_FACETS = ("schema", "symlinks", "dataSource", "catalog", "storage", "datasetType")


class LastEnd(Struct, frozen=True):
    """The datasets of an end, as the JSON of OpenLineage."""

    is_streaming: bool
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


def last_end_file(root: Path, dag_id: str, task_id: str, digest: str) -> Path:
    """Return the file of a task.

    :param root: the lineage directory
    :param digest: of what it submits
    """
    return root / LAST_ENDS_DIRECTORY / f"{encoded(f'{dag_id}/{task_id}')}-{digest[:32]}.json"


@LINEAGE_FILES.bounded
def keep_end(file: Path, content: bytes) -> None:
    """Keep the datasets of an event in the place of those before.

    :param content: the JSON of a ``RunEvent``, without secrets
    :raises OSError: when they cannot be kept; those before are there still
    """
    event = msgspec.json.decode(content)
    processing = event["job"].get("facets", {}).get("jobType", {}).get("processingType")
    sides = {side: [_kept(one) for one in event.get(side, ())] for side in ("inputs", "outputs")}
    if not any(sides.values()):
        return
    create_private(file.parent)
    replace_private(file, msgspec.json.encode(LastEnd(processing == "STREAMING", **sides)))


@LINEAGE_FILES.bounded
def read_end(file: Path) -> LastEnd | None:
    """Return what was kept, None where there is nothing.

    :raises OSError: when it is there and cannot be read
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=LastEnd)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _kept(dataset: dict[str, Any]) -> dict[str, Any]:
    facets = {name: facet for name, facet in dataset.get("facets", {}).items() if name in _FACETS}
    return {"namespace": dataset["namespace"], "name": dataset["name"], "facets": facets}
