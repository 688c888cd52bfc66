from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import DatasetEvent, Job, JobEvent, Run, RunEvent, RunState, StaticDataset

from spark_lineage.deliver.outbox.outbox import Outbox
from spark_lineage.deliver.outbox.transport import CLASS_PATH, OutboxConfig, OutboxTransport

REPOSITORY = Path(__file__).parents[3]
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"


def run_event(state: RunState = RunState.START, second: int = 0, name: str = "dag.task") -> RunEvent:
    return RunEvent(
        eventTime=f"2024-01-31T12:00:0{second}Z",
        run=Run(RUN_ID),
        job=Job("airflow", name),
        producer="p",
        eventType=state,
    )


@pytest.fixture
def config(backend: Any, tmp_path: Path) -> dict[str, Any]:
    return {"type": CLASS_PATH, "transport": backend.config, "directory": str(tmp_path / "outbox")}


def test_by_class_path_as_the_client_of_openlineage_makes_it(config: dict[str, Any], backend: Any) -> None:
    client = OpenLineageClient(config={"transport": config})
    for event in (run_event(), run_event(RunState.COMPLETE, 1)):
        client.emit(event)
    client.emit(JobEvent(eventTime="2024-01-31T12:00:00Z", job=Job("airflow", "dag"), producer="p"))
    client.emit(DatasetEvent(eventTime="2024-01-31T12:00:00Z", dataset=StaticDataset("n", "d"), producer="p"))
    first, second, of_job, of_dataset = (json.loads(one) for one in backend.taken)
    assert [first["eventType"], second["eventType"]] == ["START", "COMPLETE"]
    assert of_job["job"]["name"] == "dag"
    assert of_dataset["dataset"]["name"] == "d"
    assert client.close()


def test_what_the_backend_does_not_take_waits_for_the_next_event(
    config: dict[str, Any], backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_lineage.deliver.outbox.breaker._FIRST_SECONDS", 0.0)
    transport = OutboxTransport(OutboxConfig.from_dict(config))
    backend.answer = lambda _: (503, {}, "")
    transport.emit(run_event())
    assert backend.taken == []
    backend.answer = lambda _: (201, {}, "")
    transport.emit(run_event(RunState.COMPLETE, 1))
    assert [json.loads(one)["eventType"] for one in backend.taken] == ["START", "COMPLETE"]
    transport.close()


def test_secrets_do_not_get_as_far_as_the_disk(config: dict[str, Any], backend: Any) -> None:
    backend.answer = lambda _: (503, {}, "")
    transport = OutboxTransport(OutboxConfig.from_dict(config))
    event = run_event()
    event.run.facets = {
        "text": {"_producer": "p", "_schemaURL": "s", "text": "curl -H 'Authorization: Bearer hunter2'"}
    }
    transport.emit(event)
    transport.close()
    assert all(b"hunter2" not in path.read_bytes() for path in transport.config.directory.iterdir())
    assert all(b"hunter2" not in content for content in backend.came)
    assert "hunter2" not in repr(OutboxConfig({"type": "http", "auth": {"apiKey": "hunter2"}}))


@pytest.mark.parametrize("seconds", [5, 0])
def test_an_event_that_cannot_be_kept_is_sent_at_once(
    config: dict[str, Any], backend: Any, tmp_path: Path, logged: pytest.LogCaptureFixture, seconds: float
) -> None:
    (tmp_path / "outbox").write_text("no directory")
    transport = OutboxTransport(OutboxConfig.from_dict({**config, "delivery_timeout_seconds": seconds}))
    transport.emit(run_event())
    assert len(backend.taken) == 1
    assert "sent without being kept" in logged.text
    backend.answer = lambda _: (500, {}, "")
    with pytest.raises(Exception, match="500"):
        transport.emit(run_event())


def test_nobody_waits_for_a_backend_that_hangs(config: dict[str, Any], backend: Any, tmp_path: Path) -> None:
    backend.hangs.set()
    transport = OutboxTransport(OutboxConfig.from_dict({**config, "delivery_timeout_seconds": 0.5}))
    start = time.monotonic()
    transport.emit(run_event())
    assert time.monotonic() - start < 1
    # Also where the outbox is no help.
    (tmp_path / "file").write_text("")
    directory = str(tmp_path / "file" / "outbox")
    unkept = OutboxTransport(
        OutboxConfig.from_dict({**config, "directory": directory, "delivery_timeout_seconds": 0.5})
    )
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="may be lost"):
        unkept.emit(run_event())
    assert time.monotonic() - start < 1
    backend.hangs.clear()


def test_outboxes_of_one_composite_have_destinations_of_their_own(config: dict[str, Any], tmp_path: Path) -> None:
    members = {name: dict(config) for name in ("marquez", "other")}
    client = OpenLineageClient(config={"transport": {"type": "composite", "transports": members}})
    assert [each.destination for each in client.transport.transports] == [
        "[openlineage]/marquez",
        "[openlineage]/other",
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"transport": None}, "no transport to deliver with"),
        ({"transport": {"url": "http://x"}}, "no transport to deliver with"),
        ({"transport": {"type": CLASS_PATH}}, "is an outbox"),
        ({"directory": "relative"}, "not an absolute path"),
        ({"max_bytes": "many"}, "max_bytes of the outbox is 'many'"),
        ({"delivery_timeout_seconds": -1}, "give a number above 0"),
    ],
)
def test_what_does_not_fit_is_said(config: dict[str, Any], wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OutboxConfig.from_dict({**config, **wrong})


FORKING = """
import os, sys
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

adapter = OpenLineageAdapter()

def emit(state, second):
    adapter.emit(RunEvent(eventTime=f"2024-01-31T12:00:0{second}Z", run=Run(sys.argv[1]), producer="p",
        job=Job("airflow", "dag.task"), eventType=state))

# As the listener does: some events in this process, some in a child.
emit(RunState.START, 0)
for second in (1, 2):
    child = os.fork()
    if child == 0:
        try:
            emit(RunState.RUNNING, second)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
emit(RunState.COMPLETE, 3)
"""


def test_for_all_events_of_an_airflow_in_forked_processes_too(backend: Any, tmp_path: Path) -> None:
    roots = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")},
        "PYTHONPATH": os.pathsep.join(roots),
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(tmp_path / "events"),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": CLASS_PATH, "transport": backend.config}),
    }
    command = [sys.executable, "-c", FORKING, RUN_ID]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    taken = [json.loads(one) for one in backend.taken]
    assert [one["eventType"] for one in taken] == ["START", "RUNNING", "RUNNING", "COMPLETE"], done.stderr
    outbox = Outbox(tmp_path / "events")
    assert outbox.events() == []
    outbox.close()
