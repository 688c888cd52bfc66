"""Functions of a ``PySparkOperator`` over Spark Connect: of a server's log, a task has what its own session did."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from connect_server import connect_server
from laboratory import Bench, Laboratory
from lost_worker import recovered
from real_spark import RealSpark, environment

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from laboratory import Outcome

pytestmark = [pytest.mark.spark, pytest.mark.truth]
FUNCTIONS = Path(__file__).parent / "programs" / "pyspark_functions.py"
# Another client of the same user, which writes as long as its file is there.
OTHER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
folder = Path(sys.argv[2])
number = 0
while (folder / "others").exists():
    number += 1
    spark.range(3).selectExpr("id AS other").write.mode("overwrite").parquet(str(folder / "of_others"))
    (folder / "begun").touch()
spark.range(3).write.mode("overwrite").parquet(str(folder / "last_of_others"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with orders in JSON."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "part.json").write_text('{"id": 1, "amount": 20}')
    return tmp_path


@pytest.fixture(scope="module")
def server(fast_spark: FastSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that all tests use; the value is its URL."""
    with connect_server(environment(fast_spark), tmp_path_factory.mktemp("area") / "server") as url:
        yield url


@pytest.fixture
def run(real_spark: RealSpark, folder: Path, server: str) -> Callable[..., Outcome]:
    """Run a function over a connection to the server."""
    return running(real_spark, folder, server)


def running(real_spark: RealSpark, folder: Path, url: str, login: str = "ada") -> Callable[..., Outcome]:
    host, _, port = url.removeprefix("sc://").partition(":")
    connection = {"conn_type": "spark_connect", "host": host, "port": int(port), "login": login}
    bench = real_spark.bench
    bench.operator, bench.application = "lineage_spark_pyspark:LineagePySparkOperator", {}
    bench.env |= {"AIRFLOW_CONN_CONNECT": json.dumps(connection)}

    def run(function: str, **arguments: Any) -> Outcome:
        given = {"conn_id": "connect", "op_kwargs": {"folder": str(folder), "spark": None}, **arguments}
        return real_spark.execute(python_callable=f"{FUNCTIONS}:{function}", **given)

    return run


def state(outcome: Outcome) -> Any:
    assert outcome.lineage is not None, outcome.printed
    return outcome.lineage["run_facets"]["sparkLineage_status"]["state"]


def test_task_has_what_its_own_session_did(run: Callable[..., Outcome], server: str, folder: Path) -> None:
    (folder / "others").touch()
    command = [sys.executable, "-W", "ignore", "-c", OTHER, f"{server}/;user_id=ada", str(folder)]
    with subprocess.Popen(command) as other:
        try:
            while not (folder / "begun").exists():
                assert other.poll() is None
                time.sleep(0.1)
            outcome = run("doubled")
        finally:
            (folder / "others").unlink()

    assert outcome.error is None, outcome.printed
    assert outcome.last["returned"] == 1
    assert state(outcome) == "COMPLETE"
    assert outcome.names("inputs") == [str(folder / "orders")]
    assert outcome.names("outputs") == [str(folder / "doubled")]
    assert outcome.lineage is not None
    (output,) = outcome.lineage["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1
    fields = output["facets"]["columnLineage"]["fields"]
    assert [one["field"] for one in fields["doubled"]["inputFields"]] == ["amount"]


def test_task_that_fails_keeps_what_it_had_written(run: Callable[..., Outcome]) -> None:
    outcome = run("half_done")

    assert state(outcome) == "FAIL"
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]


def test_task_that_is_killed_ends_its_work_on_the_server(
    run: Callable[..., Outcome], real_spark: RealSpark, folder: Path
) -> None:
    with real_spark.bench.laboratory.killing(folder / "written"):
        outcome = run("endless")

    assert state(outcome) == "ABORT", outcome.printed
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]
    assert [Path(name).name for name in outcome.attempted()] == ["never"]


