"""Who may submit to which queue: tasks of a parsed DAG, with the policy applied as Airflow does."""

from __future__ import annotations

import importlib
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.exceptions import AirflowClusterPolicyViolation
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import DAG

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator
from spark_lineage.policy import task_policy
from spark_lineage.supervision.queues import queue_policy

RULES = {"user:alice": "research", "owner:the-shop": ["shop", "shop_fast"], "tag:nightly": ["night"], "*": ["default"]}
Empty = type("Empty", (SparkSubmitOperator,), {})


def dag(**arguments: Any) -> DAG:
    return DAG("shop", start_date=datetime(2024, 1, 1, tzinfo=UTC), schedule=None, tags=["nightly"], **arguments)


def queue_of(task: Any) -> str | None:
    """Return the queue that the hook of a task would get."""
    if (partial := getattr(task, "partial_kwargs", None)) is not None:
        return partial.get("yarn_queue")
    return task._yarn_queue


@pytest.mark.parametrize("operator", [SparkSubmitOperator, LineageSparkSubmitOperator, Empty])
@pytest.mark.parametrize(
    ("rules", "arguments", "queue"),
    [
        (RULES, {}, "shop"),
        (RULES, {"yarn_queue": "shop_fast"}, "shop_fast"),
        (RULES, {"conf": {"spark.yarn.queue": "root.shop_fast"}}, "root.shop_fast"),
        (RULES, {"proxy_user": "alice"}, "research"),
        (RULES, {"keytab": "/k", "principal": "alice/host@REALM"}, "research"),
        (RULES, {"owner": "bob, the-shop"}, "shop"),
        (RULES, {"owner": "bob"}, "night"),
        ({"*": "default"}, {}, "default"),
        ({"owner:bob": "theirs"}, {}, None),
        ({"owner:bob": "theirs"}, {"yarn_queue": "any"}, "any"),
        ({"owner:bob": "theirs"}, {"conf": {"spark.yarn.queue": "any"}}, None),
        ({}, {}, None),
    ],
)
def test_queue_policy_selects_the_queue_of_user_owner_or_tag(
    operator: Any, rules: Any, arguments: dict[str, Any], queue: str | None
) -> None:
    policy = queue_policy(rules)
    with dag(default_args={"owner": "the-shop"}):
        task = operator(task_id="load", application="job.py", **arguments)
        mapped = operator.partial(task_id="many", **arguments).expand(application=["a.py", "b.py"])
    for each in (task, mapped):
        policy(each)
        task_policy(each)
        assert queue_of(each) == queue


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        (
            RULES,
            "shop.load: it names the YARN queue 'secret', and the rule 'owner:the-shop' allows shop, shop_fast: na",
        ),
        ("shop", "the rules of queue_policy are no map of lists of queues; give a map such as"),
        ({"*": []}, "no map of lists of queues; give a map such as"),
        ({"*": {"shop": 1}}, "no map of lists of queues; give a map such as"),
        ({"group:etl": "etl"}, "'group:etl', is neither user:…, owner:…, tag:… nor \\*; give a map such as"),
    ],
)
def test_queue_policy_refuses_a_task_with_another_queue_or_rules_that_do_not_fit(rules: Any, error: str) -> None:
    with dag(default_args={"owner": "the-shop"}):
        load = SparkSubmitOperator(task_id="load", application="job.py", yarn_queue="secret")
    with pytest.raises(AirflowClusterPolicyViolation) as raised:
        queue_policy(rules)(load)
    assert re.search(error, str(raised.value)), raised.value


def test_queue_policy_refuses_a_queue_that_is_mapped() -> None:
    with dag():
        task = SparkSubmitOperator.partial(task_id="load", application="job.py").expand(yarn_queue=["a", "b"])
    with pytest.raises(AirflowClusterPolicyViolation, match="names the YARN queue 'of a mapped task'"):
        queue_policy(RULES)(task)


def test_queue_policy_reads_the_queue_of_default_args_for_a_mapped_task() -> None:
    with dag(default_args={"yarn_queue": "secret"}):
        task = SparkSubmitOperator.partial(task_id="load").expand(application=["a.py"])
    with pytest.raises(AirflowClusterPolicyViolation, match="'secret'"):
        queue_policy(RULES)(task)


def test_queue_policy_leaves_other_connections_and_operators_alone() -> None:
    empty = importlib.import_module("airflow.providers.standard.operators.empty").EmptyOperator
    policy = queue_policy(RULES, conn_id="spark_*")
    with dag():
        other = SparkSubmitOperator(task_id="other", application="job.py", conn_id="presto", yarn_queue="secret")
        policy(other)
        policy(empty(task_id="none"))
        ours = SparkSubmitOperator(task_id="ours", application="job.py")
        policy(ours)
    assert (queue_of(other), queue_of(ours)) == ("secret", "night")
