"""Lineage of made-up programs, told by the events that the listener sends for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.collect.collector import Collector
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.task import task_lineage

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
APPLICATION = "00000000-0000-7000-8000-000000000000"
WRITE = "execute_insert_into_hadoop_fs_relation_command"


class Program:
    """A Spark program: each call is a run of the listener, one second after the other."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._second = 0
        self._runs = 0
        self._event("START", APPLICATION, "app", "APPLICATION")

    def run(
        self,
        inputs: list[Any] = (),  # type: ignore[assignment]
        outputs: list[Any] = (),  # type: ignore[assignment]
        *,
        node: str = WRITE,
        types: tuple[str, ...] = ("START", "COMPLETE"),
        kind: str = "SQL_JOB",
    ) -> None:
        """Add one run; inputs and outputs are of ``dataset`` or plain paths."""
        self._runs += 1
        run_id = f"00000000-0000-7000-8000-{self._runs:012d}"
        for event_type in types:
            self._event(event_type, run_id, f"app.{node}", kind, inputs, outputs)

    def end(self) -> None:
        """End the application, as the listener says it ends whatever happened."""
        self._event("COMPLETE", APPLICATION, "app", "APPLICATION")

    def lineage(self, *, exit_code: int = 0, is_killed: bool = False) -> TaskLineage:
        """Give the lineage of the task."""
        collector = Collector()
        collector.add((json.dumps(event).encode() for event in self.events), source="program")
        assert collector.counts.set_aside == {}
        return task_lineage(collector.state, task_state(exit_code=exit_code, is_killed=is_killed))

    def _event(
        self,
        event_type: str,
        run_id: str,
        job: str,
        kind: str,
        inputs: list[Any] = (),
        outputs: list[Any] = (),  # type: ignore[assignment]
    ) -> None:
        self._second += 1
        facets: dict[str, Any] = {}
        if run_id != APPLICATION:
            facets["parent"] = {"run": {"runId": APPLICATION}, "job": {"namespace": "ns", "name": "app"}}
        self.events.append(
            {
                "eventTime": f"2026-01-01T00:{self._second // 60:02d}:{self._second % 60:02d}Z",
                "eventType": event_type,
                "run": {"runId": run_id, "facets": facets},
                "job": {"namespace": "ns", "name": job, "facets": {"jobType": {"jobType": kind}}},
                "inputs": [dataset(one) if isinstance(one, str) else one for one in inputs],
                "outputs": [dataset(one, rows=1) if isinstance(one, str) else one for one in outputs],
            }
        )


def dataset(
    name: str,
    *,
    columns: tuple[str, ...] = ("id",),
    table: str | None = None,
    table_namespace: str = "file:/wh",
    rows: int | None = None,
    lifecycle: str | None = None,
    previous: str | None = None,
    edges: dict[str, tuple[str, str]] | None = None,
) -> dict[str, Any]:
    """Give a dataset as JSON; ``edges`` is output column to (input path, column)."""
    facets: dict[str, Any] = {}
    if columns:
        facets["schema"] = {"fields": [{"name": column, "type": "int"} for column in columns]}
    if table:
        facets["symlinks"] = {"identifiers": [{"namespace": table_namespace, "name": table, "type": "TABLE"}]}
    if lifecycle:
        facets["lifecycleStateChange"] = {"lifecycleStateChange": lifecycle}
        if previous:
            facets["lifecycleStateChange"]["previousIdentifier"] = {"namespace": "file", "name": previous}
    if edges:
        facets["columnLineage"] = {
            "fields": {
                column: {
                    "inputFields": [
                        {
                            "namespace": "file",
                            "name": path,
                            "field": field,
                            "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
                        }
                    ]
                }
                for column, (path, field) in edges.items()
            }
        }
    one: dict[str, Any] = {"namespace": "file", "name": name, "facets": facets}
    if rows is not None:
        one["outputFacets"] = {"outputStatistics": {"rowCount": rows, "size": rows * 10, "fileCount": 1}}
    return one


@pytest.fixture
def program() -> Program:
    """A program that has just started."""
    return Program()


@pytest.fixture
def make_dataset() -> Any:
    """The builder of datasets."""
    return dataset
