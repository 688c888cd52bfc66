"""Commands of a ``BashOperator`` that run a real ``spark-submit``: one job of all that they submit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from spark_lineage.adapters.processes import processes_of

if TYPE_CHECKING:
    from laboratory import Outcome
    from real_spark import RealSpark

pytestmark = [pytest.mark.spark, pytest.mark.truth]
PROGRAM = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
source, target, end = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
rows = spark.read.load(source, format="json" if source.endswith("orders") else "parquet")
rows.selectExpr("id", "amount * 2 AS amount").write.parquet(target)
own = [spark.conf.get(key, "") for key in ("spark.users.own", "spark.sql.shuffle.partitions")]
Path(target + ".conf").write_text("".join(own))
if end == "fail":
    raise ValueError("no more")
if end == "wait":
    time.sleep(100)
"""


@pytest.fixture
def run(real_spark: RealSpark, tmp_path: Path) -> Callable[..., Outcome]:
    """Run a command, in which ``{double}`` submits the program."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "part.json").write_text('{"id": 1, "amount": 20}')
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.users.own kept\nspark.ui.enabled false\n")
    bench = real_spark.bench
    bench.operator, bench.application = "lineage_bash:LineageBashOperator", {}
    bench.env["SPARK_CONF_DIR"] = str(tmp_path / "conf")
    double = f"spark-submit --master 'local[1]' --conf spark.sql.shuffle.partitions=3 {tmp_path}/program.py"

    def run(command: str, **arguments: Any) -> Outcome:
        return real_spark.execute(bash_command=command.format(double=double, folder=tmp_path), **arguments)

    return run


def state(outcome: Outcome) -> Any:
    assert outcome.lineage is not None, outcome.printed
    return outcome.lineage["run_facets"]["sparkLineage_status"]["state"]


def test_applications_of_a_command_are_one_job_and_keep_the_users_settings(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    command = "set -e\n{double} {folder}/orders {folder}/one end\n{double} {folder}/one {folder}/two end\necho all done"
    outcome = run(command, env={"OWN": "value"}, append_env=True)

    assert outcome.error is None, outcome.printed
    assert outcome.last["returned"] == "all done"
    assert state(outcome) == "COMPLETE"
    assert outcome.names("inputs") == [str(tmp_path / "orders")]
    assert sorted(outcome.names("outputs")) == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert (tmp_path / "two.conf").read_text() == "kept3"


def test_command_that_fails_keeps_what_it_had_written(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run("{double} {folder}/orders {folder}/one fail")

    assert outcome.error is not None
    assert "non-zero exit code 1" in outcome.error
    assert state(outcome) == "FAIL"
    assert outcome.names("outputs") == [str(tmp_path / "one")]
    assert outcome.lineage is not None
    assert "ValueError: no more" in outcome.lineage["run_facets"]["sparkLineage_status"]["error"]


def test_command_that_is_killed_leaves_no_driver(
    run: Callable[..., Outcome], real_spark: RealSpark, tmp_path: Path
) -> None:
    left: list[psutil.Process] = []

    def note() -> None:
        (launch,) = (tmp_path / "lineage").glob("**/launch.json")
        left.extend(processes_of(json.loads(launch.read_text())["application_run_id"]))

    with real_spark.bench.laboratory.killing(tmp_path / "one.conf", note):
        outcome = run("{double} {folder}/orders {folder}/one wait")

    assert state(outcome) == "ABORT", outcome.printed
    assert outcome.names("outputs") == [str(tmp_path / "one")]
    assert left
    (launch,) = (tmp_path / "lineage").glob("**/launch.json")
    assert not processes_of(json.loads(launch.read_text())["application_run_id"])


def test_program_that_starts_after_the_task_has_ended_runs_as_without_lineage(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    """Its event log was to go into the directory of the launch, which Spark would not make."""
    later = (
        "(cd {folder}; until test -e ended; do sleep 0.1; done; {double} {folder}/one {folder}/two end; echo $? >code)"
    )
    outcome = run(f"{{double}} {{folder}}/orders {{folder}}/one end\n{later} >{{folder}}/later.log 2>&1 &")
    (tmp_path / "ended").touch()
    (launch,) = (tmp_path / "lineage").glob("**/launch.json")
    psutil.wait_procs(processes_of(json.loads(launch.read_text())["application_run_id"]), 60)

    assert (tmp_path / "code").read_text() == "0\n", (tmp_path / "later.log").read_text()
    assert outcome.error is None, outcome.printed
    assert outcome.names("outputs") == [str(tmp_path / "one")]
    assert outcome.lineage is not None
    (why,) = outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"]
    assert why == "no event log is read: a process that the command left in the background runs on"


def test_programs_that_log_into_directories_of_their_own_are_one_job(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    """No line names them: the drivers print warnings alone."""
    for name in ("default_log", "one_log", "two_log"):
        (tmp_path / name).mkdir()
    console = "appender.console.type = Console\nappender.console.name = console\n"
    level = "rootLogger.level = warn\nrootLogger.appenderRef.console.ref = console\n"
    (tmp_path / "conf" / "log4j2.properties").write_text(console + level)
    with (tmp_path / "conf" / "spark-defaults.conf").open("a") as defaults:
        defaults.write(f"spark.eventLog.dir {tmp_path}/default_log\n")
    own = f"spark.sql.shuffle.partitions 3\nspark.eventLog.enabled true\nspark.eventLog.dir {tmp_path}/two_log\n"
    (tmp_path / "own.conf").write_text(own)
    program = f"{tmp_path}/program.py {tmp_path}"
    outcome = run(
        f"set -e\n{{double}} {tmp_path}/orders {tmp_path}/zero end\n"
        f"spark-submit --conf spark.sql.shuffle.partitions=3 --conf spark.eventLog.dir={tmp_path}/one_log "
        f"{program}/orders {tmp_path}/one end\n"
        f"spark-submit --properties-file {tmp_path}/own.conf {program}/one {tmp_path}/two end\n"
    )

    assert outcome.error is None, outcome.printed
    assert "Logging events to" not in outcome.printed
    assert outcome.names("inputs") == [str(tmp_path / "orders")]
    assert sorted(outcome.names("outputs")) == [str(tmp_path / name) for name in ("one", "two", "zero")]


def test_command_that_submits_to_a_cluster_runs_as_it_is(run: Callable[..., Outcome]) -> None:
    outcome = run("echo --deploy-mode cluster; env | grep -c applicationRunId || true")

    assert outcome.error is None, outcome.printed
    assert outcome.last["returned"] == "0"
    assert "the command submits to a cluster; use LineageSparkSubmitOperator" in outcome.printed
