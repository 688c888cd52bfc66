"""Batches of a real Apache Livy: what they did comes from their event log, how they ended from Livy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from livy_server import livy_server
from real_spark import environment
from service_jobs import NOBODY, PROGRAM, assert_child, assert_complete, left_child, state

from spark_lineage.recover.closing import end_child

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from laboratory import Outcome
    from real_spark import RealSpark

pytest.importorskip("airflow.providers.apache.livy")
pytestmark = [pytest.mark.spark, pytest.mark.nightly]


@pytest.fixture(scope="module")
def server(fast_spark: FastSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that all tests use; the value is its port."""
    with livy_server(environment(fast_spark), tmp_path_factory.mktemp("area") / "server") as port:
        yield port


@pytest.fixture
def run(real_spark: RealSpark, folder: Path, server: int) -> Callable[..., Outcome]:
    """Run the program as a batch that ends in one of its ways."""
    bench = real_spark.bench
    bench.operator, bench.application = "lineage_livy:LineageLivyOperator", {}
    connection = {"conn_type": "livy", "host": "127.0.0.1", "port": server}
    bench.env |= {
        "AIRFLOW_CONN_LIVY": json.dumps(connection),
        "AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": str(folder / "logs"),
    }

    def run(how: str, **arguments: Any) -> Outcome:
        given = {"livy_conn_id": "livy", "file": str(PROGRAM), "args": [str(folder), how], "polling_interval": 1}
        return real_spark.execute(**{**given, **arguments})

    return run


def test_batch_that_is_waited_for_is_the_task(run: Callable[..., Outcome], folder: Path) -> None:
    outcome = run("succeed", conf={"spark.sql.shuffle.partitions": 1})
    assert_complete(outcome, folder)


def test_directory_of_the_user_is_read(run: Callable[..., Outcome], folder: Path) -> None:
    (folder / "own").mkdir()
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(folder / "own")}
    outcome = run("succeed", conf=conf)
    assert outcome.names("outputs") == [str(folder / "doubled")], outcome.printed
    assert not list((folder / "logs").iterdir())


def test_batch_that_fails_keeps_what_it_had_written(run: Callable[..., Outcome], folder: Path) -> None:
    outcome = run("fail")
    assert outcome.error is not None
    assert state(outcome) == "FAIL"
    assert outcome.names("outputs") == [str(folder / "doubled")]
    assert "ValueError: no more" in str(outcome.lineage)
    assert "hunter2" not in f"{outcome.lineage}{outcome.printed}"


def test_batch_that_is_killed_is_gone(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, server: int
) -> None:
    with real_spark.bench.laboratory.killing(folder / "written"):
        outcome = run("endless")
    assert state(outcome) == "ABORT", outcome.printed
    assert outcome.names("outputs") == [str(folder / "doubled")]
    batches = requests.get(f"http://127.0.0.1:{server}/batches", timeout=5).json()["sessions"]
    assert [one for one in batches if one["state"] in {"starting", "running"}] == []


@pytest.mark.parametrize(("how", "end"), [("succeed", "COMPLETE"), ("fail", "FAIL")])
def test_batch_that_a_trigger_waits_for_is_the_task(how, end, run: Callable[..., Outcome], folder: Path) -> None:
    outcome = run(how, deferrable=True)
    assert state(outcome) == end, outcome.printed
    assert (outcome.error is None) == (end == "COMPLETE")
    assert ("ValueError: no more" in str(outcome.lineage)) == (end == "FAIL")
    assert "hunter2" not in str(outcome.lineage)
    assert outcome.names("inputs") == [str(folder / "orders")]
    assert outcome.names("outputs") == [str(folder / "doubled")]


def test_task_that_resumes_without_what_it_had_kept_says_that_it_has_no_lineage(run: Callable[..., Outcome]) -> None:
    outcome = run("succeed", deferrable=True, fails="kept")
    assert outcome.error is None, outcome.printed
    assert "The task has no lineage: it submitted no job" in outcome.printed


def test_batch_that_is_not_waited_for_is_a_job_of_its_own(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path, server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = left_child(partial(run, "late", polling_interval=0), real_spark, folder, monkeypatch, child="batch")
    # Nothing is sent while it runs.
    assert not end_child(left, NOBODY, None)
    url = f"http://127.0.0.1:{server}/batches/{left.launch.external_id}/state"
    while requests.get(url, timeout=5).json()["state"] in {"starting", "running"}:
        time.sleep(1)
    assert end_child(left, NOBODY, None)
    assert_child(left, folder, "COMPLETE")
