"""What is told of a try from what it left: its files, its processes, and what a cluster says."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pytest
from http_server import Handler, serving

from spark_lineage.adapters.processes import LAUNCH_VARIABLE, processes_of
from spark_lineage.launch.directory import TRANSITIONS_FILE
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import Launch, TaskKey
from spark_lineage.recover.recovery import Recovered, end_leftovers, recover
from spark_lineage.recover.search import LostTry
from spark_lineage.settings.places import Places

log = logging.getLogger(__name__)
FIXTURES = Path(__file__).parents[1] / "fixtures"
HOST = socket.gethostname()
TASK = TaskKey("dag", "run", "task")
DRIVER_ID = "driver-20240131120000-0042"


def launch_of(directory: Path, **values: Any) -> Launch:
    return Launch(str(directory), "application", **{"master": "local[2]", "host": HOST, "process_id": 7} | values)


def recovered(launch: Launch, *, ended: int = 0, extra: dict[str, Any] | None = None, **lost: Any) -> Recovered:
    return recover(LostTry(TASK, launch, **lost), Places(extra=extra or {}), ended_processes=ended, logger=log)


def names(datasets: Any) -> list[str]:
    return [one.dataset.name for one in datasets]


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The directory of a driver that was killed in its second write."""
    events = (FIXTURES / "events" / "gkillmid_414.ndjson").read_bytes()
    (tmp_path / "openlineage-events.ndjson").write_bytes(events)
    return tmp_path


@contextmanager
def answering(answers: dict[str, Any]) -> Iterator[int]:
    """Serve JSON by path, and give the port."""

    class Answers(Handler):
        def do_GET(self) -> None:
            self.answer(json.dumps(answers.get(self.path, {})).encode(), 200 if self.path in answers else 404)

    with serving(Answers) as url:
        yield int(url.rpartition(":")[2])


def last(found: Recovered, subject: str) -> tuple[str, str]:
    assert found.lineage.status is not None
    transition = [one for one in found.lineage.status.transitions if one.subject == subject][-1]
    return transition.new_status, transition.detail


def test_a_driver_that_is_gone(killed: Path) -> None:
    found = recovered(launch_of(killed), error="the heartbeat was lost")
    assert found.lineage.state == "FAIL"
    assert names(found.lineage.inputs) == ["/data/lab/data/orders.csv"]
    assert names(found.lineage.outputs) == ["/data/lab/out/g_ok_killmid"]
    assert names(found.lineage.attempted) == ["/data/lab/out/g_slow"]
    assert found.counts.read == 7
    gone = "its task was lost, and it is gone without an end"
    assert last(found, "DRIVER") == ("FAILED", gone)
    assert last(found, "APPLICATION") == ("FAILED", "the driver has ended")
    assert found.lineage.status is not None
    assert found.lineage.status.error == f"the heartbeat was lost\nThe driver {HOST}:7: {gone}."


def test_a_driver_that_was_ended_here(killed: Path) -> None:
    assert last(recovered(launch_of(killed), ended=2), "DRIVER") == ("KILLED", "its task was lost, and it was ended")


def test_job_that_went_on_when_its_task_had_ended_was_not_lost(tmp_path: Path) -> None:
    service = {"deploy_mode": "cluster", "master": "livy:", "external_id": "3", "service": "livy.LivyAdapter"}
    lost = LostTry(TASK, launch_of(tmp_path, child="batch", **service), end="success")
    found = recover(lost, Places(), ended_processes=0, logger=log, end=DriverEnd("FAILED", "Livy", "the batch is dead"))

    assert found.lineage.status is not None
    assert found.lineage.status.error == "the batch is dead (Livy)"


def test_a_driver_on_another_host_may_still_run(killed: Path) -> None:
    found = recovered(launch_of(killed, host="worker-7"))
    assert last(found, "DRIVER") == ("UNKNOWN", "its task was lost; it may still run on worker-7")
    assert found.lineage.state == "FAIL"


