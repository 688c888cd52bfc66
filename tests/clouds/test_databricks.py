"""Runs of Databricks: the provider's real client, a server that answers as the API does, a real Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from databricks_server import DatabricksServer, Dbfs
from lineage_backends.certificates import make_certificates
from real_spark import environment
from service_jobs import (
    PROGRAM,
    assert_child,
    assert_complete,
    assert_lacking,
    assert_recovered,
    left_child,
    lost_task,
    state,
    wait_for_child,
)

from spark_lineage.launch.launch import STORE_KEY, launches_below, storable
from spark_lineage.submission.stored_event_log import open_file_system

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from laboratory import Outcome
    from real_spark import RealSpark

pytestmark = [
    *(pytest.mark.spark, pytest.mark.clouds),
    # Of the provider's own modules.
    pytest.mark.filterwarnings("ignore"),
]
CLUSTER = {"spark_version": "17.3.x-scala2.13", "num_workers": 1}


@pytest.fixture(scope="module")
def server(fast_spark: FastSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DatabricksServer, int]]:
    """A server that all tests use, and its port."""
    made = DatabricksServer(environment(fast_spark), tmp_path_factory.mktemp("databricks"))
    with made.running() as port:
        yield made, port


@pytest.fixture
def service(server: tuple[DatabricksServer, int]) -> DatabricksServer:
    """The server, with nothing of former tests."""
    server[0].calls.clear()
    server[0].submitted.clear()
    return server[0]


@pytest.fixture
def run(real_spark: RealSpark, folder: Path, server: tuple[DatabricksServer, int]) -> Callable[..., Outcome]:
    """Run the program as a run that ends in one of its ways."""
    bench = real_spark.bench
    bench.operator, bench.application = "lineage_databricks:LineageDatabricksSubmitRunOperator", {}
    connection = {"conn_type": "databricks", "host": "127.0.0.1", "schema": "http", "port": server[1], "password": "t"}
    bench.env |= {
        "AIRFLOW_CONN_BRICKS": json.dumps(connection),
        "AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": str(folder / "logs"),
    }

    def run(how: str = "", *, spark_conf: dict[str, str] | None = None, **arguments: Any) -> Outcome:
        given: dict[str, Any] = {"databricks_conn_id": "bricks", "polling_period_seconds": 1}
        if how:
            given["new_cluster"] = {**CLUSTER, "spark_conf": spark_conf or {}}
            given["spark_python_task"] = program(folder, how)
        return real_spark.execute(**{**given, **arguments})

    return run


def program(folder: Path, how: str) -> dict[str, Any]:
    return {"python_file": str(PROGRAM), "parameters": [str(folder), how]}


def test_run_that_is_waited_for_is_the_task(
    run: Callable[..., Outcome], folder: Path, service: DatabricksServer
) -> None:
    outcome = run("succeed", spark_conf={"spark.sql.shuffle.partitions": "1"})
    assert_complete(outcome, folder)
    ((payload),) = service.submitted.values()
    conf = payload["new_cluster"]["spark_conf"]
    assert conf["spark.sql.shuffle.partitions"] == "1"
    assert conf["spark.eventLog.dir"] == str(folder / "logs")
    assert not [key for key in conf if "transport" in key]


def test_policy_gives_it_to_the_stock_operator(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path
) -> None:
    real_spark.bench.is_by_policy = True
    real_spark.bench.operator = "airflow.providers.databricks.operators.databricks:DatabricksSubmitRunOperator"
    cluster = {**CLUSTER, "spark_conf": {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(folder / "own")}}
    (folder / "own").mkdir()
    task = {"task_key": "t", "new_cluster": cluster, "spark_python_task": program(folder, "succeed")}
    (folder / "more").mkdir()
    (folder / "more" / "orders").symlink_to(folder / "orders")
    there = {"task_key": "there", "existing_cluster_id": "c", "spark_python_task": program(folder / "more", "succeed")}
    outcome = run(json={"tasks": [task, there]})
    assert_complete(outcome, folder)
    assert (folder / "more" / "doubled").exists()
    assert not list((folder / "logs").iterdir())
    assert outcome.lineage is not None
    (counted,) = outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"]
    assert counted.startswith("no event log is read: nothing is added to there, because an existing cluster")


@pytest.mark.parametrize("reading", ["auto", "event_log"])
def test_each_cluster_of_a_run_has_a_log(
    reading: str, run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DatabricksServer
) -> None:
    real_spark.bench.env["AIRFLOW__SPARK_LINEAGE__EVENT_LOG_FROM"] = reading
    others = [folder / name for name in ("east", "west", "shared", "submitted")]
    for other in others:
        other.mkdir()
        (other / "orders").symlink_to(folder / "orders")
    shared, submitted = others[2:]
    loop = {"task_key": "each", "new_cluster": CLUSTER, "spark_python_task": program(folder / "{{input}}", "succeed")}
    submit = {"parameters": ["--conf", "spark.sql.shuffle.partitions=1", str(PROGRAM), str(submitted), "succeed"]}
    payload = {
        "job_clusters": [{"job_cluster_key": "k", "new_cluster": CLUSTER}],
        "tasks": [
            {"task_key": "both", "for_each_task": {"inputs": '["east", "west"]', "task": loop}},
            {"task_key": "shared", "job_cluster_key": "k", "spark_python_task": program(shared, "succeed")},
            {"task_key": "submitted", "new_cluster": CLUSTER, "spark_submit_task": submit},
        ],
    }
    outcome = run(json=payload)
    assert outcome.error is None, outcome.printed
    assert state(outcome) == "COMPLETE"
    assert sorted(outcome.names("outputs")) == sorted(str(other / "doubled") for other in others), outcome.printed
    (sent,) = service.submitted.values()
    assert "spark_conf" not in sent["tasks"][2]["new_cluster"]


@pytest.fixture
def delivering(real_spark: RealSpark, service: DatabricksServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a directory in S3, where the logs of clusters are delivered more often than by Databricks."""
    import s3fs
    from moto.server import ThreadedMotoServer

    store = ThreadedMotoServer(port=0)
    store.start()
    _, port = store.get_host_and_port()
    options = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "eu-west-1"}
    aws = {"conn_type": "aws", "login": "key", "password": "secret-of-the-store", "extra": options}
    real_spark.bench.env["AIRFLOW_CONN_AWS_DEFAULT"] = json.dumps(aws)
    files = s3fs.S3FileSystem(key="key", secret="secret", client_kwargs=options, skip_instance_cache=True)  # noqa: S106
    files.mkdir("cluster-logs")
    monkeypatch.setattr(service, "files", files)
    monkeypatch.setattr(service, "delivery_seconds", 3.0)
    yield "s3://cluster-logs/of/shop"
    store.stop()


