"""Which snapshot of an Iceberg table was read: by time travel another than the version that the listener gives."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from spark_lineage.merge.observed import Observed
from spark_lineage.merge.state import RunState, with_contents
from spark_lineage.naming.identity import DatasetName

_UNNAMED = "snapshot "


def is_named(version: str) -> bool:
    """Whether a version is no stand-in for one of which the last digits are lost."""
    return not version.startswith(_UNNAMED)


def with_snapshots(runs: Mapping[str, RunState]) -> Mapping[str, RunState]:
    """Return runs whose inputs have the snapshots that Iceberg reports to have read as their versions.

    A report has a number whose last digits are lost. It is that of the only version of the table with these digits that
    the task names; else a text stands for it that is no version, so that the task has not written it.
    """
    if not any(read.scanned for run in runs.values() for read in run.content.inputs):
        return runs
    known: dict[tuple[DatasetName, float], set[str]] = {}
    for run in runs.values():
        for one in (*run.content.inputs, *run.content.outputs):
            for version in filter(str.isdecimal, one.versions):
                known.setdefault((one.dataset.whole, float(version)), set()).add(version)

    def read_in(read: Observed) -> Observed:
        versions: set[str] = set()
        for number in read.scanned:
            found = known.get((read.dataset.whole, number), set())
            versions |= found if len(found) == 1 else {f"{_UNNAMED}{number}"}
        return structs.replace(read, versions=frozenset(versions), scanned=frozenset()) if read.scanned else read

    return with_contents(runs, lambda content: structs.replace(content, inputs=tuple(map(read_in, content.inputs))))