def test_the_timeline_goes_on_and_a_kill_that_was_asked_for_is_an_abort(killed: Path) -> None:
    before = [
        {"subject": "DRIVER", "subject_id": f"{HOST}:7", "old_status": old, "new_status": new, "source": "Airflow"}
        for old, new in ((None, "SUBMITTED"), ("SUBMITTED", "KILLING"))
    ]
    lines = [json.dumps({**one, "time": "2024-01-01T00:00:00Z"}) for one in before]
    (killed / TRANSITIONS_FILE).write_text("\n".join([*lines, '{"torn']))
    found = recovered(launch_of(killed), ended=1)
    assert found.lineage.state == "ABORT"
    assert found.lineage.status is not None
    of_driver = [one.new_status for one in found.lineage.status.transitions if one.subject == "DRIVER"]
    assert of_driver == ["SUBMITTED", "KILLING", "KILLED"]


def test_nothing_left_is_a_failure_without_lineage(tmp_path: Path) -> None:
    found = recovered(launch_of(tmp_path / "gone"))
    assert (found.lineage.state, found.counts.read) == ("FAIL", 0)


def write_event_log(directory: Path, *more: dict[str, Any]) -> Path:
    """Have a driver write its event log to the end."""
    lines = (FIXTURES / "event_logs" / "rdds").read_bytes().rstrip(b"\n")
    ended = {"Event": "SparkListenerApplicationEnd", "Timestamp": 1795295399000}
    added = [json.dumps(one, separators=(",", ":")).encode() for one in (*more, ended)]
    (directory / "event-log" / "tRuE").mkdir(parents=True)
    (directory / "event-log" / "tRuE" / "local-1795295296294").write_bytes(b"\n".join([lines, *added, b""]))
    return directory


def job_end(job: int, time: int, *, is_failed: bool) -> dict[str, Any]:
    exception = {"Message": "Job aborted due to stage failure", "Stack Trace": []}
    result = {"Result": "JobFailed", "Exception": exception} if is_failed else {"Result": "JobSucceeded"}
    return {
        "Event": "SparkListenerJobEnd",
        "Job ID": job,
        "Completion Time": 1795295370000 + time,
        "Job Result": result,
    }


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """The directory of a driver that wrote its event log to the end."""
    return write_event_log(tmp_path)


@pytest.mark.parametrize(("end", "state"), [("success", "COMPLETE"), ("skipped", "COMPLETE"), ("failed", "FAIL")])
def test_a_success_by_hand_is_believed_where_the_event_log_saw_the_end(ended: Path, end: str, state: str) -> None:
    found = recovered(launch_of(ended), end=end)
    assert found.lineage.state == state
    assert last(found, "APPLICATION")[0] == "FINISHED"


@pytest.mark.parametrize(("failed", "state"), [(0, "COMPLETE"), (1, "FAIL")])
def test_a_success_by_hand_is_believed_where_the_program_went_on_after_what_failed(
    tmp_path: Path, failed: int, state: str
) -> None:
    write_event_log(tmp_path, *(job_end(job, job, is_failed=job == failed) for job in (0, 1)))
    found = recovered(launch_of(tmp_path), end="success")
    assert found.lineage.state == state
    assert found.lineage.status is not None
    assert ("SPARK_JOB", "FAILED", 1) in found.lineage.status.counts


def test_a_success_by_hand_is_not_believed_where_the_driver_had_to_be_ended(ended: Path) -> None:
    assert recovered(launch_of(ended), end="success", ended=1).lineage.state == "FAIL"


def test_a_success_by_hand_is_not_believed_without_an_end(killed: Path) -> None:
    (killed / "event-log" / "tRuE").mkdir(parents=True)
    (killed / "event-log" / "tRuE" / "local-1.zstd.inprogress").touch()
    assert recovered(launch_of(killed), end="success").lineage.state == "FAIL"


