"""Lineage of made-up programs, told by the events that the listener sends for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.merge.conclusion import EndFacts, conclude
from spark_lineage.merge.execution import Execution
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
APPLICATION_ID = "local-1"
APPLICATION = "00000000-0000-7000-8000-000000000000"
WRITE = "execute_insert_into_hadoop_fs_relation_command"


class Program:
    """A Spark program: each call is a run of the listener, one second after the other."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.executions: list[Execution] = []
        self.is_torn = False
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
        processing: str = "BATCH",
    ) -> str:
        """Add one run; inputs and outputs are of ``dataset`` or plain paths."""
        run_id = self._next_run_id()
        for event_type in types:
            self._event(event_type, run_id, f"app.{node}", kind, inputs, outputs, processing)
        return run_id

    @contextmanager
    def running(
        self,
        inputs: list[Any] = (),  # type: ignore[assignment]
        outputs: list[Any] = (),  # type: ignore[assignment]
        *,
        node: str = WRITE,
        processing: str = "BATCH",
    ) -> Iterator[str]:
        """Add one run around others."""
        run_id = self._next_run_id()
        self._event("START", run_id, f"app.{node}", "SQL_JOB", inputs, outputs, processing)
        yield run_id
        self._event("COMPLETE", run_id, f"app.{node}", "SQL_JOB", inputs, outputs, processing)

    @contextmanager
    def failing(self, inputs: list[Any], outputs: list[Any], *, node: str) -> Iterator[str]:
        """Add one run around others that ends in FAIL."""
        with self.running(inputs, outputs, node=node) as run_id:
            yield run_id
        self.events[-1]["eventType"] = "FAIL"

    def log(self, run_id: str | None = None, **told: Any) -> None:
        """Add what an event log says of a run, or of an execution that the listener kept silent about."""
        times = [event["eventTime"] for event in self.events if event["run"]["runId"] == run_id]
        if not times:
            self._second += 2
            times = [self._moment(self._second - 1), self._moment(self._second)]
        number = len(self.executions)
        told = {
            "execution_id": number,
            "started": datetime.fromisoformat(times[0]).timestamp(),
            "ended": datetime.fromisoformat(times[-1]).timestamp(),
            "is_failed": False,
            "root_execution_id": number,
        } | told
        self.executions.append(Execution(application_id=APPLICATION_ID, **told))

    def _next_run_id(self) -> str:
        self._runs += 1
        return f"00000000-0000-7000-8000-{self._runs:012d}"

    @staticmethod
    def _moment(second: int) -> str:
        return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"

    def end(self) -> None:
        """End the application, as the listener says it ends whatever happened."""
        self._event("COMPLETE", APPLICATION, "app", "APPLICATION")

    def lineage(
        self, *, exit_code: int = 0, is_killed: bool = False, has_actions: bool = False, is_logged: bool = False
    ) -> TaskLineage:
        """Return the lineage of the task; with ``is_logged`` that of one that runs."""
        state = "RUNNING" if is_logged else conclude(EndFacts(exit_code=exit_code, is_killed=is_killed))
        return task_lineage(self.state(), state, has_actions=has_actions, is_logged=is_logged)

    def state(self) -> LineageState:
        """Return what its events and its log say."""
        collector = Collector()
        collector.add((json.dumps(event).encode() for event in self.events), source="program")
        assert collector.counts.set_aside == {}
        collector.state.is_torn = self.is_torn
        for execution in self.executions:
            collector.state.add_execution(execution)
        return collector.state

    def _event(
        self,
        event_type: str,
        run_id: str,
        job: str,
        kind: str,
        inputs: list[Any] = (),
        outputs: list[Any] = (),  # type: ignore[assignment]
        processing: str = "BATCH",
    ) -> None:
        self._second += 1
        facets: dict[str, Any] = {}
        if run_id != APPLICATION:
            facets["parent"] = {"run": {"runId": APPLICATION}, "job": {"namespace": "ns", "name": "app"}}
        else:
            facets["spark_applicationDetails"] = {"applicationId": APPLICATION_ID}
        job_type = {"jobType": kind, "processingType": processing}
        self.events.append(
            {
                "eventTime": self._moment(self._second),
                "eventType": event_type,
                "run": {"runId": run_id, "facets": facets},
                "job": {"namespace": "ns", "name": job, "facets": {"jobType": job_type}},
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
    edges: dict[str, tuple[str, ...]] | None = None,
    whole: tuple[tuple[str, ...], ...] = (),
) -> dict[str, Any]:
    """Return a dataset as JSON.

    ``edges`` is output column to (input path, column, type, subtype), where type and subtype may be left out; ``whole``
    holds such tuples for the dataset as a whole.
    """
    facets: dict[str, Any] = {}
    if columns:
        facets["schema"] = {"fields": [{"name": column, "type": "int"} for column in columns]}
    if table:
        facets["symlinks"] = {"identifiers": [{"namespace": table_namespace, "name": table, "type": "TABLE"}]}
    if lifecycle:
        facets["lifecycleStateChange"] = {"lifecycleStateChange": lifecycle}
        if previous:
            facets["lifecycleStateChange"]["previousIdentifier"] = {"namespace": "file", "name": previous}
    if edges or whole:
        facets["columnLineage"] = {
            "fields": {column: {"inputFields": [_input_field(*edge)]} for column, edge in (edges or {}).items()},
            "dataset": [_input_field(*edge) for edge in whole],
        }
    one: dict[str, Any] = {"namespace": "file", "name": name, "facets": facets}
    if rows is not None:
        one["outputFacets"] = {"outputStatistics": {"rowCount": rows, "size": rows * 10, "fileCount": 1}}
    return one


def _input_field(path: str, field: str, kind: str = "DIRECT", subtype: str = "IDENTITY") -> dict[str, Any]:
    transformations = [{"type": kind, "subtype": subtype}]
    return {"namespace": "file", "name": path, "field": field, "transformations": transformations}


@pytest.fixture
def program() -> Program:
    """A program that has just started."""
    return Program()


@pytest.fixture
def make_dataset() -> Any:
    """The builder of datasets."""
    return dataset
