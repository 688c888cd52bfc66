"""The example DAG in a real Airflow, whose own events go through an outbox too."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing

pytestmark = pytest.mark.truth

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "dags_example" / "outbox_maintenance.py"


def lineage_event(number: int, kind: str) -> bytes:
    return json.dumps(
        {
            "eventTime": f"2024-01-31T12:00:0{number}Z",
            "eventType": kind,
            "job": {"name": "dag.task", "namespace": "airflow"},
            "producer": "p",
            "run": {"runId": "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"},
            "schemaURL": "s",
        }
    ).encode()


@pytest.fixture
def taken() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a backend, and what it takes."""
    events: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", events
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_waits_is_sent_by_the_dag(
    tmp_path: Path, taken: tuple[str, list[dict[str, Any]]], airflow_database: Path, warm_python: Any
) -> None:
    url, events = taken
    shutil.copy(airflow_database, tmp_path / "airflow.db")
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / EXAMPLE.name).write_text(EXAMPLE.read_text())
    directory = tmp_path / "spark_lineage_outbox" / str(os.getuid())
    outbox = Outbox(directory)
    for number, kind in enumerate(("START", "RUNNING", "COMPLETE")):
        outbox.spool("other").put(Outgoing.of(lineage_event(number, kind)))
    transport = {
        "type": "spark_lineage.deliver.connection_transport.ConnectionTransport",
        "conn_id": "marquez",
    }
    roots = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")},
        "PYTHONPATH": os.pathsep.join(roots),
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        # Not the connection of Airflow's own events, which take with them what waits for it.
        "AIRFLOW_CONN_OTHER": json.dumps({"conn_type": "openlineage", "host": url}),
        "AIRFLOW_CONN_MARQUEZ": json.dumps({"conn_type": "openlineage", "host": url}),
    }

    done = warm_python.run(
        "-m", "airflow", "dags", "test", "outbox_maintenance", "2024-02-01", env=env, is_one_stream=True
    )
    log = done.stdout
    assert done.returncode == 0, log

    assert "other: 3 sent, 0 wait, 0 refused" in log
    ours = [event["eventType"] for event in events if event["job"]["name"] == "dag.task"]
    assert ours == ["START", "RUNNING", "COMPLETE"]
    # Of the DAG itself, by the listener of Airflow's OpenLineage provider, some of them in forked processes.
    of_task = [event["eventType"] for event in events if event["job"]["name"] == "outbox_maintenance.flush_outbox"]
    assert of_task == ["START", "COMPLETE"], log
    left = Outbox(directory)
    assert left.destinations() == []
