"""The directories for lineage and for events that wait: where they cannot be written, and what is in them."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from spark_lineage.deliver.courier import Courier
from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import sender_of
from spark_lineage.deliver.spool import Spool
from spark_lineage.doctor import directories
from spark_lineage.doctor.directories import check_lineage_directory, check_outbox, check_records


def told(findings: Any) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in findings]


def test_a_directory_that_is_not_there_yet_can_be_made_and_nothing_is_left(setup: Any, tmp_path: Path) -> None:
    for check in (check_lineage_directory, check_outbox):
        ((level, text),) = told(check(setup(lineage_dir=f"{tmp_path}/a/b", outbox_dir=f"{tmp_path}/c")))
        assert level == "ok"
        assert "not there yet, and can be made" in text
    assert list(tmp_path.iterdir()) == []


def test_records_are_written_and_read_where_the_setting_says(setup: Any, tmp_path: Path) -> None:
    assert told(check_records(setup())) == []
    assert told(check_records(setup(records_dir=f"file:{tmp_path}")))[0][0] == "ok"
    assert told(check_records(setup(records_dir="memory://records"))) == [("ok", "records_dir can be written and read")]
    ((level, text),) = told(check_records(setup(records_dir="s3://nobody@bucket/records")))
    assert (level, "nobody" in text) == ("problem", True)


def test_a_file_in_its_place_or_above(setup: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("file", "file/below", "file/further/below"):
        for check in (check_lineage_directory, check_outbox):
            directory = str(tmp_path / place)
            (found,) = check(setup(lineage_dir=directory, outbox_dir=directory))
            assert found.level == "problem"
            assert re.match(rf"{directory}(/\d+)? cannot be written", found.text)
            assert "set " in found.remedy


@pytest.mark.parametrize("directory", ["relative/path", "s3://bucket/lineage"])
def test_what_is_no_absolute_path(setup: Any, directory: str) -> None:
    for check in (check_lineage_directory, check_outbox):
        assert [level for level, _ in told(check(setup(lineage_dir=directory, outbox_dir=directory)))] == ["problem"]


def test_a_directory_that_everybody_can_write(setup: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    first, _ = told(check_lineage_directory(setup(lineage_dir=str(tmp_path))))
    assert first == ("warning", f"every user can write to {tmp_path}, and remove or replace what is there")
    tmp_path.chmod(0o1777)
    assert [level for level, _ in told(check_lineage_directory(setup(lineage_dir=str(tmp_path))))] == ["ok"]


def test_a_full_disk(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for free_bytes, level in ((1_000_000, "problem"), (500_000_000, "warning"), (10**12, "ok")):
        # A disk that is nearly full cannot be made without rights that a test does not have.
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free_bytes: SimpleNamespace(free=free))
        assert told(check_lineage_directory(setup()))[0][0] == level
        assert told(check_outbox(setup()))[0][0] == level


def test_where_worker_and_driver_are_two_hosts(setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "self" / "mounts"
    mounts.parent.mkdir()
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    yarn, kubernetes, standalone = (
        {"master": master, "extra": {"deploy-mode": "cluster"}}
        for master in ("yarn", "k8s://host", "spark://host:7077")
    )
    for kind, spark, further in (
        ("ext4", {}, []),
        ("ext4", yarn, ["problem"]),
        ("ext4", kubernetes, ["problem"]),
        # Its driver may run on this very host.
        ("ext4", standalone, ["warning"]),
        ("nfs4", yarn, []),
        ("nfs4", {}, ["warning"]),
        ("fuse.s3fs", yarn, ["warning"]),
    ):
        mounts.write_text(f"x / {kind} rw 0 0\n")
        assert [level for level, _ in told(check_lineage_directory(setup(**spark)))] == ["ok", *further]
    assert [level for level, _ in told(check_outbox(setup()))] == ["ok", "warning"]


def test_lineage_that_is_switched_off(setup: Any) -> None:
    assert told(check_lineage_directory(setup(lineage_enabled=False)))[0][0] == "warning"


def event(kind: str = "COMPLETE") -> bytes:
    run, job = {"runId": str(uuid.uuid4())}, {"namespace": "n", "name": "j"}
    content = {"eventType": kind, "eventTime": "2024-01-31T00:00:00Z", "producer": "p", "schemaURL": "s"}
    return json.dumps({**content, "run": run, "job": job, "inputs": [], "outputs": []}).encode()


def test_events_that_wait_and_an_outbox_that_is_nearly_full(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = Outbox(tmp_path / "out" / str(os.getuid()))
    for _ in range(3):
        outbox.spool("marquez").put(Outgoing.of(event()))
    size = sum(one.bytes for one in outbox.destinations())
    _, waiting = told(check_outbox(setup()))
    assert waiting[0] == "ok"
    assert waiting[1].startswith("3 events wait for marquez, the oldest since 20")
    for limit, level in ((size * 1.1, "warning"), (size, "problem")):
        monkeypatch.setattr(directories, "MAX_BYTES", limit)
        assert told(check_outbox(setup()))[-1][0] == level
    assert [one.waiting for one in outbox.destinations()] == [3]


def deliver(spool: Spool, url: str) -> None:
    sender = sender_of({"type": "http", "url": url})
    Courier(spool, sender, spool.take_turn(), lambda: False).run()
    sender.close()


def test_outbox_of_another_user_is_looked_at_too(setup: Any, tmp_path: Path) -> None:
    Outbox(tmp_path / "out" / "12345").spool("marquez").put(Outgoing.of(event()))
    level, text = told(check_outbox(setup()))[-1]
    assert (level, text[:28]) == ("ok", "1 events wait for marquez, t")


def test_events_that_were_refused_and_a_backend_that_does_not_answer(
    setup: Any, tmp_path: Path, server: Any, dead_port: int
) -> None:
    outbox = Outbox(tmp_path / "out" / str(os.getuid()))
    outbox.spool("marquez").put(Outgoing.of(event()))
    url = server({"*": (422, {"message": "no such field"})})
    deliver(outbox.spool("marquez"), url)
    outbox.spool("atlantis").put(Outgoing.of(event()))
    deliver(outbox.spool("atlantis"), f"http://127.0.0.1:{dead_port}")
    (waiting,) = [found for found in check_outbox(setup()) if "wait for" in found.text]
    assert (waiting.level, "Connection refused" in waiting.text) == ("warning", True)
    (found,) = [found for found in check_outbox(setup()) if "has refused" in found.text]
    assert (found.level, found.text) == ("warning", "marquez has refused 1 events")
    assert "spark-lineage outbox list" in found.remedy


def test_a_local_directory_that_nobody_has_set_is_no_problem_in_cluster_mode(
    setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("spark_lineage.doctor.directories.lineage_directory", lambda _: str(tmp_path / "lineage"))
    patient = {"master": "yarn", "extra": {"deploy-mode": "cluster"}}
    assert [level for level, _ in told(check_lineage_directory(setup(lineage_dir="", **patient)))] == ["ok"]
    levels = [
        level
        for level, _ in told(check_lineage_directory(setup(lineage_dir="", event_log_from="directory", **patient)))
    ]
    assert levels == ["ok", "problem"]
