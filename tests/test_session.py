"""The story of one task, from its settings to what it hands over: real operator, real hook, a fake ``spark-submit``."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIXTURES = Path(__file__).parent / "fixtures" / "events"
EVENTS = FIXTURES / "a_414.ndjson"
EVENTS_FILE = "openlineage-events.ndjson"
DAY_SECONDS = 24 * 60 * 60
DRIVER_ID = "driver-20240131120000-0042"
APPLICATION_ID = "application_1706702400000_0042"
DRIVER_LINE = f"INFO ClientEndpoint: Driver successfully submitted as {DRIVER_ID}"


def launches(root: Path) -> list[Path]:
    """Give the directories of all launches below a lineage directory."""
    return sorted(root.glob("*/*/*/*/*"))


def location(outcome: Any) -> Path:
    """Give the file that the driver was told to write its lineage to."""
    conf, prefix = outcome.command["conf"], "spark.openlineage.transport."
    return Path(conf.get(f"{prefix}transports.spark_lineage.location") or conf[f"{prefix}location"])


def is_running(pid: int) -> bool:
    """Whether a process is there and not just waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


# ---- what comes of a task ----


def test_a_success(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS])
    assert outcome.error is None
    assert outcome.names("inputs") == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    facets = outcome.lineage["run_facets"]
    assert facets["sparkLineage_collection"]["linesRead"] == 21
    assert facets["sparkLineage_collection"]["linesSetAside"] == 0
    assert facets["processing_engine"]["version"] == "4.1.4"
    assert facets["sparkLineage_application"]["applications"][0]["applicationId"] == "local-1795215390665"
    assert "Lineage: COMPLETE, 2 inputs, 1 outputs, 0 attempted outputs (21 events of 7 Spark runs" in outcome.printed
    for name in ("data/cust.csv", "data/orders.csv"):
        assert f"Input: file /data/lab/{name}" in outcome.printed
    assert "Output: file /data/lab/out/a_parquet" in outcome.printed


def test_a_failure_keeps_what_was_finished_and_names_what_was_tried(bench: Any) -> None:
    outcome = bench.run(lineage=[FIXTURES / "gtask_414.ndjson"], exit_code=1)
    assert "Error code is: 1." in outcome.error
    assert outcome.names("outputs") == ["/data/lab/out/g_ok_task"]
    assert outcome.attempted() == ["/data/lab/out/g_bad"]
    assert "Lineage: FAIL" in outcome.printed


def test_the_exit_code_decides_about_open_writes(bench: Any) -> None:
    succeeded = bench.run(lineage=[FIXTURES / "gkillmid_414.ndjson"])
    failed = bench.run(lineage=[FIXTURES / "gkillmid_414.ndjson"], exit_code=137)
    assert succeeded.attempted() == []
    assert "Lineage: COMPLETE" in succeeded.printed
    assert "Lineage: FAIL" in failed.printed
    assert len(failed.attempted()) == 1
    assert set(succeeded.names("outputs")) == {*failed.names("outputs"), *failed.attempted()}


@pytest.mark.parametrize(
    ("how", "error"), [(signal.SIGUSR1, "AirflowException: "), (signal.SIGUSR2, "AirflowTaskTimeout: ")]
)
def test_a_task_that_is_killed_or_times_out_is_aborted(bench: Any, how: int, error: str) -> None:
    outcome = bench.run(lineage=[FIXTURES / "gkillmid_414.ndjson"], signal_parent=how)
    assert outcome.error.startswith(error)
    assert "Lineage: ABORT" in outcome.printed
    assert len(outcome.attempted()) == 1
    assert outcome.threads == ["MainThread"]
    assert not is_running(outcome.command["pid"]), "the driver was left alone"


