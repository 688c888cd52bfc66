from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.deliver.outbox.outbox import Delivered, Outbox, OutboxError
from spark_lineage.settings.places import outbox_directory

if TYPE_CHECKING:
    from pathlib import Path

DESTINATION = "marquez"
RUN = "0190a5b2-7c1e-7d5f-9d4b-{:012x}"


def put(outbox: Outbox, *contents: bytes, destination: str = DESTINATION) -> None:
    for content in contents:
        outbox.put(destination, content)


def flush(outbox: Outbox, backend: Any, seconds: float = 20, *, destination: str = DESTINATION) -> Delivered:
    return outbox.deliver([destination], backend.open, seconds, is_asked_for=True)


def dead(outbox: Outbox) -> list[tuple[str, str]]:
    return [(one.head.event_type, one.answer) for one in outbox.events(is_dead=True)]


def waiting(outbox: Outbox) -> list[str]:
    return [one.head.event_type for one in outbox.events(is_dead=False)]


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    Outbox(tmp_path / "outbox").close()
    assert not (tmp_path / "outbox").exists()


def test_events_arrive_in_order_and_leave(outbox: Outbox, backend: Any, event: Any) -> None:
    events = [
        event(run, kind, second) for second, kind in enumerate(("START", "RUNNING", "COMPLETE")) for run in (0, 1)
    ]
    put(outbox, *events)
    assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(sent=6)
    assert backend.taken == events
    assert outbox.events() == outbox.destinations() == []


def test_what_is_kept_is_what_is_sent_whatever_is_in_it(outbox: Outbox, backend: Any, event: Any) -> None:
    strange = event(
        run=1, ours={"käse": ["\U0001f9c0", 0, False]}, inputs=[{"namespace": "n", "name": "ä", "facets": {}}]
    )
    put(outbox, strange)
    flush(outbox, backend)
    assert [json.loads(one) for one in backend.taken] == [json.loads(strange)]


@pytest.mark.parametrize(
    "content",
    [
        {"job": {"namespace": "n", "name": "j"}, "outputs": [{"namespace": "n", "name": "d"}]},
        {"dataset": {"namespace": "n", "name": "d", "facets": {"x": {"_producer": "p", "_schemaURL": "s"}}}},
    ],
)
def test_events_without_a_run_are_kept_too(outbox: Outbox, backend: Any, content: dict[str, Any]) -> None:
    event = json.dumps({"eventTime": "2024-01-31T12:00:00Z", "producer": "p", "schemaURL": "s", **content}).encode()
    put(outbox, event)
    assert flush(outbox, backend) == Delivered(sent=1)
    assert [json.loads(one) for one in backend.taken] == [json.loads(event)]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"run":{},"job":{"namespace":"n","name":"j"}}']
)
def test_what_is_no_event_is_not_kept(outbox: Outbox, content: bytes) -> None:
    with pytest.raises(OutboxError, match="not an event of OpenLineage"):
        put(outbox, content)


def test_what_no_transport_can_send_is_a_dead_letter(outbox: Outbox, backend: Any, event: Any) -> None:
    put(outbox, event(eventTime="yesterday"), event(run=1))
    assert flush(outbox, backend) == Delivered(sent=1, refused=1)
    ((_, answer),) = dead(outbox)
    assert "Expected a date" in answer


def test_the_same_content_waits_once_but_may_come_again(outbox: Outbox, backend: Any, event: Any) -> None:
    put(outbox, event(0, "RUNNING"), event(0, "RUNNING"), event(0, "RUNNING", 1))
    outbox.put("other", event(0, "RUNNING"))
    assert len(outbox.events()) == 3
    flush(outbox, backend)
    put(outbox, event(7, "RUNNING"))
    put(outbox, event(7, "RUNNING"))
    assert len(outbox.events([DESTINATION])) == 1


