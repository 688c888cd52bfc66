"""What the command of a ``BashOperator`` gets, with the real hook and a fake ``spark-submit``."""

from __future__ import annotations

import shlex
import signal
import time
from typing import Any

import pytest
from airflow.providers.openlineage.extractors.base import DefaultExtractor
from airflow.providers.openlineage.extractors.manager import ExtractorManager
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

from spark_lineage.adapters.bash import _option
from spark_lineage.adapters.processes import end_processes, processes_of
from spark_lineage.operators.lineage_bash import LineageBashOperator
from spark_lineage.policy import task_policy, with_lineage

RUNS_ON = "no event log is read: a process that the command left in the background runs on"


@pytest.fixture
def bench(bench: Any) -> Any:
    """The place of a task that runs a command."""
    bench.operator, bench.application = "lineage_bash:LineageBashOperator", {}
    return bench


def options(told: dict[str, Any]) -> dict[str, str]:
    """Return the system properties that spark-submit gets, as its launcher takes them apart."""
    parts = shlex.split(told["env"]["SPARK_SUBMIT_OPTS"])
    return dict(part.removeprefix("-D").split("=", 1) for part in parts)


def set_aside(outcome: Any) -> Any:
    """Return what the event counts."""
    return outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"]


def test_each_submission_of_a_command_has_the_run_of_the_task(bench: Any) -> None:
    outcome = bench.run(bash_command="spark-submit one.py; spark-submit two.py; echo last", log=["a line"])

    assert outcome.error is None, outcome.printed
    assert outcome.last["returned"] == "last"
    assert [told["argv"] for told in outcome.told] == [["one.py"], ["two.py"]]
    first, second = map(options, outcome.told)
    assert first == second
    assert first["spark.openlineage.parentJobName"] == "shop.load"
    assert first["spark.eventLog.enabled"] == "tRuE"
    assert outcome.command["env"]["SPARK_LINEAGE_LAUNCH"] == first["spark.openlineage.applicationRunId"]
    assert "a line" in outcome.printed


def test_settings_of_the_user_are_not_added_and_their_options_come_last(bench: Any) -> None:
    command = "spark-submit --conf spark.sql.debug.maxToStringFields=7 --conf 'spark.eventLog.enabled=false' one.py"
    env = {"SPARK_SUBMIT_OPTS": "-Dusers=own", "PATH": f"{bench.root}/bin:/bin:/usr/bin"}
    outcome = bench.run(bash_command=command, env=env)

    given = options(outcome.command)
    assert list(given)[-1] == "users"
    assert not {"spark.sql.debug.maxToStringFields", "spark.eventLog.enabled", "spark.eventLog.dir"} & given.keys()
    assert "HOME" not in outcome.command["env"], "env is not appended"


@pytest.mark.parametrize("order", [("", "off"), ("off", "")])
def test_log_that_one_program_turns_off_is_on_for_the_other(bench: Any, order: tuple[str, str]) -> None:
    flag = {"off": "--conf spark.eventLog.enabled=false ", "": ""}
    outcome = bench.run(bash_command="; ".join(f"spark-submit {flag[one]}one.py" for one in order))
    assert options(outcome.command)["spark.eventLog.enabled"] == "tRuE"
    assert options(outcome.command)["spark.eventLog.dir"]


@pytest.mark.parametrize(
    "command",
    [
        "spark-submit {log} one.py; spark-submit two.py",
        "spark-submit {log} one.py;spark-submit two.py",
        "submit=spark-submit; $submit {log} one.py; $submit two.py",
    ],
)
def test_log_that_one_program_has_is_where_the_other_logs(bench: Any, command: str) -> None:
    """Without a directory, Spark fails the other: its default directory is missing on most hosts."""
    log = f"--conf spark.eventLog.enabled=true --conf spark.eventLog.dir={bench.root}"
    given = options(bench.run(bash_command=command.format(log=log)).command)
    assert (given["spark.eventLog.enabled"], given["spark.eventLog.dir"]) == ("true", str(bench.root))


@pytest.mark.parametrize("place", ["command", "defaults", "file"])
def test_log_that_has_no_directory_is_not_turned_on(bench: Any, place: str) -> None:
    """Spark fails an application whose log it cannot begin."""
    named = f"spark.eventLog.dir {bench.root}/nowhere"
    bench.file("own.conf", named.encode())
    bench.defaults = named if place == "defaults" else None
    flags = {"command": f"--conf {named.replace(' ', '=')}", "file": f"--properties-file {bench.root}/own.conf"}
    outcome = bench.run(bash_command=f"spark-submit {flags.get(place, '')} one.py")

    assert outcome.error is None, outcome.printed
    assert "SPARK_SUBMIT_OPTS" not in outcome.command["env"]
    assert f"spark.eventLog.dir is {bench.root}/nowhere, which is no directory" in outcome.printed


def test_value_that_the_shell_puts_together_is_read(bench: Any) -> None:
    command = f"spark-submit --conf spark.eventLog.enabled=true --conf 'spark.eventLog.dir='{bench.root} one.py"
    assert f"collected in {bench.root}" in bench.run(bash_command=command).printed


