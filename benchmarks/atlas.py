"""Measures what tasks in Apache Atlas cost, beside the same events over HTTP; prints one line a figure.

Tasks of two inputs and an output of ten columns each send START and COMPLETE to two destinations: the Atlas of the
tests (``lineage_backends.atlas_emulator``) and an OpenLineage backend that takes everything (``programs/receiver.py``),
each in a process of its own.

- ``atlas_put_vs_http``: what the task itself waits for, the outbox's ``put``, divided by that for HTTP (goal: 1)
- ``atlas_delivery_vs_http``: CPU seconds of the deliveries, which no task waits for, divided by those over HTTP
- ``atlas_requests_a_task`` (goal: 4: START, the process as it is, its datasets, COMPLETE), ``atlas_bytes_a_task``,
  ``atlas_tasks_a_minute`` (goal: 1,000); no ratios

Put and delivered in turn, in short rounds; a ratio is the median of the rounds'.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from spark_lineage.deliver.outbox.outbox import Outbox
from spark_lineage.deliver.transports.opening import open_transport

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


def events(number: int, round_number: int) -> list[bytes]:
    """Return START and COMPLETE of a task, as the outbox gets them."""
    inputs = [dataset(f"/lake/{number}/in_{each}") for each in "ab"]
    source = {"namespace": "file", "name": inputs[0]["name"], "transformations": [{"type": "DIRECT"}]}
    fields = {column: {"inputFields": [{**source, "field": column}]} for column in COLUMNS}
    output = dataset(f"/lake/{number}/out", columnLineage={"fields": fields})
    dag_run = {"run_id": f"run_{round_number}", "run_type": "manual", "run_after": "2026-01-01T00:00:00+00:00"}
    airflow = {"dag": {"dag_id": "d"}, "task": {"task_id": f"t{number}"}, "dagRun": dag_run}
    run = {"runId": str(uuid.uuid4()), "facets": {"airflow": airflow}}
    job = {"namespace": "bench", "name": f"d.t{number}", "facets": {"jobType": {"jobType": "TASK"}}}
    begun = {"eventTime": "2026-01-01T00:00:01+00:00", "producer": "https://example.com", "run": run, "job": job}
    ended = begun | {"eventType": "COMPLETE", "inputs": inputs, "outputs": [output]}
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    sent: list[int] = []
    send = requests.Session.send

    def counted(session: requests.Session, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        sent.append(len(request.body or b""))
        return send(session, request, **kwargs)

    ratios: dict[str, list[float]] = {"put": [], "delivery": []}
    requests_a_task, bytes_a_task, seconds_a_task = [], [], []
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
        for round_number in range(arguments.rounds + 1):
            given = [each for number in range(arguments.tasks) for each in events(number, round_number)]
            took: dict[str, tuple[float, float, float]] = {}
            for name in ("atlas", "http") if round_number % 2 else ("http", "atlas"):
                start = time.perf_counter()
                for each in given:
                    outbox.put(name, each)
                put = time.perf_counter() - start
                requests.Session.send = counted if name == "atlas" else send  # type: ignore[method-assign,assignment]
                sent.clear()
                start, cpu = time.perf_counter(), time.process_time()
                if outbox.deliver([name], open_transport, 300, is_asked_for=True).sent != len(given):
                    raise SystemExit(f"{name} did not take all events")
                took[name] = put, time.process_time() - cpu, time.perf_counter() - start
                if name == "atlas" and round_number:
                    requests_a_task.append(len(sent) / arguments.tasks)
                    bytes_a_task.append(sum(sent) / arguments.tasks)
                    seconds_a_task.append(took[name][2] / arguments.tasks)
            if round_number:  # the first makes types and entities
                for index, figure in enumerate(ratios):
                    ratios[figure].append(took["atlas"][index] / took["http"][index])
        outbox.close()
    for figure, values in ratios.items():
        print(f"atlas_{figure}_vs_http {statistics.median(values):.2f}")
    print(f"atlas_requests_a_task {statistics.median(requests_a_task):.2f}")
    print(f"atlas_bytes_a_task {statistics.median(bytes_a_task):.0f}")
    print(f"atlas_tasks_a_minute {60 / statistics.median(seconds_a_task):.0f}")


if __name__ == "__main__":
    main()