def test_a_run_begins_once_until_it_ends(outbox: Outbox, backend: Any, event: Any) -> None:
    """A task that was deferred has another START with the same run id, and Marquez drops its edges at each."""
    put(outbox, event(0, "START", 1), event(0, "START", 2))
    flush(outbox, backend)
    outbox.put(DESTINATION, event(0, "START", 3))
    assert outbox.open_runs() == {RUN.format(0): "airflow dag.task"}
    put(outbox, event(0, "FAIL", 4), event(0, "START", 5))
    outbox.put("other", event(0, "START", 1))
    assert [one.head.event_time[17:19] for one in outbox.events([DESTINATION])] == ["04", "05"]
    assert len(outbox.events(["other"])) == 1


def test_an_end_that_says_nothing_new_is_not_kept(outbox: Outbox, backend: Any, event: Any) -> None:
    """A scheduler that was killed before it had committed the end of a DAG run ends it again."""
    put(outbox, event(0, "START", 1), event(0, "COMPLETE", 2), event(0, "COMPLETE", 3))
    assert len(outbox.events()) == 2
    flush(outbox, backend)
    put(outbox, event(0, "COMPLETE", 4))
    assert outbox.events() == []
    # Somebody has marked it as failed; and a worker that was slow has the lineage.
    put(outbox, event(0, "FAIL", 5), event(0, "FAIL", 6, inputs=[{"namespace": "s3://lake", "name": "a"}]))
    # It is begun anew.
    put(outbox, event(0, "START", 7), event(0, "COMPLETE", 8))
    assert [one.head.event_time[17:19] for one in outbox.events()] == ["05", "06", "07", "08"]


def test_what_others_put_meanwhile_does_not_count_as_waiting(outbox: Outbox, backend: Any, event: Any) -> None:
    outbox.put(DESTINATION, event(0, "COMPLETE", 1))

    def another_task_begins(_: Any) -> Any:
        put(outbox, *(event(run, "START") for run in range(1, 4)))
        backend.answer = lambda _: (503, {}, "") if len(backend.taken) else (201, {}, "")
        return 201, {}, ""

    backend.answer = another_task_begins
    assert flush(outbox, backend, 1) == Delivered(sent=1)


def test_runs_that_have_ended_are_known(outbox: Outbox, backend: Any, event: Any) -> None:
    run_id = RUN.format(0)
    outbox.put(DESTINATION, event(0, "START", 1))
    assert not outbox.has_ended(DESTINATION, run_id)
    outbox.put(DESTINATION, event(0, "ABORT", 2))
    assert outbox.has_ended(DESTINATION, run_id)
    flush(outbox, backend)
    assert outbox.has_ended(DESTINATION, run_id)
    assert not outbox.has_ended("other", run_id)


def test_a_backend_that_is_away_keeps_events_waiting_and_is_not_asked_again_at_once(
    outbox: Outbox, backend: Any, event: Any
) -> None:
    put(outbox, event())
    backend.answer = lambda _: (503, {}, "closed")
    assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(waiting=1)
    asked = len(backend.came)
    backend.answer = lambda _: (201, {}, "")
    # Another task, which is another process.
    later = Outbox(outbox.directory)
    start = time.monotonic()
    assert later.deliver([DESTINATION], backend.open, 20) == Delivered(waiting=1)
    assert time.monotonic() - start < 1
    assert len(backend.came) == asked
    (state,) = later.destinations()
    assert 0 < state.paused_seconds <= 2
    assert "503" in state.answer
    assert flush(later, backend) == Delivered(sent=1)
    assert later.destinations() == []
    later.close()


def test_the_breaker_lets_one_probe_through_when_its_time_is_over(outbox: Outbox, backend: Any, event: Any) -> None:
    put(outbox, event(), event(run=1))
    backend.answer = lambda _: (503, {"Retry-After": "0"}, "")
    outbox.deliver([DESTINATION], backend.open, 20)
    backend.came.clear()
    backend.answer = lambda _: (500, {}, "")
    assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(waiting=2)
    assert len(backend.came) == 1


def test_retry_after_is_honoured(outbox: Outbox, backend: Any, event: Any) -> None:
    put(outbox, event())
    backend.answer = lambda _: (429, {"Retry-After": "120"}, "slower")
    outbox.deliver([DESTINATION], backend.open, 20)
    (state,) = outbox.destinations()
    assert 115 < state.paused_seconds <= 120
    assert len(backend.came) == 1


