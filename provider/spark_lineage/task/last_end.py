"""The record of a program's last end: its datasets, for the next START, and whether it needs the listener.

It is one file for each submission of a task, below ``records_dir`` or the lineage directory: another program or other
arguments have none. Nor has a worker that does not share the directory with the one that ran the task before.

With ``evidence`` ``auto``, a run with both sources is merged twice, with the listener and without. If the event log
alone gives the same, the next runs have the log alone, from which they start faster. Types of columns, which no log
has, are those of the run with both. After ``MOST_RUNS``, with another Spark or listener, or if a log counts what it
does not know, or names a new dataset or column, the next run has both again.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from spark_lineage.adapters.submission_digest import submission_digest
from spark_lineage.deliver.stored_event import build
from spark_lineage.emit.run_event import CATALOG_CHANGES_KEY
from spark_lineage.launch.bounded_run import LINEAGE_FILES, BoundedPlace
from spark_lineage.launch.directory import (
    LAST_ENDS_DIRECTORY,
    create_private,
    path_segment,
    read_small,
    replace_private,
    without_scheme,
)
from spark_lineage.merge.event import schema_and_catalog
from spark_lineage.merge.lineage import DatasetLineage, SchemaField, TaskLineage
from spark_lineage.merge.log_alone import ChangeKey, Lent, is_lacking
from spark_lineage.naming.identity import DatasetName
from spark_lineage.settings.places import lineage_directory
from spark_lineage.submission.stored_event_log import open_file_system

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.settings import Settings

MOST_RUNS = 20
"""The number of runs with the log alone before one has both sources again."""
_RECORDS = BoundedPlace("the store of records_dir", 5.0)
CHANGING_NAMES = "datasets, whose names differ from run to run"
# The facets that stay true until the dataset is read or written again. Without ``schema``, Marquez shows no columns.
_FACETS = ("schema", "symlinks", "dataSource", "catalog", "storage", "datasetType")
_OF_CHANGE = ("change", "namespace", "name", "objectName", "schema")


class ListenerNeed(Struct, frozen=True):
    """The need of a program for the listener, as its last run with both sources has shown.

    :param at: its end
    :param lacking: what the event log alone does not have, empty where it has everything
    :param made_with: the versions of which this is true
    :param runs: how many runs had the log alone since then
    :param is_harmed: whether the driver of the run died of memory
    """

    at: datetime
    lacking: str
    made_with: str
    runs: int = 0
    is_harmed: bool = False

    def why_alone(self, made_with: str) -> str:
        """Return why the next run needs no listener; empty where it is to have one."""
        if self.lacking or self.made_with != made_with or self.runs >= MOST_RUNS:
            return ""
        day = f"{self.at:%Y-%m-%d}"
        if self.is_harmed:
            return f"the driver ran out of memory with OpenLineage's listener on {day}"
        return f"OpenLineage's listener added nothing to this program on {day}"

    def after(self, lineage: TaskLineage, end: LastEnd) -> ListenerNeed | None:
        """Return what is known after a run with the event log alone; None where it was not what the ``end`` names."""
        # A program that has turned its log off leaves nothing in it.
        is_silent = bool(end.inputs or end.outputs) and not (lineage.inputs or lineage.outputs)
        is_other = is_silent or not end.lent.is_known(lineage) or is_lacking(lineage)
        return None if is_other and not self.is_harmed else structs.replace(self, runs=self.runs + 1)


class LastEnd(Struct, frozen=True, dict=True):
    """The datasets and changes of an end, as the JSON of OpenLineage, and the need of the program for the listener."""

    is_streaming: bool
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    listener_need: ListenerNeed | None = None
    changes: list[dict[str, Any]] = []

    @cached_property
    def lent(self) -> Lent:
        """The details that a lineage of the event log alone lacks."""
        inputs, outputs = ({one.dataset: one for one in map(_dataset, side)} for side in (self.inputs, self.outputs))
        keys = (ChangeKey(one["change"], _name(one), one["objectName"]) for one in self.changes)
        schemas = msgspec.convert([one.get("schema", ()) for one in self.changes], list[tuple[SchemaField, ...]])
        return Lent(inputs, outputs, tuple(zip(keys, schemas, strict=True)))

    def has_new_datasets(self, lineage: TaskLineage) -> bool:
        """Whether a lineage has datasets that this end has not."""
        known = self.lent.inputs.keys() | self.lent.outputs.keys()
        return any(one.dataset not in known for one in lineage.inputs + lineage.outputs)


class Record:
    """Where the last end of a task is kept, as long as it submits what it does now: a file, or an object of a store.

    ``end`` is what is kept there, None for nothing.

    :raises Exception: where the store of ``records_dir`` cannot be opened
    """

    def __init__(self, settings: Settings, task: Any) -> None:
        place = without_scheme(settings.records_dir)
        # The task's own thread opens the store, because Airflow reads the connection.
        self._store: Any
        self._store, root = (
            open_file_system(place, ()) if "://" in place else (None, place or lineage_directory(settings))
        )
        self._directory = root if self._store is not None else f"{root}/{LAST_ENDS_DIRECTORY}"
        self._bound = LINEAGE_FILES if self._store is None else _RECORDS
        self._path = ""
        self.end = self._bound.use(lambda: self._find(task))

    def _find(self, task: Any) -> LastEnd | None:
        name = path_segment(f"{task.dag_id}/{task.task_id}")
        self._path = f"{self._directory}/{name}-{submission_digest(task)[:32]}.json"
        try:
            content = read_small(Path(self._path)) if self._store is None else self._store.cat_file(self._path)
            return msgspec.json.decode(content, type=LastEnd)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def keep(self, content: bytes | None, earlier: LastEnd | None, need: ListenerNeed | None) -> None:
        """Keep the datasets of an event in the place of those before.

        :param content: the JSON of a ``RunEvent``, without secrets; None keeps those of the ``earlier`` end
        """
        if content is None:
            end = structs.replace(earlier or LastEnd(is_streaming=False, inputs=[], outputs=[]), listener_need=need)
        else:
            event = msgspec.json.decode(content)
            processing = event["job"].get("facets", {}).get("jobType", {}).get("processingType")
            inputs, outputs = ([_kept(one) for one in event.get(side, ())] for side in ("inputs", "outputs"))
            if not (inputs or outputs):
                return
            changes = event.get("run", {}).get("facets", {}).get(CATALOG_CHANGES_KEY, {}).get("changes", [])
            changes = [{name: each[name] for name in _OF_CHANGE if name in each} for each in changes]
            end = LastEnd(processing == "STREAMING", inputs, outputs, need, changes)
        self._bound.use(lambda: self._write(msgspec.json.encode(end)))

    def _write(self, content: bytes) -> None:
        if self._store is not None:
            self._store.pipe_file(self._path, content)
            return
        create_private(Path(self._path).parent)
        replace_private(Path(self._path), content)


def with_last_end(known: OperatorLineage[Any, Any], end: LastEnd | None) -> OperatorLineage[Any, Any]:
    """Add the inputs of an end, and a stream's outputs, to what is known of the task, which comes first."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    if end is None:
        return known
    sides: dict[str, list[Any]] = {"inputs": list(known.inputs), "outputs": list(known.outputs)}
    for side, kind in (("inputs", InputDataset), *([("outputs", OutputDataset)] if end.is_streaming else [])):
        names = {(one.namespace, one.name) for one in sides[side]}
        repeating = (one for one in getattr(end, side) if (one["namespace"], one["name"]) not in names)
        sides[side] += [build(kind, one) for one in repeating]
    return OperatorLineage(**sides, run_facets=known.run_facets, job_facets=known.job_facets)


def with_last_types(lineage: TaskLineage, end: LastEnd | None) -> TaskLineage:
    """Add what the last run with both sources lends to a lineage of the log alone, if that lacks nothing else."""
    need = None if end is None else end.listener_need
    if end is None or need is None or need.lacking or need.is_harmed or lineage.evidence != ("event_log",):
        return lineage
    return structs.replace(end.lent.to(lineage), types_from=need.at)


def _kept(dataset: dict[str, Any]) -> dict[str, Any]:
    facets = {name: facet for name, facet in dataset.get("facets", {}).items() if name in _FACETS}
    return {"namespace": dataset["namespace"], "name": dataset["name"], "facets": facets}


def _dataset(kept: dict[str, Any]) -> DatasetLineage:
    schema, catalog = schema_and_catalog(kept["facets"])
    return DatasetLineage(_name(kept), schema=schema, catalog=catalog)


def _name(kept: dict[str, Any]) -> DatasetName:
    return DatasetName(kept["namespace"], kept["name"])
