"""Functions of a ``PySparkOperator``, whose driver is a child of the task: what they read and wrote, and their end."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from lost_worker import recovered

if TYPE_CHECKING:
    from laboratory import Outcome
    from real_spark import RealSpark

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.fixture
def run(real_spark: RealSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run a function with orders in JSON."""
    bench = real_spark.bench
    bench.operator, bench.application = "lineage_spark_pyspark:LineagePySparkOperator", {}
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "part.json").write_text('{"id": 1, "amount": 20}')

    def run(function: str, config: dict[str, Any] | None = None, **arguments: Any) -> Outcome:
        return real_spark.execute(
            python_callable=f"{Path(__file__).parent / 'programs' / 'pyspark_functions.py'}:{function}",
            op_kwargs={"folder": str(tmp_path), "spark": None},
            config_kwargs={"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", **(config or {})},
            **arguments,
        )

    return run


def state(outcome: Outcome) -> Any:
    assert outcome.lineage is not None, outcome.printed
    return outcome.lineage["run_facets"]["sparkLineage_status"]["state"]


def test_function_has_its_inputs_outputs_and_columns(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run("doubled")

    assert outcome.error is None, outcome.printed
    assert outcome.last["returned"] == 1
    assert state(outcome) == "COMPLETE"
    assert outcome.names("inputs") == [str(tmp_path / "orders")]
    assert outcome.names("outputs") == [str(tmp_path / "doubled")]
    assert outcome.lineage is not None
    (output,) = outcome.lineage["outputs"]
    fields = output["facets"]["columnLineage"]["fields"]
    assert {name: [one["field"] for one in field["inputFields"]] for name, field in fields.items()} == {
        "id": ["id"],
        "doubled": ["amount"],
    }
    assert outcome.last["driver"]["application_id"].startswith("local-")


def test_function_that_fails_keeps_what_it_had_written_and_shows_no_secret(run: Callable[..., Outcome]) -> None:
    outcome = run("half_done")

    assert outcome.error is not None
    assert outcome.error.startswith("ValueError: no more: password=***"), outcome.error
    assert state(outcome) == "FAIL"
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]
    assert "hunter2" not in json.dumps(outcome.lineage)
    assert "no more: password=***" in outcome.lineage["run_facets"]["sparkLineage_status"]["error"]  # type: ignore[index]


def test_function_declares_what_no_plan_shows(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run("declared")

    assert outcome.error is None, outcome.printed
    assert sorted(outcome.names("inputs")) == [str(tmp_path / "orders"), str(tmp_path / "thresholds")]
    assert sorted(outcome.names("outputs")) == [str(tmp_path / "doubled"), "alerts"]


def test_function_that_is_killed_leaves_no_driver(
    run: Callable[..., Outcome], real_spark: RealSpark, tmp_path: Path
) -> None:
    drivers: list[psutil.Process] = []

    def note() -> None:
        drivers.extend(psutil.Process(int((tmp_path / "written").read_text())).children(recursive=True))

    with real_spark.bench.laboratory.killing(tmp_path / "written", note):
        outcome = run("endless")

    assert state(outcome) == "ABORT", outcome.printed
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]
    assert drivers
    alive = [one.cmdline() for one in drivers if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert not alive


@pytest.mark.parametrize(("function", "attempted"), [("asleep", []), ("endless", ["never"]), ("collecting", [])])
def test_function_whose_time_is_over_writes_no_more(
    run: Callable[..., Outcome], real_spark: RealSpark, tmp_path: Path, function: str, attempted: list[str]
) -> None:
    """Stopping the session waits for the call of the JVM that was interrupted."""
    with real_spark.bench.laboratory.killing(tmp_path / "written", number=signal.SIGALRM):
        outcome = run(function)

    assert state(outcome) == "ABORT", outcome.printed
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]
    assert [Path(name).name for name in outcome.attempted()] == attempted


@pytest.mark.parametrize("function", ["cleaning", "cleaning_call"])
def test_function_whose_time_is_over_cleans_up_with_its_session(
    run: Callable[..., Outcome], real_spark: RealSpark, tmp_path: Path, function: str
) -> None:
    with real_spark.bench.laboratory.killing(tmp_path / "written", number=signal.SIGALRM):
        outcome = run(function)

    assert outcome.error is not None
    assert outcome.error.startswith("AirflowTaskTimeout"), outcome.printed
    assert state(outcome) == "ABORT", outcome.printed
    assert sorted(Path(name).name for name in outcome.names("outputs")) == ["cleaned", "doubled"]


def test_function_that_catches_the_end_of_its_time_goes_on_with_its_session(
    run: Callable[..., Outcome], real_spark: RealSpark, tmp_path: Path
) -> None:
    with real_spark.bench.laboratory.killing(tmp_path / "written", number=signal.SIGALRM):
        outcome = run("going_on")

    assert outcome.error is None, outcome.printed
    assert outcome.last["returned"] == "done"
    assert state(outcome) == "COMPLETE", outcome.printed
    assert sorted(Path(name).name for name in outcome.names("outputs")) == ["doubled", "next"]


def test_properties_of_the_user_win(run: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    logging = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(tmp_path / "own")}
    outcome = run("doubled", config={**logging, "spark.openlineage.namespace": "own", "spark.app.name": "mine"})

    assert outcome.error is None, outcome.printed
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]
    assert list((tmp_path / "own").iterdir())


def test_function_without_lineage_is_that_of_the_stock_operator(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run("doubled", lineage_enabled=False)

    assert outcome.error is None, outcome.printed
    assert outcome.last["returned"] == 1
    assert outcome.lineage is None
    assert not list(tmp_path.glob("lineage/**/*.ndjson"))
    assert not list(tmp_path.glob("lineage/**/launch.json"))


@pytest.mark.parametrize(
    "stock",
    [
        "airflow.providers.apache.spark.operators.spark_pyspark:PySparkOperator",
        "airflow.providers.apache.spark.decorators.pyspark:_PySparkDecoratedOperator",
    ],
)
def test_functions_of_an_installation_have_lineage_by_the_policy(
    real_spark: RealSpark, run: Callable[..., Outcome], stock: str
) -> None:
    real_spark.bench.operator, real_spark.bench.is_by_policy = stock, True
    outcome = run("doubled")

    assert outcome.error is None, outcome.printed
    assert outcome.last["returned"] == 1
    assert state(outcome) == "COMPLETE"
    assert [Path(name).name for name in outcome.names("outputs")] == ["doubled"]


def test_function_whose_worker_is_lost_is_recovered_from_the_log(
    real_spark: RealSpark, run: Callable[..., Outcome]
) -> None:
    end = recovered(real_spark.bench, lambda: run("lost"))

    assert end.lineage.state == "FAIL"
    assert [Path(one.dataset.name).name for one in end.lineage.inputs] == ["orders"]
    assert [Path(one.dataset.name).name for one in end.lineage.outputs] == ["doubled"]


def test_two_functions_of_one_process_share_a_jvm(run: Callable[..., Outcome]) -> None:
    outcome = run("again", executions=2)

    for one in outcome.executions:
        assert not one["errors"], outcome.printed
        assert [Path(output["name"]).name for output in one["lineage"]["outputs"]] == ["doubled"]


def test_stream_of_a_function_has_its_sink(run: Callable[..., Outcome]) -> None:
    outcome = run("streamed")

    assert outcome.error is None, outcome.printed
    assert [Path(name).name for name in outcome.names("inputs")] == ["orders"]
    assert [Path(name).name for name in outcome.names("outputs")] == ["streamed"]