@pytest.mark.parametrize(("exit_code", "how"), [(0, 0), (1, 0), (0, signal.SIGUSR1), (0, signal.SIGUSR2)])
def test_the_follower_is_gone_after_the_session(bench: Any, exit_code: int, how: int) -> None:
    outcome = bench.run(lineage=[EVENTS], exit_code=exit_code, signal_parent=how, poll_interval_seconds=0.01)
    assert outcome.threads == ["MainThread"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_second_execution_of_the_same_operator_is_a_session_of_its_own(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], executions=2)
    first, second = outcome.executions
    assert first["session_id"] != second["session_id"]
    assert first["hook_id"] != second["hook_id"]
    for one in (first, second):
        # Of two processes and their times.
        assert one["lineage"]["run_facets"].pop("sparkLineage_status")["state"] == "COMPLETE"
    assert first["lineage"] == second["lineage"]
    assert len(outcome.told) == 2
    for key in ("spark.openlineage.applicationRunId", "spark.openlineage.transport.location"):
        assert outcome.told[0]["conf"][key] != outcome.told[1]["conf"][key]
    assert outcome.told[0]["conf"].keys() == outcome.told[1]["conf"].keys()
    assert outcome.told[1]["conf"]["spark.extraListeners"].count("OpenLineage") == 1
    assert outcome.told[1]["argv"].count("--driver-class-path") == 1


# ---- settings ----


def test_settings_come_from_the_connection_and_from_the_section(bench: Any) -> None:
    bench.connection["extra"] = {"lineage_namespace": "of-the-extra", "lineage_tags": {"team": "sales"}}
    bench.env["AIRFLOW__SPARK_LINEAGE__LINEAGE_NAMESPACE"] = "of-the-section"
    bench.env["AIRFLOW__SPARK_LINEAGE__LINEAGE_JOB_NAME"] = "name-of-the-section"
    conf = bench.run().command["conf"]
    assert conf["spark.openlineage.namespace"] == "of-the-extra"
    assert conf["spark.openlineage.appName"] == "name-of-the-section"
    assert conf["spark.openlineage.job.tags"] == "team:sales"
    conf = bench.run(lineage_namespace="of-the-argument").command["conf"]
    assert conf["spark.openlineage.namespace"] == "of-the-argument"


def test_by_default_lineage_is_written_below_airflows_home(bench: Any, laboratory: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], lineage_dir=None)
    file = location(outcome)
    assert file.is_relative_to(laboratory.home / "spark_lineage" / "shop" / "manual" / "load")
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_connection_that_is_not_there_is_the_providers_business(bench: Any) -> None:
    outcome = bench.run(conn_id="nobody_made_it", lineage=[EVENTS])
    assert outcome.command["argv"][:2] == ["--master", "yarn"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_lineage_can_be_switched_off_for_a_whole_connection(bench: Any) -> None:
    bench.connection["extra"] = {"lineage_enabled": "false"}
    outcome = bench.run()
    assert outcome.command["conf"] == {}
    assert outcome.lineage is None


# ---- trouble ----


def trouble(bench: Any, kind: str) -> tuple[dict[str, Any], str]:
    """Give the arguments that bring about the trouble, and the words that its cause is told in."""
    return {
        "setting": ({"retention_days": -1}, "operator argument 'retention_days' is -1; give a number above 0"),
        "jar": ({"openlineage_jar": "/nowhere/openlineage-spark.jar"}, "/nowhere/openlineage-spark.jar"),
        "dir": ({"lineage_dir": "/proc/lineage"}, "/proc/lineage"),
        "url": ({"lineage_dir": "s3://bucket/lineage"}, "is a URL"),
        "relative": ({"lineage_dir": "lineage"}, "is not an absolute path"),
        "file": ({"lineage_dir": str(bench.file("in-the-way", b""))}, "in-the-way"),
        "transport": (
            {"conf": {"spark.openlineage.transport.type": "composite", "spark.openlineage.transport.transports": "[]"}},
            "composite",
        ),
    }[kind]


TROUBLE = ["setting", "jar", "dir", "url", "relative", "file", "transport"]


def test_a_tag_that_the_listener_would_misread_costs_no_lineage(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], lineage_tags={"url": "a:b", "team": "sales"})
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert "The tag 'url' is left out" in outcome.printed
    assert "spark.openlineage.job.tags=team:sales" in outcome.command["argv"]


@pytest.mark.parametrize("kind", TROUBLE)
def test_trouble_is_told_with_its_cause_and_does_not_fail_the_task(bench: Any, kind: str) -> None:
    arguments, cause = trouble(bench, kind)
    outcome = bench.run(log=["the job has run"], **arguments)
    assert outcome.error is None
    assert outcome.lineage is None
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without lineage" in line]
    assert cause in line
    assert "[warning" in line
    assert "the job has run" in outcome.printed
    added = set(outcome.command["conf"]) - set(arguments.get("conf", {}))
    assert added == set()
    assert outcome.threads == ["MainThread"]


