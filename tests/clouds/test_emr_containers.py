"""Job runs of EMR on EKS, as moto has them: a runner submits each with a real Spark, which logs to S3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from laboratory import Outcome

pytestmark = [pytest.mark.clouds, pytest.mark.spark]
OPERATOR = "lineage_emr:LineageEmrContainerOperator"
PROGRAM = str(Path(__file__).parent / "programs" / "orders.py")


@pytest.fixture
def run(aws: Any) -> Callable[..., Outcome]:
    """Run the program as a job of a virtual cluster."""
    eks = {"type": "EKS", "id": aws.bucket, "info": {"eksInfo": {"namespace": aws.bucket}}}
    cluster = aws.client("emr-containers").create_virtual_cluster(name=aws.bucket, containerProvider=eks)["id"]

    def run(how: str, *flag: str, **arguments: Any) -> Outcome:
        submit = {"entryPoint": PROGRAM, "entryPointArguments": [aws.lake, how, *flag]}
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
def test_job_that_is_waited_for_is_the_task(how, end, deferrable, run: Callable[..., Outcome], state: Any) -> None:
    outcome = run(how, deferrable=deferrable)
    assert (outcome.error is None) is (how == "succeed"), outcome.printed
    assert state(outcome) == end, outcome.printed
    assert outcome.names("inputs") == ["lake/orders"]
    assert outcome.names("outputs") == ["lake/doubled"]
    assert "hunter2" not in f"{outcome.lineage}{outcome.printed}"


def test_job_that_is_not_waited_for_is_a_job_of_its_own(run: Callable[..., Outcome], aws: Any) -> None:
    outcome = run("late", wait_for_completion=False)
    assert outcome.error is None, outcome.printed
    aws.wait_for_children()
    assert [one["eventType"] for one in aws.sent("shop.load")] == ["START", "COMPLETE"]
    start, end = aws.sent("job_run@shop.load")
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert [one["name"] for one in end["outputs"]] == ["lake/doubled"]


def test_job_that_is_killed_is_cancelled(run: Callable[..., Outcome], aws: Any, tmp_path: Path, state: Any) -> None:
    with aws.bench.laboratory.killing(tmp_path / "written"):
        outcome = run("endless", str(tmp_path / "written"))
    assert state(outcome) == "ABORT", outcome.printed
