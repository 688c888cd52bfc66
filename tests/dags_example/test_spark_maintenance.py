"""What the example removes, as its task does it; ``test_streams_that_live`` has it run by Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

EXAMPLE = Path(__file__).parents[2] / "dags_example" / "spark_maintenance.py"
RUN = """
import json, runpy, sys
dag = runpy.run_path(sys.argv[1])["dag"]
params = {name: dag.params[name] for name in dag.params} | json.loads(sys.argv[2])
dag.get_task("remove_leftovers").python_callable(params)
"""
HEALTH = """
import json, runpy, sys
dag = runpy.run_path(sys.argv[1])["health"]
dag.get_task("send_health").python_callable(json.loads(sys.argv[2]))
dag.get_task("history").render_template_fields({"params": {"history_conn_id": "my_spark"}})
assert dag.get_task("history").poke({})
"""
NOW = datetime.now(UTC)
# The last one has an import error, and the file of the other stale one is gone for long.
DAGS = [
    {"dag_id": f"dag_{number:03}", "is_stale": number > 127, "last_parsed_time": parsed.isoformat()}
    for number, parsed in enumerate([NOW] * 128 + [NOW - timedelta(days=60), NOW - timedelta(minutes=2)])
]


@pytest.fixture
def api() -> Iterator[str]:
    """Airflow's API with its pages of DAGs, for one user; gives the connection to it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            login = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer({"access_token": "t0k3n"} if login == {"username": "me", "password": "secret"} else None)

        def do_GET(self) -> None:
            query = {key: value for key, (value,) in parse_qs(urlsplit(self.path).query).items()}
            is_mine = self.headers["Authorization"] == "Bearer t0k3n"
            found = [one for one in DAGS if query.get("exclude_stale") == "false" or not one["is_stale"]]
            page = found[int(query["offset"]) :][: int(query["limit"])]
            self.answer({"dags": page} if is_mine else None)

        def answer(self, content: object) -> None:
            self.send_response(401 if content is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    login = {"login": "me", "password": "secret"}
    yield json.dumps({"conn_type": "http", "host": "127.0.0.1", "port": server.server_port, **login})
    server.shutdown()
    server.server_close()


def old(*files: Path) -> None:
    changed = time.time() - 40 * 86_400
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (changed, changed))


def test_what_is_removed_and_what_stays(tmp_path: Path, api: str) -> None:
    lake = tmp_path / "lake"
    launch = lake / "lineage" / "dag" / "run" / "task" / "-1" / "1-0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
    checkpoints, log = lake / "checkpoints", lake / "event_logs" / "local-1"
    old(launch / "openlineage-events.ndjson", log)
    for dag in ("dag_127", "dag_128", "dag_129", "gone"):
        old(*(checkpoints / dag / "t" / name for name in ("metadata", "offsets/0", "commits/0")))

    def run(params: dict[str, object], **env: str) -> list[str]:
        env = os.environ | {
            "AIRFLOW_HOME": str(tmp_path),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "SPARK_LINEAGE_EXAMPLE_LAKE": str(lake),
            **env,
        }
        command = [sys.executable, "-c", RUN, str(EXAMPLE), json.dumps(params)]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if str(lake) in line]

    age = "nothing was added for"
    before = sorted(lake.rglob("*"))
    assert run({}) == [
        f"lineage: {launch}: would be removed: {age} 30 days",
        f"event_logs: {log}: would be removed: {age} 40 days",
        *(
            f"checkpoints: {checkpoints}/{dag}: stays: it is not known which DAGs there are"
            for dag in ("dag_127", "dag_128", "dag_129", "gone")
        ),
    ]
    assert sorted(lake.rglob("*")) == before
    assert run({"dry_run": False}, AIRFLOW_CONN_AIRFLOW_API=api) == [
        f"lineage: {launch}: removed: {age} 30 days",
        f"event_logs: {log}: removed: {age} 40 days",
        f"checkpoints: {checkpoints}/dag_127: stays: there is a DAG of that name",
        f"checkpoints: {checkpoints}/dag_128/t: removed: {age} 40 days",
        f"checkpoints: {checkpoints}/dag_129: stays: there is a DAG of that name",
        f"checkpoints: {checkpoints}/gone/t: removed: {age} 40 days",
    ]
    assert sorted(path.parent.name for path in checkpoints.glob("*/t")) == ["dag_127", "dag_129"]
    assert not launch.exists()
    assert not log.exists()


@pytest.mark.parametrize("is_up", [True, False])
def test_health_of_servers_is_sent_and_one_that_is_down_fails_the_task(
    tmp_path: Path, server: Any, dead_port: int, *, is_up: bool
) -> None:
    history = server({"/api/v1/version": (200, {"spark": "4.2.0"}), "*": (200, [])})
    extra = {"history_server_url": history if is_up else f"http://127.0.0.1:{dead_port}"}
    connection = json.dumps({"conn_type": "spark", "host": "local", "extra": extra})
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW_CONN_MY_SPARK": connection}
    command = [sys.executable, "-c", HEALTH, str(EXAMPLE), json.dumps({"conn_ids": ["my_spark"]})]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == is_up, done.stderr
    assert is_up or f"RuntimeError: History Server at {extra['history_server_url']}: " in done.stderr