def test_log_of_a_cluster_is_read_where_it_is_delivered(
    run: Callable[..., Outcome], folder: Path, service: DatabricksServer, delivering: str
) -> None:
    delivery = {"s3": {"destination": delivering, "region": "eu-west-1"}}
    cluster = {**CLUSTER, "spark_conf": {}, "cluster_log_conf": delivery}
    outcome = run("succeed", new_cluster=cluster, spark_python_task=program(folder, "succeed"))
    assert_complete(outcome, folder)
    assert not list((folder / "logs").iterdir())
    (payload,) = service.submitted.values()
    assert not [key for key in payload["new_cluster"]["spark_conf"] if key.startswith("spark.eventLog.")]


def test_log_that_is_delivered_to_dbfs_is_read_with_the_connection_of_the_task(
    run: Callable[..., Outcome], real_spark: RealSpark, fast_spark: FastSpark, folder: Path, tmp_path: Path
) -> None:
    made, service = make_certificates(tmp_path), DatabricksServer(environment(fast_spark), tmp_path / "service", 3.0)
    service.files = Dbfs("t")
    with service.running(made.server_context(wants_client=False)) as port:
        connection = {"conn_type": "databricks", "host": "127.0.0.1", "port": port, "password": "t"}
        real_spark.bench.env |= {
            "AIRFLOW_CONN_BRICKS": json.dumps(connection),
            "REQUESTS_CA_BUNDLE": str(made.authority),
        }
        cluster = {**CLUSTER, "cluster_log_conf": {"dbfs": {"destination": "dbfs:/of/shop"}}}
        outcome = run("succeed", new_cluster=cluster, spark_python_task=program(folder, "succeed"))
    assert_complete(outcome, folder)
    assert not list((folder / "logs").iterdir())
    assert "dbfs/read" in "".join(service.calls)


def test_log_in_dbfs_is_read_a_part_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, service, content = make_certificates(tmp_path), DatabricksServer({}, tmp_path), os.urandom(2_500_000)
    service.files = Dbfs("the-token")
    service.files.pipe_file("dbfs:/of/shop/cluster/eventlog/node/7/eventlog", content)
    with service.running(made.server_context(wants_client=False)) as port:
        connection = {"conn_type": "databricks", "host": "127.0.0.1", "port": port, "password": "the-token"}
        monkeypatch.setenv("AIRFLOW_CONN_BRICKS", json.dumps(connection))
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made.authority))
        files, root = open_file_system("dbfs://bricks@/of/shop", ())
        assert [one["type"] for one in files.ls(root, detail=True)] == ["directory"]
        assert files.cat_file(f"{root}/cluster/eventlog/node/7/eventlog") == content
        with pytest.raises(FileNotFoundError):
            files.ls("/nothing")


