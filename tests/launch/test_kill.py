"""How much time is left, and how much of it a task has when it is being killed."""

from __future__ import annotations

import math

import pytest

from spark_lineage.launch.bounded_run import Deadline, Kill, cut_off_by


def test_there_is_no_end_until_there_is_one() -> None:
    assert Deadline().seconds_left == math.inf
    assert 59 < Deadline(60).seconds_left <= 60
    assert Deadline(-1).seconds_left == 0


def test_a_part_ends_with_the_whole_and_leaves_some_of_it() -> None:
    whole = Deadline(10)
    assert 4 < whole.within(5).seconds_left <= 5
    assert 9 < whole.within(60).seconds_left <= 10
    assert 7 < whole.within(60, leaving=2).seconds_left <= 8
    assert whole.within(60, leaving=60).seconds_left == 0
    assert 2 < whole.within(60, leaving=60, at_least=3).seconds_left <= 3


def test_a_part_that_has_begun_is_hurried_with_the_whole() -> None:
    whole = Deadline()
    part = whole.within(60)
    whole.hurry(1)
    assert 0 < part.seconds_left <= 1
    whole.hurry(30)
    assert part.seconds_left <= 1


def test_nothing_is_cut_short_before_the_kill() -> None:
    kill = Kill()
    assert (kill.is_asked, kill.deadline.seconds_left) == (False, math.inf)


def test_what_is_asked_again_begins_no_new_time() -> None:
    kill = Kill()
    kill.request("on_kill")
    first = kill.deadline.seconds_left
    kill.request("AirflowTaskTimeout", is_too_late=True)
    assert (kill.is_asked, kill.why) == (True, "on_kill")
    assert 0 < kill.deadline.seconds_left <= first < 5


def test_what_has_ended_by_itself_is_not_killed_and_has_no_more_time_either() -> None:
    kill = Kill()
    kill.request("on_kill", is_too_late=True)
    assert not kill.is_asked
    assert kill.deadline.seconds_left < 5


def test_who_is_not_going_to_be_killed_has_all_the_time_until_he_is() -> None:
    kill = Kill()
    kill.request("AirflowTaskTimeout", is_hurried=False)
    assert (kill.is_asked, kill.deadline.seconds_left) == (True, math.inf)
    kill.request("on_kill")
    assert (kill.is_asked, kill.why) == (True, "AirflowTaskTimeout")
    assert kill.deadline.seconds_left < 5


def test_timeout_that_another_error_hides_cuts_a_task_off() -> None:
    timeout = type("AirflowTaskTimeout", (BaseException,), {})
    hidden, caught = ValueError(), ValueError()
    try:
        try:
            raise timeout
        finally:
            raise hidden
    except ValueError:
        pass
    try:
        raise caught
    except ValueError:
        pass

    assert [cut_off_by(one) for one in (timeout(), hidden, caught)] == ["AirflowTaskTimeout"] * 2 + [""]


@pytest.mark.parametrize(("error", "why"), [(KeyboardInterrupt(), "KeyboardInterrupt"), (SystemExit(3), "")])
def test_program_that_exits_is_not_cut_off(error: BaseException, why: str) -> None:
    assert cut_off_by(error) == why
