"""What the hook of ``spark-sql`` is told and what its log tells, with a real hook and a fake ``spark-sql``."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.adapters.processes import processes_of

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
EVENTS = FIXTURES / "a_414.ndjson"
LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"


@pytest.fixture
def bench(bench: Any) -> Any:
    """The place of a task that runs a query."""
    bench.operator = "lineage_spark_sql:LineageSparkSqlOperator"
    bench.application = {"sql": "CREATE TABLE a AS SELECT * FROM b"}
    return bench


def after(argv: list[str], flag: str) -> list[str]:
    """Return the values of a flag."""
    return [argv[at + 1] for at, argument in enumerate(argv) if argument == flag]


def test_spark_sql_task_has_the_lineage_of_its_driver(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS])

    told, conf = outcome.command, outcome.command["conf"]
    assert outcome.error is None
    assert outcome.names("inputs")
    assert outcome.names("outputs")
    assert after(told["argv"], "-e") == ["CREATE TABLE a AS SELECT * FROM b"]
    assert after(told["argv"], "--master") == ["local[2]"]
    assert conf["spark.extraListeners"] == LISTENER
    assert conf["spark.driver.extraClassPath"] == str(bench.jar)
    assert conf["spark.openlineage.parentJobName"] == "shop.load"
    assert conf["spark.openlineage.appName"] == "shop.load.spark"
    assert told["env"]["SPARK_LINEAGE_LAUNCH"] == conf["spark.openlineage.applicationRunId"]
    assert (outcome.last["driver"]["process_id"], outcome.last["driver"]["exit_code"]) == (told["pid"], 0)


def test_launch_of_spark_sql_is_kept_for_a_recovery(bench: Any) -> None:
    told = bench.run(lineage=[EVENTS], log=["runs"]).command

    assert "launch.json" in told["files"]
    (file,) = bench.lineage_dir.glob("**/launch.json")
    kept = json.loads(file.read_text())
    assert kept["conn_id"] == "spark_sql_default"
    assert kept["process_id"] == told["pid"]
    assert kept["application_run_id"] == told["env"]["SPARK_LINEAGE_LAUNCH"]


def test_ids_and_ui_are_read_from_the_log_of_spark_sql(bench: Any) -> None:
    log = [
        "26/01/01 12:00:00 INFO Utils: Successfully started service 'SparkUI' on port 4041.",
        "Spark master: local[2], Application Id: local-1700000000000",
    ]
    driver = bench.run(log=log).last["driver"]

    assert (driver["application_id"], driver["ui_address"]) == ("local-1700000000000", "http://127.0.0.1:4041")


def test_spark_sql_with_event_log_alone_sends_its_lineage(bench: Any) -> None:
    outcome = bench.run(evidence="event_log")

    assert outcome.command["conf"]["spark.eventLog.enabled"].lower() == "true"
    assert "spark.extraListeners" not in outcome.command["conf"]


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.extraListeners": "com.example.Audit", "spark.jars": "/opt/a.jar,/opt/b.jar", "spark.ui.enabled": False},
        "spark.extraListeners=com.example.Audit,spark.sql.shuffle.partitions=4,spark.ui.enabled=False",
        "spark.extraListeners=com.example.Audit,spark.ui.enabled=False,spark.x=a=b",
    ],
)
def test_conf_of_the_user_stays_as_it_was_written(bench: Any, conf: Any) -> None:
    bench.application["conf"] = conf
    with_lineage = bench.run(lineage=[EVENTS])
    stock = bench.run(lineage_enabled=False)

    argv = stock.command["argv"]
    assert with_lineage.command["argv"][: len(argv)] == argv
    told = with_lineage.command["conf"]
    # A value with a comma, which a text for the hook could not hold.
    assert told["spark.extraListeners"] == f"com.example.Audit,{LISTENER}"
    assert told["spark.ui.enabled"] == "False"
    if isinstance(conf, dict):
        assert told["spark.jars"] == f"/opt/a.jar,/opt/b.jar,{bench.jar}"


def test_conf_that_the_hook_passes_over_fails_nothing(bench: Any) -> None:
    bench.application["conf"] = ["spark.x=a"]
    outcome = bench.run(lineage=[EVENTS])

    assert outcome.error is None
    assert "spark.x" not in outcome.command["conf"]
    assert outcome.names("outputs")


def test_own_namespace_of_the_user_wins(bench: Any) -> None:
    outcome = bench.run(conf="spark.openlineage.namespace=own,spark.openlineage.appName=mine")

    assert outcome.command["conf"]["spark.openlineage.namespace"] == "own"
    assert outcome.command["conf"]["spark.openlineage.appName"] == "mine"


def test_secret_of_the_properties_file_stays_in_a_private_file(bench: Any) -> None:
    bench.defaults = (
        "spark.openlineage.transport.type http\n"
        "spark.openlineage.transport.url http://backend\n"
        "spark.openlineage.transport.auth.apiKey hunter2\n"
    )

    told = bench.run(lineage=[EVENTS]).command

    assert told["properties"]["mode"] == 0o600
    assert "hunter2" in told["properties"]["text"]
    assert "hunter2" not in str(told["argv"])


def test_log_of_spark_sql_shows_no_secret(bench: Any) -> None:
    log = ["password=hunter2", "the sesame is open: s3same-value", "caf\udce9 100% %s"]
    outcome = bench.run(conf={"spark.hadoop.fs.s3a.secret.key": "s3same-value"}, log=log)

    assert outcome.error is None
    assert "password=***" in outcome.printed
    assert "caf\ufffd 100% %s" in outcome.printed
    assert "hunter2" not in outcome.printed
    assert "s3same-value" not in outcome.printed


def test_exit_code_of_spark_sql_decides_how_the_task_ended(bench: Any) -> None:
    log = ["Error in query: [TABLE_OR_VIEW_NOT_FOUND] no table; password=hunter2"]
    outcome = bench.run(lineage=[EVENTS], log=log, exit_code=1)

    assert outcome.error is not None
    assert "Process exit code: 1" in outcome.error
    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    assert status["state"] == "FAIL"
    assert "hunter2" not in str(outcome.lineage)


@pytest.mark.parametrize("before", ["", "Error in query: "])
def test_task_says_why_its_query_failed(bench: Any, before: str) -> None:
    log = [f"{before}[SCHEMA_NOT_FOUND] The schema `d` cannot be found.", "== SQL ==", "[INFO] done"]

    outcome = bench.run(log=log, exit_code=1)

    assert outcome.lineage["run_facets"]["sparkLineage_status"]["error"] == (
        "[SCHEMA_NOT_FOUND] The schema `d` cannot be found. (exit code 1)"
    )
    assert "SCHEMA_NOT_FOUND" in outcome.error


@pytest.mark.parametrize(
    "option",
    [
        "password 'hunter2'",
        "'password' 'hunter2'",
        '`password` = "hunter2"',
        "secretKey 'hunter2'",
        "sfPassword\n'hunter2'",
        "token /* of mine */ -- it\n 'hunter2'",
        "'db.password'\n=\n'hunter2'",
    ],
)
@pytest.mark.parametrize("is_file", [False, True])
def test_query_that_is_printed_back_shows_no_secret(bench: Any, option: str, *, is_file: bool) -> None:
    sql = f"CREATE TABLE t USING jdbc OPTIONS (dbtable 'x', {option})"
    bench.application["sql"] = str(bench.file("query.sql", sql.encode())) if is_file else sql

    outcome = bench.run(log=["== SQL ==", *sql.splitlines()], exit_code=1)

    assert "dbtable 'x'" in outcome.printed
    assert "hunter2" not in outcome.printed
    assert "hunter2" not in str(outcome.last)


def test_secret_that_a_query_sets_is_known(bench: Any) -> None:
    bench.application["sql"] = "SET spark.my.secret.key=s3same-value; SELECT 1"

    assert "s3same-value" not in bench.run(log=["spark.my.secret.key\ts3same-value"]).printed


def test_spark_sql_that_is_missing_fails_the_task_as_stock(bench: Any) -> None:
    (bench.root / "bin" / "spark-sql").unlink()
    bench.env["PATH"] = "/nowhere"

    outcome = bench.run()

    assert outcome.error is not None
    assert outcome.error.startswith("FileNotFoundError")
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "FAIL"


@pytest.mark.parametrize(("number", "why"), [(signal.SIGUSR1, "on_kill"), (signal.SIGUSR2, "AirflowTaskTimeout")])
def test_killed_task_leaves_no_process_and_is_aborted(bench: Any, number: int, why: str) -> None:
    outcome = bench.run(lineage=[EVENTS], log=["runs"], signal_parent=number)

    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    assert (status["state"], status["error"]) == ("ABORT", f"killed by Airflow ({why})")
    assert processes_of(outcome.command["conf"]["spark.openlineage.applicationRunId"]) == []


def test_spark_sql_that_still_runs_when_its_task_fails_is_ended(bench: Any) -> None:
    bench.operator, bench.is_by_policy = "own_operators:FailingSql", True

    outcome = bench.run(lineage=[EVENTS], log=["begun"], until="/nowhere")

    assert "the disk of the log is full" in outcome.error
    assert processes_of(outcome.command["conf"]["spark.openlineage.applicationRunId"]) == []


def test_task_by_policy_has_lineage(bench: Any) -> None:
    bench.operator, bench.is_by_policy = "own_operators:OwnSql", True

    outcome = bench.run(lineage=[EVENTS], log=["runs"])

    assert outcome.error is None
    assert outcome.last["returned"] == "own"
    assert outcome.names("outputs")
