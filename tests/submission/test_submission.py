"""The end of one launch: what is read where something cannot be, and how long others are waited for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.directory import EVENT_LOG_DIRECTORY, OWN_EVENT_LOGS
from spark_lineage.launch.driver import Driver
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.log import Guard
from spark_lineage.settings import Settings
from spark_lineage.settings.places import Places
from spark_lineage.submission.collector import earliest_of_run
from spark_lineage.submission.copies import Copies
from spark_lineage.submission.event_channel import EventSource
from spark_lineage.submission.submission import Submission
from spark_lineage.watch.endpoints import endpoints_of

STREAM = Path(__file__).parents[1] / "fixtures" / "event_logs" / "stream"
APPLICATION = "local-1795291862028"
EVENTS = "a_414.ndjson"
GUARD = Guard(lambda: False, logging.getLogger(__name__))


def submission(directory: Path, driver: Driver, deploy_mode: str = "client", **settings: Any) -> Submission:
    directory = directory / "run" / "task" / "-1" / "launch"
    (directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS).mkdir(parents=True)
    master = "spark://master:7077" if deploy_mode == "cluster" else "local[2]"
    launch = Launch(str(directory), "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e", master=master, deploy_mode=deploy_mode)
    return Submission(launch, endpoints_of(launch, Places(), GUARD), Settings(**settings), driver, GUARD)


@pytest.mark.parametrize("part", ["channel", "collector"])
def test_a_lineage_file_that_cannot_be_read_costs_no_event_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is broken")

    one = submission(tmp_path, driver := Driver())
    log = one.collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / APPLICATION
    log.write_bytes(STREAM.read_bytes())
    one.event_logs.poll()
    monkeypatch.setattr(getattr(one, part), "finish", fail)
    with pytest.raises(OSError, match="the disk is broken"):
        one.finish(Deadline(5))
    assert one.collector.state.executions
    assert driver.application_id == APPLICATION


@pytest.mark.parametrize(
    ("deploy_mode", "driver", "is_killed"),
    [
        ("client", Driver(is_submitted=True, exit_code=0), False),
        ("client", Driver(is_submitted=True, exit_code=1), False),
        ("client", Driver(is_submitted=True, exit_code=128), False),
        # By a shell, and by itself.
        ("client", Driver(is_submitted=True, exit_code=137), True),
        ("client", Driver(is_submitted=True, exit_code=-9), True),
        ("cluster", Driver(is_submitted=True, exit_code=0), False),
        # Nothing has begun of which a log could come.
        ("cluster", Driver(is_submitted=True, exit_code=1), None),
        ("cluster", Driver(is_submitted=True, exit_code=1, driver_id="driver-1"), False),
        ("client", Driver(), None),
    ],
)
def test_an_event_log_is_waited_for_as_the_driver_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deploy_mode: str, driver: Driver, is_killed: bool | None
) -> None:
    told: list[Any] = []
    one = submission(tmp_path, driver, deploy_mode)
    monkeypatch.setattr(one.mirror, "finish", lambda _, **how: told.append(how["is_killed"]))
    one.finish(Deadline(5))
    assert told == ([] if is_killed is None else [is_killed])


@pytest.mark.parametrize(
    ("settings", "is_read"),
    [({}, True), ({"evidence": "listener"}, False), ({"event_log_from": "history"}, False)],
)
def test_a_log_is_read_where_the_driver_says_unless_the_user_has_another_place(
    tmp_path: Path, settings: dict[str, str], *, is_read: bool
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / APPLICATION).write_bytes(STREAM.read_bytes())
    looked: list[Any] = []
    driver = Driver(event_logs=(str(tmp_path / "logs"),), logged_ids=(APPLICATION,))
    one = submission(tmp_path, driver, **settings)
    one.event_logs.look_into = lambda *places: looked.append(places)  # type: ignore[method-assign]
    one.poll()
    assert bool(looked) == is_read


def test_events_that_were_lost_on_their_way_make_the_lineage_torn_and_their_source_is_closed(tmp_path: Path) -> None:
    closed: list[bool] = []

    class Lossy(EventSource):
        def close(self) -> None:
            self.set_aside["refused"] = 2
            closed.append(True)

    one = submission(tmp_path, Driver())
    one.collector.directory.joinpath("events.ndjson").write_bytes((STREAM.parents[1] / "events" / EVENTS).read_bytes())
    one.channel._source = Lossy("", tmp_path)
    one.channel.finish(one.collector, Deadline(5))
    assert closed == [True]
    assert one.collector.counts.set_aside == {"refused": 2}
    assert one.collector.state.is_torn


def test_what_is_a_little_older_than_its_run_may_be_of_it() -> None:
    born = 0x0190A5B27C1E / 1000
    assert born - 600 < earliest_of_run("0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e") < born
    assert earliest_of_run("no run") == 0


def test_a_copy_that_was_read_and_removed_is_not_begun_in_its_middle(tmp_path: Path) -> None:
    copies = Copies(tmp_path, set(), lambda: False)
    copies.add(APPLICATION, "", [b"first"])
    (copy,) = (one for one in tmp_path.rglob("*") if one.is_file())
    copy.unlink()
    copies.add(APPLICATION, "", [b"second"])
    assert not copy.exists()
