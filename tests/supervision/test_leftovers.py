"""What is removed of what completed applications left, and above all what is not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.supervision.leftovers import Leftover, remove_leftovers

OLD, NEW = 40, 1
RUNS = "application_1700000000000_0007"


def made(path: Path, days: float = OLD) -> Path:
    """Make a file that was changed so many days ago, and give it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    changed = time.time() - days * 86_400
    os.utime(path, (changed, changed))
    return path


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)
    changed = time.time() - OLD * 86_400
    os.utime(path, (changed, changed), follow_symlinks=False)


def removed(directories: dict[str, list[str]], **options: Any) -> dict[str, Leftover]:
    options = {"older_than_days": 30, "is_running": {RUNS: True}.get, "is_dry_run": False} | options
    return {one.path.rpartition("/")[2]: one for one in remove_leftovers(directories, **options)}  # type: ignore[arg-type]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A directory of event logs."""
    logs = tmp_path / "logs"
    made(logs / "application_1700000000000_0001_1.zstd")
    made(logs / "application_1700000000000_0002", NEW)
    made(logs / f"{RUNS}_1.inprogress")
    made(logs / "local-1700000000001.inprogress")
    made(logs / "eventlog_v2_app-20260101120000-0001" / "events_1_app-20260101120000-0001.zstd")
    made(logs / "eventlog_v2_app-20260101120000-0001" / "appstatus_app-20260101120000-0001")
    made(logs / "eventlog_v2_app-20260101120000-0002" / "events_1_app-20260101120000-0002.zstd")
    made(logs / "eventlog_v2_app-20260101120000-0002" / "events_2_app-20260101120000-0002.zstd", NEW)
    made(logs / "eventlog_v2_app-20260101120000-0003" / "appstatus_app-20260101120000-0003.inprogress")
    made(logs / "our notes.txt")
    made(logs / "application_of_a_colleague")
    return logs


def test_event_logs(logs: Path) -> None:
    entries = removed({"event_logs": [str(logs)]})
    unknown, young = "it is not known whether its application runs", "it is not old enough, or its age is not known"
    assert {name: one.reason for name, one in entries.items() if not one.is_removed} == {
        "application_1700000000000_0002": young,
        f"{RUNS}_1.inprogress": "its application runs",
        "local-1700000000001.inprogress": unknown,
        "eventlog_v2_app-20260101120000-0002": young,
        "eventlog_v2_app-20260101120000-0003": unknown,
    }
    gone = {"application_1700000000000_0001_1.zstd", "eventlog_v2_app-20260101120000-0001"}
    assert {name for name, one in entries.items() if one.is_removed} == gone
    assert {one.reason for one in entries.values() if one.is_removed} == {"nothing was added for 40 days"}
    left = {path.name for path in logs.iterdir()}
    assert left == (entries.keys() - gone) | {"our notes.txt", "application_of_a_colleague"}
    # When the manager says that it has ended, an open log was killed.
    assert removed({"event_logs": [str(logs)]}, is_running=lambda _: False)[f"{RUNS}_1.inprogress"].is_removed


def test_a_dry_run_says_the_same_and_removes_nothing(logs: Path) -> None:
    before = sorted(logs.rglob("*"))
    dry = removed({"event_logs": [str(logs)]}, is_dry_run=True)
    assert sorted(logs.rglob("*")) == before
    assert removed({"event_logs": [str(logs)]}) == dry


def test_a_running_application_keeps_a_log_that_is_complete(tmp_path: Path) -> None:
    first_attempt = made(tmp_path / f"{RUNS}_1")
    assert not removed({"event_logs": [str(tmp_path)]})[first_attempt.name].is_removed
    assert first_attempt.exists()


def test_staging(tmp_path: Path) -> None:
    for name in (RUNS, "application_1700000000000_0003", "application_1700000000000_0004"):
        made(tmp_path / name / "__spark_conf__.zip")
    states = {RUNS: True, "application_1700000000000_0003": False}
    entries = removed({"staging": [str(tmp_path)]}, is_running=states.get)
    assert [name for name, one in entries.items() if one.is_removed] == ["application_1700000000000_0003"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "application_1700000000000_0004",
        "application_1700000000000_0007",
    ]


def checkpoint(path: Path, days: float = OLD) -> None:
    for name in ("metadata", "offsets/0", "commits/0"):
        made(path / name, days)


