"""The job on an archive of 100,000 events, with all that makes one hard: for each task the event of the merge."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from generate import Shares, generate

from spark_lineage.archive.job import merge_archive
from spark_lineage.archive.rows import TABLES
from spark_lineage.archive.tables import read_table
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES, merged_event
from spark_lineage.launch.line import LineDecoder, LineError, LineSplitter
from spark_lineage.merge.state import application_run_id
from spark_lineage.merge.task import identity_of, kept_lineage
from spark_lineage.submission.collector import Collector
from spark_lineage.submission.lineage_files import application_of_launch, chunks, is_lineage_file, is_status_file

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.shares("spark"), pytest.mark.truth]

SHARES = Shares(failed=0.1, torn=0.002, orphans=0.05, several=0.1, central=0.2, gzip=0.1, zstd=0.1)


def merged_by_hand(home: Path) -> tuple[dict[str, bytes], int]:
    """What the merge gives for the lines of each task, told apart one by one; and how many lines are no events."""
    decode = LineDecoder().decode
    told: dict[str, list[tuple[bytes, str]]] = defaultdict(list)
    parents: dict[str, str] = {}
    set_aside = 0
    for path in sorted(path for path in home.rglob("*") if is_lineage_file(path.name)):
        splitter = LineSplitter()
        with path.open("rb") as stream:
            lines = [line for chunk in chunks(stream, path.name) for line in splitter.feed(chunk)] + splitter.finish()
        for line in lines:
            assert isinstance(line, bytes)
            if is_status_file(path.name):
                told[application_of_launch(str(path)) or ""].append((line, str(path)))
                continue
            try:
                event = decode(line)[0]
            except LineError:
                set_aside += 1
                continue
            application = application_run_id(event)
            told[application].append((line, str(path)))
            facets = event.run.facets
            if event.run.runId == application and facets is not None and facets.parent is not None:
                parents[application] = facets.parent.run.runId
    tasks: dict[str, Collector] = defaultdict(Collector)
    for application, lines_of_application in told.items():
        for line, source in lines_of_application:
            tasks[parents.get(application, application)].add([line], source=source, is_status=is_status_file(source))
    events = {}
    for run_id, collector in tasks.items():
        lineage = kept_lineage(collector.state)
        events[run_id] = merged_event(lineage, identity_of(lineage, collector.state), DEFAULT_LIMIT_BYTES).content
    return events, set_aside


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_each_task_has_the_event_of_the_merge(spark: SparkSession, tmp_path: Path, count: int) -> None:
    home, out = tmp_path / "archive", tmp_path / "out"
    made = generate(home, count, seed=7, shares=SHARES)
    summary = merge_archive(spark, [str(home)], str(out))
    expected, set_aside = merged_by_hand(home)
    found = {
        json.loads(line)["run"]["runId"]: line
        for path in (out / "events").glob("version=*/day=*/part-*")
        for line in path.read_bytes().splitlines()
    }
    assert found == expected
    assert summary.files == sum(1 for path in home.rglob("*") if is_lineage_file(path.name)) > made.files
    assert sum(summary.set_aside.values()) == set_aside > 0
    assert summary.tasks == len(expected) > count / 100

    # The tables are the same events, laid flat.
    documents = [json.loads(line) for line in expected.values()]
    tables = {name: read_table(spark, str(out), name) for name in TABLES}
    assert tables["runs"].count() == len(documents)
    assert tables["run_inputs"].count() == sum(len(one["inputs"]) for one in documents)
    assert tables["run_outputs"].count() == sum(len(one["outputs"]) for one in documents)
    failed = {row.run_id for row in tables["runs"].where("event_type = 'FAIL'").select("run_id").collect()}
    assert failed == {one["run"]["runId"] for one in documents if one["eventType"] == "FAIL"} != set()
    edges = sum(
        len(entry.get("inputs", ()))
        for one in documents
        for entry in one["job"]["facets"].get("lineage", {}).get("entries", ())
    )
    assert tables["dataset_edges"].count() == edges > 0
