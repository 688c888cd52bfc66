"""Declarative pipelines on a real Spark Connect server: their flows are one job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connect_server import connect_server
from real_spark import environment

from spark_lineage.adapters.processes import processes_of

if TYPE_CHECKING:
    from laboratory import Outcome
    from real_spark import RealSpark

pytestmark = [pytest.mark.spark, pytest.mark.truth]
SPEC = """
name: shop
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""
VIEWS = {
    "doubled": "SELECT id, amount * 2 AS doubled FROM json.`{folder}/orders`",
    "totals": "SELECT sum(doubled) AS total FROM doubled",
}

FINITE = "SELECT count(*) AS n FROM range(0, 1000000000, 1, 1) r WHERE r.id % 7 = rand()"


@pytest.fixture
def run(real_spark: RealSpark, tmp_path: Path) -> Any:
    """Run a pipeline of some views on a server."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "part.json").write_text('{"id": 1, "amount": 20}')
    project = tmp_path / "project"
    bench = real_spark.bench
    bench.operator, bench.application = "lineage_spark_pipelines:LineageSparkPipelinesOperator", {}
    with connect_server(environment(real_spark.fast), tmp_path / "server") as url:
        host, _, port = url.removeprefix("sc://").partition(":")
        connection = {"conn_type": "spark_connect", "host": host, "port": int(port)}
        bench.env |= {"AIRFLOW_CONN_CONNECT": json.dumps(connection), "SERVER": url}

        def run(**views: str) -> Outcome:
            write(project, views, tmp_path)
            return real_spark.execute(conn_id="connect", pipeline_spec=str(project / "spark-pipeline.yml"))

        yield run


def write(project: Path, views: Mapping[str, str], folder: Path) -> None:
    """Write a pipeline of some views."""
    (project / "transformations").mkdir(parents=True)
    (project / "spark-pipeline.yml").write_text(SPEC.format(storage=(project / "storage").as_uri()))
    for name, query in views.items():
        text = f"CREATE MATERIALIZED VIEW {name} AS {query.format(folder=folder)};"
        (project / "transformations" / f"{name}.sql").write_text(text)


def state(outcome: Outcome) -> Any:
    assert outcome.lineage is not None, outcome.printed
    return outcome.lineage["run_facets"]["sparkLineage_status"]["state"]


def last(names: list[str]) -> list[str]:
    return sorted(Path(name).name for name in names)


def test_views_of_a_pipeline_are_the_outputs_of_one_job(run: Callable[..., Outcome]) -> None:
    outcome = run(**VIEWS)

    assert outcome.error is None, outcome.printed
    assert state(outcome) == "COMPLETE"
    # Spark logs the refresh of a view as an append, so that it may have had rows before.
    assert last(outcome.names("inputs")) == ["doubled", "orders"]
    assert last(outcome.names("outputs")) == ["doubled", "totals"]
    assert outcome.lineage is not None
    fields = {
        Path(one["name"]).name: {
            name: {(Path(each["name"]).name, each["field"]) for each in field["inputFields"]}
            for name, field in one["facets"]["columnLineage"]["fields"].items()
        }
        for one in outcome.lineage["outputs"]
    }
    assert ("orders", "amount") in fields["doubled"]["doubled"]


def test_view_that_fails_leaves_those_that_were_finished(run: Callable[..., Outcome]) -> None:
    outcome = run(doubled=VIEWS["doubled"], broken="SELECT raise_error('no') AS x FROM doubled")

    assert outcome.error is not None
    assert state(outcome) == "FAIL"
    assert last(outcome.names("outputs")) == ["doubled"]


def test_pipeline_that_is_killed_leaves_the_flows_of_others_on_its_server(
    run: Callable[..., Outcome], real_spark: RealSpark, tmp_path: Path
) -> None:
    others: list[str] = []

    def kill() -> None:
        while not list(tmp_path.glob("server/warehouse/doubled/_SUCCESS")):
            time.sleep(0.1)
        # Spark runs this flow in the thread of the first one, which has the tag of the operation of the killed session.
        write(tmp_path / "other", {"slow": FINITE}, tmp_path)
        command = [sys.executable, "-u", "-m", "pyspark.pipelines.cli", "run", "--spec"]
        env = {**environment(real_spark.fast), "SPARK_REMOTE": real_spark.bench.env["SERVER"]}
        with subprocess.Popen(
            [*command, str(tmp_path / "other" / "spark-pipeline.yml")], env=env, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None
            for line in other.stdout:
                is_first = not any("slow is RUNNING" in one for one in others)
                others.append(line)
                # Spark runs a flow that was cancelled again.
                if is_first and "slow is RUNNING" in line:
                    time.sleep(1)
                    mark = json.loads(next(tmp_path.glob("lineage/**/launch.json")).read_text())["application_run_id"]
                    os.kill(processes_of(mark)[0].ppid(), signal.SIGUSR1)

    killing = threading.Thread(target=kill, daemon=True)
    killing.start()
    # Of one task, which leaves the server a core.
    endless = "SELECT count(*) AS n FROM range(0, 10000000000000, 1, 1) r CROSS JOIN doubled WHERE r.id % 7 = rand()"
    outcome = run(doubled=VIEWS["doubled"], endless=endless)
    killing.join(200)

    assert state(outcome) == "ABORT", outcome.printed
    assert last(outcome.names("outputs")) == ["doubled"]
    assert "Run is COMPLETED." in others[-1]
    assert not [line for line in others if "FAILED" in line]
