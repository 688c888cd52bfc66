"""An Airflow with scheduler, triggerer and API server on one side, and its workers on another, in a home of their own.

The sides share the folder of DAGs and the API server, nothing else: neither the database nor lineage nor outbox; the
workers have another host's name, and their home is empty for who looks from the servers. Tasks run in processes that
may be killed, and so may the scheduler: ``plugins/kill_scheduler.py`` does it within the end of a DAG run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psutil
from lineage_backends.airflow_home import REPOSITORY, AirflowHome, airflow_home
from lineage_backends.processes import Server
from own_disk import elsewhere
from remote_executor import processes
from waiting_driver import EVENTS, PROGRAM, waiting_connection

from spark_lineage.deliver.outbox import Outbox

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from lineage_backends.http_backend import OpenLineageBackend

DELIVERY = REPOSITORY / "tests" / "delivery"
WORKERS = Path(__file__).with_name("remote_worker.py")
WAIT_SECONDS = 180
SETTLE_SECONDS = 40
LATE_SECONDS = 3
PERSON_SECONDS = 5
ENDED = {"success", "failed"}


def _session(process: psutil.Process) -> int:
    with suppress(OSError):
        return os.getsid(process.pid)
    return 0


def _is_of_driver(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        family = [process, *process.parents()]
        is_submitting = any(each.name() == "java" or "spark-submit" in " ".join(each.cmdline()) for each in family)
        return is_submitting or str(PROGRAM) in process.cmdline()
    return False


@dataclass
class LiveAirflow:
    """Both sides; ``live`` is where the programs read and write, ``disk`` what the workers have at home."""

    airflow: AirflowHome
    live: Path
    disk: Path
    workers: Path
    _scheduler: list[Server] = field(default_factory=list)

    def trigger(self, *dag_ids: str) -> None:
        """Start a run of each DAG."""
        for dag_id in dag_ids:
            self.airflow.ask("POST", f"dags/{dag_id}/dagRuns", {"logical_date": None})

    def mark_failed(self, dag_id: str, task_id: str) -> None:
        """Set the state of a task in the only run of its DAG, as a person does in the UI."""
        run_id = dict(self.airflow.rows("SELECT dag_id, run_id FROM dag_run"))[dag_id]
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}"
        # At the moment at which tasks keep their launches, this has locked SQLite for two minutes.
        time.sleep(PERSON_SECONDS)
        self.airflow.ask("PATCH", path, {"new_state": "failed"})

    def clear(self, dag_id: str, task_id: str) -> None:
        """Clear a task in the only run of its DAG, as a person does in the UI."""
        run_id = dict(self.airflow.rows("SELECT dag_id, run_id FROM dag_run"))[dag_id]
        wanted = {"dag_run_id": run_id, "task_ids": [task_id], "dry_run": False, "only_failed": False}
        self.airflow.ask("POST", f"dags/{dag_id}/clearTaskInstances", wanted)

    def schedule(self) -> None:
        """Start the scheduler."""
        self._scheduler.append(self.airflow.start("scheduler"))

    def wait_for_scheduler_to_die(self) -> None:
        """Wait until something has killed the scheduler."""
        process = self._scheduler[-1].process
        self.wait_for("the end of the scheduler", lambda: process.poll() is not None)
        self.kill_scheduler()

    def kill_scheduler(self) -> None:
        """Kill the scheduler, with all its processes; the tasks go on."""
        self._scheduler.pop().stop(signal.SIGKILL)

    def kill_worker(self, dag_id: str, task_id: str) -> list[psutil.Process]:
        """Kill the processes of a task, but its Spark driver and ``spark-submit``; give what is left of that."""
        tasks = self.airflow.rows("SELECT dag_id, task_id, id FROM task_instance")
        (task,) = (task for dag, name, task in tasks if (dag, name) == (dag_id, task_id))
        pid = int((self.workers / f"{uuid.UUID(task)}.pid").read_text())
        own = [process for process in processes(self.workers) if _session(process) == pid]
        # Before any is killed: who has started it is not known afterwards.
        left = [process for process in own if _is_of_driver(process)]
        for process in own:
            if process not in left:
                with suppress(psutil.Error):
                    process.kill()
        return left

    def release(self, name: str) -> None:
        """Let a driver end that waits."""
        (self.live / f"{name}.released").touch()

    def wait_for(self, what: str, is_so: Callable[[], object], seconds: float = WAIT_SECONDS) -> None:
        """Poll; ``AssertionError`` with the ends of the logs when it takes too long."""
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, f"Waited {seconds} s for {what}.\n{self.tails()}"
            time.sleep(0.05)

    def wait_for_driver(self, name: str) -> None:
        """Wait until a driver has written its events."""
        self.wait_for(f"the driver of {name}", (self.live / f"{name}.written").exists)

    def run_state(self, dag_id: str) -> str:
        """The state of the only run of a DAG."""
        return str(dict(self.airflow.rows("SELECT dag_id, state FROM dag_run"))[dag_id])

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each line of each task's log, with ``dag/task/map_index/attempt``; what is no JSON has ``event`` alone."""
        for path in sorted(self.disk.glob("logs/dag_id=*/**/*.log")):
            parts = dict(part.split("=", 1) for part in path.with_suffix("").parts if "=" in part)
            place = "/".join(parts.get(key, "-1") for key in ("dag_id", "task_id", "map_index", "attempt"))
            for line in path.read_text(errors="replace").splitlines():
                try:
                    yield place, json.loads(line)
                except ValueError:
                    yield place, {"event": line}

    def warnings(self) -> list[tuple[str, str, str]]:
        """What this package has warned of in the logs of tasks: place, logger and text."""
        return [
            (place, record["logger"], record["event"])
            for place, record in self.records()
            if "spark_lineage" in str(record.get("logger")) and record.get("level") not in {"debug", "info"}
        ]

    def waiting(self) -> list[Any]:
        """What is in the outboxes of both sides."""
        found: list[Any] = []
        for home in (self.airflow.home, self.disk):
            directory = home / "spark_lineage_outbox" / str(os.getuid())
            if directory.exists():
                outbox = Outbox(directory)
                found += [(str(directory), each) for each in outbox.destinations() if each.waiting or each.dead]
        return found

    def tails(self) -> str:
        """The ends of the logs."""
        files = [*self.airflow.home.glob("*.log"), *self.workers.glob("*.log")]
        files += self.disk.glob("logs/dag_id=*/**/*.log")
        return "\n".join(f"==> {file} <==\n{file.read_text(errors='replace')[-2500:]}" for file in sorted(files))