def test_server_without_a_log_is_named_and_nothing_is_invented(real_spark: RealSpark, folder: Path) -> None:
    with connect_server(environment(real_spark.fast), folder / "server", **{"spark.eventLog.enabled": "false"}) as url:
        outcome = running(real_spark, folder, url)("doubled")

    assert outcome.error is None, outcome.printed
    assert "Nothing is known of what the Spark Connect server does: it writes no event log." in outcome.printed
    assert "No lineage came from the Spark Connect server" in outcome.printed
    assert "FileNotFoundError" not in outcome.printed
    assert outcome.lineage is not None
    assert (outcome.lineage["inputs"], outcome.lineage["outputs"]) == ([], [])


def test_url_of_the_user_keeps_its_session(run: Callable[..., Outcome], server: str) -> None:
    own = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    outcome = run("doubled", config_kwargs={"spark.remote": f"{server}/;user_id=ada;session_id={own}"})

    assert outcome.error is None, outcome.printed
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]


def test_stream_of_a_session_has_its_sink(run: Callable[..., Outcome]) -> None:
    outcome = run("streamed")

    assert outcome.error is None, outcome.printed
    assert [Path(name).name for name in outcome.names("inputs")] == ["orders"]
    assert [Path(name).name for name in outcome.names("outputs")] == ["streamed"]


def test_query_that_the_server_refuses_fails_the_task_alone(run: Callable[..., Outcome]) -> None:
    outcome = run("unresolved")

    assert outcome.error is not None
    assert "TABLE_OR_VIEW_NOT_FOUND" in outcome.error
    assert state(outcome) == "FAIL"
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]


def test_task_whose_worker_is_lost_is_recovered_from_the_log_of_the_server(
    real_spark: RealSpark, run: Callable[..., Outcome]
) -> None:
    end = recovered(real_spark.bench, lambda: run("lost"))

    assert end.lineage.state == "FAIL"
    assert [Path(one.dataset.name).name for one in end.lineage.inputs] == ["orders"]
    assert [Path(one.dataset.name).name for one in end.lineage.outputs] == ["doubled"]


def test_three_clients_at_once_have_their_own_datasets_of_a_log_that_lies_elsewhere(
    fast_spark: FastSpark, server: str, tmp_path: Path
) -> None:
    outcomes: dict[str, Outcome] = {}

    def execute(name: str, login: str, function: str) -> None:
        folder = tmp_path / name
        (folder / "orders").mkdir(parents=True)
        (folder / "orders" / "part.json").write_text('{"id": 1, "amount": 20}')
        (folder / "bench").mkdir()
        with closing(Laboratory(folder / "airflow")) as laboratory:
            spark = RealSpark(Bench(laboratory, folder / "bench"), fast_spark)
            # The directory of the server is read as if it were on another file system.
            execute = running(spark, folder, server, login)
            outcomes[name] = execute(function, event_log_from="event_log")

    def kill(folder: Path) -> None:
        while not (folder / "written").exists():
            time.sleep(0.1)
        time.sleep(2)
        psutil.Process(int((folder / "written").read_text())).send_signal(signal.SIGUSR1)

    clients = [("one", "ada", "doubled"), ("two", "ada", "endless"), ("three", "bob", "half_done")]
    threads = [threading.Thread(target=execute, args=client, daemon=True) for client in clients]
    threads.append(threading.Thread(target=kill, args=(tmp_path / "two",), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)

    assert {name: state(outcome) for name, outcome in outcomes.items()} == {
        "one": "COMPLETE",
        "two": "ABORT",
        "three": "FAIL",
    }
    for name, outcome in outcomes.items():
        assert outcome.names("inputs") == [str(tmp_path / name / "orders")], outcome.printed
        assert outcome.names("outputs") == [str(tmp_path / name / "doubled")]
        assert outcome.lineage is not None
        collection = outcome.lineage["run_facets"]["sparkLineage_collection"]
        assert collection["collectedFrom"] == ["event_log"]
    assert outcomes["two"].attempted() == [str(tmp_path / "two" / "never")]


def test_task_whose_worker_is_lost_is_recovered_from_a_log_that_lies_elsewhere(
    real_spark: RealSpark, run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__EVENT_LOG_FROM", "event_log")
    end = recovered(real_spark.bench, lambda: run("lost", event_log_from="event_log"))

    assert end.lineage.state == "FAIL"
    assert [Path(one.dataset.name).name for one in end.lineage.outputs] == ["doubled"]