def test_a_moment_of_trouble_is_over_within_one_delivery(outbox: Outbox, backend: Any, event: Any) -> None:
    put(outbox, event())
    backend.answer = lambda _: (500, {}, "") if len(backend.came) < 2 else (201, {}, "")
    assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(sent=1)


def test_refused_events_are_dead_letters_with_the_answer_and_the_next_are_sent(
    outbox: Outbox, backend: Any, event: Any, logged: pytest.LogCaptureFixture
) -> None:
    put(outbox, event(), event(run=1))
    backend.answer = lambda content: (
        (422, {}, "no schemaURL; password=hunter2") if b'000"' in content else (201, {}, "")
    )
    assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(sent=1, refused=1)
    ((_, answer),) = dead(outbox)
    assert "422" in answer
    assert "no schemaURL" in answer
    assert "hunter2" not in answer + logged.text
    assert "422" in logged.text
    (state,) = outbox.destinations()
    assert (state.waiting, state.dead) == (0, 1)


def test_dead_letters_are_sent_again_in_their_old_place(outbox: Outbox, backend: Any, event: Any) -> None:
    start, end = event(), event(0, "COMPLETE", 1)
    put(outbox, start)
    backend.answer = lambda _: (400, {}, "")
    flush(outbox, backend)
    put(outbox, end)
    (refused,) = outbox.events(is_dead=True)
    assert outbox.retry([refused.id]) == [refused]
    backend.answer = lambda _: (201, {}, "")
    flush(outbox, backend)
    assert backend.taken == [start, end]


def test_a_dead_letter_that_waits_again_begins_anew(outbox: Outbox, backend: Any, event: Any) -> None:
    put(outbox, event())
    backend.answer = lambda _: (400, {}, "")
    flush(outbox, backend)
    (refused,) = outbox.events()
    assert refused.attempts == 1
    outbox.retry([refused.id])
    (again,) = outbox.events()
    assert (again.is_dead, again.attempts, again.answer) == (False, 0, "")


@pytest.mark.parametrize(("status", "attempts"), [(503, 0), (500, 1)])
def test_only_what_may_be_its_fault_counts_as_a_try_of_an_event(
    outbox: Outbox, backend: Any, event: Any, status: int, attempts: int
) -> None:
    put(outbox, event())
    backend.answer = lambda _: (status, {}, "")
    flush(outbox, backend)
    assert [one.attempts for one in outbox.events()] == [attempts]


def test_a_dead_letter_whose_content_waits_already_is_one_event(outbox: Outbox, backend: Any, event: Any) -> None:
    put(outbox, event())
    backend.answer = lambda _: (400, {}, "")
    flush(outbox, backend)
    put(outbox, event())
    outbox.retry([one.id for one in outbox.events(is_dead=True)])
    assert waiting(outbox) == ["START"]
    assert dead(outbox) == []


def test_events_are_dropped(outbox: Outbox, event: Any) -> None:
    put(outbox, event(), event(1))
    first, second = outbox.events()
    assert outbox.content(first.id) == event()
    assert outbox.drop([first.id, 99]) == 1
    assert outbox.events() == [second]
    assert outbox.content(first.id) is None


class TestLateEvents:
    """After the end of a run nothing opens it again."""

    @pytest.fixture
    def ended(self, outbox: Outbox, backend: Any, event: Any) -> Outbox:
        put(outbox, event(0, "START", 10), event(0, "COMPLETE", 20))
        flush(outbox, backend)
        backend.taken.clear()
        return outbox

    def test_they_are_discarded(self, ended: Outbox, backend: Any, event: Any) -> None:
        put(ended, event(0, "RUNNING", 30), event(0, "START", 5), event(0, "FAIL", 31), event(1, "START", 1))
        assert flush(ended, backend) == Delivered(sent=2, discarded=2)
        assert backend.taken == [event(0, "FAIL", 31), event(1, "START", 1)]

    def test_a_start_that_is_younger_begins_the_run_anew(self, ended: Outbox, backend: Any, event: Any) -> None:
        again = [event(0, "START", 40), event(0, "RUNNING", 41), event(0, "COMPLETE", 42)]
        put(ended, *again)
        assert flush(ended, backend) == Delivered(sent=3)
        assert backend.taken == again

    def test_another_backend_has_not_heard_of_the_end(self, ended: Outbox, backend: Any, event: Any) -> None:
        put(ended, event(0, "RUNNING", 30), destination="other")
        assert flush(ended, backend, destination="other") == Delivered(sent=1)

    def test_a_dead_start_that_waits_again_is_discarded(self, outbox: Outbox, backend: Any, event: Any) -> None:
        put(outbox, event(0, "START", 10), event(0, "COMPLETE", 20))
        backend.answer = lambda content: (400, {}, "") if b"START" in content else (201, {}, "")
        flush(outbox, backend)
        (refused,) = outbox.events(is_dead=True)
        backend.answer = lambda _: (201, {}, "")
        assert outbox.retry([refused.id]) == [refused]
        assert flush(outbox, backend) == Delivered(discarded=1)
        assert backend.taken == [event(0, "COMPLETE", 20)]


