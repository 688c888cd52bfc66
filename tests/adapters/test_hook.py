"""What the Spark provider's own hook is told and what its log tells, with a real hook and a fake ``spark-submit``."""

from __future__ import annotations

import re
from ast import literal_eval
from pathlib import Path
from typing import Any

import psutil
import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
EVENTS = FIXTURES / "a_414.ndjson"
LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"


def after(argv: list[str], flag: str) -> list[str]:
    """Return the values of a flag."""
    return [argv[at + 1] for at, argument in enumerate(argv) if argument == flag]


def test_spark_submit_is_told_all_that_lineage_needs(bench: Any) -> None:
    outcome = bench.run(
        lineage=[EVENTS],
        application_args=["2024-01-31", "--full"],
        task={"dag_id": "shop", "run_id": "scheduled__2024-01-31T00:00:00+00:00", "map_index": 7, "try_number": 3},
    )
    told, conf = outcome.command, outcome.command["conf"]
    assert outcome.error is None
    assert told["argv"][:2] == ["--master", "local[2]"]
    assert told["argv"][-3:] == ["job.py", "2024-01-31", "--full"]
    assert conf["spark.extraListeners"] == LISTENER
    assert after(told["argv"], "--driver-class-path") == [str(bench.jar)]
    assert "--jars" not in told["argv"]
    assert "--packages" not in told["argv"]
    assert conf["spark.openlineage.transport.type"] == "file"
    file = Path(conf["spark.openlineage.transport.location"])
    run_id = conf["spark.openlineage.applicationRunId"]
    names = ["shop", "scheduled__2024-01-31T00%3A00%3A00%2B00%3A00", "load", "7", f"3-{run_id}"]
    assert file.parent == bench.lineage_dir.joinpath(*names)
    assert told["mode"] == 0o700
    assert {"event-log", "launch.json", "spark_lineage_declare.zip"} <= set(told["files"])
    assert bench.lineage_dir.stat().st_mode & 0o777 == 0o700
    assert conf["spark.openlineage.namespace"] == "airflow-of-the-test"
    assert conf["spark.openlineage.appName"] == "shop.load.spark"
    assert conf["spark.openlineage.parentJobNamespace"] == "airflow-of-the-test"
    assert conf["spark.openlineage.parentJobName"] == "shop.load"
    assert conf["spark.openlineage.rootParentJobName"] == "shop"
    parents = {conf["spark.openlineage.parentRunId"], conf["spark.openlineage.rootParentRunId"], run_id}
    assert len(parents) == 3
    # Of the application's properties, the listener tells the directory of the event log alone.
    assert conf["spark.openlineage.capturedProperties"] == "spark.eventLog.dir"
    assert conf["spark.openlineage.facets.spark_properties.disabled"] == "false"
    assert conf["spark.openlineage.facets.spark.logicalPlan.disabled"] == "true"


def test_the_parent_is_the_run_that_airflow_reports_for_the_try(bench: Any) -> None:
    first, same, retry = (bench.run(task={"try_number": number}).command["conf"] for number in (1, 1, 2))
    key = "spark.openlineage.parentRunId"
    assert first[key] == same[key] != retry[key]
    assert first["spark.openlineage.rootParentRunId"] == retry["spark.openlineage.rootParentRunId"]
    assert first["spark.openlineage.transport.location"] != same["spark.openlineage.transport.location"]


