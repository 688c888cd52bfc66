"""Fixtures: a real Airflow on SQLite, in processes of its own, with a real Spark on ``local[2]``."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil
import pytest
from lineage_backends.airflow_home import ask

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from warm_python import WarmPython

REPOSITORY = Path(__file__).parents[2]
IS_AIRFLOW_2 = version("apache-airflow").startswith("2.")
Found = TypeVar("Found")
ORDERS = "order_id,amount\n" + "".join(f"{number},{number * 3}\n" for number in range(20))


@dataclass
class Airflow:
    """An Airflow home; ``events`` is what it sent to its OpenLineage file transport."""

    home: Path
    python: WarmPython
    env: dict[str, str] = field(default_factory=dict)
    events_files: str = "events.ndjson"
    api: str = ""

    @property
    def events(self) -> list[dict[str, Any]]:
        """All events sent so far; a line without its end is still being written."""
        files = sorted(self.home.glob(self.events_files))
        lines = [line for file in files for line in file.read_text().splitlines(keepends=True)]
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def events_of(self, job: str, *, is_running: bool = False) -> list[dict[str, Any]]:
        """The events of one job, ``dag.task``; RUNNING ones, of which a slow machine sends more, only if asked for."""
        found = [event for event in self.events if event["job"]["name"] == job]
        return [event for event in found if is_running or event["eventType"] != "RUNNING"]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Ask the REST API of an Airflow that has one, as an administrator, which everybody is."""
        return ask(self.api, method, path, body)

    def command(self, *arguments: str) -> str:
        """Run an ``airflow`` command and give all that it printed."""
        return self.python.run("-m", "airflow", *arguments, env=self.env, is_one_stream=True).stdout


@pytest.fixture(scope="session")
def airflow_database(request: pytest.FixtureRequest, warm_python: WarmPython) -> Path:
    """A database that Airflow has set up. Each Airflow gets a copy of it, so that it is alone in its own.

    As the archives of ``fast_spark`` it is kept for the next run of the tests, until Airflow or a provider is another.
    """
    packages = sorted(f"{one.name} {one.version}" for one in distributions() if one.name.startswith("apache-airflow"))
    cache = Path(request.config.cache.mkdir("airflow_database"))  # type: ignore[union-attr]
    home = cache / hashlib.sha256(repr(packages).encode()).hexdigest()[:16]
    with (cache / "lock").open("w") as lock:
        # Another worker of pytest may be making it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "airflow.db").exists():
            partial = home / "partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            log = Airflow(partial, warm_python, _airflow_env(partial)).command("db", "migrate")
            assert (partial / "airflow.db").exists(), log
            (partial / "airflow.db").rename(home / "airflow.db")
            shutil.rmtree(partial)
    return home / "airflow.db"


@pytest.fixture(scope="module")
def airflow(
    tmp_path_factory: pytest.TempPathFactory, airflow_database: Path, fast_spark: FastSpark, warm_python: WarmPython
) -> Airflow:
    """An Airflow of the module's own with a database, and a Spark connection to ``local[2]``."""
    return _airflow(tmp_path_factory.mktemp("airflow"), airflow_database, fast_spark, warm_python)


def _airflow(home: Path, database: Path, fast_spark: FastSpark, python: WarmPython) -> Airflow:
    (home / "dags").mkdir()
    (home / "orders.csv").write_text(ORDERS)
    shutil.copy(database, home / "airflow.db")
    env = (
        _airflow_env(home)
        | fast_spark.env
        | {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "test",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
                {"type": "file", "log_file_path": str(home / "events.ndjson"), "append": True}
            ),
            "XDG_CACHE_HOME": str(fast_spark.caches),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        }
    )
    return Airflow(home, python, env)


def _airflow_env(home: Path) -> dict[str, str]:
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "SPARK"))},
        "PYTHONPATH": os.pathsep.join(str(REPOSITORY / root) for root in ("provider", "operators", "listeners")),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }


@dataclass
class Background:
    """Processes that run beside the test, each in a session of its own; ``logs`` are folders and patterns of files."""

    folder: Path
    logs: list[tuple[Path, str]] = field(default_factory=list)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, command: Sequence[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a process whose output goes to ``NAME.log``."""
        self.logs.append((self.folder, f"{name}.log"))
        with (self.folder / f"{name}.log").open("wb") as stream:
            process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def wait_for(self, what: str, found: Callable[[], Found], seconds: float = 300) -> Found:
        """Poll until ``found`` gives something true, and give that; fail at the end of the time."""
        deadline = time.monotonic() + seconds
        while not (result := found()):
            assert time.monotonic() < deadline, f"Waited {seconds} s for {what}.\n{self.tails}"
            time.sleep(0.1)
        return result

    @property
    def tails(self) -> str:
        """The ends of all logs."""
        files = [file for folder, pattern in self.logs for file in sorted(folder.glob(pattern))]
        return "\n".join(f"==> {file} <==\n{file.read_text(errors='replace')[-4000:]}" for file in files)

    def stop(self) -> None:
        """End every process started, and every process in its session: Airflow gives tasks a group of their own."""
        for process in reversed(self.started):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.terminate()
                process.wait(5)
            for pid in psutil.pids():
                with contextlib.suppress(OSError):
                    if os.getsid(pid) == process.pid:
                        os.kill(pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def background(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Background]:
    """A place for processes that end with the module."""
    with _background(tmp_path_factory.mktemp("background")) as background:
        yield background


@contextlib.contextmanager
def _background(folder: Path) -> Iterator[Background]:
    background = Background(folder)
    try:
        yield background
    finally:
        background.stop()


@pytest.fixture(scope="session")
def executing_airflow(
    tmp_path_factory: pytest.TempPathFactory, airflow_database: Path, fast_spark: FastSpark, warm_python: WarmPython
) -> Iterator[Airflow]:
    """An Airflow with tasks in an executor (``dags test --use-executor``), and the API server that 3 needs.

    Several modules share it, each with DAGs of its own: a server costs as much as two Spark drivers.
    """
    airflow = _airflow(tmp_path_factory.mktemp("airflow"), airflow_database, fast_spark, warm_python)
    env = airflow.env | {
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "3",
        # One file an event: processes that append to one file could tear its lines.
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(airflow.home / "event")}),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{airflow.home}/airflow.db?timeout=120",
    }
    if IS_AIRFLOW_2:
        # On SQLite it runs one task at a time.
        env |= {"AIRFLOW__CORE__EXECUTOR": "SequentialExecutor"}
        yield replace(airflow, env=env, events_files="event-*.json")
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env |= {
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
    }

    def is_up() -> bool:
        health = f"http://127.0.0.1:{port}/execution/health"
        with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=5) as reply:
            return reply.status == 200
        return False

    with _background(airflow.home) as server:
        command = [sys.executable, "-m", "airflow", "api-server", "--apps", "core,execution", "--workers", "1"]
        server.start("api-server", [*command, "--host", "127.0.0.1", "--port", str(port)], env)
        server.wait_for("the API server", is_up)
        yield replace(airflow, env=env, events_files="event-*.json", api=f"http://127.0.0.1:{port}")
