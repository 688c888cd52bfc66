"""Each job's event is its truth: precision and recall are 1.0 on every measure.

What every job left on each Spark release is recorded, and merged again. ``make truth`` and ``make nightly`` run those
of ``jobs`` with the PySpark beside this Python; ``measure.py`` runs all jobs on all releases that are installed.
"""

from __future__ import annotations

import importlib
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.inject.properties import JarNotFoundError

pytestmark = [pytest.mark.long, pytest.mark.shares("recordings")]

# Tests are no package, and the tool is a program: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
measure = importlib.import_module("measure")

Measured = dict[str, Future[Any]]
# Each change merges the recordings of all, and runs these: a job for each kind of source, sink and end.
EACH_CHANGE = frozenset({
    "delta_stream", "fail_in_task", "fail_killed", "hive_tables", "jdbc_pushdown", "odd_paths", "rdds_into_frames",
    "save_modes", "stream_foreach_batch", "two_sessions",
})  # fmt: skip
TO_RUN = [pytest.param(job, marks=[pytest.mark.nightly] * (job not in EACH_CHANGE)) for job in measure.jobs_to_run()]


@pytest.fixture(scope="module")
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, fast_spark: Any) -> Any:
    """Every chosen job, measured two at a time."""
    home = tmp_path_factory.mktemp("truth")
    # Only the jobs that are going to be asked for; recordings need no run.
    live = test_the_event_is_the_truth.__name__
    chosen = [item.callspec.params["job"] for item in request.session.items if item.name.startswith(f"{live}[")]
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(measure.AT_ONCE) as pool:
        patch.setenv("SPARK_LINEAGE_TRUTH_LISTENER_OPTS", fast_spark.env["SPARK_SUBMIT_OPTS"])
        patch.setenv("SPARK_LINEAGE_TRUTH_PLAIN_OPTS", fast_spark.plain_env["SPARK_SUBMIT_OPTS"])
        patch.setenv("XDG_CACHE_HOME", str(fast_spark.caches))
        version = measure.own_version()
        yield {job: pool.submit(measure.measure, job, version, home / job) for job in chosen}
        pool.shutdown(cancel_futures=True)


@pytest.mark.oldest
@pytest.mark.parametrize(("version", "job"), measure.recordings())
def test_the_event_of_a_recording_is_the_truth(version: str, job: str) -> None:
    scores = measure.recorded_scores(job, version)
    assert all(score.is_perfect for score in scores.values()), measure.report(job, scores)


@pytest.mark.truth
@pytest.mark.spark
@pytest.mark.parametrize("job", TO_RUN)
def test_the_event_is_the_truth(measured: Measured, job: str) -> None:
    try:
        _, scores = measured[job].result()
    except JarNotFoundError as error:
        pytest.skip(str(error))
    assert all(score.is_perfect for score in scores.values()), measure.report(job, scores)
