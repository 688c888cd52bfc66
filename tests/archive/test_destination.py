"""An output is old until it is new, whatever dies when; and of runs at the same time one commits."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from archive_bench import document, documents, merged_event
from fast_spark import JAVA_ENV

from spark_lineage.archive.destination import PARTS, SOURCES, STAGING, ArchiveError, Current, Destination
from spark_lineage.archive.tables import read_table, write_tables
from spark_lineage.replay.merged_events import events_in
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.shares("spark"), pytest.mark.truth]

PROGRAM = Path(__file__).parents[1] / "plugins" / "programs" / "archive_writer.py"
VERSION = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
OLD = "20260131T120000Z-0a1b2c"
DAY = "2026-01-31"
R1, R2, R3 = (f"0190e6e0-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def destination(spark: SparkSession, out: Path) -> Destination:
    return Destination(spark, str(out))


def make(*directories: Path) -> None:
    for directory in directories:
        directory.mkdir(parents=True)
        (directory / "part-0").write_text("{}")


def committed(version: str, *days: str) -> Current:
    return Current(version=version, days=dict.fromkeys(days, version))


def tree(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_dir()}


def test_a_run_begins_commits_and_ends(spark: SparkSession, destination: Destination, out: Path) -> None:
    assert destination.current is None
    version = destination.begin()
    assert VERSION.fullmatch(version)
    assert Destination(spark, str(out)).current is None
    current = Current(version=version, days={DAY: version}, settings={"a": [1]}, parts=[OLD])
    destination.commit(current)
    assert destination.current == current
    assert Destination(spark, out.as_uri()).current == current
    assert json.loads((out / "_current.json").read_text()) == {
        "format": 1,
        "version": version,
        "days": {DAY: version},
        "settings": {"a": [1]},
        "parts": [OLD],
    }
    destination.end(version)
    assert [path.name for path in out.iterdir()] == ["_current.json"]
    assert destination.child("runs", "day=1") == f"file:{out}/runs/day=1"


def test_versions_sort_even_if_the_clock_goes_back(spark: SparkSession, out: Path) -> None:
    destination = Destination(spark, str(out))
    destination.begin()
    destination.commit(committed("20991231T235959Z-ffffff"))
    assert Destination(spark, str(out)).begin().startswith("21000101T000000Z-")


def test_what_no_pointer_names_goes(spark: SparkSession, out: Path) -> None:
    destination = Destination(spark, str(out))
    first = destination.begin()
    make(out / f"runs/version={first}/day={DAY}", out / f"events/version={first}/day={DAY}")
    make(out / f"runs/version={first}/day=2026-02-01")
    make(out / f"{PARTS}/version={first}", out / f"{SOURCES}/version={first}", out / f"{STAGING}/version={first}")
    destination.commit(committed(first, DAY, "2026-02-01"))
    destination.end(first)
    assert not list((out / STAGING).iterdir())
    # None of these is ours to remove; and a run that goes on may still commit.
    running = f"runs/version=20990101T000000Z-abcdef/day={DAY}"
    strange = {"notes", "runs/version=mine/day=2026-03-01", f"other/version={OLD}/day={DAY}", f"{PARTS}/mine", running}
    dead = {f"runs/version={OLD}/day={DAY}", f"runs/version={OLD}/_temporary/0"}
    dead |= {f"{room}/version={OLD}" for room in (PARTS, SOURCES, STAGING)}
    make(*(out / name for name in strange | dead))
    both = {f"runs/version={first}/day={DAY}", f"runs/version={first}/day=2026-02-01"}
    kept = {f"events/version={first}/day={DAY}", f"{PARTS}/version={first}", f"{SOURCES}/version={first}", *strange}
    rooms = {STAGING}
    destination = Destination(spark, str(out))
    second = destination.begin()
    assert tree(out) == rooms | with_parents(kept | both)
    make(
        out / f"runs/version={second}/day={DAY}", out / f"{PARTS}/version={second}", out / f"{SOURCES}/version={second}"
    )
    days = {DAY: second, "2026-02-01": first}
    destination.commit(Current(version=second, days=days, parts=[first, second]))
    destination.end(second)
    # Those who read the old day may go on, until the next run begins.
    assert both <= tree(out)
    Destination(spark, str(out)).begin()
    left = tree(out)
    assert both & left == {f"runs/version={first}/day=2026-02-01"}
    assert f"runs/version={second}/day={DAY}" in left
    assert {f"{PARTS}/version={first}", f"{PARTS}/version={second}", f"{SOURCES}/version={second}"} <= left
    assert f"{SOURCES}/version={first}" not in left


def with_parents(names: set[str]) -> set[str]:
    return names | {str(above) for name in names for above in Path(name).parents if above.name}


def test_of_runs_at_the_same_time_the_first_commits(spark: SparkSession, out: Path) -> None:
    one, other = Destination(spark, str(out)), Destination(spark, str(out))
    late, first = one.begin(), other.begin()
    for version in (late, first):
        make(out / f"runs/version={version}/day={DAY}", out / f"{PARTS}/version={version}")
    other.commit(committed(first, DAY))
    other.end(first)
    with pytest.raises(ArchiveError, match=r"another run has replaced .*_current\.json: run this one again"):
        one.commit(committed(late, DAY))
    one.end(late)
    assert {path.name for path in out.rglob("version=*")} == {f"version={first}"}
    assert Destination(spark, str(out)).current == committed(first, DAY)


def test_a_directory_of_others_is_left_alone(spark: SparkSession, out: Path) -> None:
    make(out / "runs")
    with pytest.raises(ArchiveError, match=r"out has runs in it, and no _current\.json: give a new or empty"):
        Destination(spark, str(out)).begin()
    assert [path.name for path in out.iterdir()] == ["runs"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", r"_current\.json is no _current\.json of an archive"),
        ('{"format": 1}', "is no _current.json of an archive"),
        ('{"format": 2, "version": ""}', "of an archive that this version knows .Invalid value 2"),
    ],
)
def test_a_pointer_that_is_none(spark: SparkSession, out: Path, content: str, told: str) -> None:
    out.mkdir()
    (out / "_current.json").write_text(content)
    with pytest.raises(ArchiveError, match=told):
        Destination(spark, str(out))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("out[1]", r"out\[1\] has one of .* which Spark takes for a pattern"),
        ("nope://user:hunter2@a/b", "cannot use nope://.*No FileSystem for scheme"),
        ("/proc/out", "cannot write file:/proc/out/_current.json"),
    ],
)
def test_places_that_cannot_be(spark: SparkSession, path: str, told: str) -> None:
    with pytest.raises(ArchiveError, match=told) as raised:
        Destination(spark, path).begin()
    # As the job prints it.
    assert "hunter2" not in redact(str(raised.value))


def test_a_file_system_that_is_not_local(spark: SparkSession, tmp_path: Path) -> None:
    """As on HDFS, a file is created, and another renamed over it, by Hadoop alone."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.archive.link./home", tmp_path.as_uri())
    out = "viewfs://archive/home/out"
    destination = Destination(spark, out)
    version = destination.begin()
    destination.commit(committed(version, DAY))
    current = Destination(spark, out).current
    assert current is not None
    assert current.version == version
    assert json.loads((tmp_path / "out" / "_current.json").read_text())["version"] == version
    assert [path.name for path in (tmp_path / "out").iterdir() if path.suffix != ".crc"] == ["_current.json"]


