"""An output is old until it is new, whatever dies when; and one run at a time writes it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from archive_bench import document, documents, merged_event

from spark_lineage.archive import lock
from spark_lineage.archive.destination import PARTS, SOURCES, STAGING, Current, Destination, DestinationError
from spark_lineage.archive.tables import read_table, write_tables
from spark_lineage.deliver.kept_events import events_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_spark import FastSpark
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).parents[1] / "plugins" / "programs" / "archive_writer.py"
VERSION = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
OLD = "20260131T120000Z-0a1b2c"
DAY = "2026-01-31"
R1, R2, R3 = (f"0190e6e0-0000-7000-8000-00000000000{number}" for number in (1, 2, 3))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def destination(spark: SparkSession, out: Path) -> Iterator[Destination]:
    with Destination(spark, str(out)) as destination:
        yield destination


def make(*directories: Path) -> None:
    for directory in directories:
        directory.mkdir(parents=True)
        (directory / "part-0").write_text("{}")


def committed(version: str, *days: str) -> Current:
    return Current(version=version, table_format="parquet", days=dict.fromkeys(days, version))


def tree(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_dir()}


def test_a_run_begins_commits_and_ends(spark: SparkSession, destination: Destination, out: Path) -> None:
    assert destination.current is None
    version = destination.begin()
    assert VERSION.fullmatch(version)
    assert (out / "_lock").exists()
    assert Destination(spark, str(out)).current is None
    current = Current(
        version=version, table_format="delta", days={DAY: version}, settings={"a": [1]}, kept={PARTS: [OLD]}
    )
    destination.commit(current)
    assert destination.current == current
    assert Destination(spark, out.as_uri()).current == current
    assert json.loads((out / "_current.json").read_text()) == {
        "format": 1,
        "version": version,
        "table_format": "delta",
        "days": {DAY: version},
        "settings": {"a": [1]},
        "kept": {PARTS: [OLD]},
    }
    destination.close()
    assert [path.name for path in out.iterdir()] == ["_current.json"]
    assert destination.child("runs", "day=1") == f"file:{out}/runs/day=1"


def test_versions_sort_even_if_the_clock_goes_back(spark: SparkSession, out: Path) -> None:
    with Destination(spark, str(out)) as destination:
        destination.begin()
        destination.commit(committed("20991231T235959Z-ffffff"))
    with Destination(spark, str(out)) as destination:
        assert destination.begin().startswith("21000101T000000Z-")


def test_what_no_pointer_names_goes(spark: SparkSession, out: Path) -> None:
    with Destination(spark, str(out)) as destination:
        first = destination.begin()
        make(out / f"runs/day={DAY}/version={first}", out / f"events/day={DAY}/version={first}")
        make(out / f"{PARTS}/version={first}", out / f"{SOURCES}/version={first}", out / f"{STAGING}/{first}/documents")
        destination.commit(committed(first, DAY))
        destination.clean_up()
        assert not (out / STAGING).exists()
    dead = "20300101T000000Z-abcdef"
    make(out / f"runs/day={DAY}/version={dead}", out / f"runs/day=2026-02-01/version={dead}", out / "runs/_temporary/0")
    make(out / f"{PARTS}/version={dead}", out / f"{SOURCES}/version={dead}", out / f"{STAGING}/{dead}")
    # None of these is ours to remove.
    unknown_settings = {"notes", "runs/day=2026-03-01/version=mine", f"other/day={DAY}/version={dead}", f"{PARTS}/mine"}
    make(*(out / name for name in unknown_settings))
    kept = {f"runs/day={DAY}/version={first}", f"events/day={DAY}/version={first}"}
    kept |= {f"{PARTS}/version={first}", f"{SOURCES}/version={first}", *unknown_settings}
    with Destination(spark, str(out)) as destination:
        second = destination.begin()
        assert tree(out) == kept | {str(above) for name in kept for above in Path(name).parents if above.name}
        make(out / f"runs/day={DAY}/version={second}", out / f"{PARTS}/version={second}")
        make(out / f"{SOURCES}/version={second}")
        after = Current(version=second, table_format="parquet", days={DAY: second}, kept={PARTS: [first, second]})
        destination.commit(after)
        destination.clean_up()
        left = tree(out)
        # Those who read the old day may go on.
        assert f"runs/day={DAY}/version={first}" in left
        assert {f"{PARTS}/version={first}", f"{PARTS}/version={second}", f"{SOURCES}/version={second}"} <= left
        assert f"{SOURCES}/version={first}" not in left
    with Destination(spark, str(out)) as destination:
        destination.begin()
        assert f"runs/day={DAY}/version={first}" not in tree(out)
        assert f"runs/day={DAY}/version={second}" in tree(out)


def test_a_day_without_tasks_leaves_no_directory(spark: SparkSession, out: Path) -> None:
    make(out / f"runs/day={DAY}/version={OLD}")
    (out / "_current.json").write_text('{"format": 1, "version": "", "table_format": "parquet"}')
    with Destination(spark, str(out)) as destination:
        destination.begin()
    assert tree(out) == {"runs"}


def test_only_one_run_writes(spark: SparkSession, destination: Destination, out: Path) -> None:
    destination.begin()
    other = Destination(spark, str(out))
    told = rf"process {os.getpid()} on .* writes to file:{out} now: wait for its end"
    with pytest.raises(DestinationError, match=told):
        other.begin()
    # It had no lock to give back.
    other.close()
    assert (out / "_lock").exists()
    destination.close()
    other.begin()
    other.close()
    assert not (out / "_lock").exists()


def test_of_many_at_once_one_writes(spark: SparkSession, out: Path) -> None:
    destinations = [Destination(spark, str(out)) for _ in range(8)]

    def has_begun(destination: Destination) -> bool:
        try:
            destination.begin()
        except DestinationError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(has_begun, destinations)) == 1
    for each in destinations:
        each.close()


def owner(**values: object) -> bytes:
    mine = {"token": "t", "host": "elsewhere", "space": "", "process_id": 1}
    return json.dumps(mine | values).encode()


@pytest.mark.parametrize(
    ("content", "age_seconds", "is_taken_over"),
    [
        (owner(), 60, False),
        (owner(), 130, True),
        (b'{"tok', 60, False),  # who took it is just writing its name, or died of it
        (b"", 130, True),
    ],
)
def test_a_lock_that_nobody_renews_counts_for_nothing(
    spark: SparkSession, out: Path, content: bytes, age_seconds: int, is_taken_over: bool
) -> None:
    out.mkdir()
    (out / "_lock").write_bytes(content)
    os.utime(out / "_lock", (time.time() - age_seconds,) * 2)
    with Destination(spark, str(out)) as destination:
        if is_taken_over:
            destination.begin()
        else:
            with pytest.raises(DestinationError, match="writes to"):
                destination.begin()
    assert (out / "_lock").exists() is not is_taken_over


def test_it_is_renewed(
    spark: SparkSession, destination: Destination, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_RENEWED_SECONDS", 0.05)
    destination.begin()
    os.utime(out / "_lock", (0, 0))
    for _ in range(2):
        [sign] = wait_for(out, "_lock-*")
        sign.unlink()
    wait_for(out, "_lock-*")
    # Of another space of processes, where nobody sees whether the owner lives.
    mine = json.loads((out / "_lock").read_bytes())
    (out / "_lock").write_text(json.dumps(mine | {"space": "another"}))
    os.utime(out / "_lock", (0, 0))
    with pytest.raises(DestinationError, match="writes to"):
        Destination(spark, str(out)).begin()
    destination.close()
    assert not list(out.glob("_lock*"))


def test_a_sign_of_life_that_is_old_counts_for_nothing(spark: SparkSession, out: Path) -> None:
    out.mkdir()
    for name, content in (("_lock", owner()), ("_lock-t", b"")):
        (out / name).write_bytes(content)
        os.utime(out / name, (time.time() - 130,) * 2)
    with Destination(spark, str(out)) as destination:
        destination.begin()
    assert not list(out.glob("_lock*"))


def test_who_lost_the_lock_commits_nothing(
    spark: SparkSession, destination: Destination, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_RENEWED_SECONDS", 0.05)
    destination.begin()
    before = (out / "_current.json").read_bytes()
    (out / "_lock").write_bytes(owner())
    for step in (lambda: destination.commit(committed(OLD)), destination.clean_up):
        with pytest.raises(DestinationError, match=r"another run has taken over .*_lock"):
            step()
    time.sleep(0.2)
    destination.close()
    assert (out / "_lock").read_bytes() == owner()
    assert (out / "_current.json").read_bytes() == before


def test_who_began_with_another_pointer_commits_nothing(destination: Destination, out: Path) -> None:
    destination.begin()
    (out / "_current.json").write_text('{"format": 1, "version": "x", "table_format": "parquet"}')
    with pytest.raises(DestinationError, match=r"another run has replaced .*_current\.json: run this one again"):
        destination.commit(committed(OLD))


def test_a_directory_of_others_is_left_alone(spark: SparkSession, out: Path) -> None:
    make(out / "runs")
    with pytest.raises(DestinationError, match=r"out has runs in it, and no _current\.json: give a new or empty"):
        Destination(spark, str(out)).begin()
    assert [path.name for path in out.iterdir()] == ["runs"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", r"_current\.json is no _current\.json of an archive"),
        ('{"format": 1}', "is no _current.json of an archive"),
        ('{"format": 2}', "has format 2, and this version knows 1: use the version that wrote it"),
    ],
)
def test_a_pointer_that_is_none(spark: SparkSession, out: Path, content: str, told: str) -> None:
    out.mkdir()
    (out / "_current.json").write_text(content)
    with pytest.raises(DestinationError, match=told):
        Destination(spark, str(out))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("out[1]", r"out\[1\] has one of .* which Spark takes for a pattern"),
        ("nope://user:hunter2@a/b", "cannot use nope://.*No FileSystem for scheme"),
        ("/proc/out", "cannot write file:/proc/out/_lock"),
    ],
)
def test_places_that_cannot_be(spark: SparkSession, path: str, told: str) -> None:
    with pytest.raises(DestinationError, match=told) as raised, Destination(spark, path) as destination:
        destination.begin()
    assert "hunter2" not in str(raised.value)


def test_a_file_system_that_is_not_local(spark: SparkSession, tmp_path: Path) -> None:
    """As on HDFS, a file is created, and another renamed over it, by Hadoop alone."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.archive.link./home", tmp_path.as_uri())
    out = "viewfs://archive/home/out"
    with Destination(spark, out) as destination:
        version = destination.begin()
        with pytest.raises(DestinationError, match="writes to viewfs://archive/home/out now"):
            Destination(spark, out).begin()
        destination.commit(committed(version, DAY))
    current = Destination(spark, out).current
    assert current is not None
    assert current.version == version
    assert json.loads((tmp_path / "out" / "_current.json").read_text())["version"] == version
    assert not (tmp_path / "out" / "_lock").exists()


