"""Queries with a real ``spark-sql`` and its Hive metastore: what they read and wrote, and how they ended."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lost_worker import recovered

from spark_lineage.adapters.processes import processes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import psutil
    from laboratory import Outcome
    from real_spark import RealSpark

pytestmark = [pytest.mark.spark, pytest.mark.truth]

LARGE = "CREATE TABLE large USING parquet AS SELECT id, amount * 2 AS doubled FROM json.`{folder}/orders`;"
BUYERS = """
CREATE TABLE buyers USING parquet AS
SELECT c.name AS buyer, o.amount FROM json.`{folder}/orders` o JOIN json.`{folder}/customers` c ON o.customer = c.id;
"""


@pytest.fixture
def run(real_spark: RealSpark, tmp_path: Path) -> Callable[..., Outcome]:
    """Run a query of two directories of JSON, ``orders`` and ``customers``; the metastore is a directory, too."""
    real_spark.bench.operator = "lineage_spark_sql:LineageSparkSqlOperator"
    real_spark.bench.application = {}
    rows = {"orders": {"id": 1, "amount": 20, "customer": 7}, "customers": {"id": 7, "name": "Ada"}}
    for name, row in rows.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.json").write_text(json.dumps(row))
    conf = {
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={tmp_path}",
        "spark.sql.shuffle.partitions": "1",
    }

    def run(*sql: str, text: str = "", **own: str) -> Outcome:
        given: Any = {"spark.ui.enabled": "false", **conf, **own}
        if text:
            given = ",".join([*(f"{key}={value}" for key, value in given.items()), text])
        return real_spark.execute(sql="\n".join(sql).format(folder=tmp_path), conf=given)

    return run


def state(outcome: Outcome) -> Any:
    assert outcome.lineage is not None, outcome.printed
    return outcome.lineage["run_facets"]["sparkLineage_status"]["state"]


def columns(dataset: dict[str, Any]) -> dict[str, set[tuple[str, str]]]:
    """The columns that each column of an output comes from: file name and column."""
    fields = dataset["facets"]["columnLineage"]["fields"]
    return {
        name: {
            (Path(one["name"]).name, one["field"])
            for one in field["inputFields"]
            if any(each["type"] == "DIRECT" for each in one["transformations"])
        }
        for name, field in fields.items()
    }


def test_two_tables_of_a_query_are_the_outputs_of_one_job(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run(LARGE, BUYERS)

    assert outcome.error is None, outcome.printed
    assert state(outcome) == "COMPLETE"
    assert sorted(outcome.names("inputs")) == [str(tmp_path / "customers"), str(tmp_path / "orders")]
    outputs = {Path(one["name"]).name: one for one in outcome.lineage["outputs"]}  # type: ignore[index]
    assert outputs.keys() == {"large", "buyers"}
    assert columns(outputs["large"]) == {"id": {("orders", "id")}, "doubled": {("orders", "amount")}}
    assert columns(outputs["buyers"]) == {"buyer": {("customers", "name")}, "amount": {("orders", "amount")}}
    assert outcome.last["driver"]["application_id"].startswith("local-")


@pytest.mark.parametrize(
    ("conf", "kept"),
    [
        ({"text": "spark.users.first=1,spark.users.own=2=3"}, "spark.users.own\t2=3"),
        ({"spark.users.own": "a,b = c"}, "spark.users.own\ta,b = c"),
    ],
)
def test_conf_with_commas_is_the_users_and_has_lineage(run: Callable[..., Outcome], conf: Any, kept: str) -> None:
    outcome = run(LARGE, "SET spark.users.own;", **conf)

    assert outcome.error is None, outcome.printed
    assert kept in outcome.printed
    assert state(outcome) == "COMPLETE"
    assert [Path(name).name for name in outcome.names("outputs")] == ["large"]


def test_query_that_fails_keeps_what_it_had_written(run: Callable[..., Outcome]) -> None:
    outcome = run(LARGE, "SELECT * FROM no_such_table;")

    assert "Process exit code: 1" in str(outcome.error), outcome.printed
    assert state(outcome) == "FAIL"
    assert [Path(name).name for name in outcome.names("outputs")] == ["large"]


def test_query_that_is_killed_leaves_no_process(run: Callable[..., Outcome], tmp_path: Path) -> None:
    drivers: list[psutil.Process] = []

    def kill() -> None:
        while not (tmp_path / "warehouse" / "large" / "_SUCCESS").exists():
            time.sleep(0.1)
        # Until the next statement runs.
        time.sleep(3)
        launch = next(tmp_path.glob("lineage/**/launch.json"))
        mark = json.loads(launch.read_text())["application_run_id"]
        drivers.extend(processes_of(mark))
        os.kill(drivers[0].ppid(), signal.SIGUSR1)

    killing = threading.Thread(target=kill, daemon=True)
    killing.start()
    outcome = run(LARGE, "SELECT count(*) FROM range(0, 10000000000000) WHERE id % 7 = rand();")
    killing.join(10)

    assert state(outcome) == "ABORT", outcome.printed
    assert [Path(name).name for name in outcome.names("outputs")] == ["large"]
    assert drivers
    assert not any(driver.is_running() for driver in drivers)


def test_query_whose_worker_is_lost_is_ended_and_recovered(
    real_spark: RealSpark, run: Callable[..., Outcome], tmp_path: Path
) -> None:
    def lose() -> None:
        while not (tmp_path / "warehouse" / "large" / "_SUCCESS").exists():
            time.sleep(0.1)
        time.sleep(3)
        mark = json.loads(next(tmp_path.glob("lineage/**/launch.json")).read_text())["application_run_id"]
        os.kill(processes_of(mark)[0].ppid(), signal.SIGKILL)

    losing = threading.Thread(target=lose, daemon=True)
    losing.start()
    hanging = "SELECT count(*) FROM range(0, 10000000000000) WHERE id % 7 = rand();"
    end = recovered(real_spark.bench, lambda: run(LARGE, hanging))
    losing.join(10)
    mark = json.loads(next(tmp_path.glob("lineage/**/launch.json")).read_text())["application_run_id"]

    assert not processes_of(mark)
    assert end.lineage.state == "FAIL"
    assert [Path(one.dataset.name).name for one in end.lineage.outputs] == ["large"]
