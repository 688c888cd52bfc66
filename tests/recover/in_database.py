"""Stands in for schedulers and API servers: puts launches into Airflow's database, closes them, says what it saw."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from airflow.state import TaskScope, get_state_backend
from airflow.utils.session import create_session
from openlineage.client.uuid import generate_new_uuid
from sqlalchemy import select, update

from spark_lineage.deliver.outgoing import append_event
from spark_lineage.launch.directory import create_private, launch_directory
from spark_lineage.launch.launch import Launch, TaskKey, store_launch
from spark_lineage.launch.stores import ServerStore
from spark_lineage.recover.__main__ import close_try
from spark_lineage.recover.search import (
    DagRunEnd,
    LostTry,
    lineage_root,
    lost_meanwhile,
    lost_of_dag_run,
    lost_tries,
    lost_within,
)

EVENTS, TOLD = map(Path, sys.argv[1:])
TASK = TaskKey("shop", "r1", "load")
END = b'{"Event":"SparkListenerApplicationEnd","Timestamp":1795295299000}\n'
run_ids: dict[int, str] = {}


class Accessor:
    """``context["task_state_store"]`` as far as it is used, without a worker."""

    def set(self, key: str, value: Any) -> None:
        """Store as the Execution API does."""
        scope = TaskScope(TASK.dag_id, TASK.run_id, TASK.task_id, TASK.map_index)
        get_state_backend().set(scope, key, json.dumps(value))


def launch(try_number: int, *, is_stored: bool = True) -> Launch:
    """Have a try launch a driver, which is killed."""
    application = str(generate_new_uuid())
    directory = launch_directory(
        lineage_root(),
        dag_id=TASK.dag_id,
        run_id=TASK.run_id,
        task_id=TASK.task_id,
        map_index=TASK.map_index,
        try_number=try_number,
        application_run_id=application,
    )
    create_private(directory)
    (directory / "openlineage-events.ndjson").write_bytes(EVENTS.read_bytes())
    run_ids[try_number] = openlineage_run_id(try_number)
    launched = Launch(
        str(directory),
        application,
        conn_id="spark_default",
        master="local[2]",
        try_number=try_number,
        run_id=run_ids[try_number],
        host="worker-7",
        event_conn_ids=("kept",),
    )
    store_launch(Accessor() if is_stored else None, launched)
    return launched


def openlineage_run_id(try_number: int) -> str:
    """Return the run of a try as the provider makes it."""
    with create_session() as session:
        dag_run = session.scalar(select(DagRun).where(DagRun.dag_id == TASK.dag_id, DagRun.run_id == TASK.run_id))
        date = dag_run.logical_date or dag_run.run_after
    return OpenLineageAdapter.build_task_instance_run_id(TASK.dag_id, TASK.task_id, try_number, date, TASK.map_index)


def set_task(state: str | None, try_number: int) -> None:
    """Put the task into a state."""
    with create_session() as session:
        row = update(TaskInstance).where(TaskInstance.dag_id == TASK.dag_id, TaskInstance.run_id == TASK.run_id)
        session.execute(row.values(state=state, try_number=try_number))


def found(try_number: int | None = None) -> dict[str, list[int]]:
    """Look for lost tries in all ways, and give their numbers."""
    searches: dict[str, Any] = {"dag_run": lost_of_dag_run(TASK.dag_id, TASK.run_id), "recent": lost_within(1)}
    if try_number is not None:
        searches["try"] = lost_tries(TASK, try_number, "failed")
    return {
        name: [one.launch.try_number for one in search if isinstance(one, LostTry)] for name, search in searches.items()
    }


def ends_of_dag_run() -> list[DagRunEnd]:
    """Look for the end of the DAG run alone."""
    return [one for one in lost_of_dag_run(TASK.dag_id, TASK.run_id) if isinstance(one, DagRunEnd)]


def tab() -> Any:
    """Return what the tab of the task shows, None for nothing."""
    with create_session() as session:
        rows = select(XComModel.value).where(XComModel.key == "spark_lineage", XComModel.task_id == TASK.task_id)
        value = session.scalar(rows)
    return value if value is None or isinstance(value, dict) else json.loads(value)


def in_processes(lost: Sequence[LostTry | DagRunEnd], count: int) -> None:
    """Close in several processes at once."""
    command = [sys.executable, "-m", "spark_lineage.recover"]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(count)]
    for process in started:
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(lost))
        process.stdin.close()
    assert [process.wait(120) for process in started] == [0] * count


seen: dict[str, Any] = {}

# Many close an entry of the store at once.
set_task("running", 1)
first = launch(1)
with ThreadPoolExecutor(8) as pool:
    seen["closed"] = list(pool.map(lambda _: ServerStore(TASK).close(first), range(8)))

shutil.rmtree(first.directory)

# A try that fails, and is told of by two processes.
first = launch(1)
seen["running"] = found()
set_task("failed", 1)
seen["failed"] = found(1)
by_hand = list(lost_tries(TASK, 1, "failed", "set by hand password=hunter2"))
ui, earlier = {"Spark UI": "http://driver:4040"}, [{"v": 1, "try": 0, "state": "FAIL"}]
with create_session() as session:
    view = {"v": 1, "state": "RUNNING", "links": ui, "tries": earlier}
    XComModel.set("spark_lineage", view, **msgspec.structs.asdict(TASK), session=session)
in_processes(by_hand, 2)
seen["told"] = found(1)
seen["tab"] = {"latest": tab()}

# A try whose next one has begun, on a host that shares no more than the directory.
set_task("running", 2)
second = launch(2)
set_task("running", 3)
third = launch(3)
seen["overtaken"] = found(2)
close_try(LostTry(TASK, second, "success"))
seen["tab"]["overtaken"] = tab()

# A try that was set to success by hand, when its application had ended.
log = Path(third.directory) / "event-log" / "tRuE"
log.mkdir(parents=True)
name = "local-1795295296294"
(log / name).write_bytes((EVENTS.parents[1] / "event_logs" / "rdds").read_bytes().rstrip(b"\n") + b"\n" + END)
set_task("success", 3)
(lost,) = lost_of_dag_run(TASK.dag_id, TASK.run_id)
close_try(lost)

# Tries that had told their end, and were killed before anybody learnt whether the provider had sent it.
for try_number, event_type in ((4, "COMPLETE"), (5, "ABORT")):
    ended = launch(try_number)
    end = {
        "eventType": event_type,
        "eventTime": "2024-01-31T00:00:00Z",
        "producer": "https://example.com/the-worker",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": ended.run_id, "facets": {"airflow": {"dagRun": {"dag_id": "shop"}}}},
        "job": {"namespace": "test", "name": "shop.load"},
    }
    append_event(Path(ended.directory), json.dumps(end).encode())
    set_task("failed", try_number)
    (lost,) = lost_tries(TASK, try_number, "failed")
    close_try(lost)
run_ids_told = dict(run_ids)

# The DAG run is over: the connection that its tasks named has to be told, once, whoever finds that.
seen["going_on"] = ends_of_dag_run()
with create_session() as session:
    ended_at = datetime.now(UTC) - timedelta(minutes=1)
    row = update(DagRun).where(DagRun.dag_id == TASK.dag_id)
    session.execute(row.values(state="failed", start_date=ended_at, end_date=ended_at))
ends = ends_of_dag_run()
seen["over"] = {"by_listener": msgspec.to_builtins(ends), "by_sweep": msgspec.to_builtins(lost_meanwhile())}
os.environ["AIRFLOW__OPENLINEAGE__NAMESPACE"] = "another"
seen["over"]["elsewhere"] = ends_of_dag_run()
os.environ["AIRFLOW__OPENLINEAGE__NAMESPACE"] = "test"
in_processes(ends, 1)
seen["over"]["told"] = [*lost_meanwhile(), *ends_of_dag_run()]

# A task of which the provider is not to send anything.
os.environ["AIRFLOW__OPENLINEAGE__EMISSION_POLICY"] = json.dumps(
    [{"scope": {"dag_id": TASK.dag_id}, "controls": {"emit": False}}]
)
launch(6)
set_task("failed", 7)
(lost,) = lost_within(1)
seen["policy"] = {"sent": close_try(lost), "left": found()["recent"]}

with create_session() as session:
    rows = select(TaskInstance.try_number).where(TaskInstance.dag_id == TASK.dag_id)
    seen["try_number"] = session.scalar(rows)
TOLD.write_text(json.dumps(seen | {"run_ids": run_ids_told}))
