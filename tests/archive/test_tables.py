"""Tables as a reader finds them, after one run and after several; in every format."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from archive_bench import corpus_events, document, documents, merged_event

from spark_lineage.archive.destination import ArchiveError, Current, Destination
from spark_lineage.archive.rows import DOCUMENT, OF_ROWS, TABLES
from spark_lineage.archive.tables import read_table, write_tables
from spark_lineage.replay.merged_events import events_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.shares("spark"), pytest.mark.truth]

Event = dict[str, Any]
DAY, NEXT_DAY, LATER = "2026-01-31", "2026-02-01", "2026-02-07"
R1, R2, R3, R4 = (f"0190e6e0-0000-7000-8000-00000000000{number}" for number in (1, 2, 3, 4))


def of_day(name: str, run_id: str, day: str, job: str = "shop.load") -> Event:
    return merged_event(name, run_id=run_id, day=day, job=job)


def write(spark: SparkSession, out: Path, events: Iterable[Event], replaced: Sequence[str] | None = ()) -> Current:
    """Do what the job does with new documents."""
    destination = Destination(spark, str(out))
    version = destination.begin()
    gone = None if replaced is None else spark.createDataFrame([(each,) for each in replaced], "run_id string")
    days = write_tables(destination, version, documents(spark, events, out.parent / "documents.json"), gone)
    current = Current(version=version, days=days)
    destination.commit(current)
    return current


def table(spark: SparkSession, out: Path, name: str) -> list[str]:
    """Return the rows of a table as text, which sorts."""
    return sorted(
        json.dumps(row.asDict(recursive=True), default=str, sort_keys=True)
        for row in read_table(spark, str(out), name).collect()
    )


def content(spark: SparkSession, out: Path) -> dict[str, list[str]]:
    """Return all that a reader finds."""
    tables = {name: table(spark, out, name) for name in TABLES}
    return tables | {"events": sorted(each.content.decode() for each in events_in([str(out)]))}


def runs(spark: SparkSession, out: Path) -> dict[str, str]:
    """Return the day of each task, which the events have as well."""
    found = {row["run_id"]: str(row["day"]) for row in read_table(spark, str(out), "runs").collect()}
    if found:
        assert {each.run_id: each.time.date().isoformat() for each in events_in([str(out)])} == found
    return found


def test_rows_come_through_json_and_spark_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    found = {
        row["run_id"]: row.asDict(recursive=True)
        for row in documents(spark, corpus_events(), tmp_path / "documents.json").collect()
    }
    schema = spark.createDataFrame([], DOCUMENT).schema
    for event in corpus_events():
        made = found[event["run"]["runId"]]
        wanted = document(event)
        assert json.loads(made.pop("event")) == json.loads(wanted.pop("event"))
        assert made.pop("problem") is None
        for name in OF_ROWS:
            names = schema[name].dataType.elementType.names  # type: ignore[attr-defined]
            assert all(list(row) == names for row in wanted[name]), name
            for row in (*made[name], *wanted[name]):
                for time in {"event_time", "time"} & set(row):
                    row[time] = str(row[time]).replace("T", " ").rstrip("Z0").rstrip(".")
        assert made == wanted


def test_days_change_as_their_tasks_do(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = [of_day("bhive_414", R1, DAY), of_day("c_414", R2, DAY), of_day("a_414", R3, NEXT_DAY)]
    versions = [write(spark, out, first)]
    assert sorted(versions[0].days) == [DAY, NEXT_DAY]
    assert runs(spark, out) == {R1: DAY, R2: DAY, R3: NEXT_DAY}
    # One moves to a day that was not there, one is new on a day that stays; the last of NEXT_DAY goes.
    moved = [of_day("bhive_414", R1, LATER), of_day("gtask_414", R4, DAY)]
    versions.append(write(spark, out, moved, [R1, R3, "never seen"]))
    assert versions[1].days == dict.fromkeys([DAY, LATER], versions[1].version)
    assert runs(spark, out) == {R1: LATER, R2: DAY, R4: DAY}
    # A day that nothing happens to keeps its version; a document is enough to replace what was there.
    again = of_day("c_414", R2, DAY, "shop.other")
    versions.append(write(spark, out, [again]))
    assert versions[2].days == {DAY: versions[2].version, LATER: versions[1].version}
    write(spark, tmp_path / "at once", [again, *moved])
    assert content(spark, out) == content(spark, tmp_path / "at once")
    # Nothing is new: nothing changes.
    assert write(spark, out, [], ["never seen"]).days == versions[2].days
    # All is replaced; then all goes.
    versions.append(write(spark, out, first[:1], None))
    assert versions[3].days == {DAY: versions[3].version}
    assert runs(spark, out) == {R1: DAY}
    assert write(spark, out, [], None).days == {}
    assert runs(spark, out) == {}


def test_datasets_have_what_was_said_last(spark: SparkSession, tmp_path: Path) -> None:
    early = of_day("a_414", R1, DAY)
    late = of_day("a_414", R2, DAY)
    late["eventTime"] = f"{DAY}T23:59:59.000001Z"
    (name,) = (output["name"] for output in early["outputs"])
    # Without a schema of its own it leaves the one that is known.
    late["inputs"], late["outputs"] = [{"namespace": "file", "name": name}], early["inputs"]
    write(spark, tmp_path / "out", [late, early])
    rows = {row["name"]: row for row in read_table(spark, str(tmp_path / "out"), "datasets").collect()}
    assert len(rows) == 3
    made = rows[name]
    assert [(each["name"], each["type"]) for each in made["schema"]] == [
        (field["name"], field["type"]) for field in early["outputs"][0]["facets"]["schema"]["fields"]
    ]
    assert (made["read_count"], made["last_read_run_id"], made["write_count"], made["last_written_run_id"]) == (
        1,
        R2,
        1,
        R1,
    )
    assert str(made["last_read_at"]) == f"{DAY} 23:59:59.000001"
    assert str(made["last_written_at"]).startswith(f"{DAY} 22:56:45.977")
    assert made["day"] == date(2026, 1, 31)
    assert {row["write_count"] for row in rows.values()} == {1}


def test_partitions_are_days_of_utc_wherever_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    events = [of_day("a_414", R1, DAY)]
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        write(spark, tmp_path / "out", events)
        (row,) = (
            read_table(spark, str(tmp_path / "out"), "runs")
            .selectExpr("unix_micros(event_time) AS at", "day")
            .collect()
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert (row["at"], str(row["day"])) == (1_769_900_205_977_000, DAY)


def test_a_task_with_a_problem_is_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "documents.json").write_text('{"run_id": "r1", "problem": "too deep"}')
    problem = spark.read.schema(DOCUMENT).json(str(tmp_path / "documents.json"))
    destination = Destination(spark, str(tmp_path / "out"))
    assert write_tables(destination, destination.begin(), problem, problem.select("run_id")) == {}


def test_what_cannot_be_read_or_written_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"no run of the archive job has written .*out yet"):
        read_table(spark, str(tmp_path / "out"), "runs")
    write(spark, tmp_path / "out", [of_day("a_414", R1, DAY)])
    with pytest.raises(ArchiveError, match="there is no table tasks, but runs, run_inputs"):
        read_table(spark, str(tmp_path / "out"), "tasks")
