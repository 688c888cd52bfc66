"""All recorded applications as Spark's REST tells of them: event logs from a History Server, and plans (``/sql``)."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fast_spark import JAVA_ENV
from lineage_backends.history_server import history_server
from msgspec import structs

from spark_lineage.cli import main
from spark_lineage.collect.collector import Collector
from spark_lineage.collect.copies import Copies, Wanted
from spark_lineage.collect.driver_ui import UiCollector
from spark_lineage.collect.history_log import HistoryLog
from spark_lineage.launch.directory import EVENT_LOG_DIRECTORY, OWN_EVENT_LOGS
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.plans.event_log import EventLogReader
from spark_lineage.plans.event_log_files import IN_PROGRESS
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.history_logs import HistoryLogs
from spark_lineage.watch.rest import NoAnswerError, RestClient
from spark_lineage.watch.source import Known
from spark_lineage.watch.spark_api import HistoryServer
from spark_lineage.watch.sql_log import SqlLog

# Tests are no package: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
recordings = importlib.import_module("truth_recording")

WAIT_SECONDS = 180
# What the recordings leave out and a History Server asks for.
_KEY = b'"System Properties":'
_LEFT_OUT = ("JVM Information", "Hadoop Properties", "Metrics Properties", "Classpath Entries")
COMPLETED = (_KEY, b"".join(f'"{name}":{{}},'.encode() for name in _LEFT_OUT) + _KEY)
# What the API does not say, or not in full: docs/evidence.md.
LACKING = {
    "cached_reference_data",
    "caches",
    "hundred_files",
    "logs_many_paths",
    "partition_overwrite",
    "rdd_access_log",
    "rdd_binary_formats",
    "rdds",
    # Where rows of RDDs come from is in the jobs of the log.
    *("checkpoints", "counted_rdd_saves", "iceberg_rdds", "rdd_joined_with_frames", "rdd_lines_to_frames"),
    *("rdd_of_tables", "rdds_in_commands", "rdds_into_frames", "rdds_of_frames", "rdds_of_tables"),
}


class OlderSqlLog(SqlLog):
    """As of Spark before 4.2, which names no root."""

    def read(self, client: Any, url: str, application: Any, attempt: Any, executions: Any) -> None:
        executions = [structs.replace(one, root_execution_id=None) for one in executions]
        super().read(client, url, application, attempt, executions)


def facts(state: LineageState) -> set[tuple[Any, ...]]:
    """Return what a RUNNING event of a state could name: datasets, columns and edges."""
    lineage = task_lineage(state, "RUNNING")
    datasets = [*lineage.inputs, *lineage.outputs]
    return {
        *((side, one.dataset) for side in ("inputs", "outputs") for one in getattr(lineage, side)),
        *((one.dataset, column.name) for one in datasets for column in one.schema),
        *((one.dataset, source) for one in lineage.outputs for source in one.fed_by),
        *(
            (one.dataset, column, source.dataset, source.field)
            for one in lineage.outputs
            for column, sources in (one.column_lineage.fields if one.column_lineage else ())
            for source in sources
        ),
    }


def ended(log: Path) -> LineageState:
    """Return what a log says of the executions that have ended."""
    state = LineageState()
    reader = EventLogReader()
    for line in log.read_bytes().splitlines():
        for execution in reader.add(line):
            state.add_execution(execution)
    return state


def by_plans(url: str, application_id: str, sql_log: SqlLog) -> LineageState:
    """Return what the plans of an application say."""
    server = HistoryServer(
        RestClient(), Endpoints("local[1]", "client", {"history_server_url": url}), Known(application_id)
    )
    server.sql_log = sql_log
    collector = UiCollector(sql_log, Collector(), 3600, logging.getLogger(__name__))
    collector.poll()
    # Where nothing but jobs of RDDs ran, there are no plans to come.
    while sql_log.is_wanted and any(one.subject == "SQL_EXECUTION" for one in server.poll()):
        pass
    return collector.poll().state


def merged(log: Path, event: Path) -> object:
    """Return what the event of a log tells."""
    assert main(["merge", "--exit-code", "0", "--event-log", str(log), "--output", str(event)]) == 0
    made = json.loads(event.read_text())
    return {key: made[key] for key in ("inputs", "outputs")}


@pytest.mark.truth
@pytest.mark.spark
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_event_of_what_a_history_server_gives_is_that_of_the_file(tmp_path: Path, every: int) -> None:
    served = tmp_path / "served"
    served.mkdir()
    files: dict[str, Path] = {}
    jobs: dict[str, str] = {}
    lacking: set[str] = set()
    for version, job in list(recordings.recordings())[::every]:
        application = recordings.recorded(job, version, tmp_path / "recorded" / version / job)
        for log in (application.home / "eventlog").iterdir():
            log.write_bytes(log.read_bytes().replace(*COMPLETED))
            files[log.name], jobs[log.name] = log, job
            (served / log.name).hardlink_to(log)
    with history_server(served, {**os.environ, **JAVA_ENV}, tmp_path) as url:
        api = HistoryLogs(Endpoints("local[1]", "client", {"history_server_url": url}))
        for name, log in files.items():
            application_id, launch = name.removesuffix(IN_PROGRESS), tmp_path / "launch" / name
            wanted = Wanted("", 0.0, lambda application_id=application_id: {application_id})
            history = HistoryLog(api, Copies(launch, set(), is_over=lambda: False), wanted)
            brought = launch / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
            deadline = time.monotonic() + WAIT_SECONDS
            while not (brought / application_id).exists():
                assert time.monotonic() < deadline, f"the History Server does not give {name}"
                with contextlib.suppress(NoAnswerError):
                    # Of one that was killed there is no end to wait for.
                    history.bring(is_last=name != application_id)
            assert (brought / application_id).read_bytes() == log.read_bytes()
            assert merged(brought / application_id, launch / "here.json") == merged(log, launch / "there.json")
            true = facts(ended(log))
            for sql_log in (SqlLog(), OlderSqlLog()):
                told = facts(by_plans(url, application_id, sql_log))
                assert told <= true, f"{jobs[name]} has too much: {sorted(map(str, told - true))}"
                lacking |= {jobs[name]} if true - told and not sql_log.why_not else set()
    assert lacking <= LACKING
