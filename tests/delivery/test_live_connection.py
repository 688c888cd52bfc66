"""The least set-up, one connection and no transport of the provider: runs of a DAG, as a backend sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from lineage_backends.connections import to_marquez
from lineage_backends.http_backend import openlineage_backend
from lineage_backends.marquez_pages import RUNNING
from live_airflow import ENDED, Ran, live_airflow, whole

if TYPE_CHECKING:
    from pathlib import Path

    from fast_spark import FastSpark

# A DAG run of which a task is cleared while it goes on is another run from then on.
ENDS = {
    "short": ["FAIL"],
    "short.well": ["COMPLETE"],
    "short.badly": ["FAIL"],
    "cleared": ["ABORT", "COMPLETE"],
    "cleared.quick": ["COMPLETE", "COMPLETE"],
    "cleared.long": ["COMPLETE"],
}

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, fast_spark: FastSpark, airflow_database: Path) -> Iterator[Ran]:
    with openlineage_backend() as backend:
        settings = {
            "AIRFLOW_CONN_MARQUEZ": to_marquez(backend),
            "AIRFLOW__SPARK_LINEAGE__LINEAGE_CONN_ID": "marquez",
        }
        with live_airflow(tmp_path_factory.mktemp("live"), settings, fast_spark, airflow_database) as airflow:
            ran = Ran(airflow, backend)
            (airflow.live / "quick").touch()
            airflow.airflow.wait_for_dags("short", "cleared")
            airflow.trigger("short", "cleared")
            airflow.schedule()
            airflow.wait_for_driver("long")
            airflow.wait_for("the first end", lambda: ran.runs().get("cleared.quick") == [["START", "COMPLETE"]])
            airflow.clear("cleared", "quick")
            airflow.wait_for("the second end", lambda: ran.runs()["cleared.quick"] == [["START", "COMPLETE"]] * 2)
            airflow.release("long")
            airflow.wait_for("the ends", lambda: {airflow.run_state(each) for each in ("short", "cleared")} <= ENDED)
            ran.settle(ENDS)
            yield ran


def test_each_run_has_one_start_and_then_its_one_true_end(ran: Ran) -> None:
    assert ran.runs() == whole(ENDS)


def test_nothing_runs_for_ever(ran: Ran) -> None:
    assert [run for run in ran.backend.pages.runs.values() if run.state == RUNNING] == []


def test_nothing_is_refused_and_nothing_waits(ran: Ran) -> None:
    assert [(each.reason, each.event) for each in ran.backend.refused] == []
    assert ran.airflow.waiting() == []


def test_log_of_a_healthy_task_has_no_warning_of_ours(ran: Ran) -> None:
    assert [each for each in ran.airflow.warnings() if each[0].startswith("short/well/")] == []
