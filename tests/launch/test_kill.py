"""How much of the time that a task has, when it is being killed, is left for something."""

from __future__ import annotations

from spark_lineage.launch.kill import Kill


def test_nothing_is_cut_short_before_the_kill() -> None:
    kill = Kill()
    assert (kill.is_asked, kill.seconds(60)) == (False, 60)


def test_what_is_asked_again_begins_no_new_time() -> None:
    kill = Kill()
    kill.ask("on_kill")
    first = kill.seconds(60)
    kill.ask("AirflowTaskTimeout", is_too_late=True)
    assert (kill.is_asked, kill.why) == (True, "on_kill")
    assert 0 < kill.seconds(60) <= first < 5
    assert kill.seconds(0.1) == 0.1


def test_what_comes_later_has_its_share() -> None:
    kill = Kill()
    kill.ask("on_kill")
    assert kill.seconds(60, leaving=1) <= kill.seconds(60) - 0.9
    assert kill.seconds(60, leaving=60) == 0


def test_what_has_ended_by_itself_is_not_killed_and_has_no_more_time_either() -> None:
    kill = Kill()
    kill.ask("on_kill", is_too_late=True)
    assert not kill.is_asked
    assert kill.seconds(60) < 5


def test_who_is_not_going_to_be_killed_has_all_the_time_until_he_is() -> None:
    kill = Kill()
    kill.ask("AirflowTaskTimeout", is_hurried=False)
    assert (kill.is_asked, kill.seconds(60)) == (True, 60)
    kill.ask("on_kill")
    assert (kill.is_asked, kill.why) == (True, "AirflowTaskTimeout")
    assert kill.seconds(60) < 5
