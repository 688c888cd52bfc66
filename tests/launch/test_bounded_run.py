"""What may hang is waited for no longer than there is time."""

from __future__ import annotations

import threading
import time

import pytest

from spark_lineage.launch.bounded_run import BoundedRun, Deadline


def test_what_ends_in_time_has_ended_at_once() -> None:
    done: list[int] = []
    began = time.monotonic()
    assert BoundedRun(lambda: done.append(1), "test").wait(60) is True
    assert done == [1]
    assert time.monotonic() - began < 30


def test_what_hangs_is_left_and_can_be_waited_for_again() -> None:
    goes_on = threading.Event()
    run = BoundedRun(goes_on.wait, "test")
    assert run.wait(0.2) is False
    goes_on.set()
    assert run.wait(Deadline(30)) is True


def test_the_time_may_become_less_meanwhile() -> None:
    whole = Deadline()
    run = BoundedRun(threading.Event().wait, "test")
    threading.Timer(0.2, lambda: whole.hurry(0)).start()
    assert run.wait(whole.within(60)) is False


def test_what_it_raises_is_raised_once_to_whoever_waits() -> None:
    def fail() -> None:
        raise OSError("no such file")

    run = BoundedRun(fail, "test")
    with pytest.raises(OSError, match="no such file"):
        run.wait(60)
    assert run.wait(60) is True
