"""Job runs of EMR on EKS, as moto has them: a runner submits each with a real Spark, which logs to S3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from service_jobs import PROGRAM, assert_recovered, lost_task, state

if TYPE_CHECKING:
    from laboratory import Outcome

pytestmark = [pytest.mark.clouds, pytest.mark.spark]
OPERATOR = "lineage_emr:LineageEmrContainerOperator"


@pytest.fixture
def run(aws: Any) -> Callable[..., Outcome]:
    """Run the program as a job of a virtual cluster."""
    eks = {"type": "EKS", "id": aws.bucket, "info": {"eksInfo": {"namespace": aws.bucket}}}
    cluster = aws.client("emr-containers").create_virtual_cluster(name=aws.bucket, containerProvider=eks)["id"]

    def run(how: str, *flag: str, **arguments: Any) -> Outcome:
        submit = {"entryPoint": str(PROGRAM), "entryPointArguments": [aws.lake, how, *flag]}
        given = {
            "name": "shop",
            "aws_conn_id": "shop_aws",
            "virtual_cluster_id": cluster,
            "execution_role_arn": "arn:aws:iam::123456789012:role/emr",
            "release_label": "emr-7.9.0-latest",
            "job_driver": {"sparkSubmitJobDriver": submit},
            "poll_interval": 1,
        }
        return aws.execute(OPERATOR, **{**given, **arguments})

    return run


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize(("how", "end"), [("succeed", "COMPLETE"), ("fail", "FAIL")])
def test_job_that_is_waited_for_is_the_task(how, end, deferrable, run: Callable[..., Outcome]) -> None:
    outcome = run(how, deferrable=deferrable)
    assert (outcome.error is None) is (how == "succeed"), outcome.printed
    assert state(outcome) == end, outcome.printed
    assert outcome.names("inputs") == ["lake/orders"]
    assert outcome.names("outputs") == ["lake/doubled"]
    assert "hunter2" not in f"{outcome.last}{outcome.logged}", outcome.logged


def test_job_that_is_not_waited_for_is_a_job_of_its_own(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("late", wait_for_completion=False)
    aws.assert_child(outcome)


def test_job_that_is_killed_is_cancelled(run: Callable[..., Outcome], aws: Any, tmp_path: Path) -> None:
    with aws.bench.laboratory.killing(tmp_path / "written"):
        outcome = run("endless", str(tmp_path / "written"))
    assert state(outcome) == "ABORT", outcome.printed


def test_lost_task_is_recovered(run: Callable[..., Outcome], aws: Any, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    launch = lost_task(aws.bench, lambda: run("late", str(begun)), begun)
    assert_recovered(launch, ["lake/doubled"], "COMPLETE")
