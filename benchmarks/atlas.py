"""Measures what tasks in Apache Atlas cost, beside the same events over HTTP.

Prints one line a figure, as ``pairs.py`` does.

Tasks of two inputs and an output of ten columns each send START and COMPLETE to two destinations: the Atlas of the
tests (``lineage_backends.atlas_emulator``) and an OpenLineage backend that takes everything (``programs/receiver.py``),
each in a process of its own.

- ``atlas_put_vs_http``: what the task itself waits for, the outbox's ``put``, divided by that for HTTP (goal: 1)
- ``atlas_delivery_vs_http``: time of the deliveries, which no task waits for, divided by those over HTTP
- ``atlas_requests_a_task`` (goal: 6: the process as it is and START; both again, its datasets, its end),
  ``atlas_bytes_a_task``, ``atlas_tasks_a_minute`` (goal: 1,000); no ratios
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from pairs import Taken, by_turns, parser, timed

from spark_lineage.deliver.courier import Delivered
from spark_lineage.deliver.outbox import Outbox, flush
from spark_lineage.deliver.outgoing import Outgoing

NONE = Delivered()
HERE = Path(__file__).resolve().parent
BACKENDS = HERE.parent / "tests" / "backends"
EMULATOR = """
import threading
from lineage_backends.atlas_emulator import atlas_emulator
with atlas_emulator() as found:
    print(found.port, flush=True)
    threading.Event().wait()
"""
COLUMNS = [f"column_{number}" for number in range(10)]


def dataset(name: str, **facets: Any) -> dict[str, Any]:
    """Return a dataset with columns."""
    schema = {"fields": [{"name": column, "type": "string"} for column in COLUMNS]}
    return {"namespace": "file", "name": name, "facets": {"schema": schema, **facets}}


def events(number: int, dag_run_id: str) -> list[bytes]:
    """Return START and COMPLETE of a task, as the outbox gets them."""
    inputs = [dataset(f"/lake/{number}/in_{each}") for each in "ab"]
    source = {"namespace": "file", "name": inputs[0]["name"], "transformations": [{"type": "DIRECT"}]}
    fields = {column: {"inputFields": [{**source, "field": column}]} for column in COLUMNS}
    output = dataset(f"/lake/{number}/out", columnLineage={"fields": fields})
    dag_run = {"run_id": dag_run_id, "run_type": "manual", "run_after": "2026-01-01T00:00:00+00:00"}
    airflow = {"dag": {"dag_id": "d"}, "task": {"task_id": f"t{number}"}, "dagRun": dag_run}
    run = {"runId": str(uuid.uuid4()), "facets": {"airflow": airflow}}
    job = {"namespace": "bench", "name": f"d.t{number}", "facets": {"jobType": {"jobType": "TASK"}}}
    # Atlas ignores events that are not newer than those of the round before.
    now = datetime.now(UTC)
    begun = {"eventTime": now.isoformat(), "producer": "https://example.com", "run": run, "job": job}
    later = {"eventTime": (now + timedelta(milliseconds=1)).isoformat()}
    ended = begun | later | {"eventType": "COMPLETE", "inputs": inputs, "outputs": [output]}
    return [json.dumps(each).encode() for each in (begun | {"eventType": "START", "inputs": [], "outputs": []}, ended)]


@contextlib.contextmanager
def server(*command: str) -> Iterator[int]:
    """Run a server that prints its port."""
    env = os.environ | {"PYTHONPATH": str(BACKENDS)}
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, env=env) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("The server has no output")
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=10)
    asking.add_argument("--tasks", type=int, default=100, help="of a round")
    asked = asking.parse_args()
    sent: list[int] = []
    send = httpx.Client.send

    def counted(session: httpx.Client, request: httpx.Request, **kwargs: Any) -> httpx.Response:
        sent.append(len(request.read()))
        return send(session, request, **kwargs)

    def put(conn_id: str, given: list[bytes]) -> None:
        for each in given:
            outbox.spool(conn_id).put(Outgoing.of(each))

    def deliver(conn_id: str, given: list[bytes]) -> None:
        if flush(Path(directory), [conn_id]).get(conn_id, NONE).sent != len(given):
            raise SystemExit(f"{conn_id} did not take all events")

    def run(conn_id: str) -> Taken:
        dag_run_id = str(uuid.uuid4())
        given = [each for number in range(asked.tasks) for each in events(number, dag_run_id)]
        waited = timed(put, conn_id, given)
        sent.clear()
        delivered = timed(deliver, conn_id, given)
        return {**delivered, "put": waited["wall"], "requests": len(sent), "bytes": sum(sent)}

    httpx.Client.send = counted  # type: ignore[method-assign,assignment]
    with (
        tempfile.TemporaryDirectory() as directory,
        server("-c", EMULATOR) as atlas,
        server(str(HERE / "programs" / "receiver.py")) as http,
    ):
        host, login = "http://127.0.0.1", {"login": "admin", "password": "admin"}
        os.environ["AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR"] = directory
        os.environ["AIRFLOW_CONN_ATLAS"] = json.dumps({"conn_type": "atlas", "host": f"{host}:{atlas}", **login})
        os.environ["AIRFLOW_CONN_HTTP"] = json.dumps({"conn_type": "openlineage", "host": f"{host}:{http}"})
        outbox = Outbox(Path(directory))
        # The first ones, which do not count, make types and entities.
        found = by_turns({name: partial(run, name) for name in ("atlas", "http")}, asked)
    found.show("atlas_put_vs_http", (one["atlas"]["put"] / one["http"]["put"] for one in found.rounds))
    found.compare("atlas_delivery_vs_http", "atlas", "http")
    for count in ("requests", "bytes"):
        print(f"atlas_{count}_a_task {found.rounds[-1]['atlas'][count] / asked.tasks:.2f}")
    found.show("atlas_tasks_a_minute", (60 * asked.tasks / one["atlas"]["wall"] for one in found.rounds))
    found.show_numbers()


if __name__ == "__main__":
    main()
