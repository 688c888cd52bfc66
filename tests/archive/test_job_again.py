"""A run over what has grown reads only that, and leaves what one run over all would have made."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fast_spark import JAVA_ENV

from spark_lineage.archive import job
from spark_lineage.archive.job import Summary, merge_archive
from spark_lineage.archive.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.shares("spark"), pytest.mark.truth]

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"


def renumbered(name: str, number: int) -> str:
    """A fixture as the events of another run of the same program, on another day."""
    text = (FIXTURES / f"{name}.ndjson").read_text()
    text = re.sub(r'"runId":"[0-9a-f]{8}', f'"runId":"{number:08x}', text)
    return re.sub(r'"eventTime":"\d{4}-\d\d-\d\d', f'"eventTime":"2026-01-{number + 1:02d}', text)


def rows(table: DataFrame) -> list[str]:
    from pyspark.sql import functions as f

    return [row[0] for row in table.select(f.to_json(f.struct("*"))).collect()]


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of four runs of programs on four days, and its output, ``out``; ``kept`` has both as they were."""
    home = tmp_path_factory.mktemp("again")
    (home / "archive").mkdir()
    for number, name in enumerate(("a_414", "b_414", "c_414", "gtask_414")):
        (home / "archive" / f"{number}.ndjson").write_text(renumbered(name, number))
    first = merge_archive(spark, [str(home / "archive")], str(home / "out"))
    assert (first.files, first.read, first.tasks) == (4, 4, 4)
    for name in ("archive", "out"):
        shutil.copytree(home / name, home / "kept" / name)
    return home


@pytest.fixture
def archive(kept: Path) -> Path:
    """The archive, as it was, at the place where it was merged."""
    for name in ("archive", "out"):
        shutil.rmtree(kept / name)
        shutil.copytree(kept / "kept" / name, kept / name)
    return kept / "archive"


@pytest.fixture
def out(archive: Path) -> Path:
    """The output of it, as it was."""
    return archive.with_name("out")


@pytest.fixture
def content(spark: SparkSession) -> Callable[[Path], dict[str, Any]]:
    """What an output says, in an order that does not depend on how it came about."""

    def content(out: Path) -> dict[str, Any]:
        days = json.loads((out / "_current.json").read_bytes())["days"]
        events = [
            line
            for day, version in days.items()
            for path in (out / "events" / f"version={version}" / f"day={day}").glob("part-*")
            for line in path.read_bytes().splitlines()
        ]
        tables = {
            name: sorted(rows(read_table(spark, str(out), name))) for name in ("runs", "column_edges", "datasets")
        }
        return {"events": sorted(events), "days": sorted(days), **tables}

    return content


def test_only_what_is_new_or_changed_is_read(
    spark: SparkSession, archive: Path, out: Path, tmp_path: Path, content: Any
) -> None:
    fresh = tmp_path / "fresh"
    before = content(out)
    pointer = (out / "_current.json").read_bytes()

    again = merge_archive(spark, [str(archive)], str(out))
    assert again == Summary(files=4)
    assert (out / "_current.json").read_bytes() == pointer
    assert content(out) == before

    # One has grown, one holds something else now, one is new, and one is gone.
    with (archive / "0.ndjson").open("a") as file:
        file.write(renumbered("h_414", 0))
    (archive / "1.ndjson").write_text(renumbered("fdelta_414", 6))
    (archive / "new.ndjson").write_text(renumbered("fice_414", 2))
    gone = archive / "3.ndjson"
    kept = gone.read_text()
    gone.unlink()
    second = merge_archive(spark, [str(archive)], str(out))
    assert (second.files, second.read) == (4, 3)
    gone.write_text(kept)
    merge_archive(spark, [str(archive)], str(fresh))
    assert content(out) == content(fresh)
    assert content(out) != before


