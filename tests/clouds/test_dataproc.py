"""Jobs and batches of Dataproc: the provider's real client, a server that answers as the API does, a real Spark."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from laboratory import Bench, Laboratory
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

from spark_lineage.launch.launch import launches_below

if TYPE_CHECKING:
    from dataproc_server import DataprocServer
    from fast_spark import FastSpark
    from laboratory import Outcome
    from real_spark import RealSpark

pytestmark = [
    *(pytest.mark.spark, pytest.mark.clouds),
    # Of the provider's own modules.
    pytest.mark.filterwarnings("ignore"),
]
KINDS = {"job": "LineageDataprocSubmitJobOperator", "batch": "LineageDataprocCreateBatchOperator"}
_STOCK = "airflow.providers.google.cloud.operators.dataproc"


@pytest.fixture(scope="module")
def server(fast_spark: FastSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DataprocServer, str]]:
    """A server that all tests use, and its address."""
    from dataproc_server import DataprocServer

    made = DataprocServer(environment(fast_spark), tmp_path_factory.mktemp("dataproc"))
    with made.running() as address:
        yield made, address


@pytest.fixture
def service(server: tuple[DataprocServer, str]) -> DataprocServer:
    """The server, with nothing of former tests."""
    made = server[0]
    made.fails.clear()
    made.denied.clear()
    made.calls.clear()
    return made


@pytest.fixture
def run(real_spark: RealSpark, folder: Path, server: tuple[DataprocServer, str]) -> Callable[..., Outcome]:
    """Run the program as a job or a batch that ends in one of its ways."""
    bench = real_spark.bench
    # As of every connection, its extra may have settings.
    extra = {"is_anonymous": True, "project": "shop", "event_log_dir": str(folder / "logs")}
    connection = {"conn_type": "google_cloud_platform", "extra": extra}
    bench.env |= {
        "DATAPROC_SERVER": server[1],
        "AIRFLOW_CONN_GCP": json.dumps(connection),
    }

    def run(
        kind: str,
        how: str,
        *flag: str,
        properties: dict[str, str] | None = None,
        spark: RealSpark = real_spark,
        lake: Path = folder,
        **arguments: Any,
    ) -> Outcome:
        bench = spark.bench
        bench.program, bench.application = "dataproc_server", {}
        program = {"main_python_file_uri": str(PROGRAM), "args": [str(lake), how, *flag]}
        submitted: dict[str, Any] = {
            "job": {"placement": {"cluster_name": "c"}, "pyspark_job": {**program, "properties": properties or {}}},
            "batch": {"pyspark_batch": program, "runtime_config": {"properties": properties or {}}},
        }
        if bench.is_by_policy:
            bench.operator = f"{_STOCK}:{KINDS[kind].removeprefix('Lineage')}"
        else:
            bench.operator = f"lineage_dataproc:{KINDS[kind]}"
        given = {"gcp_conn_id": "gcp", "region": "local", "project_id": "shop", kind: submitted[kind]}
        return spark.execute(**{**given, **arguments})

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_driver_that_is_waited_for_is_the_task(
    kind: str, run: Callable[..., Outcome], folder: Path, service: DataprocServer
) -> None:
    outcome = run(kind, "succeed", properties={"spark.sql.shuffle.partitions": "1"})
    assert_complete(outcome, folder)
    (submitted,) = [*service.jobs.values(), *service.batches.values()][-1:]
    config = submitted.pyspark_job if kind == "job" else submitted.runtime_config
    assert config.properties["spark.sql.shuffle.partitions"] == "1"
    assert config.properties["spark.eventLog.dir"] == str(folder / "logs")


@pytest.mark.parametrize("kind", KINDS)
def test_policy_gives_it_to_the_stock_operator(
    kind: str, run: Callable[..., Outcome], real_spark: RealSpark, folder: Path
) -> None:
    real_spark.bench.is_by_policy = True
    assert_complete(run(kind, "succeed"), folder)


@pytest.mark.parametrize("kinds", [("job", "job"), ("job", "batch")])
def test_two_tasks_at_once_in_one_log_directory_have_their_own_lineage(
    kinds: tuple[str, str],
    run: Callable[..., Outcome],
    real_spark: RealSpark,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    beside = Laboratory(tmp_path_factory.mktemp("beside"))
    second = replace(real_spark, bench=Bench(beside, tmp_path_factory.mktemp("bench"), env=real_spark.bench.env))
    shutil.copytree(folder / "orders", folder / "other" / "orders")
    begun = [str(folder / "begun"), str(folder / "other" / "begun")]
    with closing(beside), ThreadPoolExecutor(2) as pool:
        tasks = [
            pool.submit(run, kinds[0], "together", *begun),
            pool.submit(run, kinds[1], "together", *reversed(begun), spark=second, lake=folder / "other"),
        ]
        outcomes = [each.result() for each in tasks]
    assert_complete(outcomes[0], folder)
    assert_complete(outcomes[1], folder / "other")
    assert len(list((folder / "logs").iterdir())) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_directory_of_the_user_is_read(kind: str, run: Callable[..., Outcome], folder: Path) -> None:
    (folder / "own").mkdir()
    own = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(folder / "own")}
    assert_complete(run(kind, "succeed", properties=own), folder)
    assert not list((folder / "logs").iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_driver_that_fails_keeps_what_it_had_written(kind: str, run: Callable[..., Outcome], folder: Path) -> None:
    outcome = run(kind, "fail")
    assert outcome.error is not None
    assert state(outcome) == "FAIL"
    assert outcome.names("outputs") == [str(folder / "doubled")]
    assert "ValueError: no more" in str(outcome.lineage)
    assert "hunter2" not in str(outcome.lineage)


def test_driver_that_leaves_no_log_is_counted(run: Callable[..., Outcome], folder: Path) -> None:
    program = {"main_python_file_uri": str(folder / "nowhere.py")}
    outcome = run("job", "succeed", job={"placement": {"cluster_name": "c"}, "pyspark_job": program})
    assert state(outcome) == "FAIL", outcome.printed
    assert outcome.lineage is not None
    counted = outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"]
    assert counted == {"event log without its end": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_driver_that_is_killed_is_cancelled(
    kind: str, run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DataprocServer
) -> None:
    with real_spark.bench.laboratory.killing(folder / "written"):
        outcome = run(kind, "endless")
    assert state(outcome) == "ABORT", outcome.printed
    assert outcome.names("outputs") == [str(folder / "doubled")]
    assert service.calls.count("CancelJob" if kind == "job" else "CancelOperation") == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("how", "end"), [("succeed", "COMPLETE"), ("fail", "FAIL")])
def test_driver_that_a_trigger_waits_for_is_the_task(
    kind: str, how: str, end: str, run: Callable[..., Outcome], folder: Path
) -> None:
    outcome = run(kind, how, deferrable=True, polling_interval_seconds=1)
    assert state(outcome) == end, outcome.printed
    assert (outcome.error is None) == (end == "COMPLETE")
    assert outcome.names("inputs") == [str(folder / "orders")]
    assert outcome.names("outputs") == [str(folder / "doubled")]


@pytest.mark.parametrize(("kind", "how", "end"), [("job", "late", "COMPLETE"), ("batch", "fail", "FAIL")])
def test_driver_that_is_not_waited_for_is_a_job_of_its_own(
    kind: str,
    how: str,
    end: str,
    run: Callable[..., Outcome],
    real_spark: RealSpark,
    folder: Path,
    service: DataprocServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataproc_server import connect

    monkeypatch.setenv("DATAPROC_SERVER", real_spark.bench.env["DATAPROC_SERVER"])
    connect()
    outcome = lambda **given: run(kind, how, asynchronous=True, **given)  # noqa: E731
    left = left_child(outcome, real_spark, folder, monkeypatch, child=kind)
    wait_for_child(left)
    assert_child(left, folder, end)


def test_batch_of_an_earlier_try_is_attached_to(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DataprocServer
) -> None:
    name = f"daily-{time.time_ns()}"
    first = run("batch", "succeed", batch_id=name, store={})
    again = run("batch", "succeed", batch_id=name, store=first.store, task={"try_number": 2})
    assert_complete(again, folder)
    assert len(launches_below(real_spark.bench.lineage_dir)) == 1
    assert service.calls.count("CreateBatch") == 2


def test_job_of_another_kind_is_the_stock_operators(
    run: Callable[..., Outcome], real_spark: RealSpark, service: DataprocServer
) -> None:
    service.fails.add("SubmitJob")
    outcome = run("job", "succeed", job={"placement": {"cluster_name": "c"}, "hive_job": {"query_file_uri": "q"}})
    assert outcome.error is not None
    assert outcome.error.startswith("InternalServerError")
    assert outcome.lineage is None
    assert launches_below(real_spark.bench.lineage_dir) == []


def test_job_that_no_worker_has_submitted_says_so(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, service: DataprocServer
) -> None:
    outcome = run("job", "succeed", deferrable=True, start_from_trigger=True, polling_interval_seconds=1)
    assert outcome.error is None, outcome.printed
    assert (folder / "doubled" / "_SUCCESS").exists()
    assert_lacking(outcome, "start_from_trigger has submitted its job without a worker")
    assert launches_below(real_spark.bench.lineage_dir) == []
    assert service.calls.count("SubmitJob") == 1


def test_batch_that_cannot_be_asked_for_ends_as_the_operator_says(
    run: Callable[..., Outcome], service: DataprocServer
) -> None:
    service.fails.add("GetBatch")
    outcome = run("batch", "succeed", batch_id=f"daily-{time.time_ns()}", asynchronous=True)
    assert outcome.error is not None
    assert service.calls.count("GetBatch") < 5


@pytest.mark.parametrize("kind", KINDS)
def test_lost_task_is_recovered(
    kind: str,
    run: Callable[..., Outcome],
    real_spark: RealSpark,
    folder: Path,
    service: DataprocServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataproc_server import connect

    begun = folder / "begun"
    launch = lost_task(real_spark.bench, lambda: run(kind, "late", str(begun)), begun)
    for key, value in real_spark.bench.env.items():
        monkeypatch.setenv(key, value)
    connect()
    assert_recovered(launch, [str(folder / "doubled")], "COMPLETE")
    retry = run(kind, "succeed", task={"try_number": 2})
    assert_complete(retry, folder)


@pytest.mark.parametrize("kind", KINDS)
def test_driver_that_is_refused_fails_the_task_as_without_lineage(
    kind: str, run: Callable[..., Outcome], service: DataprocServer
) -> None:
    service.denied.update(("SubmitJob", "CreateBatch"))
    outcome, off = run(kind, "succeed"), run(kind, "succeed", lineage_enabled=False)
    assert outcome.error is not None
    assert "Permission denied" in outcome.error
    assert outcome.error == off.error
    assert state(outcome) == "FAIL"
