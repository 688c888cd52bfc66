"""Job runs of EMR Serverless, as moto has them: a runner submits each with a real Spark, which logs to S3."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from http_server import Handler, serving
from msgspec import structs
from service_jobs import PROGRAM, assert_recovered, lost_task, state

from spark_lineage.adapters.emr import EmrServerlessAdapter
from spark_lineage.launch.launch import Launch, TaskKey
from spark_lineage.launch.log import Log
from spark_lineage.recover.recovery import recover
from spark_lineage.recover.search import LostTry
from spark_lineage.settings.places import Places

if TYPE_CHECKING:
    from laboratory import Outcome

pytestmark = [pytest.mark.clouds, pytest.mark.spark]
OPERATOR = "lineage_emr:LineageEmrServerlessStartJobOperator"
MISSING = (
    "spark.eventLog.dir is not an absolute path on this machine, and is not read from elsewhere: event_log_dir is no "
    "directory, and Spark fails a job that would log there: make it"
)


@pytest.fixture
def run(aws: Any) -> Callable[..., Outcome]:
    """Run the program as a job of a started application."""
    client = aws.client("emr-serverless")
    application = client.create_application(name="shop", releaseLabel="emr-7.9.0", type="SPARK")["applicationId"]
    client.start_application(applicationId=application)
    aws.application = application

    def run(how: str, *flag: str, parameters: str = "", **arguments: Any) -> Outcome:
        submit = {"entryPoint": str(PROGRAM), "entryPointArguments": [aws.lake, how, *flag]}
        if parameters:
            submit["sparkSubmitParameters"] = parameters
        given = {
            "aws_conn_id": "shop_aws",
            "application_id": application,
            "execution_role_arn": "arn:aws:iam::123456789012:role/emr",
            "job_driver": {"sparkSubmit": submit},
            "waiter_delay": 1,
            "waiter_max_attempts": 200,
        }
        return aws.execute(OPERATOR, **{**given, **arguments})

    return run


def test_job_that_is_waited_for_is_the_task(run: Callable[..., Outcome], aws: Any) -> None:
    own = {"applicationConfiguration": [{"classification": "spark-defaults", "properties": {"spark.app.name": "mine"}}]}
    outcome = run("succeed", configuration_overrides=own)
    assert outcome.error is None, outcome.printed
    assert state(outcome) == "COMPLETE", outcome.printed
    assert outcome.names("inputs") == ["lake/orders"], outcome.printed
    assert outcome.names("outputs") == ["lake/doubled"]
    assert outcome.lineage is not None
    (output,) = outcome.lineage["outputs"]
    assert output["namespace"] == f"s3://{aws.bucket}"
    fields = output["facets"]["columnLineage"]["fields"]
    assert [one["field"] for one in fields["doubled"]["inputFields"]] == ["amount"]
    assert "spark.app.name=mine" in aws.submitted(outcome.last["returned"])
    assert [one["eventType"] for one in aws.sent("shop.load")] == ["START", "COMPLETE"]


def test_job_that_fails_keeps_what_it_had_written(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("fail")
    assert outcome.error is not None
    assert "WaiterTerminalFailure" in outcome.error
    assert state(outcome) == "FAIL", outcome.printed
    assert outcome.names("outputs") == ["lake/doubled"]
    assert "ValueError: no more" in str(outcome.lineage)
    assert "hunter2" not in f"{outcome.last}{outcome.logged}", outcome.logged


def test_driver_that_dies_leaves_no_lineage_and_the_event_says_so(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("die", parameters="--conf spark.eventLog.rolling.enabled=true")
    assert state(outcome) == "FAIL", outcome.printed
    assert (outcome.names("inputs"), outcome.names("outputs")) == ([], [])
    assert outcome.lineage is not None
    counted = outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"]
    assert counted == {"event log without its end": 1}
    assert "An object store shows a file when it is closed" in outcome.printed
    assert [name.rpartition("/")[2].partition("_")[0] for name in aws.logs()] == ["appstatus"]


def test_retry_is_a_job_of_its_own(run: Callable[..., Outcome], aws: Any) -> None:
    first = run("fail")
    second = run("succeed", task={"try_number": 2})
    assert (state(first), state(second)) == ("FAIL", "COMPLETE"), second.printed
    assert second.names("outputs") == ["lake/doubled"]
    events = aws.sent("shop.load")
    assert [one["eventType"] for one in events] == ["START", "FAIL", "START", "COMPLETE"]
    assert len({one["run"]["runId"] for one in events}) == 2


def test_job_that_is_killed_is_cancelled(run: Callable[..., Outcome], aws: Any, tmp_path: Path) -> None:
    with aws.bench.laboratory.killing(tmp_path / "written"):
        outcome = run("endless", str(tmp_path / "written"))
    assert state(outcome) == "ABORT", outcome.printed
    found = aws.client("emr-serverless").list_job_runs(applicationId=aws.application)["jobRuns"]
    assert [one["state"] for one in found] == ["CANCELLED"]


@pytest.mark.parametrize(("how", "end"), [("succeed", "COMPLETE"), ("fail", "FAIL")])
def test_job_that_a_trigger_waits_for_is_the_task(how, end, run: Callable[..., Outcome], aws: Any) -> None:
    if how == "succeed":
        # Then a trigger waits for the application, before there is a job.
        aws.client("emr-serverless").stop_application(applicationId=aws.application)
    outcome = run(how, deferrable=True)
    assert (outcome.error is None) is (how == "succeed")
    assert state(outcome) == end, outcome.printed
    assert outcome.names("outputs") == ["lake/doubled"]


def test_job_that_is_not_waited_for_is_a_job_of_its_own(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("late", wait_for_completion=False)
    assert outcome.error is None, outcome.printed
    assert not aws.end_children()
    aws.wait_for_children()
    assert [one["eventType"] for one in aws.sent("shop.load")] == ["START", "COMPLETE"]
    start, end = aws.sent("job_run@shop.load")
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert [one["name"] for one in end["inputs"]] == ["lake/orders"]
    assert [one["name"] for one in end["outputs"]] == ["lake/doubled"]


@pytest.mark.parametrize(
    ("parameters", "directory", "why"),
    [
        ("", "", "the driver runs on another machine; set event_log_dir, or "),
        ("--conf spark.eventLog.enabled=false", None, "spark.eventLog.enabled is false"),
        ("", "s3a://shop_aws@{bucket}/gone", MISSING),
        ("", "s3a://shop_aws@no-bucket/logs", MISSING),
    ],
)
def test_start_and_end_say_why_no_log_is_read(
    parameters: str, directory: str | None, why: str, run: Callable[..., Outcome], aws: Any
) -> None:
    if directory is not None:
        aws.bench.env["AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR"] = directory.format(bucket=aws.bucket)
    outcome = run("succeed", parameters=parameters)
    assert outcome.error is None, outcome.printed
    start, end = aws.sent("shop.load")
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    for event in (start, end):
        assert (event["inputs"], event["outputs"]) == ([], [])
        (counted,) = event["run"]["facets"]["sparkLineage_collection"]["setAside"]
        assert counted.startswith(f"no event log is read: {why}")
    assert not aws.logs()


def test_log_that_cannot_be_reached_costs_the_task_nothing_but_its_lineage(
    run: Callable[..., Outcome], aws: Any
) -> None:
    away = {"conn_type": "aws", "login": "test", "password": "not-a-key-of-anybody"}
    away["extra"] = {"region_name": "us-east-1", "endpoint_url": "http://127.0.0.1:9"}
    aws.bench.env |= {
        "AIRFLOW_CONN_AWAY": json.dumps(away),
        "AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": f"s3a://away@{aws.bucket}/eventlogs",
    }
    outcome = run("succeed", lineage_timeout=10)
    assert outcome.error is None, outcome.printed
    assert state(outcome) == "COMPLETE"
    assert (outcome.names("inputs"), outcome.names("outputs")) == ([], [])
    assert outcome.lineage is not None
    (counted,) = outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"]
    # The client of S3 tries again and again.
    assert counted.startswith(("no event log is read: ", "not read in time"))
    assert "Some lineage is missing" in outcome.printed or "The event log from where it lies" in outcome.printed
    assert "not-a-key-of-anybody" not in f"{outcome.last}{outcome.printed}"


REFUSALS = {"AccessDenied": "Access Denied", "ExpiredToken": "The provided token has expired."}


@pytest.fixture(params=REFUSALS)
def refused(request: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """A connection that each service refuses, and the text of the refusal."""
    code, text = request.param, REFUSALS[request.param]

    class Refusing(Handler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "/s3/" in self.headers["Authorization"]:
                self.answer(f"<Error><Code>{code}</Code><Message>{text}</Message></Error>".encode(), 403)
            else:
                kind = {"x-amzn-ErrorType": f"{code}Exception", "Content-Type": "application/json"}
                self.answer(json.dumps({"message": text}).encode(), 403, kind)

        do_HEAD = do_POST = do_GET

    with serving(Refusing) as url:
        extra = {"region_name": "us-east-1", "endpoint_url": url}
        yield {"conn_type": "aws", "login": "test", "password": "not-a-key-of-anybody", "extra": extra}, text


def test_log_with_wrong_credentials_costs_the_task_nothing_and_the_events_say_why(
    refused: tuple[dict[str, Any], str], run: Callable[..., Outcome], aws: Any
) -> None:
    connection, text = refused
    aws.bench.env |= {
        "AIRFLOW_CONN_REFUSED": json.dumps(connection),
        "AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": f"s3a://refused@{aws.bucket}/eventlogs",
    }
    outcome = run("succeed")
    assert outcome.error is None, outcome.printed
    assert (state(outcome), outcome.names("outputs")) == ("COMPLETE", [])
    assert outcome.lineage is not None
    (counted,) = outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"]
    assert counted.startswith("no event log is read: ")
    assert text in counted
    assert "not-a-key-of-anybody" not in f"{outcome.last}{outcome.printed}"


def test_service_with_wrong_credentials_fails_the_task_as_without_lineage(
    refused: tuple[dict[str, Any], str], run: Callable[..., Outcome], aws: Any
) -> None:
    connection, text = refused
    aws.bench.env["AIRFLOW_CONN_REFUSED"] = json.dumps(connection)
    outcome = run("succeed", aws_conn_id="refused")
    assert outcome.error is not None
    assert text in outcome.error
    assert [one["eventType"] for one in aws.sent("shop.load")] == ["START", "FAIL"]
    assert "The task has no lineage: it submitted no job" in outcome.logged
    off = run("succeed", aws_conn_id="refused", lineage_enabled=False)
    assert off.error == outcome.error


def test_lost_task_is_recovered_and_its_retry_is_a_job_of_its_own(
    run: Callable[..., Outcome], aws: Any, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    launch = lost_task(aws.bench, lambda: run("late", str(begun)), begun)
    assert [one["eventType"] for one in aws.sent("shop.load")] == ["START"]
    retry = run("succeed", task={"try_number": 2})
    assert (state(retry), retry.names("outputs")) == ("COMPLETE", ["lake/doubled"])
    assert retry.last["returned"] != launch.external_id
    assert_recovered(launch, ["lake/doubled"], "COMPLETE")


def delivery(aws: Any) -> dict[str, Any]:
    """Have EMR deliver the log, and let no ``event_log_dir`` be set."""
    aws.bench.env["AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR"] = ""
    return {"monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": f"s3://{aws.bucket}/emr/"}}}


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize(("how", "end"), [("succeed", "COMPLETE"), ("fail", "FAIL")])
def test_log_that_emr_delivers_is_read_with_the_connection_of_the_task(
    how, end, deferrable, run: Callable[..., Outcome], aws: Any
) -> None:
    outcome = run(how, configuration_overrides=delivery(aws), deferrable=deferrable)
    assert (outcome.error is None) is (how == "succeed"), outcome.printed
    assert state(outcome) == end, outcome.printed
    assert (outcome.names("inputs"), outcome.names("outputs")) == (["lake/orders"], ["lake/doubled"])
    assert outcome.lineage is not None
    assert outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"] == {}
    (job,) = aws.client("emr-serverless").list_job_runs(applicationId=aws.application)["jobRuns"]
    assert "spark.eventLog" not in str(aws.submitted(job["id"]))


def test_delivered_log_of_a_job_that_is_not_waited_for_is_that_of_the_child(
    run: Callable[..., Outcome], aws: Any
) -> None:
    aws.assert_child(run("late", wait_for_completion=False, configuration_overrides=delivery(aws)))


def test_delivered_log_of_a_driver_that_died_is_counted(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("die", configuration_overrides=delivery(aws))
    assert state(outcome) == "FAIL", outcome.printed
    assert outcome.lineage is not None
    assert outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"] == {"event log without its end": 1}


def test_event_log_dir_wins_over_the_place_where_emr_delivers(run: Callable[..., Outcome], aws: Any) -> None:
    directory = aws.bench.env["AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR"]
    overrides = delivery(aws)
    aws.bench.env["AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR"] = directory
    outcome = run("succeed", configuration_overrides=overrides)
    assert outcome.names("outputs") == ["lake/doubled"], outcome.printed
    assert aws.logs()


def test_jobs_that_log_to_one_place_at_once_are_told_apart(run: Callable[..., Outcome], aws: Any) -> None:
    first = run("late", wait_for_completion=False)
    assert first.error is None, first.printed
    submit = {"entryPoint": str(PROGRAM), "entryPointArguments": [f"{aws.lake}/second", "succeed"]}
    aws.client("s3").put_object(Bucket=aws.bucket, Key="lake/second/orders/part.json", Body=b'{"id": 1, "amount": 20}')
    left = aws.launch()
    second = run("succeed", job_driver={"sparkSubmit": submit}, task={"try_number": 2})
    assert not aws.end_children(left)
    assert (second.names("inputs"), second.names("outputs")) == (["lake/second/orders"], ["lake/second/doubled"])
    aws.wait_for_children(left)
    end = aws.sent("job_run@shop.load")[-1]
    assert end["eventType"] == "COMPLETE"
    assert [one["name"] for one in (*end["inputs"], *end["outputs"])] == ["lake/orders", "lake/doubled"]


def test_try_whose_worker_was_lost_ends_with_the_lineage_of_its_job(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("late", wait_for_completion=False)
    # As it is kept while a task waits.
    launch = structs.replace(aws.launch(), child="", parent=())
    lost = LostTry(TaskKey("shop", "manual", "load"), launch, end="failed", error="the worker was lost")
    places, logger = Places.of(launch.conn_id, {}), Log(logging.getLogger())
    going_on = recover(lost, places, ended_processes=0, logger=logger).lineage
    assert (going_on.state, going_on.outputs) == ("FAIL", ())
    assert going_on.status is not None
    assert "still runs" in going_on.status.error
    client, job = aws.client("emr-serverless"), outcome.last["returned"]
    until = time.monotonic() + 120
    while client.get_job_run(applicationId=aws.application, jobRunId=job)["jobRun"]["state"] != "SUCCESS":
        assert time.monotonic() < until
        time.sleep(1)
    # Of a try that another follows, it is a failure.
    for is_retried, end in ((False, "COMPLETE"), (True, "FAIL")):
        over = recover(structs.replace(lost, is_retried=is_retried), places, ended_processes=0, logger=logger).lineage
        assert [one.dataset.name for one in over.outputs] == ["lake/doubled"]
        assert over.state == end
    assert over.status is not None
    assert "its driver ended as FINISHED" in over.status.error


def test_job_whose_request_must_not_change_says_so(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("succeed", client_request_token="orders-of-today")  # noqa: S106
    assert outcome.error is None, outcome.printed
    for event in aws.sent("shop.load"):
        (counted,) = event["run"]["facets"]["sparkLineage_collection"]["setAside"]
        assert counted.startswith("no event log is read: it has a client_request_token of its own")
    assert not aws.submitted(outcome.last["returned"])[:-3]


def test_service_that_does_not_answer_is_asked_once_for_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        extra = {"region_name": "us-east-1", "endpoint_url": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        connection = {"conn_type": "aws", "login": "test", "password": "not-a-key-of-anybody", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SILENT", json.dumps(connection))
        launch = Launch("", "", external_id="job", conn_id="silent", master="emr-serverless:us-east-1:00app")
        begun = time.monotonic()
        with pytest.raises(Exception, match=r"[Tt]ime(d )?out"):
            EmrServerlessAdapter.end_of(launch)
        assert time.monotonic() < begun + 10


def test_deferrable_job_to_which_nothing_is_added_has_a_start_and_an_end(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("succeed", deferrable=True, client_request_token="orders")  # noqa: S106
    assert outcome.error is None, outcome.printed
    sent = aws.sent("shop.load")
    assert [one["eventType"] for one in sent] == ["START", "COMPLETE"]
    for event in sent:
        (counted,) = event["run"]["facets"]["sparkLineage_collection"]["setAside"]
        assert counted.startswith("no event log is read: it has a client_request_token of its own")
    assert "No lineage came from the driver" not in outcome.printed
    assert "IndexError" not in outcome.printed
