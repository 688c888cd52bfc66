"""What listeners are told of a task, and what its status says."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path
from typing import Any

import psutil
from cluster_manager import DRIVER_ID, standalone
from http_server import Handler, serving
from launches import location
from notified import NDJSON, notified

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"


def test_listeners_are_told_the_story_of_the_task(bench: Any) -> None:
    outcome, told = notified(bench, lineage=[EVENTS], conf={"spark.my.apiKey": "hunter2"})
    assert outcome.error is None
    created, submitted, *_, last = told
    assert created["event"] == "JobCreatedEvent"
    assert created["configuration"]["spark.my.apiKey"] == "***"
    assert created["task"]["dag_id"] == "shop"
    assert created["job_name"] == "shop.load"
    assert (submitted["subject"], submitted["new_status"]) == ("DRIVER", "SUBMITTED")
    assert (last["subject"], last["new_status"], last["is_end"]) == ("TASK", "FINISHED", True)
    assert (created["job_type"], last["job_type"]) == (None, "BATCH")
    assert [one["dataset"]["name"] for one in last["lineage"]["outputs"]] == ["/data/lab/out/a_parquet"]
    assert "hunter2" not in json.dumps(told)
    assert outcome.threads == ["MainThread"]


def test_listeners_are_told_why_a_task_failed(bench: Any) -> None:
    log = ["Traceback (most recent call last):", '  File "job.py", line 1', "ValueError: password=hunter2 is wrong"]
    outcome, told = notified(bench, lineage=[EVENTS], log=log, exit_code=1)
    assert outcome.error.startswith("AirflowException: ValueError: password=*** is wrong (exit code 1)\nCannot execute")
    assert (told[-1]["new_status"], told[-1]["is_end"]) == ("FAILED", True)
    assert told[-1]["exception"].startswith("ValueError: password=*** is wrong (exit code 1)")
    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    assert status["error"] == "ValueError: password=*** is wrong (exit code 1)"


def test_listeners_are_told_an_end_where_there_is_no_lineage(bench: Any) -> None:
    outcome, told = notified(bench, break_lineage_file=True)
    assert outcome.error is None
    assert (told[-1]["subject"], told[-1]["new_status"], told[-1]["is_end"]) == ("TASK", "FINISHED", True)


def test_a_listener_that_cannot_be_had_harms_nobody(bench: Any) -> None:
    _, told = notified(bench, lineage=[EVENTS])
    bad = bench.run(lineage=[EVENTS], lineage_listeners=["nowhere.Listener", NDJSON])
    assert bad.error is None
    assert "nowhere.Listener, which cannot be imported on this worker" in bad.printed
    again = [json.loads(line) for line in (bench.root / "notified.ndjson").read_text().splitlines()][len(told) :]
    assert [one["event"] for one in again] == [one["event"] for one in told if one["event"].startswith("Job")]


def test_what_airflow_kills_ends_as_killed(bench: Any) -> None:
    outcome, told = notified(bench, lineage=[EVENTS], signal_parent=int(signal.SIGUSR1))
    assert outcome.error is not None
    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    driver = [(one["newStatus"], one["source"]) for one in status["transitions"] if one["subject"] == "DRIVER"]
    assert driver == [("SUBMITTED", "spark-submit"), ("KILLING", "Airflow"), ("KILLED", "spark-submit")]
    assert (status["state"], status["error"]) == ("ABORT", "killed by Airflow (on_kill)")
    assert told[-1]["new_status"] == "KILLED"


def test_a_driver_that_is_taken_over_is_told_as_such(bench: Any) -> None:
    first = standalone(bench, ["UNKNOWN"], lineage=[EVENTS], store={})
    retry = standalone(bench, ["RUNNING", "RUNNING", "FINISHED"], store=first.store, task={"try_number": 2})
    status = retry.lineage["run_facets"]["sparkLineage_status"]
    driver = [one for one in status["transitions"] if one["subject"] == "DRIVER"]
    assert {one["id"] for one in driver} == {DRIVER_ID}
    assert driver[0]["newStatus"] == "SUBMITTED"
    (taken,) = [one for one in driver if one["newStatus"] == "REATTACHED"]
    assert (taken["source"], taken["detail"]) == ("Airflow", "by try 2")
    assert driver[-1]["newStatus"] == "FINISHED"


def test_a_key_of_the_status_that_does_not_fit_costs_no_more_than_the_asking(bench: Any) -> None:
    bench.connection["extra"] = {"driver_unknown_seconds": "soon"}
    outcome = bench.run(lineage=[EVENTS], exit_code=3)
    assert "The cluster is not asked as the connection says: " in outcome.printed
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["error"] == "exit code 3"


def test_a_server_that_never_answers_does_not_hold_up_the_end(bench: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        bench.connection["extra"] = {"history_server_url": address, "status_conn_id": "servers"}
        bench.env["AIRFLOW_CONN_SERVERS"] = json.dumps({"conn_type": "http", "extra": {"timeout": 300}})
        log = ["INFO StandaloneSchedulerBackend: Connected to Spark cluster with app ID app-20240131120000-0042"]
        outcome = bench.run(lineage=[EVENTS], log=log, signal_parent=int(signal.SIGUSR1))
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "ABORT"


def test_a_task_that_is_killed_while_its_submission_is_prepared_submits_nothing(bench: Any) -> None:
    class SlowJar(Handler):
        def do_GET(self) -> None:
            for task in psutil.Process(bench.laboratory._process.pid).children():
                task.send_signal(signal.SIGUSR1)
            time.sleep(0.5)
            self.answer(status=404)

    with serving(SlowJar) as url:
        outcome = bench.run(openlineage_jar=f"{url}/openlineage-spark_2.13-1.53.0.jar", evidence="both")
    assert outcome.told == []
    assert "the task was killed before its job was submitted" in outcome.error


def test_a_login_in_the_address_of_the_master_is_not_stored(bench: Any) -> None:
    bench.connection = {"conn_type": "spark", "host": "spark://me:hunter2@host:7077"}
    outcome = bench.run(lineage=[EVENTS], store={})
    assert outcome.store["spark_lineage_launch"]["master"] == "spark://host:7077"
    assert "hunter2" not in json.dumps(outcome.store)


def test_a_broken_store_still_leaves_the_handle_beside_the_lineage(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], store={}, fails="store")
    assert outcome.error is None
    handle = json.loads((location(outcome).parent / "launch.json").read_text())
    assert handle["process_id"] == outcome.command["pid"]


def test_what_the_program_printed_cannot_poison_a_backend(bench: Any) -> None:
    log = ["Traceback (most recent call last):", "ValueError: bad \x00 byte \x1b[31m"]
    outcome = bench.run(lineage=[EVENTS], log=log, exit_code=1)
    message = outcome.lineage["run_facets"]["errorMessage"]["message"]
    assert message == "ValueError: bad \ufffd byte \ufffd[31m (exit code 1)"


def test_listeners_are_told_the_end_of_the_event_where_lineage_is_required_and_none_came(bench: Any) -> None:
    outcome, told = notified(bench, lineage_required=True)
    assert outcome.error.startswith("LineageRequiredError: No lineage came from the driver")
    assert (told[-1]["subject"], told[-1]["new_status"]) == ("TASK", "FAILED")
    assert told[-1]["exception"].startswith("No lineage came from the driver")


def test_listeners_are_told_that_the_task_fails_though_its_driver_has_finished(bench: Any) -> None:
    path = bench.root / "notified.ndjson"
    bench.env["AIRFLOW__SPARK_LINEAGE__NDJSON_LISTENER_PATH"] = str(path)
    # The second answer is one too many; the next is for the last question.
    outcome = standalone(bench, ["UNKNOWN", "UNKNOWN", "FINISHED"], lineage=[EVENTS], lineage_listeners=NDJSON)
    assert "its end is not known; it may still run" in outcome.error
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "COMPLETE"
    last = json.loads(path.read_text().splitlines()[-1])
    assert (last["subject"], last["new_status"]) == ("TASK", "FAILED")
    assert "its end is not known; it may still run" in last["exception"]


def test_listeners_of_a_retry_are_told_with_what_the_job_runs(bench: Any) -> None:
    path = bench.root / "notified.ndjson"
    bench.env["AIRFLOW__SPARK_LINEAGE__NDJSON_LISTENER_PATH"] = str(path)
    bench.defaults = "spark.ui.enabled false\n"
    arguments = {"conf": {"spark.my.day": "1", "spark.my.apiKey": "hunter2"}, "lineage_listeners": NDJSON}
    first = standalone(bench, ["UNKNOWN"], lineage=[EVENTS], store={}, **arguments)
    standalone(bench, ["RUNNING", "FINISHED"], store=first.store, task={"try_number": 2}, **arguments)
    told = [json.loads(line) for line in path.read_text().splitlines()]
    submitted, taken_over = [one["configuration"] for one in told if one["event"] == "JobCreatedEvent"]
    assert taken_over == {"spark.my.day": "1", "spark.my.apiKey": "***", "spark.ui.enabled": "false"}
    assert taken_over.items() <= submitted.items()
