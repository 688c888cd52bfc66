"""Real runs of real DAGs: every try and every DAG run has one START and one end, whatever is killed meanwhile.

The events are seen as Marquez shows them, by the model of ``lineage_backends.marquez_pages``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from lineage_backends.connections import to_marquez
from lineage_backends.http_backend import openlineage_backend
from lineage_backends.marquez_pages import RUNNING
from live_airflow import ENDED, LiveAirflow, Ran, live_airflow, whole

if TYPE_CHECKING:
    from pathlib import Path

    from fast_spark import FastSpark

TRANSPORT = {"type": "spark_lineage.deliver.connection_transport.ConnectionTransport", "conn_id": "marquez"}
DAGS = ("ends", "stopped", "killed_worker", "killed_scheduler")
# The ends of each run of each job, in any order.
ENDS = {
    "ends": ["FAIL"],
    "ends.failure": ["FAIL"],
    "ends.retried": ["COMPLETE", "FAIL"],
    "ends.deferred": ["COMPLETE"],
    "ends.stream": ["COMPLETE"],
    "ends.mapped": ["COMPLETE", "COMPLETE"],
    "stopped": ["FAIL"],
    "stopped.by_hand": ["ABORT"],
    "stopped.timed_out": ["ABORT"],
    "killed_worker": ["FAIL"],
    "killed_worker.lost": ["FAIL"],
    "killed_scheduler": ["COMPLETE"],
    "killed_scheduler.slow": ["COMPLETE"],
    "killed_scheduler.after": ["COMPLETE"],
}
# By task what it read and what it wrote: one has real Spark, the others what real drivers have left.
EDGES = {
    "failure": ({"/data/lab/data/orders.csv"}, {"/data/lab/out/g_ok_pyexc"}),
    "retried": ({"/data/lab/data/orders.csv", "/data/lab/data/cust.csv"}, {"/data/lab/out/a_parquet"}),
    "deferred": ({"{live}/texts"}, {"{live}/out/deferred"}),
    "stream": ({"/data/lab/data/stream_in"}, {"/data/lab/out/e_batch"}),
}
HEALTHY = {"deferred", "stream", "mapped", "slow", "after"}

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.truth]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, fast_spark: FastSpark, airflow_database: Path) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("live")
    with openlineage_backend() as backend:
        settings = {
            "AIRFLOW_CONN_MARQUEZ": to_marquez(backend),
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(TRANSPORT),
            "KILL_AT_THE_END_OF": "killed_scheduler",
        }
        with live_airflow(folder, settings, fast_spark, airflow_database) as airflow:
            ran = Ran(airflow, backend)
            airflow.airflow.wait_for_dags(*DAGS)
            airflow.airflow.start("triggerer")
            airflow.trigger(*reversed(DAGS))
            airflow.schedule()
            kill_a_scheduler_that_has_tasks(airflow)
            airflow.wait_for_driver("lost")
            left = airflow.kill_worker("killed_worker", "lost")
            assert left, "the driver should be left behind"
            airflow.wait_for_driver("by_hand")
            airflow.mark_failed("stopped", "by_hand")
            airflow.wait_for_driver("stream")
            airflow.release("stream")
            # A scheduler that is killed has lost what it had not begun to send.
            others = whole({job: ends for job, ends in ENDS.items() if not job.startswith("killed_scheduler")})
            airflow.wait_for("the ends of the others", lambda: others.items() <= ran.runs().items())
            kill_a_scheduler_within_the_end_of_a_run(ran)
            kill_a_scheduler_after_the_end_of_a_run(airflow)
            airflow.wait_for("all ends", lambda: all(airflow.run_state(each) in ENDED for each in DAGS))
            ran.settle(ENDS)
            yield ran


def kill_a_scheduler_that_has_tasks(airflow: LiveAirflow) -> None:
    airflow.wait_for_driver("slow")
    airflow.kill_scheduler()
    airflow.schedule()


def kill_a_scheduler_within_the_end_of_a_run(ran: Ran) -> None:
    airflow = ran.airflow
    airflow.release("slow")
    airflow.wait_for("its end", lambda: ["START", "COMPLETE"] in ran.runs().get("killed_scheduler", []))
    (airflow.live / "end_is_sent").touch()
    airflow.wait_for_scheduler_to_die()
    assert airflow.run_state("killed_scheduler") == "running", "its end was sent, and not stored"
    airflow.schedule()


def kill_a_scheduler_after_the_end_of_a_run(airflow: LiveAirflow) -> None:
    airflow.wait_for("the end", lambda: airflow.run_state("ends") in ENDED)
    airflow.kill_scheduler()
    airflow.schedule()


@pytest.mark.parametrize("job", ENDS)
def test_each_run_has_one_start_and_then_its_one_true_end(ran: Ran, job: str) -> None:
    assert ran.runs().get(job) == whole(ENDS)[job]


def test_there_are_no_other_jobs(ran: Ran) -> None:
    assert set(ran.runs()) == set(ENDS)


def test_nothing_is_refused(ran: Ran) -> None:
    assert [(each.reason, each.event) for each in ran.backend.refused] == []


def test_nothing_runs_for_ever(ran: Ran) -> None:
    runs = ran.backend.pages.runs.values()
    assert [run for run in runs if run.state == RUNNING] == []


def test_stream_is_a_stream(ran: Ran) -> None:
    page = ran.backend.pages.jobs["live", "ends.stream"]
    assert page.type == "STREAM"


@pytest.mark.parametrize("task", EDGES)
def test_graph_joins_the_task_to_what_it_read_and_wrote(ran: Ran, task: str) -> None:
    page, (inputs, outputs) = ran.backend.pages.jobs["live", f"ends.{task}"], EDGES[task]
    live = ran.airflow.live
    assert page.edges("inputs") == {("file", name.format(live=live)) for name in inputs}
    assert page.edges("outputs") == {("file", name.format(live=live)) for name in outputs}


def test_logs_of_healthy_tasks_warn_only_of_what_the_listener_lost(ran: Ran) -> None:
    warnings = [(place, text) for place, _, text in ran.airflow.warnings() if place.split("/")[1] in HEALTHY]
    # The listener does not name the directory to which the stream of this recording writes.
    assert [(place, text.partition(". See")[0]) for place, text in warnings] == [
        ("ends/stream/-1/1", "The lineage is not complete: job_e.filter (3 times)")
    ]


def test_nothing_waits_in_the_outboxes(ran: Ran) -> None:
    assert ran.airflow.waiting() == []


def test_both_sides_are_apart(ran: Ran) -> None:
    server, worker = ran.airflow.airflow.home, ran.airflow.disk
    assert sorted(worker.glob("spark_lineage/ends/*/deferred/*/*")), "the worker has its lineage"
    assert sorted(server.glob("spark_lineage/ends/*/deferred/*/*")) == []
