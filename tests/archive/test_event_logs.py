"""Spark's event logs in an archive: each gives what ``spark-lineage merge --event-log`` gives, byte for byte."""

from __future__ import annotations

import json
import re
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from generate_event_logs import generate

from spark_lineage.archive import parts
from spark_lineage.archive.destination import ArchiveError
from spark_lineage.archive.fold import Piece, fold_pieces
from spark_lineage.archive.job import merge_archive
from spark_lineage.archive.parts import SourceFile
from spark_lineage.cli import main
from spark_lineage.launch.directory import EVENTS_FILE
from spark_lineage.merge.state import decode_state
from spark_lineage.merge.task import identity_of, kept_lineage
from spark_lineage.submission.collector import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.shares("spark")

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "4.2" / "append_tables.zip"


def events(spark: SparkSession, out: Path) -> dict[str, str]:
    """The events of an output by run id, by what the pointer names."""
    days = json.loads((out / "_current.json").read_bytes())["days"]
    paths = [str(out / "events" / f"version={version}" / f"day={day}") for day, version in days.items()]
    lines = [row.value for row in spark.read.text(paths).collect()]
    found = {json.loads(line)["run"]["runId"]: line for line in lines}
    assert len(found) == len(lines), "a run is there twice"
    return found


class Merge:
    """What the command gives for the same files."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *logs: Path, files: Iterable[Path] = ()) -> str:
        given = [part for log in logs for part in ("--event-log", str(log))]
        assert main(["merge", *map(str, files), *given]) == 0
        return self._capsys.readouterr().out.rstrip("\n")


@pytest.fixture
def merge(capsys: pytest.CaptureFixture[str]) -> Merge:
    return Merge(capsys)


@pytest.mark.spark
@pytest.mark.truth
def test_each_gives_what_the_command_gives(
    spark: SparkSession, tmp_path: Path, home: tuple[Path, str], merge: Merge
) -> None:
    directory, source = home
    generate(directory / "logs", 30)
    (directory / "logs" / "application_1_0001").write_bytes(b"torn")
    (directory / "logs" / "other.properties").write_bytes(b"no log")
    logs = sorted(path for path in (directory / "logs").iterdir() if path.suffix not in {".lz4", ".properties"})
    logs.remove(directory / "logs" / "application_1_0001")
    tasks: dict[str, list[Path]] = defaultdict(list)
    expected = {"event log compressed with lz4": 1, "event log without an application": 1, "not an event": 1}
    for log in logs:
        collector = Collector()
        collector.read_event_log(log)
        tasks[identity_of(kept_lineage(collector.state), collector.state).run_id].append(log)
        for reason, number in collector.log_counts.set_aside.items():
            expected[reason] = expected.get(reason, 0) + number
    assert len(logs) > len(tasks) > 20, "no two attempts are of one task"

    summary = merge_archive(spark, [], str(tmp_path / "out"), event_logs=[f"{source}/logs"])
    assert events(spark, tmp_path / "out") == {run_id: merge(*its) for run_id, its in tasks.items()}
    assert summary.set_aside == expected
    assert (summary.files, summary.tasks, summary.problems) == (len(logs) + 2, len(tasks), {})
    assert any(file.endswith("lz4") for file in summary.torn)
    assert merge_archive(spark, [], str(tmp_path / "out"), event_logs=[f"{source}/logs"]).read == 0


@pytest.mark.spark
@pytest.mark.nightly
def test_a_lineage_file_and_the_log_of_its_application_are_one_task_whichever_comes_first(
    spark: SparkSession, tmp_path: Path, merge: Merge
) -> None:
    with zipfile.ZipFile(RECORDED) as archive:
        archive.extractall(tmp_path)
    lineage, (log,) = tmp_path / "lineage" / EVENTS_FILE, (tmp_path / "eventlog").iterdir()
    name = log.name.removesuffix(".inprogress")
    # As it was submitted by somebody else, its log does not name its run.
    whole = re.sub(rb'"spark\.openlineage\.[\w.]+":"[^"]*",?', b"", log.read_bytes())
    log.unlink()
    growing, log = log.with_name(f"{name}.inprogress"), log.with_name(name)
    cut = whole.index(b"\n", len(whole) // 2) + 1
    growing.write_bytes(whole[:cut])
    both = merge(growing, files=[lineage])
    (task,) = {json.loads(both)["run"]["runId"]}

    def after(out: str, *sources: str, event_logs: Iterable[Path] = ()) -> dict[str, str]:
        merge_archive(spark, sources, str(tmp_path / out), event_logs=list(map(str, event_logs)))
        return events(spark, tmp_path / out)

    # First the log alone, as a run of its own; then both, as one; then the log has grown, and has another name.
    alone = merge(growing)
    assert after("one", event_logs=[log.parent]) == {json.loads(alone)["run"]["runId"]: alone}
    assert json.loads(alone)["run"]["runId"] != task
    assert after("one", str(lineage.parent), event_logs=[log.parent]) == {task: both}
    growing.rename(log)
    log.write_bytes(whole)
    ended = merge(log, files=[lineage])
    assert ended != both
    assert after("one", str(lineage.parent), event_logs=[log.parent]) == {task: ended}
    # First the lineage file.
    assert after("other", str(lineage.parent)) == {task: merge(files=[lineage])}
    assert after("other", str(lineage.parent), event_logs=[log]) == {task: ended}


@pytest.mark.spark
@pytest.mark.truth
def test_where_there_is_none_it_is_said(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, why in (("empty", "no event log in the directory .*: check spark.eventLog.dir"), ("missing", "no file")):
        with pytest.raises(ArchiveError, match=why):
            merge_archive(spark, [], str(tmp_path / "out"), event_logs=[str(tmp_path / path)])


def test_the_command_wants_one_or_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["archive", "merge", "--out", str(tmp_path)]) == 2
    assert "give a SRC of lineage files, an --event-log, or both" in capsys.readouterr().err


def test_one_that_has_gone_since_it_was_listed_is_counted(tmp_path: Path) -> None:
    (part,) = fold_pieces([Piece(f"file:{tmp_path}/gone", 0, 9, is_event_log=True)])
    assert (part.application, part.read, part.set_aside) == (None, 0, {"no event log": 1})


def test_one_that_cannot_be_opened_is_counted_and_gives_what_stood_before(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_local-1"
    (log / "events_2_local-1").mkdir(parents=True)
    start = {"Event": "SparkListenerApplicationStart", "App Name": "orders", "App ID": "local-1", "Timestamp": 5000}
    (log / "events_1_local-1").write_text(json.dumps(start, separators=(",", ":")) + "\n")
    part, counts = fold_pieces([Piece(f"file:{log}", 0, 9, is_event_log=True)])
    assert part.content is not None
    assert (decode_state(part.content).logged.keys(), part.parent) == ({("local-1", "")}, None)
    assert (counts.read, counts.set_aside) == (1, {"this is no regular file": 1})


def test_a_single_file_elsewhere_that_no_executor_can_hold_is_counted() -> None:
    size = parts._MOST_BYTES + 1
    files = [
        SourceFile(path, size, 0, is_event_log=True) for path in ("s3a://b/one", "s3a://b/eventlog_v2_one", "file:/one")
    ]
    large, *others = map(parts._is_too_large, files)
    assert (large, others) == (True, [False, False])
    (part,) = fold_pieces([Piece("s3a://b/one", 0, size, is_event_log=True)])
    assert part.set_aside == {"event log too large": 1}


def test_the_generator_makes_the_same_logs_again(tmp_path: Path) -> None:
    for name in ("one", "other"):
        generate(tmp_path / name, 25)
    one, other = (sorted(path for path in (tmp_path / name).rglob("*") if path.is_file()) for name in ("one", "other"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]