class TestFull:
    """What goes when there is no room."""

    def test_first_running_events_then_dead_letters_then_nobody(
        self, tmp_path: Path, backend: Any, event: Any, logged: pytest.LogCaptureFixture
    ) -> None:
        size = len(event(0, "COMPLETE"))
        outbox = Outbox(tmp_path / "outbox", max_bytes=size * 4)
        backend.answer = lambda _: (400, {}, "")
        put(outbox, event(0, "COMPLETE", 1))
        flush(outbox, backend)
        put(outbox, event(0, "RUNNING", 2), event(0, "START", 3), event(1, "RUNNING", 4))
        # The first RUNNING makes room for two.
        put(outbox, event(0, "ABORT", 5))
        assert waiting(outbox) == ["START", "RUNNING", "ABORT"]
        put(outbox, event(0, "COMPLETE", 6))
        assert waiting(outbox) == ["START", "ABORT", "COMPLETE"]
        assert len(dead(outbox)) == 1
        put(outbox, event(2, "START", 7))
        assert dead(outbox) == []
        kept = outbox.events()
        with pytest.raises(OutboxError, match="outbox flush"):
            put(outbox, event(3, "COMPLETE", 8))
        assert outbox.events() == kept
        assert "full: 1 RUNNING events and dead letters were dropped" in logged.text
        outbox.close()

    def test_nothing_is_thrown_away_for_an_event_that_does_not_fit_all_the_same(
        self, tmp_path: Path, event: Any
    ) -> None:
        outbox = Outbox(tmp_path / "outbox", max_bytes=1000)
        put(outbox, event(0, "RUNNING"))
        with pytest.raises(OutboxError, match="is full"):
            put(outbox, event(0, "COMPLETE", text="x" * 1000))
        assert waiting(outbox) == ["RUNNING"]
        outbox.close()

    def test_what_was_sent_makes_room(self, tmp_path: Path, backend: Any, event: Any) -> None:
        outbox = Outbox(tmp_path / "outbox", max_bytes=len(event(0, "COMPLETE")))
        for number in range(3):
            put(outbox, event(number, "COMPLETE"))
            assert flush(outbox, backend) == Delivered(sent=1)
        outbox.close()


class TestPoison:
    """An event that its backend never takes, with an answer that blames the backend."""

    @pytest.fixture
    def poisoned(self, outbox: Outbox, backend: Any, event: Any) -> Outbox:
        backend.answer = lambda content: (500, {}, "NUL") if b"poison" in content else (201, {}, "")
        put(outbox, event(0, "START", poison=1), event(0, "COMPLETE", 1), event(1), event(1, "COMPLETE", 1))
        return outbox

    def test_others_get_past_it_after_some_tries_and_it_becomes_a_dead_letter(
        self, poisoned: Outbox, backend: Any, event: Any
    ) -> None:
        for _ in range(5):
            assert flush(poisoned, backend) == Delivered(waiting=4)
        assert flush(poisoned, backend) == Delivered(sent=3, refused=1)
        assert backend.taken == [event(1), event(0, "COMPLETE", 1), event(1, "COMPLETE", 1)]
        ((kind, answer),) = dead(poisoned)
        assert kind == "START"
        assert "given up after 6 tries, while others were accepted" in answer
        assert "NUL" in answer

    def test_a_backend_that_takes_nobody_makes_no_dead_letters(
        self, poisoned: Outbox, backend: Any, event: Any
    ) -> None:
        backend.answer = lambda _: (500, {}, "")
        for _ in range(12):
            assert flush(poisoned, backend) == Delivered(waiting=4)
        assert dead(poisoned) == []
        backend.answer = lambda _: (201, {}, "")
        assert flush(poisoned, backend) == Delivered(sent=4)