@pytest.mark.parametrize(("number", "why"), [(signal.SIGUSR1, "on_kill"), (signal.SIGUSR2, "AirflowTaskTimeout")])
def test_killed_command_gets_the_signal_of_the_stock_operator(bench: Any, number: int, why: str) -> None:
    outcome = bench.run(bash_command="spark-submit one.py", log=["runs"], signal_parent=number)

    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    assert (status["state"], status["error"]) == ("ABORT", f"killed by Airflow ({why})")
    assert outcome.printed.count("Sending SIGTERM signal to process group") == 1
    assert "RecursionError" not in f"{outcome.error} {outcome.printed}"
    assert processes_of(options(outcome.command)["spark.openlineage.applicationRunId"]) == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (
            "SPARK_SUBMIT_OPTS='-Da=1' spark-submit one.py; spark-submit two.py",
            "the command sets SPARK_SUBMIT_OPTS itself",
        ),
        ('SPARK_SUBMIT_OPTS="-Da=1 $SPARK_SUBMIT_OPTS" spark-submit one.py; spark-submit two.py', ""),
        ("spark-submit {off} one.py; spark-submit two.py", "a program of the command turns it off"),
    ],
)
def test_program_without_an_event_log_is_counted_beside_one_that_has_it(bench: Any, command: str, why: str) -> None:
    outcome = bench.run(bash_command=command.format(off="--conf spark.eventLog.enabled=false"))

    counted = [reason for reason in set_aside(outcome) if reason.startswith("no event log is read")]
    assert counted == ([f"no event log is read: {why}"] if why else [])


def test_command_that_is_killed_cleans_up_as_without_lineage(bench: Any) -> None:
    clean = f"trap 'sleep 2; touch {bench.root}/cleaned; exit 7' TERM"
    outcome = bench.run(bash_command=f"{clean}; spark-submit one.py; kill -USR2 $PPID; sleep 30 & wait")
    deadline = time.monotonic() + 10
    while not (bench.root / "cleaned").exists():
        assert time.monotonic() < deadline, outcome.printed
        time.sleep(0.1)

    assert RUNS_ON in set_aside(outcome)


def test_process_that_leaves_the_group_of_a_killed_command_goes_on_and_is_counted(bench: Any) -> None:
    outcome = bench.run(bash_command="setsid sleep 20 & spark-submit one.py; kill -USR2 $PPID; sleep 30")

    assert end_processes(options(outcome.command)["spark.openlineage.applicationRunId"], 1) == 1
    assert RUNS_ON in set_aside(outcome)


def test_process_that_begins_after_the_end_of_a_command_is_counted(bench: Any) -> None:
    outcome = bench.run(bash_command="spark-submit one.py; (sleep 0.5; sleep 20 &) >/dev/null 2>&1 &")

    assert end_processes(options(outcome.command)["spark.openlineage.applicationRunId"], 1) == 1
    assert RUNS_ON in set_aside(outcome)


def test_code_that_skips_the_task_skips_it_and_is_no_failure(bench: Any) -> None:
    outcome = bench.run(bash_command="spark-submit one.py; exit 99")

    assert outcome.error is not None
    assert "AirflowSkipException" in outcome.error
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "COMPLETE"


@pytest.mark.parametrize(
    "command", ["spark-submit --deploy-mode cluster one.py", "spark-submit --deploy-mode=cluster one.py", "sh {file}"]
)
def test_command_for_a_cluster_gets_nothing(bench: Any, command: str) -> None:
    file = bench.root / "submit.sh"
    file.write_text("spark-submit --conf spark.submit.deployMode=cluster one.py")
    outcome = bench.run(bash_command=command.format(file=file))

    assert outcome.error is None, outcome.printed
    assert "SPARK_SUBMIT_OPTS" not in outcome.command["env"]
    assert "the command submits to a cluster" in outcome.printed


def test_comment_of_a_command_sets_nothing(bench: Any) -> None:
    command = "# not --deploy-mode cluster\nspark-submit one.py # --conf spark.eventLog.enabled=false"
    assert options(bench.run(bash_command=command).command)["spark.eventLog.enabled"] == "tRuE"


def test_value_with_quotes_and_spaces_is_one_option() -> None:
    assert shlex.split(_option("spark.a", 'b "c" \\d')) == ['-Dspark.a=b "c" \\d']


def test_task_has_lineage_where_it_is_asked_for_and_not_by_the_policy() -> None:
    asked, ruled = (BashOperator(task_id=name, bash_command="spark-submit one.py") for name in ("asked", "ruled"))
    task_policy(ruled)

    assert type(ruled) is BashOperator
    assert isinstance(with_lineage(asked), LineageBashOperator)
    assert asked.on_kill.__func__ is LineageBashOperator.on_kill


def test_mapped_task_that_runs_is_asked_for_its_lineage_by_the_provider() -> None:
    with DAG("orders", schedule=None):
        mapped = with_lineage(BashOperator.partial(task_id="asked").expand(bash_command=["spark-submit one.py"]))
    task = mapped.unmap({"bash_command": "spark-submit one.py"})
    rendered: list[Any] = []
    task._do_render_template_fields(task, ("bash_command",), {"ti": rendered}, task.get_template_env(), set())

    assert ExtractorManager().get_extractor_class(task) is DefaultExtractor


def test_task_that_runs_is_asked_for_its_lineage_by_the_provider() -> None:
    """The provider has an extractor for the name of the stock operator, which the task keeps."""
    task = with_lineage(BashOperator(task_id="asked", bash_command="spark-submit one.py"))
    assert task.task_type == "BashOperator"
    task.render_template_fields({"ti": object()})

    assert ExtractorManager().get_extractor_class(task) is DefaultExtractor
