"""The lineage directory: what is cleaned up there, and what is not."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from launches import EVENTS_FILE, location

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
DAY_SECONDS = 24 * 60 * 60


def old(directory: Path, name: str, days: float) -> Path:
    """A file that was last written to so many days ago."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text("{}\n")
    moment = time.time() - days * DAY_SECONDS
    os.utime(file, (moment, moment))
    os.utime(directory, (moment, moment))
    return file


def launch_name(letter: str) -> str:
    """The name of a launch's directory: the try, and the application's run id."""
    return f"1-01890a5d-ac96-7dde-8a63-{letter * 12}"


def test_old_launches_are_cleaned_up_and_nothing_else(bench: Any) -> None:
    root = bench.lineage_dir
    expired = old(root / "shop" / "january" / "load" / "-1" / launch_name("a"), EVENTS_FILE, 8)
    recent = old(root / "shop" / "january" / "save" / "-1" / launch_name("b"), EVENTS_FILE, 6)
    foreign = old(root / "shop" / "january" / "mine" / "-1" / launch_name("c"), "notes.txt", 80)
    shallow = old(root / "shop", EVENTS_FILE, 80)
    users = old(root / "a" / "b" / "c" / "d" / "of-the-user", EVENTS_FILE, 80)
    outcome = bench.run(lineage=[EVENTS], retention_days=7)
    assert not expired.exists()
    assert not (root / "shop" / "january" / "load").exists()
    assert recent.exists()
    assert foreign.exists()
    assert shallow.exists()
    assert users.exists()
    assert location(outcome).exists()
    assert "Old lineage files are not removed" not in outcome.printed


def test_the_current_launch_is_kept_however_short_the_retention(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], retention_days=1e-12)
    assert location(outcome).exists()


def test_an_old_launch_without_events_is_cleaned_up(bench: Any) -> None:
    empty = old(bench.lineage_dir / "shop" / "january" / "load" / "-1" / launch_name("a"), "x", 80).parent
    (empty / "x").unlink()
    os.utime(empty, (0, 0))
    bench.run(lineage=[EVENTS], retention_days=7)
    assert not empty.exists()


def test_what_a_killed_worker_left_of_a_private_file_is_cleaned_up(bench: Any) -> None:
    directory = bench.lineage_dir / "shop" / "january" / "load" / "-1" / launch_name("a")
    old(directory, EVENTS_FILE, 80)
    secret = old(directory, "spark.properties", 80)
    bench.run(lineage=[EVENTS], retention_days=7)
    assert not secret.exists()
    assert not directory.exists()


def test_names_of_dag_and_run_do_not_lead_out_of_the_directory(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], task={"dag_id": "..", "run_id": "../../../x/y", "task_id": "a/b"})
    file = location(outcome)
    assert ".." not in file.parts
    assert file.relative_to(bench.lineage_dir).parts[-1] == EVENTS_FILE
    assert len(file.relative_to(bench.lineage_dir).parts) == 6
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_without_room_on_its_disk_no_event_log_is_begun_which_would_fail_the_driver(bench: Any) -> None:
    bench.is_by_policy, bench.operator = True, "own_operators:OnFullDisk"
    outcome = bench.run(lineage=[EVENTS])
    assert outcome.error is None
    assert "No event log is read: the disk of" in outcome.printed
    assert "spark.eventLog.enabled" not in outcome.command["conf"]
    assert outcome.names("outputs")