def test_runs_that_are_killed_leave_the_old_output_whole(
    spark: SparkSession, out: Path, tmp_path: Path, fast_spark: FastSpark
) -> None:
    old = [merged_event("a_414", run_id=R1, day=DAY), merged_event("c_414", run_id=R2, day="2026-02-01")]
    new = [merged_event("bhive_414", run_id=R1, day="2026-02-01"), merged_event("gtask_414", run_id=R3, day=DAY)]
    (tmp_path / "new.json").write_text("\n".join(json.dumps(document(event)) for event in new))
    version, _ = write(spark, out, old, tmp_path)
    before = found(spark, out)
    env = fast_spark.plain_env | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(PROGRAM), str(out), str(tmp_path / "new.json")]
    for moment in ("some tables", "pointer"):
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            try:
                assert process.stdout is not None
                dead = process.stdout.readline().strip()
                assert VERSION.fullmatch(dead)
                if moment == "some tables":
                    wait_for(out, f"run_inputs/day=*/version={dead}")
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
        assert (out / "_lock").exists()
    # The next run finds that the owner of the lock is dead, removes what it left, and is right.
    _, left = write(spark, out, new, tmp_path)
    assert not [name for name in left if dead in name or "_temporary" in name]
    assert not list(out.glob("_lock*"))
    assert found(spark, out) == (
        [(R1, "2026-02-01"), (R2, "2026-02-01"), (R3, DAY)],
        sorted(json.dumps(event, sort_keys=True) for event in [*new, old[1]]),
    )


def write(spark: SparkSession, out: Path, events: list[dict[str, Any]], tmp_path: Path) -> tuple[str, set[str]]:
    """Write events as the job does, and give the version, and the directories that were there when it began."""
    with Destination(spark, str(out)) as destination:
        version = destination.begin()
        left = tree(out)
        frame = documents(spark, events, tmp_path / "documents.json")
        days = write_tables(destination, version, "parquet", frame, frame.select("run_id"))
        destination.commit(Current(version=version, table_format="parquet", days=days))
    return version, left


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