@dataclass
class Ran:
    """What has run, and what of it has arrived."""

    airflow: LiveAirflow
    backend: OpenLineageBackend

    def runs(self) -> dict[str, list[list[str]]]:
        """The types of the events of each run of each job, as they came, without RUNNING; runs are sorted.

        A scheduler may be killed when an event was taken, and before it knows that: it is sent again, to the byte.
        """
        found: dict[str, dict[str, list[str]]] = {}
        for content in dict.fromkeys(each.content for each in self.backend.accepted):
            event = json.loads(content)
            types = found.setdefault(event["job"]["name"], {}).setdefault(event["run"]["runId"], [])
            if event["eventType"] != "RUNNING":
                types.append(event["eventType"])
        return {job: sorted(runs.values()) for job, runs in found.items()}

    def settle(self, ends: Mapping[str, Sequence[str]]) -> None:
        """Wait until all has come, and then some more for what should not come; keep it as ``events.ndjson``."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline and self.runs() != whole(ends):
            time.sleep(0.5)
        time.sleep(LATE_SECONDS)
        lines = "".join(f"{json.dumps(event)}\n" for event in self.backend.events)
        (self.airflow.live / "events.ndjson").write_text(lines)


def whole(ends: Mapping[str, Sequence[str]]) -> dict[str, list[list[str]]]:
    """Return what ``Ran.runs`` is when each run has one START and one end; ``ends`` by job."""
    return {job: [["START", end] for end in sorted(each)] for job, each in ends.items()}


@contextmanager
def live_airflow(folder: Path, settings: Mapping[str, str], spark: FastSpark, database: Path) -> Iterator[LiveAirflow]:
    """Run one, but for its scheduler; ``settings`` are those of both sides, ``database`` is one that is set up."""
    names = ("server", "worker", "disk", "workers", "live")
    server_home, worker_home, disk, workers, live = (folder / name for name in names)
    for each in (worker_home, disk, workers, live / "texts"):
        each.mkdir(parents=True)
    (live / "texts" / "one.txt").write_text("one\ntwo\n")
    for name in ("mapped_0", "mapped_1", "failure.fails", "retried.fails"):
        (live / name).touch()
    for name in ("dags", "plugins"):
        shutil.copytree(DELIVERY / name, server_home / name)
    common = {
        **settings,
        "LIVE": str(live),
        "LIVE_PROGRAM": str(DELIVERY / "programs" / "live.py"),
        "LIVE_RECORDED": str(EVENTS),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "live",
    }
    server = {
        **common,
        "REMOTE_WORKERS": str(workers),
        "AIRFLOW__CORE__EXECUTOR": "remote_executor.RemoteExecutor",
        "AIRFLOW__CORE__PARALLELISM": "5",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__SCHEDULER__JOB_HEARTBEAT_SEC": "1",
        # A scheduler that was killed is found out soon.
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "8",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "4",
        "PYTHONPATH": os.pathsep.join(
            str(REPOSITORY / each) for each in ("provider", "operators", "listeners", "tests/plugins")
        ),
    }
    with airflow_home(server_home, server, database) as airflow:
        worker = {key: value for key, value in airflow.env.items() if key != "REMOTE_WORKERS"}
        worker |= {
            **spark.env,
            **waiting_connection(live, worker),
            "XDG_CACHE_HOME": str(spark.caches),
            "AIRFLOW_HOME": str(worker_home),
            "WORKER_DISK": str(disk),
            "WORKER_NAME": "worker.example.com",
            # One without tables: a worker has none.
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{worker_home}/none.db",
        }
        command = [*elsewhere(), sys.executable, str(WORKERS), str(workers)]
        host = Server.start("the workers", command, workers / "host.log", env=worker)
        running = LiveAirflow(airflow, live, disk if elsewhere() else worker_home, workers)
        try:
            yield running
        finally:
            host.stop()
            for process in processes(workers):
                with suppress(psutil.Error):
                    process.kill()
