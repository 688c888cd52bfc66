"""An Airflow of one's own with scheduler, DAG processor and API server, on SQLite and the loopback."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from lineage_backends.processes import HOST, Server, free_ports, listens, run

REPOSITORY = Path(__file__).parents[3]
START_SECONDS = 120
# A request, too, waits for another process that writes into SQLite: 120 seconds at most.
ANSWER_SECONDS = 150


def ask(url: str, method: str, path: str, body: object = None) -> Any:
    """Ask the REST API of an Airflow (``/api/v2/…``), as an administrator, which everybody is."""
    token = requests.get(f"{url}/auth/token", timeout=ANSWER_SECONDS).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    reply = requests.request(method, f"{url}/api/v2/{path}", json=body, headers=headers, timeout=ANSWER_SECONDS)
    assert reply.ok, reply.text
    return reply.json()


@dataclass(frozen=True)
class AirflowHome:
    """Where it is; it reads DAGs from ``home / "dags"``, and runs none before ``schedule``."""

    home: Path
    env: Mapping[str, str]
    start: Callable[..., Server]

    @property
    def url(self) -> str:
        """Of its API server and UI."""
        return self.env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"].removesuffix("/execution/")

    def command(self, *arguments: str) -> str:
        """What ``airflow`` prints."""
        return run(f"airflow {' '.join(arguments[:2])}", [sys.executable, "-m", "airflow", *arguments], env=self.env)

    def rows(self, query: str) -> list[Any]:
        """What its database says."""
        with closing(sqlite3.connect(f"file:{self.home}/airflow.db?mode=ro", uri=True, timeout=60)) as database:
            return database.execute(query).fetchall()

    def ask(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        """Ask its API server (``/api/v2/…``), as a person does in the UI."""
        ask(self.url, method, path, body)

    def wait_for_dags(self, *dag_ids: str) -> None:
        """Wait until they have been read; ``AssertionError`` with the reason when they cannot be."""
        deadline = time.monotonic() + START_SECONDS
        while not set(dag_ids) <= {dag_id for (dag_id,) in self.rows("SELECT dag_id FROM serialized_dag")}:
            assert time.monotonic() < deadline, self.rows("SELECT stacktrace FROM import_error")
            time.sleep(0.5)

    def schedule(self) -> None:
        """Start the scheduler. What is triggered before does not fight with it for the database."""
        self.start("scheduler")


@contextmanager
def airflow_home(
    home: Path, env: Mapping[str, str], database: Path | None = None, base_path: str = ""
) -> Iterator[AirflowHome]:
    """Run it; ``env`` has settings and connections on top of what every Airflow of the tests has.

    ``database`` is one that has been set up, to begin with a copy of it; ``base_path`` is that of its ``base_url``.
    """
    (port,) = free_ports(1)
    url = f"http://{HOST}:{port}{base_path}"
    settings = _environment(home, url) | dict(env)
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> Server:
            command = [sys.executable, "-m", "airflow", name, *arguments]
            server = Server.start(name, command, home / f"{name}.log", env=settings)
            stack.callback(server.stop)
            return server

        airflow = AirflowHome(home, settings, start)
        if database is None:
            airflow.command("db", "migrate")
        else:
            shutil.copy(database, home / "airflow.db")
        api = start("api-server", "--apps", "core,execution", "--workers", "1", "--host", HOST, "--port", str(port))
        start("dag-processor")
        api.wait_until(lambda: listens(port), START_SECONDS)
        yield airflow


def _environment(home: Path, url: str) -> dict[str, str]:
    others = ("AIRFLOW", "SPARK", "OPENLINEAGE")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    roots = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
    return inherited | {
        "PATH": path,
        "PYTHONPATH": os.pathsep.join(roots),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": HOST,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        # Nobody changes them: to read one again costs as much as to run a task.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
        # Many processes, one file.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=120",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }
