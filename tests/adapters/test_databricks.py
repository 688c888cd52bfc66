"""The adapter of Databricks, with a hook and an operator that stand for those of the provider."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from spark_lineage.adapters.adapter import AdaptedTask
from spark_lineage.adapters.databricks import DatabricksAdapter, why_unreached
from spark_lineage.launch.log import Guard

GUARD = Guard(lambda: False, logging.getLogger(__name__))
PAYLOAD = {"new_cluster": {"spark_conf": {"spark.a": "1"}}, "spark_python_task": {"python_file": "p.py"}}


class Hook:
    """Keeps what is submitted, and answers with a state."""

    def __init__(self, state: dict[str, str], error: str = "") -> None:
        self.submitted: list[Any] = []
        self.state, self.error = state, error

    def submit_run(self, json: Any) -> int:
        self.submitted.append(json)
        return 7

    run_now = submit_run

    def get_run(self, run_id: int) -> dict[str, Any]:
        return {"run_id": run_id, "state": self.state, "tasks": [{"run_id": 70, "state": {"result_state": "FAILED"}}]}

    def get_run_output(self, run_id: int) -> dict[str, str]:
        assert run_id == 70
        if not self.error:
            raise ConnectionError
        return {"error": self.error}


def adapter(hook: Hook, payload: Any = PAYLOAD, event_log_dir: str = "", **arguments: Any) -> DatabricksAdapter:
    operator = SimpleNamespace(
        _get_merged_json=lambda: payload, wait_for_termination=True, databricks_conn_id="d", **arguments
    )
    places: Any = SimpleNamespace(settings=lambda: SimpleNamespace(event_log_dir=event_log_dir))
    task = AdaptedTask(lambda: None, lambda: False, places, None, "remote_job_id", GUARD)
    return DatabricksAdapter.of(operator, hook, task)


@pytest.mark.parametrize(
    ("state", "error", "status", "detail"),
    [
        ({"life_cycle_state": "RUNNING"}, "", None, ""),
        ({"life_cycle_state": "TERMINATED", "result_state": "SUCCESS"}, "", "FINISHED", ""),
        ({"life_cycle_state": "TERMINATED", "result_state": "FAILED"}, "ValueError: no", "FAILED", "ValueError: no"),
        ({"life_cycle_state": "TERMINATED", "result_state": "TIMEDOUT"}, "", "FAILED", "the run is TIMEDOUT"),
        (
            {"life_cycle_state": "TERMINATED", "result_state": "CANCELED", "state_message": "by ann"},
            "",
            "KILLED",
            "by ann",
        ),
        ({"life_cycle_state": "INTERNAL_ERROR", "state_message": "no nodes"}, "", "FAILED", "no nodes"),
        ({"life_cycle_state": "SKIPPED"}, "", "FAILED", "the run is SKIPPED"),
    ],
)
def test_end_is_what_the_operator_was_answered(
    state: dict[str, str], error: str, status: str | None, detail: str
) -> None:
    hook = Hook(state, error)
    one = adapter(hook)
    hook.submit_run(PAYLOAD)
    hook.get_run(6)
    assert one.seen_end is None, "of another run"
    hook.get_run(7)
    end = one.seen_end
    assert (end.status if end else None, end.detail if end else "") == (status, detail)
    assert one.has_driver_ended == (status is not None)


def test_payload_of_the_user_is_not_changed() -> None:
    hook = Hook({})
    one = adapter(hook)
    one.injected = {"spark.b": "2"}
    hook.submit_run(PAYLOAD)
    assert hook.submitted[0]["new_cluster"]["spark_conf"] == {"spark.a": "1", "spark.b": "2"}
    assert PAYLOAD["new_cluster"] == {"spark_conf": {"spark.a": "1"}}
    assert one.driver.driver_id == "7"


def test_payload_that_cannot_be_read_is_submitted_as_it_is() -> None:
    hook, odd = Hook({}), {"tasks": [None]}
    one = adapter(hook, PAYLOAD)
    one.injected = {"spark.b": "2"}
    hook.submit_run(odd)
    assert hook.submitted == [odd]


def test_log_that_is_delivered_comes_late() -> None:
    cluster: dict[str, Any] = {"cluster_log_conf": {"s3": {"destination": "s3://b/logs/"}}}
    one = adapter(Hook({}), {"new_cluster": cluster})
    assert one.arguments.conf["spark.eventLog.dir"] == "s3://b/logs/*/eventlog"
    assert one.log_delay > 300
    cluster["spark_conf"] = {"spark.eventLog.dir": "s3://b/own"}
    assert one.arguments.conf == {"spark.eventLog.dir": "s3://b/own"}
    assert one.log_delay == 0
    cluster.update(spark_conf={}, cluster_log_conf={"volumes": {"destination": "/Volumes/shop/logs"}})
    assert one.arguments.conf == {}
    cluster.update(cluster_log_conf={"dbfs": {"destination": "dbfs:/logs"}})
    assert one.arguments.conf["spark.eventLog.dir"] == "dbfs://d@/logs/*/eventlog"
    assert one.log_delay > 300


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (PAYLOAD, ""),
        ({"job_id": 7}, "the clusters of its job"),
        ({"job_name": "daily"}, "the clusters of its job"),
        ({"existing_cluster_id": "c", "notebook_task": {"notebook_path": "n"}}, "nothing is added to the task"),
        ({"pipeline_task": {"pipeline_id": "p"}}, "the job has no Spark"),
    ],
)
def test_why_nothing_can_be_added(payload: dict[str, Any], why: str) -> None:
    found = why_unreached(SimpleNamespace(_get_merged_json=lambda: payload))
    assert found.startswith(why)
    assert bool(found) == bool(why)


OWN = {"spark_conf": {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "s3://own/logs/"}}
DELIVERED = {"cluster_log_conf": {"dbfs": {"destination": "dbfs:/logs"}}}


@pytest.mark.parametrize("clusters", [(OWN, {}), ({}, OWN), (OWN, OWN, {})])
def test_cluster_with_a_log_of_its_own_is_read_there_beside_others(clusters: tuple[Any, ...]) -> None:
    hook, tasks = Hook({}), [{"new_cluster": one, "spark_python_task": {}} for one in clusters]
    one = adapter(hook, {"tasks": tasks}, event_log_dir="s3://shared")
    assert one.arguments.conf == {}
    one.injected = {"spark.eventLog.dir": "s3://shared"}
    hook.submit_run({"tasks": tasks})
    assert one.log_places == ("s3://own/logs",)
    given = [task["new_cluster"]["spark_conf"]["spark.eventLog.dir"] for task in hook.submitted[0]["tasks"]]
    assert given == ["s3://own/logs/" if cluster == OWN else "s3://shared" for cluster in clusters]
    assert one.lacking == ""


def test_clusters_that_share_a_log_of_their_own_are_read_there() -> None:
    tasks = [{"new_cluster": OWN, "spark_python_task": {}}] * 2
    assert adapter(Hook({}), {"tasks": tasks}, event_log_dir="s3://shared").arguments.conf == OWN["spark_conf"]


@pytest.mark.parametrize(
    ("second", "shared", "is_lacking"),
    [
        ({}, "", True),
        ({"spark_conf": {"spark.eventLog.dir": "dbfs:/logs"}}, "s3://shared", True),
        ({"spark_conf": {"spark.eventLog.enabled": "false"}}, "s3://shared", True),
        (DELIVERED, "", False),
    ],
)
def test_cluster_whose_log_is_not_read_is_lacking_beside_others(second: Any, shared: str, is_lacking: bool) -> None:
    tasks = [{"new_cluster": one, "spark_python_task": {}} for one in (OWN, second)]
    found = adapter(Hook({}), {"tasks": tasks}, event_log_dir=shared).lacking
    assert found == ("no event log is read: a cluster of the run logs where no worker reads" if is_lacking else "")


def test_task_on_an_existing_cluster_is_lacking_beside_others() -> None:
    there = {"task_key": "there", "existing_cluster_id": "c", "notebook_task": {"notebook_path": "n"}}
    assert adapter(Hook({}), PAYLOAD).lacking == ""
    found = adapter(Hook({}), {"tasks": [{"task_key": "t", **PAYLOAD}, there]}).lacking
    assert found.startswith("no event log is read: nothing is added to there, because")