def test_what_the_user_set_survives(bench: Any) -> None:
    conf = {
        "spark.sql.shuffle.partitions": 4,
        "spark.ui.enabled": False,
        "spark.extraListeners": "com.example.Audit",
        "spark.openlineage.appName": "my-own-name",
        "spark.openlineage.parentRunId": "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d60",
    }
    outcome = bench.run(
        conf=dict(conf),
        jars="/opt/a.jar,/opt/b.jar",
        packages="org.example:thing:1.0",
        driver_class_path="/opt/conf",
        executor_memory="2g",
    )
    argv, told = outcome.command["argv"], outcome.command["conf"]
    assert told["spark.sql.shuffle.partitions"] == "4"
    assert told["spark.ui.enabled"] == "False"  # what the stock operator makes of it
    assert told["spark.extraListeners"] == f"com.example.Audit,{LISTENER}"
    assert told["spark.openlineage.appName"] == "my-own-name"
    assert told["spark.openlineage.parentRunId"] == "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d60"
    assert "spark.openlineage.parentJobName" not in told
    assert after(argv, "--jars") == [f"/opt/a.jar,/opt/b.jar,{bench.jar}"]
    assert after(argv, "--packages") == ["org.example:thing:1.0"]
    assert after(argv, "--driver-class-path") == ["/opt/conf"]
    assert after(argv, "--executor-memory") == ["2g"]
    assert outcome.conf == conf, "the operator's own conf was changed"