def test_checkpoints(tmp_path: Path) -> None:
    checkpoint(tmp_path / "gone" / "follow_orders")
    made(tmp_path / "gone" / "follow_orders" / "state" / "0")
    made(tmp_path / "gone" / "somebody_elses.csv")
    checkpoint(tmp_path / "gone_today" / "follow_orders", NEW)
    checkpoint(tmp_path / "orders_stream" / "follow_orders")
    made(tmp_path / "tables" / "part-0.parquet")
    checkpoint(tmp_path / "with_its_table")
    made(tmp_path / "with_its_table" / "table" / "part-0.parquet")
    made(tmp_path / "gone" / "follow_orders" / ".metadata.crc")
    directories = {"checkpoints": [str(tmp_path)]}
    assert not any(one.is_removed for one in removed(directories).values())
    entries = removed(directories, dag_ids={"orders_stream"})
    assert {name: one.reason for name, one in entries.items()} == {
        "follow_orders": "nothing was added for 40 days",
        "gone_today": "it is not old enough, or its age is not known",
        "orders_stream": "there is a DAG of that name",
        "tables": "it holds no checkpoint, or something else beside it",
        "with_its_table": "it holds no checkpoint, or something else beside it",
    }
    assert [path.name for path in (tmp_path / "gone").iterdir()] == ["somebody_elses.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "gone",
        "gone_today",
        "orders_stream",
        "tables",
        "with_its_table",
    ]


def test_nothing_is_removed_through_a_link(tmp_path: Path) -> None:
    elsewhere, logs, checkpoints = (tmp_path / name for name in ("elsewhere", "logs", "checkpoints"))
    kept = made(elsewhere / "appstatus_app-20260101120000-0001")
    checkpoint(elsewhere / "stream")
    logs.mkdir()
    link(logs / "eventlog_v2_app-20260101120000-0001", elsewhere)
    link(logs / "local-1", kept)
    checkpoint(checkpoints / "gone" / "task")
    link(checkpoints / "gone" / "task" / "state", elsewhere)
    link(checkpoints / "gone" / "round", checkpoints / "gone")
    link(checkpoints / "linked", elsewhere)
    entries = removed({"event_logs": [str(logs)], "checkpoints": [str(checkpoints)]}, dag_ids=set())
    assert {name: one.reason for name, one in entries.items() if not one.is_removed} == {
        "eventlog_v2_app-20260101120000-0001": "it is a link",
        "local-1": "it is a link",
        "linked": "it is a link",
    }
    assert [path.name for path in (checkpoints / "gone").iterdir()] == ["round"]
    assert len(list(elsewhere.rglob("*"))) == 7
    assert kept.exists()


def test_one_that_cannot_be_removed_does_not_keep_the_others(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.local import LocalFileSystem

    remove = LocalFileSystem.rm

    def refused(self: Any, path: str, *, recursive: bool = False) -> None:
        if "application_" in path:
            raise PermissionError(path)
        remove(self, path, recursive=recursive)

    monkeypatch.setattr(LocalFileSystem, "rm", refused)
    entries = removed({"event_logs": [str(logs)]})
    refused_one = entries["application_1700000000000_0001_1.zstd"]
    assert (refused_one.is_removed, refused_one.reason) == (False, "it cannot be removed: PermissionError")
    assert entries["eventlog_v2_app-20260101120000-0001"].is_removed


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system that is not this machine's, by fsspec's own driver."""
    import fsspec

    fs = fsspec.filesystem("memory")
    yield fs
    fs.rm("/leftovers", recursive=True)


def test_a_remote_directory(memory: Any) -> None:
    for name in ("local-1", "local-12", "local-2.inprogress"):
        memory.pipe(f"/leftovers/logs/{name}", b"x")
    directories = {"event_logs": ["memory://leftovers/logs"]}
    assert not any(one.is_removed for one in removed(directories).values())
    entries = removed(directories, older_than_days=-1)
    assert [name for name, one in entries.items() if one.is_removed] == ["local-1", "local-12"]
    assert memory.ls("/leftovers/logs", detail=False) == ["/leftovers/logs/local-2.inprogress"]


def test_a_directory_that_is_not_there_does_not_keep_the_others(logs: Path) -> None:
    nowhere = str(logs.parent / "nowhere")
    first, *others = remove_leftovers({"event_logs": [nowhere, str(logs)]}, older_than_days=30)
    assert first == Leftover("event_logs", nowhere, is_removed=False, reason="it cannot be listed: FileNotFoundError")
    assert any(one.is_removed for one in others)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("hdfs://other:8020/logs", "which webhdfs_url of the connections is of its NameNode is not known"),
        ("hdfs:///logs", "which webhdfs_url of the connections is of its NameNode is not known"),
        # It is asked, and is not there.
        ("hdfs://localhost:8020/logs", "ConnectionError"),
        ("ftp://localhost/logs", "ftp:// is not read here"),
    ],
)
def test_where_nothing_can_be_cleaned_it_says_why_and_cleans_no_other_cluster(url: str, why: str) -> None:
    clusters = [["http://localhost:1"], ["http://127.0.0.1:1", "http://127.0.0.2:1"]]
    (entry,) = remove_leftovers({"event_logs": [url]}, older_than_days=30, webhdfs_urls=clusters)
    assert entry.reason.startswith(f"it cannot be listed: {why}")
