"""Steps of an EMR cluster, as moto has it: a runner submits them in turn with a real Spark, which logs to S3."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from service_jobs import PROGRAM, assert_recovered, lost_task, state

if TYPE_CHECKING:
    from laboratory import Outcome

pytestmark = [pytest.mark.clouds, pytest.mark.spark]
OPERATOR = "lineage_emr:LineageEmrAddStepsOperator"


@pytest.fixture
def run(aws: Any) -> Callable[..., Outcome]:
    """Run the program as steps of a cluster, each in one of its ways."""
    instances = {"MasterInstanceType": "m5.xlarge", "InstanceCount": 1, "KeepJobFlowAliveWhenNoSteps": True}
    cluster = aws.client("emr").run_job_flow(
        Name="shop", ReleaseLabel="emr-7.9.0", Instances=instances, JobFlowRole="r", ServiceRole="r"
    )["JobFlowId"]

    def run(named: dict[str, str], *flag: str, is_text: bool = False, **arguments: Any) -> Outcome:
        command = ("spark-submit", str(PROGRAM))
        given = [step(name, *command, f"{aws.lake}/{name}", how, *flag) for name, how in named.items()]
        for name in named:
            body = b'{"id": 1, "amount": 20}'
            aws.client("s3").put_object(Bucket=aws.bucket, Key=f"lake/{name}/orders/part.json", Body=body)
        own = {"job_flow_id": cluster, "steps": repr(given) if is_text else given, "aws_conn_id": "shop_aws"}
        own |= {"waiter_delay": 1, "waiter_max_attempts": 200}
        return aws.execute(OPERATOR, **{**own, **arguments})

    return run


def step(name: str, *words: str) -> dict[str, Any]:
    jar = {"Jar": "command-runner.jar", "Args": list(words)}
    return {"Name": name, "ActionOnFailure": "CONTINUE", "HadoopJarStep": jar}


def test_steps_that_are_not_waited_for_are_jobs_of_their_own(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run({"first": "succeed", "second": "fail"}, is_text=True)
    # The task succeeds, although a step fails.
    assert outcome.error is None, outcome.printed
    assert not aws.end_children()
    aws.wait_for_children()
    task = aws.sent("shop.load")
    assert [one["eventType"] for one in task] == ["START", "COMPLETE"]
    assert [one["outputs"] for one in task] == [[], []]
    for name, last in (("first", "COMPLETE"), ("second", "FAIL")):
        start, end = aws.sent(f"{name}@shop.load")
        assert (start["eventType"], end["eventType"]) == ("START", last)
        assert start["run"]["runId"] == end["run"]["runId"]
        assert end["run"]["facets"]["parent"]["run"]["runId"] == task[0]["run"]["runId"]
        assert [one["name"] for one in end["inputs"]] == [f"lake/{name}/orders"]
        assert [one["name"] for one in end["outputs"]] == [f"lake/{name}/doubled"]
    # Where the cluster's own configuration logs, nothing is.
    assert not list((aws.folder / dict(outcome.pushed)["job_flow_id"]).iterdir())


@pytest.mark.parametrize("deferrable", [False, True])
def test_steps_that_are_waited_for_are_the_task(deferrable, run: Callable[..., Outcome]) -> None:
    outcome = run({"first": "succeed", "second": "succeed"}, wait_for_completion=True, deferrable=deferrable)
    assert outcome.error is None, outcome.printed
    assert state(outcome) == "COMPLETE", outcome.printed
    assert outcome.names("inputs") == ["lake/first/orders", "lake/second/orders"]
    assert outcome.names("outputs") == ["lake/first/doubled", "lake/second/doubled"]


@pytest.mark.parametrize("waits", [True, False])
def test_mixed_steps_are_read_where_each_logs_and_one_in_a_text_is_counted(
    waits, run: Callable[..., Outcome], aws: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.client("s3").put_object(Bucket=aws.bucket, Key="own/")
    aws.bench.env["AIRFLOW_CONN_AWS_DEFAULT"] = aws.bench.env["AIRFLOW_CONN_SHOP_AWS"]
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", aws.bench.env["AIRFLOW_CONN_SHOP_AWS"])
    own = ("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir=s3a://{aws.bucket}/own")

    def submit(name: str, *options: str) -> list[str]:
        return ["spark-submit", *options, str(PROGRAM), f"{aws.lake}/{name}", "succeed"]

    text, names = ["bash", "-c", shlex.join(submit("hidden"))], ("own", "plain")
    steps = [
        step("hidden", *text),
        step("copy", "touch", str(tmp_path / "copied")),
        step("plain", *submit("plain")),
        step("own", *submit("own", *own)),
    ]
    outcome = run(dict.fromkeys(("hidden", *names), "succeed"), steps=steps, wait_for_completion=waits)
    assert outcome.error is None, outcome.printed
    if not waits:
        aws.wait_for_children()
    task = aws.sent("shop.load")[-1]
    ends = [task] if waits else [aws.sent(f"{name}@shop.load")[-1] for name in names]
    assert {one["eventType"] for one in (task, *ends)} == {"COMPLETE"}
    for kind, dataset in (("inputs", "orders"), ("outputs", "doubled")):
        assert [one["name"] for end in ends for one in end[kind]] == [f"lake/{name}/{dataset}" for name in names]
    counted = task["run"]["facets"]["sparkLineage_collection"]["setAside"]
    assert counted == {"no event log is read: the command of hidden is in a text": 1}
    # The two others have run as they were given.
    assert (tmp_path / "copied").exists()
    written = aws.client("s3").list_objects_v2(Bucket=aws.bucket, Prefix="lake/hidden/doubled/_SUCCESS")
    assert written["KeyCount"] == 1
    made = aws.client("emr").list_steps(ClusterId=dict(outcome.pushed)["job_flow_id"])["Steps"]
    assert {one["Name"]: one["Config"]["Args"] for one in made}["hidden"] == text


def test_step_that_fails_fails_the_task_that_waits(run: Callable[..., Outcome]) -> None:
    outcome = run({"first": "succeed", "second": "fail"}, wait_for_completion=True)
    assert outcome.error is not None
    assert state(outcome) == "FAIL", outcome.printed
    assert outcome.names("outputs") == ["lake/first/doubled", "lake/second/doubled"]


def test_task_that_is_killed_is_aborted_with_what_its_step_still_wrote(
    run: Callable[..., Outcome], aws: Any, tmp_path: Path
) -> None:
    with aws.bench.laboratory.killing(tmp_path / "begun"):
        outcome = run({"first": "late"}, str(tmp_path / "begun"), wait_for_completion=True)
    assert state(outcome) == "ABORT", outcome.printed
    assert outcome.names("outputs") == ["lake/first/doubled"]
    # The stock operator has no ``on_kill``: it goes on to wait, until Airflow ends its process.
    cluster = dict(outcome.pushed)["job_flow_id"]
    states = [one["Status"]["State"] for one in aws.client("emr").list_steps(ClusterId=cluster)["Steps"]]
    assert states == ["COMPLETED"]


def test_lost_task_is_recovered_with_all_its_steps(run: Callable[..., Outcome], aws: Any, tmp_path: Path) -> None:
    begun, steps = tmp_path / "begun", {"first": "late", "second": "fail"}
    launch = lost_task(aws.bench, lambda: run(steps, str(begun), wait_for_completion=True), begun)
    assert_recovered(launch, ["lake/first/doubled", "lake/second/doubled"], "FAIL")


def test_steps_of_two_tasks_of_one_cluster_are_told_apart(run: Callable[..., Outcome], aws: Any) -> None:
    first = run({"first": "late"})
    assert first.error is None, first.printed
    left = aws.launch()
    second = run({"second": "succeed"}, wait_for_completion=True, task={"try_number": 2})
    assert (second.names("inputs"), second.names("outputs")) == (["lake/second/orders"], ["lake/second/doubled"])
    aws.wait_for_children(left)
    end = aws.sent("first@shop.load")[-1]
    assert [one["name"] for one in (*end["inputs"], *end["outputs"])] == ["lake/first/orders", "lake/first/doubled"]