def test_a_listener_of_the_users_own_is_not_doubled(bench: Any) -> None:
    outcome = bench.run(
        packages="io.openlineage:openlineage-spark_2.13:1.40.0", openlineage_jar="/nowhere.jar", lineage=[EVENTS]
    )
    assert "--driver-class-path" not in outcome.command["argv"]
    assert "--jars" not in outcome.command["argv"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_transport_of_the_users_own_keeps_receiving(bench: Any) -> None:
    outcome = bench.run(
        conf={"spark.openlineage.transport.type": "http", "spark.openlineage.transport.url": "http://marquez:5000"},
        lineage=[EVENTS],
    )
    conf = outcome.command["conf"]
    assert conf["spark.openlineage.transport.type"] == "composite"
    assert conf["spark.openlineage.transport.transports.user.type"] == "http"
    assert conf["spark.openlineage.transport.transports.user.url"] == "http://marquez:5000"
    assert conf["spark.openlineage.transport.transports.spark_lineage.type"] == "file"
    assert not [key for key in conf if key.startswith("spark.openlineage.facets.")]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_switched_off_the_hook_is_as_it_was(bench: Any) -> None:
    outcome = bench.run(lineage_enabled=False, conf={"spark.ui.enabled": "false"}, log=["a line"])
    assert outcome.command["conf"] == {"spark.ui.enabled": "false"}
    assert outcome.command["argv"][-3:] == ["--name", "arrow-spark", "job.py"]
    assert outcome.lineage is None
    assert "a line" in outcome.printed
    assert not bench.lineage_dir.exists()


@pytest.mark.parametrize("enabled", [True, False])
def test_an_exit_code_fails_the_task_as_the_provider_says_it(bench: Any, *, enabled: bool) -> None:
    outcome = bench.run(exit_code=3, log=["the very last word"], lineage_enabled=enabled)
    cause = "exit code 3\n" if enabled else ""
    assert outcome.error.startswith(f"AirflowException: {cause}Cannot execute: spark-submit --master local[2] ")
    assert "Error code is: 3." in outcome.error
    assert "Last spark-submit output:\nthe very last word" in outcome.error


@pytest.mark.parametrize(
    ("host", "line", "application_id"),
    [
        (
            "spark://master:7077",
            "INFO StandaloneSchedulerBackend: Connected to Spark cluster with app ID app-20240131120000-0042",
            "app-20240131120000-0042",
        ),
        (
            "yarn",
            "24/01/31 12:00:00 INFO YarnClientImpl: Submitted application application_1706702400000_0042",
            "application_1706702400000_0042",
        ),
        (
            "local[2]",
            "\t labels: spark-app-name -> job, spark-app-selector -> spark-0a1b2c3d4e5f, spark-role -> driver",
            "spark-0a1b2c3d4e5f",
        ),
    ],
)
def test_ui_port_and_application_id_are_learnt_from_the_log(
    bench: Any, host: str, line: str, application_id: str
) -> None:
    bench.connection["host"] = host
    ui = "24/01/31 12:00:00 INFO Utils: Successfully started service 'SparkUI' on port {}."
    outcome = bench.run(log=["nothing", ui.format(4041), line, ui.format(4042), line.replace("42", "43")])
    assert outcome.last["driver"]["is_submitted"] is True
    assert outcome.last["driver"]["ui_address"] == "http://127.0.0.1:4042", "the UI has moved"
    assert outcome.last["driver"]["application_id"] == application_id
    # No event told the id, so that of the log stands in the facet.
    (application,) = outcome.lineage["run_facets"]["sparkLineage_application"]["applications"]
    assert application["applicationId"] == application_id
    assert application["runId"] == outcome.command["conf"]["spark.openlineage.applicationRunId"]


def test_where_the_driver_logs_its_events_is_learnt_from_the_log(bench: Any) -> None:
    log = (
        "26/11/24 03:38:25 INFO RollingEventLogFilesWriter: Logging events to file:/a b/eventlog_v2_local-1/events_1.z",
        "26/11/24 03:38:26 INFO RollingEventLogFilesWriter: Logging events to file:/a b/eventlog_v2_local-1/events_2.z",
        "24/01/31 12:00:00 INFO SingleEventLogFileWriter: Logging events to file:/logs/local-2.inprogress",
        "24/01/31 12:00:00 INFO SingleEventLogFileWriter: Logging events to hdfs://nn/logs/local-3.inprogress",
        "24/01/31 12:00:00 INFO Program: Logging events to file:/other/local-4",
    )
    driver = bench.run(log=log).last["driver"]
    assert driver["event_logs"] == ["/a b/eventlog_v2_local-1", "/logs"]
    assert driver["logged_ids"] == ["local-2", "local-3", "local-4"]


def test_nothing_is_learnt_from_a_log_that_tells_nothing(bench: Any) -> None:
    driver = bench.run(log=["", "app ID unknown", "service 'SparkUI' on port x"]).last["driver"]
    told = ("application_id", "ui_address", "ui_url", "driver_id")
    assert [driver[name] for name in told] == [None] * len(told)
    assert (driver["is_submitted"], driver["exit_code"]) == (True, 0)


def test_the_id_of_a_yarn_cluster_submission_is_remembered(bench: Any) -> None:
    bench.connection.update(host="yarn", extra={"deploy-mode": "cluster"})
    outcome = bench.run(
        durable=False, store={}, log=["INFO YarnClientImpl: Submitted application application_1706702400000_0042"]
    )
    assert outcome.error is None
    assert outcome.store["spark_lineage_launch"]["external_id"] == "application_1706702400000_0042"
    # The class path of the worker means nothing on the driver's machine.
    assert after(outcome.command["argv"], "--jars") == [str(bench.jar)]


@pytest.mark.parametrize("place", ["conf", "file", "extra"])
def test_in_cluster_mode_the_jar_is_shipped(bench: Any, place: str) -> None:
    arguments: dict[str, Any] = {}
    if place == "conf":
        arguments["conf"] = {"spark.submit.deployMode": "cluster"}
    elif place == "file":
        bench.defaults = "spark.submit.deployMode cluster\n"
    else:
        bench.connection.update(host="mesos://master", extra={"deploy-mode": "cluster"})
    argv = bench.run(**arguments).command["argv"]
    assert after(argv, "--jars") == [str(bench.jar)]
    assert "--driver-class-path" not in argv


def test_environment_variables_of_the_task_reach_the_driver(bench: Any) -> None:
    outcome = bench.run(env_vars={"GREETING": "hello", "NUMBER": "7"})
    assert outcome.command["env"]["GREETING"] == "hello"
    assert outcome.command["env"]["NUMBER"] == "7"


def test_the_spark_of_the_tasks_own_environment_counts(bench: Any) -> None:
    other = bench.root / "other"
    (other / "conf").mkdir(parents=True)
    (other / "jars").mkdir()
    (other / "jars" / "spark-core_2.13-4.2.0.jar").touch()
    (other / "conf" / "spark-defaults.conf").write_text("spark.extraListeners com.example.Audit\n")
    outcome = bench.run(env_vars={"SPARK_HOME": str(other)})
    assert outcome.command["conf"]["spark.extraListeners"] == f"com.example.Audit,{LISTENER}"


def test_the_command_in_the_log_and_in_the_error_is_the_users_own(bench: Any) -> None:
    given = {"conf": {"spark.ui.enabled": "false"}, "packages": "org.example:thing:1.0", "exit_code": 3}
    ours, stock = (bench.run(lineage_enabled=enabled, **given) for enabled in (True, False))
    shown, users = (re.findall(r"Spark-Submit cmd: (.*) \[", one.printed) for one in (ours, stock))
    assert len(users) == 1
    assert shown == users
    assert {f"Cannot execute: {users[0]}. " in one.error for one in (ours, stock)} == {True}
    (told,) = [line for line in ours.printed.splitlines() if "Added for lineage: " in line]
    added = literal_eval(re.search(r"Added for lineage: (\[.*?'\])", told)[1])
    assert f"spark.extraListeners={LISTENER}" in added
    assert str(bench.jar) in added
    names = {value.partition("=")[0] for value in added if value.startswith("spark.")}
    assert names == set(ours.command["conf"]) - {"spark.ui.enabled"}


def test_what_of_the_users_was_changed_is_shown_as_it_is_submitted(bench: Any) -> None:
    outcome = bench.run(conf={"spark.extraListeners": "com.example.Audit"}, jars="/opt/a.jar")
    (shown,) = [line for line in outcome.printed.splitlines() if "Spark-Submit cmd: " in line]
    assert after(shown.split(), "--conf") == [f"spark.extraListeners=com.example.Audit,{LISTENER}"]
    assert after(shown.split(), "--jars") == [f"/opt/a.jar,{bench.jar}"]


def test_a_secret_with_spaces_is_masked_whole(bench: Any) -> None:
    outcome = bench.run(
        application_args=["--db-password", "correct horse battery", "--day", "2024-01-31"],
        conf={"spark.my.token": "staple of hunter2", "spark.plain": "kept as it is"},
        exit_code=1,
    )
    assert "correct horse battery" in outcome.command["argv"]
    for text in (outcome.printed, outcome.error):
        assert "kept as it is" in text
        assert "2024-01-31" in text
        assert "horse" not in text
        assert "battery" not in text
        assert "staple" not in text
        assert "hunter2" not in text


def test_a_key_that_spans_lines_of_the_log_is_masked(bench: Any) -> None:
    body = [
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7hunter2",
        "hunter2secondline0123456789abcdefghijklmnop",
    ]
    key = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"]
    outcome = bench.run(log=["before", *key, "after the key"], exit_code=1)
    assert "after the key" in outcome.printed
    assert "hunter2" not in outcome.printed
    assert "hunter2" not in outcome.error


@pytest.mark.parametrize(
    "line", ["WARN no line -----BEGIN PRIVATE KEY----- in the file", "WARN found -----BEGIN PRIVATE KEY-----"]
)
def test_a_line_that_only_speaks_of_a_key_hides_nothing_after_it(bench: Any, line: str) -> None:
    bench.connection.update(host="yarn", extra={"deploy-mode": "cluster"})
    submitted = "INFO YarnClientImpl: Submitted application application_1706702400000_0042"
    outcome = bench.run(durable=False, store={}, log=[line, submitted, "and more"])
    assert submitted in outcome.printed
    assert "and more" in outcome.printed
    assert outcome.last["driver"]["driver_id"] == "application_1706702400000_0042"


def test_submit_of_a_driver_that_prints_no_utf8_succeeds(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], log=["caf\udce9"])
    assert outcome.error is None
    assert "caf\ufffd" in outcome.printed


def test_submit_that_fails_while_the_driver_runs_ends_the_driver(bench: Any) -> None:
    bench.is_by_policy, bench.operator = True, "own_operators:Failing"
    outcome = bench.run(lineage=[EVENTS], log=["begun"], until="/nowhere")
    assert "the disk of the log is full" in outcome.error
    assert "the driver is ended" in outcome.printed
    assert not psutil.pid_exists(outcome.command["pid"])
