"""Where a payload of Databricks takes Spark properties, and which tasks take none."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from spark_lineage.adapters.databricks_run import places_of, unreached

ADDED = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "s3a://logs", "spark.openlineage.parentRunId": "r"}
PYTHON = {"spark_python_task": {"python_file": "p.py"}}


def added(payload: dict[str, Any]) -> dict[str, Any]:
    for place in places_of(payload):
        place.add(ADDED)
    return payload


@pytest.mark.parametrize(
    "path",
    [
        ("new_cluster",),
        ("tasks", 0, "new_cluster"),
        ("tasks", 0, "for_each_task", "task", "new_cluster"),
        ("job_clusters", 0, "new_cluster"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_each_new_cluster_takes_properties(path: tuple[Any, ...]) -> None:
    payload: Any = {"num_workers": 1, "spark_conf": {"spark.a": 1}}
    for key in reversed(path):
        payload = [payload] if key == 0 else {key: payload, "job_cluster_key": "k"}
    found: Any = added(payload)
    for key in path:
        found = found[key]
    assert found == {"num_workers": 1, "spark_conf": {"spark.a": 1, **ADDED}}


def test_spark_submit_takes_them_as_options_before_the_users() -> None:
    parameters = ["--conf", "spark.a=b=c", "--class", "shop.Daily", "d.jar"]
    payload = added({"new_cluster": {"num_workers": 1}, "spark_submit_task": {"parameters": parameters}})
    options = [part for key, value in ADDED.items() for part in ("--conf", f"{key}={value}")]
    assert payload["spark_submit_task"]["parameters"] == [*options, *parameters]
    assert payload["new_cluster"] == {"num_workers": 1}
    (place,) = places_of({"spark_submit_params": parameters})
    assert place.conf == {"spark.a": "b=c"}


@pytest.mark.parametrize("options", [["--conf=spark.eventLog.dir=s3://own"], ["-c", "spark.eventLog.dir=s3://own"]])
def test_log_of_the_user_is_found_in_every_spelling_of_an_option(options: list[str]) -> None:
    parameters = added({"spark_submit_task": {"parameters": [*options, "d.jar"]}})["spark_submit_task"]["parameters"]
    assert parameters == ["--conf", "spark.openlineage.parentRunId=r", *options, "d.jar"]


def test_spark_submit_without_parameters_takes_no_properties() -> None:
    payloads = {"job_id": 7, "spark_submit_params": []}, {"new_cluster": {}, "spark_submit_task": {"parameters": []}}
    for payload in payloads:
        assert added(copy.deepcopy(payload)) == payload


def test_users_properties_win_and_keep_their_log() -> None:
    own = {"spark.eventLog.dir": "s3a://own", "spark.openlineage.parentRunId": "mine"}
    assert added({"new_cluster": {"spark_conf": own}})["new_cluster"]["spark_conf"] == own


def test_job_that_is_there_takes_them_by_parameters_of_spark_submit_alone() -> None:
    assert places_of({"job_id": 7}) == []
    assert places_of({"job_id": 7, "python_params": ["p"]}) == []
    assert added({"job_id": 7, "spark_submit_params": ["d.jar"]})["spark_submit_params"][-1] == "d.jar"


def test_tasks_on_clusters_that_are_there_are_named() -> None:
    tasks = [
        {"task_key": "existing", "existing_cluster_id": "c", **PYTHON},
        {"task_key": "serverless", "environment_key": "e", **PYTHON},
        {"task_key": "shared", "job_cluster_key": "k", **PYTHON},
        {"task_key": "new", "new_cluster": {}, **PYTHON},
        {"task_key": "sql", "sql_task": {"warehouse_id": "w"}},
    ]
    payload = {"tasks": tasks, "job_clusters": [{"job_cluster_key": "k", "new_cluster": {}}]}
    assert unreached(payload) == ["existing", "serverless"]
    assert unreached({"existing_cluster_id": "c", **PYTHON}) == ["the task"]
