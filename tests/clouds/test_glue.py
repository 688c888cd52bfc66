"""Runs of a Glue job, as moto has them: a runner submits each with a real Spark, and copies its log."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from service_jobs import PROGRAM, assert_recovered, lost_task, state

from spark_lineage.launch.launch import STORE_KEY, storable

if TYPE_CHECKING:
    from laboratory import Outcome

pytestmark = [pytest.mark.clouds, pytest.mark.spark]
ROLE = "arn:aws:iam::123456789012:role/glue"
OPERATOR = "lineage_glue:LineageGlueJobOperator"


@pytest.fixture
def run(aws: Any) -> Callable[..., Outcome]:
    """Run the program as a Glue job."""
    glue = aws.client("glue")

    def run(how: str, *flag: str, defined: dict[str, str] | None = None, **arguments: Any) -> Outcome:
        if aws.bucket not in glue.list_jobs()["JobNames"]:
            command = {"Name": "glueetl", "ScriptLocation": str(PROGRAM)}
            glue.create_job(Name=aws.bucket, Role=ROLE, Command=command, DefaultArguments=defined or {})
        own = {"--lake": aws.lake, "--how": how, **({"--flag": flag[0]} if flag else {})}
        given = {
            "job_name": aws.bucket,
            "script_args": {**own, **arguments.pop("script_args", {})},
            "iam_role_arn": ROLE,
            "aws_conn_id": "shop_aws",
            "job_poll_interval": 1,
            "waiter_delay": 1,
            "waiter_max_attempts": 200,
        }
        return aws.execute(OPERATOR, **{**given, **arguments})

    return run


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize(("how", "end"), [("succeed", "COMPLETE"), ("fail", "FAIL")])
def test_run_that_is_waited_for_is_the_task(how, end, deferrable, run: Callable[..., Outcome], aws: Any) -> None:
    # One file, or several, with names as those of a History Server.
    rolling = f"spark.eventLog.rolling.enabled={str(deferrable).lower()}"
    outcome = run(how, script_args={"--conf": f"spark.app.name=mine --conf {rolling}"}, deferrable=deferrable)
    assert (outcome.error is None) is (how == "succeed"), outcome.printed
    assert state(outcome) == end, outcome.printed
    assert outcome.names("inputs") == ["lake/orders"], outcome.printed
    assert outcome.names("outputs") == ["lake/doubled"]
    run_id = dict(outcome.pushed)["glue_job_run_id"]
    assert "spark.app.name=mine" in aws.submitted(run_id)
    assert "hunter2" not in f"{outcome.last}{outcome.logged}", outcome.logged


def test_definition_of_a_job_is_respected(run: Callable[..., Outcome], aws: Any) -> None:
    aws.client("s3").put_object(Bucket=aws.bucket, Key="own/")
    path = {"--spark-event-logs-path": f"s3://{aws.bucket}/own/", "--conf": "spark.app.name=defined"}
    aws.bench.env["AIRFLOW_CONN_AWS_DEFAULT"] = aws.bench.env["AIRFLOW_CONN_SHOP_AWS"]
    outcome = run("succeed", defined=path)
    assert outcome.names("outputs") == ["lake/doubled"], outcome.printed
    assert "spark.app.name=defined" in aws.submitted(dict(outcome.pushed)["glue_job_run_id"])
    assert not aws.logs()


def test_log_in_the_format_of_the_console_is_not_read_and_the_event_says_so(
    run: Callable[..., Outcome], aws: Any
) -> None:
    outcome = run("succeed", script_args={"--enable-spark-ui-legacy-path": "false"})
    assert outcome.error is None, outcome.printed
    for event in aws.sent("shop.load"):
        (counted,) = event["run"]["facets"]["sparkLineage_collection"]["setAside"]
        assert counted == "no event log is read: spark.eventLog.enabled is false by --enable-spark-ui-legacy-path"
    run_id = dict(outcome.pushed)["glue_job_run_id"]
    assert "--enable-spark-ui-legacy-path" not in "".join(aws.submitted(run_id))
    assert not aws.logs()


def test_run_that_is_not_waited_for_is_a_job_of_its_own(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("late", wait_for_completion=False)
    aws.assert_child(outcome)


def test_retry_goes_on_with_the_run_of_a_task_whose_time_was_over(
    run: Callable[..., Outcome], aws: Any, tmp_path: Path
) -> None:
    with aws.bench.laboratory.killing(tmp_path / "written", number=signal.SIGUSR2):
        first = run("endless", str(tmp_path / "written"), store={})
    assert state(first) == "ABORT", first.printed
    store = first.store
    run_id = dict(first.pushed)["glue_job_run_id"]
    assert store is not None
    assert store["glue_job_run_id"] == run_id
    # It goes on, until somebody stops it.
    threading.Timer(8, aws.stop_glue, [run_id]).start()
    second = run("endless", str(tmp_path / "written"), store=store, task={"try_number": 2})
    assert second.error is not None
    assert state(second) == "FAIL", second.printed
    assert dict(second.pushed)["glue_job_run_id"] == run_id
    # The log was copied while the driver ran.
    assert second.names("outputs") == ["lake/doubled"]


def test_lost_task_is_recovered_and_its_retry_goes_on_with_the_run(
    run: Callable[..., Outcome], aws: Any, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    launch = lost_task(aws.bench, lambda: run("late", str(begun), store={}), begun)
    # As Airflow keeps it when the process is gone.
    store = {"glue_job_run_id": launch.external_id, STORE_KEY: storable(launch)}
    retry = run("late", str(begun), store=store, task={"try_number": 2})
    assert (state(retry), retry.names("outputs")) == ("COMPLETE", ["lake/doubled"]), retry.printed
    assert dict(retry.pushed)["glue_job_run_id"] == launch.external_id
    assert_recovered(launch, ["lake/doubled"], "COMPLETE")
