"""What Spark's event log alone tells of each kind of source: nothing that is wrong, and the figures of the docs."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from spark_lineage.launch.directory import EVENTS_FILE
from spark_lineage.merge.accounting import OF_PROGRAM
from spark_lineage.merge.conclusion import EndFacts, conclude
from spark_lineage.merge.log_alone import lacking_in_log
from spark_lineage.merge.state import with_contents
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector

pytestmark = pytest.mark.shares("recordings")

# Tests are no package, and the tool is a program: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
measure = importlib.import_module("measure")
truth_file = importlib.import_module("truth_file")

DOCS = Path(__file__).parents[2] / "docs" / "handbook" / "evidence.md"
# Of each job its last release: Iceberg and Hudi have none for Spark 4.2.
LAST = {job: version for version, job in measure.recordings()}
_PACKAGES = {
    "delta": "Delta",
    "iceberg": "Iceberg",
    "hudi": "Hudi",
    "h2": "JDBC",
    "postgresql": "JDBC",
    "kafka": "Kafka",
}
_NAMES = {"rdd": "RDDs", "ml": "RDDs", "stream": "streams", "fail": "programs that fail"}
_MEASURES = ("inputs", "outputs", "direct", "indirect", "catalog")
# The log hides what happened to their columns, and counts it: of a renamed column of Iceberg the plan has the class of
# the change alone.
# It does not have the branch or the snapshot that a task writes, so that what is read of another one is taken for the
# task's own; it counts that it was read in more versions than the task made.
_WRONG = {
    *(("iceberg_grown_table", "direct"), ("iceberg_tables", "direct"), ("iceberg_renamed_and_copied", "direct")),
    # A table that it makes in one of two catalogs, which the log does not tell apart, and reads; the write of a
    # JDBC catalog, whose table is read.
    *(("iceberg_renamed_and_copied", "inputs"), ("jdbc_catalog_appended", "inputs")),
    ("jdbc_catalog_appended", "direct"),
    *(("iceberg_branch_and_main", "direct"), ("iceberg_branch_and_main", "indirect")),
    *(("iceberg_older_after_append", "direct"), ("iceberg_older_after_append", "indirect")),
    ("iceberg_states_of_a_task", "direct"),
}


def kind_of(job: str) -> str:
    """Return the kind of source that a job is about."""
    packages = truth_file.read_truth(job).packages
    if packages:
        return _PACKAGES[packages[0]]
    return _NAMES.get(job.split("_", maxsplit=1)[0].removesuffix("s"), "files and tables of Spark and Hive")


@pytest.fixture(scope="module")
def scores() -> Mapping[str, Any]:
    """The scores of each job."""
    return {job: measure.recorded_scores(job, version, "event_log") for job, version in LAST.items()}


@pytest.mark.parametrize("job", LAST)
def test_the_event_log_alone_tells_nothing_that_is_wrong(scores: Mapping[str, Any], job: str) -> None:
    wrong = {name for name in (*_MEASURES, "attempted", "state") if scores[job][name].too_much}
    assert wrong == {measure for each, measure in _WRONG if each == job}, measure.report(job, scores[job])


def test_the_docs_have_the_figures(scores: Mapping[str, Any]) -> None:
    lines = [
        f"| | programs | {' | '.join(_MEASURES)} |",
        f"|---|{'---|' * (len(_MEASURES) + 1)}",
    ]
    kinds: dict[str, list[str]] = {}
    for job in LAST:
        kinds.setdefault(kind_of(job), []).append(job)
    for kind, found in [*sorted(kinds.items()), ("all", list(LAST))]:
        sums = [reduce(add, (scores[job][name] for job in found)) for name in _MEASURES]
        cells = [f"{one.recall:.0%}" if one.right or one.missing else "" for one in sums]
        lines.append(f"| {kind} | {len(found)} | {' | '.join(cells)} |")
    table = "\n".join(lines)
    assert table in DOCS.read_text(), f"copy this table:\n{table}"


def _unmeasured(content: Any) -> Any:
    """Return the content of a run without numbers, of which most recorded logs lack the lines."""
    return structs.replace(
        content,
        **{
            side: tuple(structs.replace(one, statistics=None) for one in getattr(content, side))
            for side in ("inputs", "outputs")
        },
    )


def _lacking(version: str, job: str) -> str:
    """Return what the log of a recorded program is found to lack."""
    application = measure.merged_recording(job, version)[0]
    collector = Collector()
    collector.read_event_log(application.home / "eventlog")
    with (application.home / "lineage" / EVENTS_FILE).open("rb") as stream:
        collector.read(stream, source="")
    state = collector.state
    state.runs = with_contents(state.runs, _unmeasured)
    for key, one in state.executions.items():
        state.executions[key] = _unmeasured(one)
    return lacking_in_log(state, task_lineage(state, conclude(EndFacts(exit_code=application.exit_code))))


def test_a_log_that_is_found_to_be_enough_is_right_and_counts_nothing() -> None:
    enough = {(version, job) for version, job in measure.recordings() if not _lacking(version, job)}
    assert len(enough) > 0.6 * len(list(measure.recordings()))
    for version, job in sorted(enough):
        scores = measure.recorded_scores(job, version, "event_log")
        assert {name for name in scores if name != "rows" and not scores[name].is_perfect} == set(), (version, job)
        facets = measure.merged_recording(job, version, "event_log")[1]["run"]["facets"]
        parts = {each["name"] for each in facets.get("sparkLineage_unreadPlans", {}).get("parts", ())}
        assert parts <= {OF_PROGRAM.name}, (version, job)
        assert "sparkLineage_unknownDatasets" not in facets, (version, job)


@pytest.mark.parametrize("reported", [0, 1])
def test_application_without_events_beside_one_with_events_is_read_from_its_log(reported: int, tmp_path: Path) -> None:
    job = "two_contexts_in_a_row"
    recorded = measure.merged_recording(job, LAST[job])[0]
    shutil.copytree(recorded.home, tmp_path, dirs_exist_ok=True)
    events = tmp_path / "lineage" / EVENTS_FILE
    lines = events.read_bytes().splitlines(keepends=True)
    second = [number for number, line in enumerate(lines) if b'"jobType":"APPLICATION"' in line and b"START" in line][1]
    events.write_bytes(b"".join((lines[:second], lines[second:])[reported]))
    event = replace(recorded, home=tmp_path).merged()
    scores = measure.compare(truth_file.read_truth(job), [event], recorded.work)
    # A recording has no numbers of Spark tasks.
    wrong = {name for name, score in scores.items() if not score.is_perfect}
    assert wrong <= {"rows"}, measure.report(job, scores)
    assert len(event["run"]["facets"]["sparkLineage_application"]["applications"]) == 2