def test_runs_that_are_killed_leave_the_old_output_whole(spark: SparkSession, out: Path, tmp_path: Path) -> None:
    old = [merged_event("a_414", run_id=R1, day=DAY), merged_event("c_414", run_id=R2, day="2026-02-01")]
    new = [merged_event("bhive_414", run_id=R1, day="2026-02-01"), merged_event("gtask_414", run_id=R3, day=DAY)]
    (tmp_path / "new.json").write_text("\n".join(json.dumps(document(event)) for event in new))
    version = write(spark, out, old, tmp_path)
    before = found(spark, out)
    env = {**os.environ, **JAVA_ENV, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(PROGRAM), str(out), str(tmp_path / "new.json")]
    for moment in ("some tables", "pointer"):
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            try:
                assert process.stdout is not None
                dead = process.stdout.readline().strip()
                assert VERSION.fullmatch(dead)
                if moment == "some tables":
                    wait_for(out, f"run_inputs/version={dead}/day=*")
                else:
                    assert process.stdout.readline() == "written\n"
                    # It replaces the pointer all the time.
                    pointer, ends = (out / "_current.json"), time.monotonic() + 1
                    while time.monotonic() < ends:
                        assert json.loads(pointer.read_bytes())["version"] == version
            finally:
                os.killpg(process.pid, signal.SIGKILL)
        assert found(spark, out) == before
        assert list(out.rglob(f"version={dead}"))
    # The next run is right, and the one after it removes what the dead have left.
    write(spark, out, new, tmp_path)
    assert found(spark, out) == (
        [(R1, "2026-02-01"), (R2, "2026-02-01"), (R3, DAY)],
        sorted(json.dumps(event, sort_keys=True) for event in [*new, old[1]]),
    )
    Destination(spark, str(out)).begin()
    assert not [name for name in tree(out) if dead in name or "_temporary" in name]


def write(spark: SparkSession, out: Path, events: list[dict[str, Any]], tmp_path: Path) -> str:
    """Write events as the job does, and return the version."""
    destination = Destination(spark, str(out))
    version = destination.begin()
    frame = documents(spark, events, tmp_path / "documents.json")
    days = write_tables(destination, version, frame, frame.select("run_id"))
    destination.commit(Current(version=version, days=days))
    return version


def wait_for(out: Path, glob: str) -> list[Path]:
    deadline = time.monotonic() + 120
    while not (found := list(out.glob(glob))):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return found


def found(spark: SparkSession, out: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the tasks, by tables, and the events."""
    rows = read_table(spark, str(out), "runs").collect()
    outputs = {row["run_id"] for row in read_table(spark, str(out), "run_outputs").collect()}
    assert outputs <= {row["run_id"] for row in rows}
    return sorted((row["run_id"], str(row["day"])) for row in rows), sorted(
        each.content.decode() for each in events_in([str(out)])
    )
