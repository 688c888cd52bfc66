"""The job gives what ``spark-lineage merge`` gives for the files of each task, byte for byte."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import re
import shutil
import uuid
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
import zstandard

from spark_lineage.archive import job, parts
from spark_lineage.archive.destination import ArchiveError
from spark_lineage.archive.job import merge_archive
from spark_lineage.archive.parts import SourceFile
from spark_lineage.cli import main
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES, merged_event
from spark_lineage.launch.directory import EVENTS_FILE, TRANSITIONS_FILE
from spark_lineage.launch.line import MAX_LINE_BYTES, LineDecoder, LineError
from spark_lineage.merge.state import application_run_id
from spark_lineage.merge.task import identity_of, kept_lineage
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.submission.collector import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.shares("spark"), pytest.mark.truth]

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.ndjson"))


def events(out: Path) -> dict[str, bytes]:
    """The events of an output by run id, by what the pointer names."""
    days = json.loads((out / "_current.json").read_bytes())["days"]
    lines = [
        line
        for day, version in days.items()
        for path in (out / "events" / f"version={version}" / f"day={day}").glob("part-*")
        for line in path.read_bytes().splitlines()
    ]
    found = {json.loads(line)["run"]["runId"]: line for line in lines}
    assert len(found) == len(lines), "a run is there twice"
    return found


def expected(paths: Iterable[Path]) -> dict[str, bytes]:
    """What the merge gives for the lines of each task: the lines are told apart by hand, and folded one by one."""
    decode = LineDecoder().decode
    told: dict[str, list[tuple[Path, bytes]]] = defaultdict(list)
    parents: dict[str, str] = {}
    for path in paths:
        content = path.read_bytes()
        if path.suffix in (".gz", ".zst"):
            content = (
                gzip.decompress(content) if path.suffix == ".gz" else zstandard.ZstdDecompressor().decompress(content)
            )
        for line in content.split(b"\n"):
            try:
                event = decode(line)[0]
            except LineError:
                continue
            application = application_run_id(event)
            told[application].append((path, line))
            facets = event.run.facets
            if event.run.runId == application and facets is not None and facets.parent is not None:
                parents[application] = max(parents.get(application, ""), facets.parent.run.runId)
    tasks: dict[str, Collector] = defaultdict(Collector)
    for application, its in told.items():
        collector = tasks[parents.get(application, application)]
        for path, line in its:
            collector.add([line], source=str(path))
    merged = {}
    for run_id, collector in tasks.items():
        lineage = kept_lineage(collector.state)
        task = identity_of(lineage, collector.state)
        assert task.run_id == run_id
        merged[run_id] = merged_event(lineage, task, DEFAULT_LIMIT_BYTES).content
    return merged


def test_the_corpus(spark: SparkSession, tmp_path: Path) -> None:
    summary = merge_archive(spark, [str(FIXTURES)], str(tmp_path / "out"))
    found = events(tmp_path / "out")
    assert found == expected(FIXTURES.glob("*.ndjson"))
    files = list(FIXTURES.glob("*.ndjson"))
    number = sum(path.read_bytes().count(b"\n") for path in files)
    assert (summary.files, summary.read, summary.events, summary.set_aside) == (len(files), len(files), number, {})
    assert summary.tasks == len(found)
    assert not summary.problems


# ---- files as they are found in the wild: on disks, which Python reads, and elsewhere, which Spark reads ----

AWKWARD = [
    "plain.ndjson",
    "with space.ndjson",
    "ünïcode-日本.ndjson",
    "100%.ndjson",
    "run%3Dmanual__2026-01-01T00%3A00.ndjson",
    "glob[1]{a,b}*?.ndjson",
    "hash#question.ndjson",
    "quote'\"back\\slash.ndjson",
    "plus+and&.ndjson",
    "_dag/.dot/events.ndjson",
    "day=2026-01-01/events.ndjson",
]
# Hadoop reads no such name on a disk.
LOCAL_ALONE = ["run:2026-01-01T00:00.ndjson"]


def test_names_of_every_kind(spark: SparkSession, tmp_path: Path, home: tuple[Path, str]) -> None:
    text = (FIXTURES / "a_414.ndjson").read_text()
    directory, source = home
    names = [*AWKWARD, *(LOCAL_ALONE if source == str(directory) else ())]
    for number, name in enumerate(names):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(renumbered(text, number))
    summary = merge_archive(spark, [source], str(tmp_path / "out"))
    found = events(tmp_path / "out")
    assert len(found) == len(names) == summary.files
    assert found == expected(path for path in directory.rglob("*") if path.is_file())
    again = merge_archive(spark, [source], str(tmp_path / "out"))
    assert (again.files, again.read) == (len(names), 0), "a name is spelled in two ways"


def renumbered(text: str, number: int) -> str:
    """The same events as those of another run of the same program."""
    return re.sub(r'"runId":"[0-9a-f]{8}', f'"runId":"{number:08x}', text)


def test_lines_of_every_kind(spark: SparkSession, tmp_path: Path, home: tuple[Path, str]) -> None:
    whole = (FIXTURES / "b_414.ndjson").read_bytes().splitlines()
    directory, source = home
    contents = {
        "torn.ndjson": b"\n".join(whole[:4]) + b"\n" + whole[4][:-40],
        "empty.ndjson": b"",
        "blank.ndjson": b"\n\n" + whole[5] + b"\n\n",
        "dos.ndjson": b"\r\n".join(whole[6:9]) + b"\r\n",
        "bytes.ndjson": b'{"a":"\xff\xfe"}\n' + whole[9] + b"\n",
        "zeros.ndjson": b"\0" * 5000 + b"\n" + whole[10] + b"\n",
        "signs.ndjson": b"=x\n?\n>\n" + whole[11] + b"\n",
        "other.ndjson": b'{"no":"event"}\n[]\n' + whole[12] + b"\n",
        "replaced.ndjson": whole[13].replace(b'"name":"', '"name":"\ufffd'.encode(), 1) + b"\n",
        "cr.ndjson": whole[14].replace(b'","', b'",\r"', 1) + b"\n",
        "long.ndjson": b"x" * (MAX_LINE_BYTES + 1) + b"\n",
        "mark.ndjson": codecs.BOM_UTF8 + whole[25] + b"\n",
        "mark.ndjson.gz": gzip.compress(codecs.BOM_UTF8 + whole[26]),
        "lone.gz": b"",
        "packed.ndjson.gz": gzip.compress(b"\n".join(whole[15:20]) + b"\n"),
        "packed.ndjson.zst": zstandard.compress(b"\n".join(whole[20:25])),
    }
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    cut = gzip.compress(b"\n".join(whole[27:]), compresslevel=0)
    (directory / "cut.ndjson.gz").write_bytes(cut[: len(cut) // 2])
    summary = merge_archive(spark, [source], str(tmp_path / "out"))
    reference = Collector()
    for path in sorted(directory.glob("*.ndjson*")):
        with path.open("rb") as stream:
            reference.read(stream, source=str(path))
    assert (summary.events, summary.set_aside) == (reference.counts.read, reference.counts.set_aside)
    assert sum(summary.torn.values()) == reference.counts.set_aside_total
    lineage = kept_lineage(reference.state)
    task = identity_of(lineage, reference.state)
    assert events(tmp_path / "out") == {task.run_id: merged_event(lineage, task, DEFAULT_LIMIT_BYTES).content}


def test_a_file_that_is_split_is_merged_as_a_whole(
    spark: SparkSession, tmp_path: Path, home: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, source = home
    shutil.copy(FIXTURES / "i2_ol1.ndjson", directory / "long.ndjson")
    monkeypatch.setattr(parts, "_PIECE_BYTES", 100_000)
    monkeypatch.setattr(parts, "_TASK_BYTES", 100_000)
    if source != str(directory):
        read = parts._located(spark, [f"{source}/long.ndjson"], "text", "value", parts._TASK_BYTES)
        assert read.getNumPartitions() > 20
    merge_archive(spark, [source], str(tmp_path / "out"))
    assert events(tmp_path / "out") == expected([directory / "long.ndjson"])


def test_a_file_that_is_gone_is_told(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gone.ndjson"
    monkeypatch.setattr(job, "find", lambda *_, **__: [SourceFile(f"file:{path}", 100, 0)])
    with pytest.raises(ArchiveError, match=f"perhaps gone: file:{path}. The output is unchanged"):
        merge_archive(spark, [str(tmp_path)], str(tmp_path / "out"))
    assert not list((tmp_path / "out").rglob("version=*")), "what it has written is not removed"


# ---- whose task it is ----


def test_what_belongs_together_is_found_across_files(spark: SparkSession, tmp_path: Path) -> None:
    """One application over three files, of which only one names the task; two applications of one task; an orphan."""
    home = tmp_path / "archive"
    home.mkdir()
    one, other, orphan = (
        renumbered((FIXTURES / f"{name}.ndjson").read_text(), 0) for name in ("a_414", "b_414", "c_414")
    )
    told = one.splitlines(keepends=True)
    parent = json.loads(told[0])["run"]["facets"]["parent"]["run"]["runId"]
    assert f'"{parent}"' in other
    (home / "1.ndjson").write_text("".join(told[7:14]))
    (home / "2.ndjson").write_text("".join(told[14:]))
    (home / "3.ndjson").write_text("".join(told[:7]))
    (home / "mixed.ndjson").write_text(other + "".join(no_parents(orphan)))
    merge_archive(spark, [str(home)], str(tmp_path / "out"))
    found = events(tmp_path / "out")
    assert found == expected(home.glob("*.ndjson"))
    assert len(found) == 2
    applications = json.loads(found[parent])["run"]["facets"]["sparkLineage_application"]["applications"]
    assert len(applications) == 2


def no_parents(text: str) -> Iterator[str]:
    """The same application, started by hand; its run ids are others."""
    for line in re.sub(r'"runId":"[0-9a-f]{8}', '"runId":"ffffffff', text).splitlines():
        event = json.loads(line)
        if event["job"]["facets"]["jobType"]["jobType"] == "APPLICATION":
            event["run"]["facets"].pop("parent", None)
        yield json.dumps(event) + "\n"


def test_a_run_id_that_is_none_is_told_and_the_others_are_merged(spark: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "archive"
    home.mkdir()
    text = (FIXTURES / "a_414.ndjson").read_text()
    parent = json.loads(text.splitlines()[0])["run"]["facets"]["parent"]["run"]["runId"]
    (home / "bad.ndjson").write_text(text.replace(parent, "no-uuid"))
    (home / "good.ndjson").write_text(renumbered(text, 7))
    summary = merge_archive(spark, [str(home)], str(tmp_path / "out"))
    assert list(summary.problems) == ["no-uuid"]
    assert "no RunEvent" in summary.problems["no-uuid"]
    assert events(tmp_path / "out") == expected([home / "good.ndjson"])


def test_the_status_of_a_launch_tells_its_end(spark: SparkSession, tmp_path: Path) -> None:
    run_id = "01941f29-7c00-7b00-8000-000000000001"
    text = (FIXTURES / "gpyexc_414.ndjson").read_text()
    application = application_run_id(LineDecoder().decode(text.splitlines()[0].encode())[0])
    launch = tmp_path / "archive" / "dag" / "run" / "task" / "-1" / f"1-{run_id}"
    launch.mkdir(parents=True)
    (launch / EVENTS_FILE).write_text(text.replace(application, run_id))
    transition = StatusTransition("DRIVER", "17", None, "FAILED", datetime(2026, 1, 1, tzinfo=UTC), "spark-submit")
    told = msgspec.json.encode(transition)
    # Clocks without an offset, and out of all years, are of nobody's.
    odd = [
        told.replace(b"2026-01-01T00:00:00Z", time) for time in (b"2026-01-01T00:00:00", b"0001-01-01T00:00:00+05:00")
    ]
    (launch / TRANSITIONS_FILE).write_bytes(b"\n".join([told, *odd]))
    elsewhere = tmp_path / "archive" / TRANSITIONS_FILE
    elsewhere.write_bytes(msgspec.json.encode(transition))
    summary = merge_archive(spark, [str(tmp_path / "archive")], str(tmp_path / "out"))
    (event,) = (json.loads(line) for line in events(tmp_path / "out").values())
    assert event["eventType"] == "FAIL"
    assert event["run"]["facets"]["sparkLineage_status"]["state"] == "FAIL"
    assert summary.set_aside == {"of no launch": 1, "not a StatusTransition": 2}


# ---- how it refuses, and what it is told ----


def test_what_cannot_be_used_is_said(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / os.fsdecode(b"\xff.ndjson")).touch()
    mount = f"mount-{uuid.uuid4()}"
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{mount}.link./home", tmp_path.as_uri())
    out = str(tmp_path / "out")
    for source, why in (
        (str(tmp_path / "missing"), "there is no file"),
        (str(tmp_path / "empty" / "*.nd"), "there is no file"),
        (str(tmp_path / "empty"), r"no \*.ndjson file in the directory"),
        ("nosuch://host/x", "cannot list"),
        (f"viewfs://{mount}/home/missing", "there is no file"),
        (str(tmp_path / "bytes"), "its name is not UTF-8: rename it"),
    ):
        with pytest.raises(ArchiveError, match=why):
            merge_archive(spark, [source], out)
    assert not (tmp_path / "out").exists()


def test_naming_and_limit_are_those_of_the_merge(
    spark: SparkSession, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = FIXTURES / "c_414.ndjson"
    naming = {"hostnamePattern.db": "(.*)"}
    merge_archive(spark, [str(path)], str(tmp_path / "out"), naming=naming, max_event_bytes=6_000)
    assert main(["merge", str(path), "--naming", "hostnamePattern.db=(.*)", "--max-event-bytes", "6000"]) == 0
    (event,) = events(tmp_path / "out").values()
    assert event == capsysbinary.readouterr().out.rstrip(b"\n")
    assert b"sparkLineage_reduced" in event


def test_secrets_that_patterns_of_this_machine_match_are_masked_on_executors(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text((FIXTURES / "a_414.ndjson").read_text().replace("cust.csv", "hunter2.csv"))
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__REDACTION_PATTERNS", "hunter[0-9]")
    merge_archive(spark, [str(path)], str(tmp_path / "out"))
    (event,) = events(tmp_path / "out").values()
    assert b"hunter2" not in event
    assert b"***" in event