@pytest.mark.nightly
def test_an_orphan_that_finds_its_task_is_one_no_more(
    spark: SparkSession, tmp_path: Path, content: Any, archive: Path, out: Path
) -> None:
    fresh = tmp_path / "fresh"
    whole = (archive / "0.ndjson").read_text().splitlines(keepends=True)
    (archive / "0.ndjson").write_text("".join(whole[5:-2]))
    assert merge_archive(spark, [str(archive)], str(out)).read == 1
    orphans = {row.run_id for row in read_table(spark, str(out), "runs").collect()}
    (archive / "began.ndjson").write_text("".join(whole[:5]))
    assert merge_archive(spark, [str(archive)], str(out)).read == 1
    found = {row.run_id for row in read_table(spark, str(out), "runs").collect()}
    assert len(orphans - found) == len(found - orphans) == 1
    merge_archive(spark, [str(archive)], str(fresh))
    assert content(out) == content(fresh)


@pytest.mark.nightly
def test_other_settings_merge_all_anew_and_read_nothing(
    spark: SparkSession, tmp_path: Path, content: Any, archive: Path, out: Path
) -> None:
    fresh = tmp_path / "fresh"
    options: Any = {"naming": {"hostnamePattern.all": ".*"}, "max_event_bytes": 9_000}
    assert merge_archive(spark, [str(archive)], str(out), **options) == Summary(files=4, tasks=4, days=4)
    merge_archive(spark, [str(archive)], str(fresh), **options)
    assert content(out) == content(fresh)


def test_a_new_pattern_of_secrets_merges_all_anew(
    spark: SparkSession, archive: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert merge_archive(spark, [str(archive)], str(out)) == Summary(files=4)
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__REDACTION_PATTERNS", "cust[.]csv")
    shutil.rmtree(archive)
    archive.mkdir()
    # A directory that was emptied loses nothing.
    assert merge_archive(spark, [str(archive)], str(out)).tasks == 4
    assert merge_archive(spark, [str(archive)], str(out)) == Summary(files=0)
    found = {row.name for row in read_table(spark, str(out), "run_inputs").select("name").collect()}
    assert any("***" in name for name in found)
    assert not any("cust.csv" in name for name in found)
    assert "cust[.]csv" not in (out / "_current.json").read_text()


@pytest.mark.nightly
def test_states_of_another_version_are_read_anew(
    spark: SparkSession, content: Any, archive: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(out)
    monkeypatch.setattr(job, "FORMAT", 0)
    assert merge_archive(spark, [str(archive)], str(out)).read == 4
    assert merge_archive(spark, [str(archive)], str(out)).read == 0
    assert merge_archive(spark, [str(archive)], str(out), is_full=True).read == 4
    assert content(out) == before


def test_the_parts_of_many_runs_are_written_together(
    spark: SparkSession, tmp_path: Path, content: Any, archive: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tmp_path / "fresh"
    monkeypatch.setattr(job, "_MOST_VERSIONS", 1)
    (archive / "more.ndjson").write_text(renumbered("h_414", 10))
    merge_archive(spark, [str(archive)], str(out))
    (kept,) = json.loads((out / "_current.json").read_bytes())["parts"]
    (archive / "0.ndjson").write_text(renumbered("e_414", 0))
    merge_archive(spark, [str(archive)], str(out))
    (last,) = json.loads((out / "_current.json").read_bytes())["parts"]
    assert {path.name for path in (out / "_spark_lineage/parts").iterdir()} == {f"version={kept}", f"version={last}"}
    merge_archive(spark, [str(archive)], str(fresh))
    assert content(out) == content(fresh)


@pytest.mark.nightly  # test_destination kills runs at two moments
def test_a_run_that_is_killed_leaves_the_old_output(
    spark: SparkSession, content: Any, archive: Path, out: Path
) -> None:
    before = content(out)
    old = json.loads((out / "_current.json").read_bytes())["version"]
    for number in range(8):
        (archive / f"more{number}.ndjson").write_text(renumbered("i2_ol1", 10 + number))
    command = [sys.executable, "-m", "spark_lineage.cli", "archive", "merge", str(archive), "--out", str(out)]
    env = {**os.environ, **JAVA_ENV, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen(
        [*command, "--master", "local[2]", "--conf", "spark.ui.enabled=false"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        # What was read is kept, and some tables are there; test_destination kills those who write at other places.
        while not any(old not in str(path) for path in out.glob("runs/version=*/day=*")):
            assert process.poll() is None, process.stderr.read().decode()[-3000:]  # type: ignore[union-attr]
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert content(out) == before
    assert merge_archive(spark, [str(archive)], str(out)).read == 8
    assert read_table(spark, str(out), "runs").count() == 12