def test_run_on_an_existing_cluster_is_as_the_user_wrote_it(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DatabricksServer
) -> None:
    outcome = run(existing_cluster_id="0923-1", spark_python_task=program(folder, "succeed"))
    assert outcome.error is None, outcome.printed
    assert outcome.printed.count("The task has no lineage") == 1
    (payload,) = service.submitted.values()
    assert payload == {
        "existing_cluster_id": "0923-1",
        "spark_python_task": program(folder, "succeed"),
        "run_name": "load",
    }
    assert launches_below(real_spark.bench.lineage_dir) == []
    assert_lacking(outcome, "nothing is added to the task, because an existing cluster")


def test_run_that_fails_keeps_what_it_had_written(run: Callable[..., Outcome], folder: Path) -> None:
    outcome = run("fail")
    assert outcome.error is not None
    assert state(outcome) == "FAIL"
    assert outcome.names("outputs") == [str(folder / "doubled")]
    assert "ValueError: no more" in str(outcome.lineage)
    assert "hunter2" not in str(outcome.lineage)


def test_run_that_is_killed_is_cancelled(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DatabricksServer
) -> None:
    with real_spark.bench.laboratory.killing(folder / "written"):
        outcome = run("endless")
    assert state(outcome) == "ABORT", outcome.printed
    assert outcome.names("outputs") == [str(folder / "doubled")]
    assert service.calls.count("runs/cancel") == 1


@pytest.mark.parametrize(("how", "end"), [("succeed", "COMPLETE"), ("fail", "FAIL")])
def test_run_that_a_trigger_waits_for_is_the_task(
    how: str, end: str, run: Callable[..., Outcome], folder: Path
) -> None:
    outcome = run(how, deferrable=True)
    assert state(outcome) == end, outcome.printed
    assert (outcome.error is None) == (end == "COMPLETE")
    assert outcome.names("inputs") == [str(folder / "orders")]
    assert outcome.names("outputs") == [str(folder / "doubled")]


@pytest.mark.parametrize(("how", "end"), [("late", "COMPLETE"), ("fail", "FAIL")])
def test_run_that_is_not_waited_for_is_a_job_of_its_own(
    how: str,
    end: str,
    run: Callable[..., Outcome],
    real_spark: RealSpark,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begin(**given: Any) -> Outcome:
        return run(how, wait_for_termination=False, **given)

    left = left_child(begin, real_spark, folder, monkeypatch, child="run")
    wait_for_child(left)
    assert_child(left, folder, end)


def test_retry_resumes_the_run_of_an_earlier_try(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DatabricksServer
) -> None:
    first = run("late", wait_for_termination=False, store={})
    # A worker that was lost has sent no end.
    stored = {**(first.store or {})}
    stored["spark_lineage_launch"] = {**stored["spark_lineage_launch"], "child": "", "parent": []}
    again = run("late", store=stored, task={"try_number": 2})
    assert_complete(again, folder)
    assert service.calls.count("runs/submit") == 1


def test_job_takes_properties_by_parameters_of_spark_submit(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DatabricksServer
) -> None:
    real_spark.bench.operator = "lineage_databricks:LineageDatabricksRunNowOperator"
    service.jobs[7] = {"tasks": [{"task_key": "t", "new_cluster": CLUSTER, "spark_submit_task": {"parameters": []}}]}
    assert_complete(run(job_id=7, spark_submit_params=[str(PROGRAM), str(folder), "succeed"]), folder)


def test_job_with_clusters_of_its_own_is_as_the_user_wrote_it(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DatabricksServer
) -> None:
    real_spark.bench.operator = "lineage_databricks:LineageDatabricksRunNowOperator"
    task = {"task_key": "t", "new_cluster": CLUSTER, "spark_python_task": program(folder, "succeed")}
    service.jobs[7] = {"tasks": [task]}
    outcome = run(job_id=7)
    assert outcome.error is None, outcome.printed
    assert outcome.printed.count("The task has no lineage") == 1
    assert_lacking(outcome, "the clusters of its job have the Spark properties of the job")


def test_lost_task_is_recovered_and_its_retry_goes_on_with_the_run(
    run: Callable[..., Outcome],
    real_spark: RealSpark,
    folder: Path,
    service: DatabricksServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = folder / "begun"
    task = {"python_file": str(PROGRAM), "parameters": [str(folder), "late", str(begun)]}
    launch = lost_task(real_spark.bench, lambda: run("late", spark_python_task=task, store={}), begun)
    for key, value in real_spark.bench.env.items():
        monkeypatch.setenv(key, value)
    # As Airflow keeps it when the process is gone.
    store = {"databricks_run_id": launch.external_id, STORE_KEY: storable(launch)}
    assert_complete(run("late", spark_python_task=task, store=store, task={"try_number": 2}), folder)
    assert service.calls.count("runs/submit") == 1
    assert_recovered(launch, [str(folder / "doubled")], "COMPLETE")
