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
from spark_lineage.submission.submission import Submission

STREAM = Path(__file__).parents[1] / "fixtures" / "event_logs" / "stream"
APPLICATION = "local-1795291862028"
GUARD = Guard(lambda: False, logging.getLogger(__name__))


def submission(directory: Path, driver: Driver, deploy_mode: str = "client") -> Submission:
    directory = directory / "run" / "task" / "-1" / "launch"
    (directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS).mkdir(parents=True)
    master = "spark://master:7077" if deploy_mode == "cluster" else "local[2]"
    launch = Launch(str(directory), "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e", master=master, deploy_mode=deploy_mode)
    return Submission(launch, Places(), Settings(), driver, GUARD)


def test_a_lineage_file_that_cannot_be_read_costs_no_event_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("the disk is broken")

    one = submission(tmp_path, Driver())
    log = one.collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS / APPLICATION
    log.write_bytes(STREAM.read_bytes())
    monkeypatch.setattr(one.collector, "finish", fail)
    with pytest.raises(OSError, match="the disk is broken"):
        one.finish(Deadline(5))
    assert one.collector.state.executions


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