@pytest.mark.parametrize("kind", TROUBLE)
def test_trouble_fails_the_task_that_requires_lineage_before_it_submits(bench: Any, kind: str) -> None:
    arguments, cause = trouble(bench, kind)
    outcome = bench.run(lineage_required=True, **arguments)
    assert outcome.error.startswith("LineageRequiredError: lineage_required is set, and there is none: ")
    assert cause in outcome.error
    assert outcome.told == []
    assert outcome.lineage is None


@pytest.mark.parametrize("value", [True, "true", "True", "yes", "1", 1])
def test_lineage_required_holds_in_every_spelling_even_beside_a_bad_setting(bench: Any, value: object) -> None:
    outcome = bench.run(lineage_required=value, retention_days=-1)
    assert (outcome.error or "").startswith("LineageRequiredError")
    assert "retention_days" in outcome.error


@pytest.mark.parametrize("place", ["extra", "section"])
def test_lineage_required_holds_from_every_place_even_beside_a_bad_setting(bench: Any, place: str) -> None:
    if place == "extra":
        bench.connection["extra"] = {"lineage_required": True}
    else:
        bench.env["AIRFLOW__SPARK_LINEAGE__LINEAGE_REQUIRED"] = "True"
    outcome = bench.run(retention_days=-1)
    assert (outcome.error or "").startswith("LineageRequiredError")
    assert "retention_days" in outcome.error


def test_an_argument_of_the_operator_can_lift_the_requirement_of_the_section(bench: Any) -> None:
    bench.env["AIRFLOW__SPARK_LINEAGE__LINEAGE_REQUIRED"] = "True"
    outcome = bench.run(lineage_required=False, retention_days=-1)
    assert outcome.error is None


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(("content", "set_aside"), [(b"", 0), (b"garbage\n\xff\xfe\n", 2)])
def test_when_nothing_came_it_says_where_it_looked_and_why_that_may_be(
    bench: Any, content: bytes, set_aside: int, *, required: bool
) -> None:
    lineage = [bench.file("garbage", content)] if content else []
    outcome = bench.run(lineage=lineage, lineage_required=required)
    directory = location(outcome).parent
    if required:
        assert outcome.error.startswith("LineageRequiredError")
        text = outcome.error
    else:
        assert outcome.error is None
        (text,) = [line for line in outcome.printed.splitlines() if "No lineage came from the driver" in line]
    assert f"{directory}/*.ndjson" in text
    assert f"({set_aside} lines set aside)" in text
    assert "(1) the listener jar was not resolved" in text
    assert "(2) the driver ran on another host" in text
    assert "(3) the listener was switched off" in text


@pytest.mark.parametrize("kind", ["nothing", "garbage"])
def test_a_task_that_fails_anyway_keeps_its_own_error(bench: Any, kind: str) -> None:
    lineage = [bench.file("garbage", b"garbage\n")] if kind == "garbage" else []
    outcome = bench.run(lineage=lineage, lineage_required=True, exit_code=3, log=["the true reason"])
    assert outcome.error.startswith("AirflowException: ")
    assert "Error code is: 3." in outcome.error
    assert "the true reason" in outcome.error
    assert "No lineage came from the driver" in outcome.printed


def test_garbage_between_the_lines_costs_only_itself(bench: Any) -> None:
    lines = EVENTS.read_bytes().splitlines(keepends=True)
    huge = b'{"eventTime": "' + b"x" * (70 * 1024 * 1024) + b'"}\n'
    garbage = [b"hello\n", b"\xff\xfe\x00\n", b"\n", b"[1, 2]\n", lines[0][:100] + b"\n", huge]
    mixed = [line for pair in zip(lines, garbage, strict=False) for line in pair] + lines[len(garbage) :]
    torn = b'{"eventTime": "2024-01-31T12:00:00Z", "run'
    outcome = bench.run(lineage=[bench.file("mixed", b"".join([*mixed, torn]))], poll_interval_seconds=0.02)
    assert outcome.error is None
    assert outcome.names("inputs") == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    facet = outcome.lineage["run_facets"]["sparkLineage_collection"]
    assert (facet["linesRead"], facet["linesSetAside"]) == (21, 7)
    assert facet["setAside"] == {"not JSON": 3, "not UTF-8": 1, "empty": 1, "not a RunEvent": 1, "oversized": 1}
    for number in (2, 4, 6, 8, 10, 12, 28):
        assert f"Set aside {location(outcome)}:{number}: " in outcome.printed