class TestTime:
    """Nobody waits longer than he has said."""

    def test_a_backend_that_hangs_holds_nobody_and_opens_the_breaker(
        self, outbox: Outbox, backend: Any, event: Any
    ) -> None:
        put(outbox, event())
        backend.hangs.set()
        start = time.monotonic()
        assert outbox.deliver([DESTINATION], backend.open, 0.5) == Delivered(waiting=1)
        assert time.monotonic() - start <= 0.5
        (state,) = outbox.destinations()
        assert state.answer == "no answer within 0.5 s"
        assert state.paused_seconds > 0
        backend.hangs.clear()

    def test_one_backend_that_hangs_does_not_hold_up_the_other(self, outbox: Outbox, backend: Any, event: Any) -> None:
        put(outbox, event())
        put(outbox, event(), destination="hanging")
        is_over = threading.Event()

        class Hanging:
            def emit(self, event: Any) -> None:
                is_over.wait(20)

            def close(self, timeout: float = -1) -> bool:
                return True

        def open_transport(destination: str) -> Any:
            return Hanging() if destination == "hanging" else backend.open(destination)

        assert outbox.deliver(["hanging", DESTINATION], open_transport, 1) == Delivered(sent=1, waiting=1)
        is_over.set()

    def test_a_connection_that_cannot_be_read_costs_no_event(
        self, outbox: Outbox, backend: Any, event: Any, logged: pytest.LogCaptureFixture
    ) -> None:
        put(outbox, event())

        def unknown(destination: str) -> Any:
            raise LookupError(f"no connection {destination}: password=hunter2")

        assert outbox.deliver([DESTINATION], unknown, 5) == Delivered(waiting=1)
        assert "no connection marquez" in logged.text
        assert "hunter2" not in logged.text
        assert flush(outbox, backend) == Delivered(sent=1)

    def test_two_deliveries_at_once_send_each_event_once(self, outbox: Outbox, backend: Any, event: Any) -> None:
        put(outbox, *(event(run) for run in range(50)))
        done: list[Delivered] = []
        threads = [threading.Thread(target=lambda: done.append(flush(outbox, backend))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one.waiting for one in done] == [0, 0, 0]
        assert len(backend.taken) == len(set(backend.taken)) == 50

    def test_nothing_is_sent_without_time(self, outbox: Outbox, backend: Any, event: Any) -> None:
        put(outbox, event())
        assert outbox.deliver([DESTINATION], backend.open, 0).waiting == 1


def test_the_directory_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", "/home/airflow")
    assert str(outbox_directory("")) == "/home/airflow/spark_lineage_outbox"
    assert str(outbox_directory("/mnt/outbox")) == "/mnt/outbox"
    with pytest.raises(ValueError, match="not an absolute path"):
        outbox_directory("outbox")


def test_an_end_that_was_sent_without_being_kept_lets_no_start_follow(outbox: Outbox, backend: Any, event: Any) -> None:
    put(outbox, event(0, "START", 0), event(1, "START", 0), event(0, "RUNNING", 1))
    put(outbox, event(0, "START", 0), destination="other")
    outbox.sent_directly(DESTINATION, event(0, "COMPLETE", 2))
    flush(outbox, backend)
    assert backend.taken == [event(1, "START", 0)]
    put(outbox, event(0, "RUNNING", 1))
    assert flush(outbox, backend) == Delivered(discarded=1)
    assert flush(outbox, backend, destination="other").sent == 1
    outbox.sent_directly("other", event(0, "RUNNING", 3))
    put(outbox, event(0, "RUNNING", 4), destination="other")
    assert flush(outbox, backend, destination="other").sent == 1