@pytest.mark.parametrize(
    ("word", "lost", "state", "text"),
    [
        ("FINISHED", {"end": "failed"}, "COMPLETE", ""),
        ("FINISHED", {"is_retried": True}, "FAIL", "its driver ended as FINISHED"),
        ("FAILED", {"end": "success"}, "FAIL", "its driver ended as FAILED"),
        ("RUNNING", {"end": "failed"}, "FAIL", f"its driver {DRIVER_ID} still runs (RUNNING)"),
    ],
)
def test_in_cluster_mode_the_master_is_asked(
    killed: Path, word: str, lost: dict[str, Any], state: str, text: str
) -> None:
    answer = {"action": "SubmissionStatusResponse", "driverState": word, "submissionId": DRIVER_ID, "success": True}
    with answering({f"/v1/submissions/status/{DRIVER_ID}": answer}) as port:
        launch = launch_of(
            killed, master="spark://127.0.0.1:7077", deploy_mode="cluster", external_id=DRIVER_ID, host="worker-7"
        )
        found = recovered(launch, **lost, extra={"rest-port": port, "master_ui_url": f"http://127.0.0.1:{port}"})
    assert found.lineage.state == state
    assert found.lineage.status is not None
    assert text in found.lineage.status.error
    assert bool(found.lineage.status.error) is (state != "COMPLETE")
    # Nobody has told how the application ended: as its driver did, if that has.
    told = [one.new_status for one in found.lineage.status.transitions if one.subject == "APPLICATION"]
    assert told == ["RUNNING", *([] if word == "RUNNING" else [word])]


def test_in_cluster_mode_nobody_may_answer(killed: Path) -> None:
    launch = launch_of(killed, master="yarn", deploy_mode="cluster", external_id="application_1_1")
    found = recovered(launch)
    assert found.lineage.state == "FAIL"
    assert found.lineage.status is not None
    assert "is not known" in found.lineage.status.error


def test_settings_that_do_not_fit_leave_the_lineage(killed: Path, caplog: pytest.LogCaptureFixture) -> None:
    extra = {"driver_unknown_seconds": "soon", "status_conn_id": "gone", "hostnamePattern.prod": "("}
    found = recovered(launch_of(killed), extra=extra)
    assert "Datasets have their default names: " in caplog.text
    assert names(found.lineage.outputs) == ["/data/lab/out/g_ok_killmid"]


@pytest.mark.parametrize(
    ("host", "mode", "external_id", "count"),
    [
        (HOST, "client", None, 1),
        ("worker-7", "client", None, 0),
        (HOST, "cluster", "application_1_0001", 0),
        (HOST, "cluster", None, 1),
    ],
)
def test_processes_are_ended_on_this_host_unless_a_driver_was_submitted_elsewhere(
    tmp_path: Path, host: str, mode: str, external_id: str | None, count: int
) -> None:
    launch = launch_of(tmp_path, host=host, deploy_mode=mode, external_id=external_id)
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", "import time; print(flush=True); time.sleep(60)"],
        env={**os.environ, LAUNCH_VARIABLE: launch.application_run_id},
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            assert end_leftovers(launch) == count
            assert len(processes_of(launch.application_run_id)) == 1 - count
        finally:
            process.kill()


@pytest.mark.parametrize("collect", ["auto", "directory"])
def test_the_rest_of_a_log_that_lies_elsewhere_is_brought(tmp_path: Path, collect: str) -> None:
    content = (FIXTURES / "event_logs" / "stream").read_bytes()
    store = f"memory://{uuid.uuid4().hex}"
    files = fsspec.filesystem("memory")
    files.pipe_file(f"{store}/application_1_0001_1", content.replace(b"local-1795291862028", b"application_1_0001"))
    # The try was lost after the first copy.
    copies = tmp_path / "event-log" / "tRuE"
    copies.mkdir(parents=True)
    (copies / "application_1_0001_1").write_bytes(files.cat_file(f"{store}/application_1_0001_1")[:100])
    launch = launch_of(
        tmp_path, master="yarn", deploy_mode="cluster", external_id="application_1_0001", event_logs=(store,)
    )
    found = recovered(launch, extra={"event_log_from": collect})
    files.rm(store, recursive=True)
    assert bool(found.lineage.outputs) is (collect == "auto")
    assert ("event_log" in found.counts.sources) is (collect == "auto")