def test_a_spark_submit_that_is_not_there_is_the_providers_error(bench: Any) -> None:
    outcome = bench.run(spark_binary="spark3-submit", lineage_required=True)
    assert outcome.error.startswith("FileNotFoundError: ")
    assert "No lineage came from the driver" in outcome.printed
    assert outcome.threads == ["MainThread"]


def test_the_default_jar_fits_the_scala_version_of_the_spark_found(bench: Any) -> None:
    outcome = bench.run(openlineage_jar=None)  # this Spark has no Ivy to fetch it with
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without lineage" in line]
    assert "io.openlineage:openlineage-spark_2.13:1.53.0" in line
    assert outcome.error is None


def test_a_store_that_cannot_be_written_to_costs_no_lineage(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], store={}, fails="store")
    assert outcome.error is None
    assert "the API server is away" in outcome.printed
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_lineage_file_that_cannot_be_read_does_not_fail_the_task(bench: Any) -> None:
    outcome = bench.run(log=["ran"], break_lineage_file=True)
    assert outcome.error is None
    assert "Some lineage is missing, because a file cannot be read: IsADirectoryError" in outcome.printed
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "COMPLETE"
    assert outcome.threads == ["MainThread"]


# ---- re-attachment ----


class Cluster:
    """The REST server of a cluster manager; answers each question for the job with the next of its states."""

    def __init__(self, states: list[str], on_question: Callable[[], object] = lambda: None) -> None:
        self.states = states
        self.questions: list[str] = []
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                cluster.questions.append(self.path)
                on_question()
                state = cluster.states.pop(0) if len(cluster.states) > 1 else cluster.states[0]
                answer = yarn_answer(state) if "/apps/" in self.path else standalone_answer(state)
                # As Spark writes it: the hook reads it line by line.
                body = json.dumps(answer, indent=2, separators=(",", " : ")).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]

    @contextmanager
    def serving(self) -> Iterator[Cluster]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def standalone_answer(state: str) -> dict[str, Any]:
    """Give what a standalone master's ``/v1/submissions/status`` says."""
    return {"action": "SubmissionStatusResponse", "driverState": state, "submissionId": DRIVER_ID, "success": True}


def yarn_answer(state: str) -> dict[str, Any]:
    """Give what a ResourceManager's ``/ws/v1/cluster/apps`` says of an application that has come to its end."""
    return {"app": {"state": "FINISHED", "finalStatus": state, "diagnostics": "Cannot log in with apiKey=hunter2"}}


def standalone(
    bench: Any, states: list[str], on_question: Callable[[], object] = lambda: None, **arguments: Any
) -> Any:
    """Run the operator in deploy mode cluster of a standalone master."""
    with Cluster(states, on_question).serving() as cluster:
        extra = {"deploy-mode": "cluster", "rest-port": cluster.port}
        bench.connection = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077, "extra": extra}
        outcome = bench.run(log=[DRIVER_LINE], status_poll_interval=0, **arguments)
        assert cluster.questions
        assert all(DRIVER_ID in question for question in cluster.questions)
        return outcome


def yarn(bench: Any, state: str, **arguments: Any) -> Any:
    """Run the operator in deploy mode cluster of YARN, watched through the ResourceManager."""
    with Cluster([state]).serving() as cluster:
        extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": f"http://127.0.0.1:{cluster.port}"}
        bench.connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
        outcome = bench.run(
            log=[f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"],
            yarn_track_via_rm_api=True,
            **arguments,
        )
        assert cluster.questions
        assert all(APPLICATION_ID in question for question in cluster.questions)
        return outcome


def test_the_launch_handle_is_stored_before_the_driver_is_waited_for(bench: Any) -> None:
    outcome = standalone(bench, ["RUNNING", "FAILED"], store={})
    assert "exited with status FAILED" in outcome.error
    assert outcome.last["submission"]["external_id"] == DRIVER_ID
    launch = outcome.store["spark_lineage_launch"]
    conf = outcome.command["conf"]
    assert launch.pop("process_id") == outcome.command["pid"]
    assert launch.pop("run_id") == conf["spark.openlineage.parentRunId"]
    assert launch == {
        "directory": str(Path(conf["spark.openlineage.transport.location"]).parent),
        "application_run_id": conf["spark.openlineage.applicationRunId"],
        "external_id": DRIVER_ID,
        "conn_id": "spark_default",
        "master": outcome.command["argv"][1],
        "deploy_mode": "cluster",
        "try_number": 1,
        "host": socket.gethostname(),
    }
    # Ours without its id, with its process, and with its id; the provider's key comes after that, and waiting begins.
    stored = [entry.partition("=")[0] for entry in outcome.store_log]
    assert stored == [*["spark_lineage_launch"] * 3, "spark_job_id"]


def test_lineage_that_comes_while_the_driver_is_waited_for_is_collected(bench: Any) -> None:
    lines = EVENTS.read_bytes().splitlines(keepends=True)

    def write() -> None:
        told = json.loads((bench.root / "bin" / "told.jsonl").read_text().splitlines()[-1])
        with Path(told["conf"]["spark.openlineage.transport.location"]).open("ab") as stream:
            stream.write(lines.pop(0) if len(lines) > 1 else b"")

    last = bench.file("last", lines[-1])
    outcome = standalone(bench, ["RUNNING"] * 25 + ["FINISHED"], write, poll_interval_seconds=0.01, lineage=[last])
    assert outcome.error is None
    assert outcome.lineage["run_facets"]["sparkLineage_collection"]["linesRead"] == 21
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_failed_driver_is_a_failed_task_whatever_the_exit_code(bench: Any) -> None:
    outcome = standalone(bench, ["FAILED"], lineage=[FIXTURES / "gkillmid_414.ndjson"], store={})
    assert "Lineage: FAIL" in outcome.printed
    assert len(outcome.attempted()) == 1


@pytest.mark.parametrize("states", [["RUNNING", "RUNNING", "FINISHED"], ["FINISHED"]])
def test_a_retry_that_re_attaches_finds_the_lineage_of_the_running_job(bench: Any, states: list[str]) -> None:
    first = standalone(bench, ["UNKNOWN"], lineage=[EVENTS], store={})
    retry = standalone(bench, states, store=first.store, task={"try_number": 2})
    assert retry.error is None
    assert len(retry.told) == 1, "the retry has submitted again"
    assert retry.names("inputs") == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert retry.names("outputs") == ["/data/lab/out/a_parquet"]
    assert "Lineage: COMPLETE" in retry.printed
    assert retry.threads == ["MainThread"]


def test_a_retry_on_yarn_finds_the_lineage_of_the_job_too(bench: Any) -> None:
    first = yarn(bench, "FAILED", lineage=[EVENTS], store={})
    assert "ended with final status: FAILED" in first.error
    assert "Lineage: FAIL" in first.printed
    assert first.store["spark_lineage_launch"]["external_id"] == first.store["spark_job_id"] == APPLICATION_ID
    retry = yarn(bench, "SUCCEEDED", store=first.store, task={"try_number": 2})
    assert retry.error is None
    assert len(retry.told) == 1, "the retry has submitted again"
    assert retry.names("outputs") == ["/data/lab/out/a_parquet"]


def test_no_secret_of_a_diagnosis_gets_out_with_the_error(bench: Any) -> None:
    outcome = yarn(bench, "FAILED", store={})
    assert "Cannot log in with apiKey=***" in outcome.error
    assert "hunter2" not in json.dumps(outcome.executions)


def test_a_retry_after_a_failed_job_is_a_new_launch(bench: Any) -> None:
    first = standalone(bench, ["FAILED"], lineage=[EVENTS], store={})
    retry = standalone(bench, ["FAILED", "FINISHED"], lineage=[EVENTS], store=first.store, task={"try_number": 2})
    assert len(retry.told) == 2
    assert retry.store["spark_lineage_launch"]["directory"] != first.store["spark_lineage_launch"]["directory"]
    assert retry.names("outputs") == ["/data/lab/out/a_parquet"]
    assert retry.lineage["run_facets"]["sparkLineage_collection"]["linesRead"] == 21


@pytest.mark.parametrize("handle", ["none", "of another job"])
def test_a_job_that_was_submitted_without_lineage_is_told(bench: Any, handle: str) -> None:
    store: dict[str, Any] = {"spark_job_id": DRIVER_ID}
    if handle == "of another job":
        other = bench.lineage_dir / "shop" / "manual" / "load" / "-1" / "1-x"
        other.mkdir(parents=True)
        (other / EVENTS_FILE).write_bytes(EVENTS.read_bytes())
        store["spark_lineage_launch"] = {
            "directory": str(other),
            "application_run_id": "x",
            "external_id": "driver-20240101000000-0001",
        }
    outcome = standalone(bench, ["RUNNING", "FINISHED"], store=store)
    assert outcome.error is None
    assert outcome.told == []
    assert outcome.lineage is None
    assert "Re-attached to a job that was submitted without lineage, or by another operator." in outcome.printed


def test_a_re_attached_job_without_a_handle_fails_the_task_that_requires_lineage(bench: Any) -> None:
    outcome = standalone(bench, ["FINISHED"], store={"spark_job_id": DRIVER_ID}, lineage_required=True)
    assert (outcome.error or "").startswith("LineageRequiredError")
    assert "Re-attached" in outcome.error


@pytest.mark.parametrize("handle", ["text", {"directory": 7}, [1], {"directory": "/", "application_run_id": "x"}])
def test_a_handle_that_makes_no_sense_does_not_fail_the_task(bench: Any, handle: object) -> None:
    outcome = standalone(bench, ["FINISHED"], store={"spark_job_id": DRIVER_ID, "spark_lineage_launch": handle})
    assert outcome.error is None
    assert outcome.lineage is None


def test_without_a_store_there_is_lineage_all_the_same(bench: Any) -> None:
    outcome = standalone(bench, ["FINISHED"], lineage=[EVENTS], store=None)
    assert outcome.error is None
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


# ---- the lineage directory ----


def old(directory: Path, name: str, days: float) -> Path:
    """A file that was last written to so many days ago."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text("{}\n")
    moment = time.time() - days * DAY_SECONDS
    os.utime(file, (moment, moment))
    os.utime(directory, (moment, moment))
    return file


def launch_name(letter: str) -> str:
    """The name of a launch's directory: the try, and the application's run id."""
    return f"1-01890a5d-ac96-7dde-8a63-{letter * 12}"


def test_old_launches_are_cleaned_up_and_nothing_else(bench: Any) -> None:
    root = bench.lineage_dir
    expired = old(root / "shop" / "january" / "load" / "-1" / launch_name("a"), EVENTS_FILE, 8)
    recent = old(root / "shop" / "january" / "save" / "-1" / launch_name("b"), EVENTS_FILE, 6)
    foreign = old(root / "shop" / "january" / "mine" / "-1" / launch_name("c"), "notes.txt", 80)
    shallow = old(root / "shop", EVENTS_FILE, 80)
    users = old(root / "a" / "b" / "c" / "d" / "of-the-user", EVENTS_FILE, 80)
    outcome = bench.run(lineage=[EVENTS], retention_days=7)
    assert not expired.exists()
    assert not (root / "shop" / "january" / "load").exists()
    assert recent.exists()
    assert foreign.exists()
    assert shallow.exists()
    assert users.exists()
    assert location(outcome).exists()
    assert "Old lineage files stay" not in outcome.printed


def test_the_current_launch_is_kept_however_short_the_retention(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], retention_days=1e-12)
    assert location(outcome).exists()


def test_an_old_launch_without_events_is_cleaned_up(bench: Any) -> None:
    empty = old(bench.lineage_dir / "shop" / "january" / "load" / "-1" / launch_name("a"), "x", 80).parent
    (empty / "x").unlink()
    os.utime(empty, (0, 0))
    bench.run(lineage=[EVENTS], retention_days=7)
    assert not empty.exists()


def test_what_a_killed_worker_left_of_a_private_file_is_cleaned_up(bench: Any) -> None:
    directory = bench.lineage_dir / "shop" / "january" / "load" / "-1" / launch_name("a")
    old(directory, EVENTS_FILE, 80)
    secret = old(directory, "spark.properties", 80)
    bench.run(lineage=[EVENTS], retention_days=7)
    assert not secret.exists()
    assert not directory.exists()


def test_names_of_dag_and_run_do_not_lead_out_of_the_directory(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], task={"dag_id": "..", "run_id": "../../../x/y", "task_id": "a/b"})
    file = location(outcome)
    assert ".." not in file.parts
    assert file.relative_to(bench.lineage_dir).parts[-1] == EVENTS_FILE
    assert len(file.relative_to(bench.lineage_dir).parts) == 6
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


# ---- secrets ----

USERS_TRANSPORT = (
    "spark.openlineage.transport.type http\n"
    "spark.openlineage.transport.url http://marquez:5000\n"
    "spark.openlineage.transport.auth.type api_key\n"
    "spark.openlineage.transport.auth.apiKey hunter2-key\n"
)


@pytest.mark.parametrize(
    ("exit_code", "how"), [(0, 0), (1, 0), (0, signal.SIGUSR1), (0, signal.SIGUSR2)], ids=["0", "1", "kill", "timeout"]
)
def test_the_secret_of_the_users_transport_stays_in_a_private_file(bench: Any, exit_code: int, how: int) -> None:
    bench.defaults = USERS_TRANSPORT
    outcome = bench.run(lineage=[EVENTS], exit_code=exit_code, signal_parent=how)
    told = outcome.command
    assert "hunter2" not in " ".join(told["argv"])
    assert told["conf"]["spark.openlineage.transport.type"] == "composite"
    assert told["conf"]["spark.openlineage.transport.transports.user.url"] == "http://marquez:5000"
    file = Path(told["properties"]["path"])
    assert file.parent == location(outcome).parent
    assert told["properties"]["mode"] == 0o600
    assert told["properties"]["text"].startswith(USERS_TRANSPORT)
    assert "hunter2\\u002dkey" in told["properties"]["text"].removeprefix(USERS_TRANSPORT)
    assert not file.exists(), "the private file was left behind"
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert "hunter2" not in outcome.printed
    assert "hunter2" not in json.dumps(outcome.last)


def test_a_properties_file_of_the_users_own_is_copied_and_not_touched(bench: Any) -> None:
    file = bench.file("mine.conf", USERS_TRANSPORT.encode())
    outcome = bench.run(lineage=[EVENTS], properties_file=str(file))
    told = outcome.command["properties"]
    assert outcome.command["argv"].count("--properties-file") == 1
    assert told["path"] != str(file)
    assert (told["mode"], told["text"].startswith(USERS_TRANSPORT)) == (0o600, True)
    assert not Path(told["path"]).exists()
    assert file.read_text() == USERS_TRANSPORT
    assert "hunter2" not in outcome.printed


def test_without_a_secret_there_is_no_private_file(bench: Any) -> None:
    bench.defaults = "spark.ui.enabled false\n"
    assert "properties" not in bench.run().command


@pytest.mark.parametrize("exit_code", [0, 1])
def test_no_secret_gets_out(bench: Any, laboratory: Any, exit_code: int) -> None:
    bench.defaults = USERS_TRANSPORT + "spark.hadoop.fs.s3a.secret.key hunter2-file\n"
    bench.connection["extra"] = {"my_password": "hunter2-extra", "lineage_namespace": "ns"}
    event = json.loads(EVENTS.read_text().splitlines()[0])
    event["inputs"] = []
    event["outputs"] = [{"namespace": "s3://AKIA:hunter2@bucket", "name": "t?password=hunter2", "facets": {}}]
    event["run"]["runId"] = "01990000-0000-7000-8000-000000000001"
    event["eventType"] = "COMPLETE"
    outcome = bench.run(
        lineage_dir=None,
        lineage=[EVENTS, bench.file("more", json.dumps(event).encode() + b"\npassword=hunter2 is no JSON\n")],
        conf={
            "spark.hadoop.fs.s3a.access.key": "hunter2-access",
            "spark.my.apiKey": "hunter2-api",
            "spark.jdbc": "jdbc:postgresql://me:hunter2-jdbc@db/shop",
            "spark.hadoop.fs.azure.account.auth.type": "OAuth",
        },
        application_args=["--password", "hunter2-argument", "token=hunter2-token", "https://me:hunter2-url@host/x"],
        env_vars={"DB_PASSWORD": "hunter2-env"},
        repositories="https://me:hunter2-repository@repo.example/maven",
        log=[
            "24/01/31 INFO Main: password=hunter2-log and more",
            "Authorization: Bearer hunter2hunter2hunter2",
            "jdbc:postgresql://me:hunter2-log@db/shop",
            'Exception in thread "main" java.lang.IllegalStateException: apiKey=hunter2-tail',
        ],
        exit_code=exit_code,
        store={},
    )
    assert "hunter2-argument" in outcome.command["argv"], "the job itself must get them"
    assert "hunter2-env" in outcome.command["env"].values()
    assert "24/01/31 INFO Main: password=" in outcome.printed
    assert "db/shop" in outcome.printed
    if exit_code:
        assert "IllegalStateException" in outcome.error
    assert outcome.lineage["outputs"]
    for text in (outcome.printed, json.dumps(outcome.executions), json.dumps(outcome.store), *outcome.store_log):
        assert "hunter2" not in text
    assert location(outcome).is_relative_to(laboratory.home)
    for file in laboratory.home.rglob("*"):
        # What the listener wrote is the user's own.
        if file.is_file() and file.name != EVENTS_FILE:
            assert b"hunter2" not in file.read_bytes(), file


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"lineage_dir": "s3://AKIA:hunter2@bucket/lineage"},
        {"openlineage_jar": "http://me:hunter2@127.0.0.1:1/openlineage-spark.jar?token=hunter2"},
        {"openlineage_jar": "what password=hunter2"},
        {"lineage_tags": {"password=hunter2;": "x"}},
        {"retention_days": "password=hunter2"},
    ],
)
def test_no_secret_of_a_setting_gets_out_with_the_trouble_about_it(
    bench: Any, arguments: dict[str, Any], *, required: bool
) -> None:
    outcome = bench.run(lineage_required=required, **arguments)
    assert (outcome.error is not None) is required
    assert "hunter2" not in json.dumps(outcome.executions)
    assert "hunter2" not in outcome.printed


# ---- listeners and status ----

NDJSON = "spark_lineage.listeners.ndjson_listener.NdjsonListener"


def notified(bench: Any, **arguments: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Give the outcome of a task, and what its listeners were told."""
    path = bench.root / "notified.ndjson"
    bench.connection["extra"] = {**bench.connection.get("extra", {}), "ndjson_listener_path": str(path)}
    outcome = bench.run(job_status_listeners=NDJSON, catalog_modification_listeners=[NDJSON], **arguments)
    return outcome, [json.loads(line) for line in path.read_text().splitlines()]


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
    bad = bench.run(lineage=[EVENTS], job_status_listeners=["nowhere.Listener", NDJSON])
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
    bench.connection["extra"] = {"status_timeout_seconds": "soon"}
    outcome = bench.run(lineage=[EVENTS], exit_code=3)
    assert "The cluster is not asked as the connection says: SettingError" in outcome.printed
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["error"] == "exit code 3"


def test_a_server_that_never_answers_does_not_hold_up_the_end(bench: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        bench.connection["extra"] = {"history_server_url": address, "status_timeout_seconds": 300}
        log = ["INFO StandaloneSchedulerBackend: Connected to Spark cluster with app ID app-20240131120000-0042"]
        outcome = bench.run(lineage=[EVENTS], log=log, signal_parent=int(signal.SIGUSR1))
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "ABORT"


def test_a_task_that_is_killed_while_its_submission_is_prepared_submits_nothing(bench: Any) -> None:
    class SlowJar(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            for task in psutil.Process(bench.laboratory._process.pid).children():
                task.send_signal(signal.SIGUSR1)
            time.sleep(0.5)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), SlowJar) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        jar = f"http://127.0.0.1:{server.server_address[1]}/openlineage-spark_2.13-1.53.0.jar"
        outcome = bench.run(openlineage_jar=jar)
        server.shutdown()
        thread.join()
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
