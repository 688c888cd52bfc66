"""What is sent of a spool, in which order, and what an answer means."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver.courier import Courier, Delivered, drain
from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing, SpoolError
from spark_lineage.deliver.pauses import BACKEND, Pauses
from spark_lineage.deliver.sender import Sender, sender_of
from spark_lineage.deliver.spool import Spool
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.lock import release

RUN = "0190a5b2-7c1e-7d5f-9d4b-{:012x}"


def put(spool: Spool, *contents: bytes) -> None:
    for content in contents:
        spool.put(Outgoing.of(content))


def run(spool: Spool, backend: Any) -> Courier:
    """Courier as a courier does."""
    sender = sender_of(backend.config)
    lock = spool.take_turn()
    assert lock is not None
    made = Courier(spool, sender, lock, lambda: False)
    made.run()
    release(lock)
    sender.close()
    return made


def flush(spool: Spool, backend: Any, seconds: float = 20) -> Delivered:
    return drain(spool, sender_of(backend.config), Deadline(seconds))


def types(spool: Spool) -> list[str]:
    return [entry.event_type for entry in spool.waiting()]


def test_run_sends_in_order_and_nothing_stays(spool: Spool, backend: Any, event: Any) -> None:
    kinds = ("START", "RUNNING", "COMPLETE")
    events = [event(run, kind, second) for second, kind in enumerate(kinds) for run in (0, 1)]
    put(spool, *events)
    assert run(spool, backend).sent == 6
    assert backend.taken == events
    assert spool.waiting() == spool.dead() == []


def test_run_a_refused_event_is_a_dead_letter_with_the_answer_and_the_next_are_sent(
    spool: Spool, backend: Any, event: Any, logged: pytest.LogCaptureFixture
) -> None:
    put(spool, event(0), event(1))
    backend.answer = lambda content: (422, {}, "no x; password=hunter2") if b'000"' in content else (201, {}, "")
    done = run(spool, backend)
    assert (done.sent, done.refused) == (1, 1)
    (entry,) = spool.dead()
    assert "422" in spool.why(entry)
    assert "no x" in spool.why(entry)
    assert "hunter2" not in spool.why(entry) + logged.text
    assert "422" in logged.text


@pytest.mark.parametrize(
    ("endpoint", "answer"),
    [
        # A function of Azure has its key there.
        ("/api/lineage?code=hunter2", "no x"),
        # What is shown of the answer ends in it.
        ("/api/lineage", "x" * 975 + " postgresql://bob:hunter2@db"),
    ],
)
def test_run_the_reason_of_a_dead_letter_has_no_secret(
    spool: Spool, backend: Any, event: Any, endpoint: str, answer: str
) -> None:
    put(spool, event(0))
    backend.answer = lambda _: (422, {}, answer)
    drain(spool, sender_of(backend.config | {"endpoint": endpoint}), Deadline(20))
    (entry,) = spool.dead()
    assert "/api/lineage answered 422" in spool.why(entry)
    assert "hunter2" not in spool.why(entry)


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 426, 429, 503, 302])
def test_run_a_backend_that_has_not_looked_pauses_for_all(spool: Spool, backend: Any, event: Any, status: int) -> None:
    put(spool, event(0), event(1))
    backend.answer = lambda _: (status, {}, "closed")
    run(spool, backend)
    assert len(backend.came) == 1
    assert str(status) in spool.pauses.why(BACKEND)
    # Another task, which is another process.
    run(spool, backend)
    assert len(backend.came) == 1
    backend.answer = lambda _: (201, {}, "")
    assert flush(spool, backend) == Delivered(sent=2)
    assert spool.pauses.all == {}


def test_run_an_html_page_is_no_yes(spool: Spool, backend: Any, event: Any) -> None:
    put(spool, event(0))
    backend.answer = lambda _: (200, {"Content-Type": "text/html"}, "<!DOCTYPE html><title>Log in")
    run(spool, backend)
    assert "HTML page" in spool.pauses.why(BACKEND)
    assert types(spool) == ["START"]


def test_run_a_backend_that_is_not_there_pauses(spool: Spool, backend: Any, event: Any) -> None:
    put(spool, event(0))
    backend.stop()
    run(spool, backend)
    assert "no connection" in spool.pauses.why(BACKEND)
    backend.stop = lambda: None


def test_run_retry_after_is_honoured(spool: Spool, backend: Any, event: Any) -> None:
    put(spool, event(0))
    backend.answer = lambda _: (429, {"Retry-After": "120"}, "slower")
    run(spool, backend)
    assert 115 < spool.pauses.seconds_left(BACKEND) <= 120


def test_run_retry_after_of_one_event_is_that_of_its_run(spool: Spool, backend: Any, event: Any) -> None:
    put(spool, event(0))
    backend.answer = lambda _: (500, {"Retry-After": "120"}, "busy")
    run(spool, backend)
    assert 115 < spool.pauses.seconds_left(RUN.format(0)) <= 120


def test_run_an_event_with_a_500_steps_aside_with_its_run_and_others_go_on(
    spool: Spool, backend: Any, event: Any
) -> None:
    backend.answer = lambda content: (500, {}, "NUL") if b"poison" in content else (201, {}, "")
    put(spool, event(0, "START", poison=1), event(0, "COMPLETE", 1), event(1), event(1, "COMPLETE", 1))
    run(spool, backend)
    assert backend.taken == [event(1), event(1, "COMPLETE", 1)]
    assert types(spool) == ["START", "COMPLETE"]
    assert 59 < spool.pauses.seconds_left(RUN.format(0)) <= 60
    assert spool.dead() == []


def test_run_one_event_with_a_500_for_ever_beside_200_runs_holds_nobody_up(
    spool: Spool, backend: Any, event: Any
) -> None:
    backend.answer = lambda content: (500, {}, "") if b"poison" in content else (201, {}, "")
    put(spool, event(0, poison=1), *(event(number, "COMPLETE") for number in range(1, 201)))
    run(spool, backend)
    assert len(backend.taken) == 200
    assert types(spool) == ["START"]


def test_run_a_backend_that_takes_nobody_pauses_after_ten_runs_and_makes_no_dead_letters(
    spool: Spool, backend: Any, event: Any
) -> None:
    put(spool, *(event(number) for number in range(40)))
    backend.answer = lambda _: (500, {}, "")
    run(spool, backend)
    assert len(backend.came) == 10
    assert spool.pauses.seconds_left(BACKEND) > 0
    backend.answer = lambda _: (201, {}, "")
    assert flush(spool, backend) == Delivered(sent=40)
    assert spool.dead() == []


def test_run_after_an_outage_keeps_the_order_of_a_run_whose_event_fails(
    spool: Spool, backend: Any, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event of another run, which is taken after it, ends all pauses."""
    monkeypatch.setattr("spark_lineage.deliver.pauses._FIRST_SECONDS", 0.0)
    put(spool, event(0, "START"), event(1, "START"), event(0, "COMPLETE", 1))
    backend.answer = lambda _: (503, {}, "closed")
    run(spool, backend)
    time.sleep(spool.pauses.seconds_left(BACKEND))
    backend.answer = lambda _: (201, {}, "") if backend.came[2:] else (500, {}, "once more")
    run(spool, backend)
    assert backend.taken == [event(1, "START"), event(0, "START"), event(0, "COMPLETE", 1)]


def test_run_ten_runs_in_vain_that_are_not_in_a_row_pause_nobody_else(spool: Spool, backend: Any, event: Any) -> None:
    backend.answer = lambda content: (500, {}, "") if b"poison" in content else (201, {}, "")
    put(spool, *(event(number, **({} if number == 6 else {"poison": 1})) for number in range(13)))
    run(spool, backend)
    assert len(backend.came) == 13
    assert spool.pauses.seconds_left(BACKEND) == 0


def test_run_a_slow_backend_that_takes_nobody_pauses_after_some_time(
    spool: Spool, backend: Any, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time begins when it has taken the last event."""
    monkeypatch.setattr("spark_lineage.deliver.courier._SECONDS_IN_VAIN", 1.5)

    def answer(content: bytes) -> tuple[int, dict[str, str], str]:
        time.sleep(0.6)
        return (500, {}, "") if b"poison" in content else (201, {}, "")

    backend.answer = answer
    put(spool, *(event(number) for number in range(3)), *(event(number, poison=1) for number in range(3, 9)))
    run(spool, backend)
    # On a machine that is busy, two may take as long as three.
    assert len(backend.came) - 3 in (2, 3)
    assert spool.pauses.seconds_left(BACKEND) > 0


def test_run_counts_for_the_bound(outbox: Outbox, backend: Any, event: Any) -> None:
    spool = Spool(outbox.directory / "marquez", max_bytes=4096)
    put(spool, event(0))
    backend.answer = lambda _: (503, {}, "closed")
    run(spool, backend)
    with pytest.raises(SpoolError, match="is full"):
        put(spool, event(1))


@pytest.mark.truth
def test_run_with_80_percent_of_500s_loses_nothing(
    spool: Spool, backend: Any, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pauses are divided by 6,000."""
    chance = random.Random(7)  # noqa: S311 - no secret
    backend.answer = lambda _: (500, {}, "busy") if chance.random() < 0.8 else (201, {}, "")
    failed = Pauses.failed

    def sooner(self: Pauses, key: str, why: str, **more: Any) -> float:
        seconds = failed(self, key, why, **more) / 6_000
        self.all[key] = module_pause(self.all[key], seconds)
        self._save()
        return seconds

    def module_pause(pause: Any, seconds: float) -> Any:
        return type(pause)(pause.failures, pause.began, seconds, pause.why)

    monkeypatch.setattr(Pauses, "failed", sooner)
    events = [event(number, kind, second) for number in range(300) for second, kind in enumerate(("START", "COMPLETE"))]
    put(spool, *events)
    end = time.monotonic() + 300
    while spool.waiting() and time.monotonic() < end:
        run(spool, backend)
        time.sleep(0.01)
    assert spool.waiting() == spool.dead() == []
    assert len(backend.taken) == len(set(backend.taken)) == 600
    order: dict[str, list[str]] = {}
    for content in map(json.loads, backend.taken):
        order.setdefault(content["run"]["runId"], []).append(content["eventType"])
    assert set(map(tuple, order.values())) == {("START", "COMPLETE")}


def test_run_an_event_that_cannot_be_removed_is_not_sent_by_each_task(
    spool: Spool, backend: Any, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Spool, entry: Any) -> None:
        raise SpoolError("read-only")

    put(spool, event(0), event(1))
    monkeypatch.setattr(Spool, "remove", fail)
    run(spool, backend)
    run(spool, backend)
    assert backend.came == [event(0)]
    assert "cannot be removed: read-only" in spool.pauses.why(BACKEND)


def test_run_a_torn_event_is_a_dead_letter(spool: Spool, backend: Any, event: Any) -> None:
    put(spool, event(0), event(1))
    torn, _ = spool.waiting()
    (spool.directory / torn.name).write_bytes(b"{")
    done = run(spool, backend)
    assert (done.sent, done.refused) == (1, 1)
    assert "was put with" in spool.why(torn)


def test_run_a_yes_whose_body_trickles_is_a_yes(spool: Spool, trickling: str, event: Any) -> None:
    put(spool, event(0))
    began = time.monotonic()
    sender = sender_of({"type": "http", "url": trickling, "timeout": 2})
    assert drain(spool, sender, Deadline(60)) == Delivered(sent=1)
    assert time.monotonic() - began < 10


def test_run_a_slow_answer_is_awaited_longer_than_a_connection(spool: Spool, backend: Any, event: Any) -> None:
    backend.hangs.set()
    put(spool, event(0))
    sender = sender_of(backend.config | {"timeout": 0.5})
    assert drain(spool, sender, Deadline(60)) == Delivered(sent=1)
    assert len(backend.came) == 1


def test_drain_while_another_process_sends_waits_no_longer_than_its_time(
    spool: Spool, backend: Any, event: Any
) -> None:
    put(spool, event(0))
    lock = spool.take_turn()
    assert lock is not None
    began = time.monotonic()
    assert flush(spool, backend, 0.5) == Delivered(waiting=1)
    assert time.monotonic() - began < 5
    release(lock)
    assert flush(spool, backend) == Delivered(sent=1)


def test_destinations_shows_what_waits_and_why(outbox: Outbox, backend: Any, event: Any) -> None:
    spool = outbox.spool("lake/prod")
    put(spool, event(0), event(1))
    backend.answer = lambda _: (503, {}, "closed")
    run(spool, backend)
    (found,) = outbox.destinations()
    assert (found.destination, found.waiting, found.dead) == ("lake/prod", 2, 0)
    assert "503" in found.answer
    assert 0 < found.paused_seconds <= 2
    spool.refuse(spool.waiting()[0], "422")
    (after,) = outbox.destinations()
    assert (after.waiting, after.dead, after.bytes) == (1, 1, found.bytes) == (1, 1, len(event(0) + event(1)))


def test_sender_of_another_transport_sends_the_same_event(spool: Spool, tmp_path: Any, event: Any) -> None:
    put(spool, event(0, ours={"käse": [1]}))
    path = tmp_path / "events.ndjson"
    sender: Sender = sender_of({"type": "file", "log_file_path": str(path), "append": True})
    assert drain(spool, sender, Deadline(20)) == Delivered(sent=1)
    assert json.loads(path.read_text()) == json.loads(event(0, ours={"käse": [1]}))


OLD_SECONDS = 100 * 24 * 3600
STRANGE = f"20260101T000000.000000-{RUN.format(9)}-START-2.json"


def old_directory(place: Path) -> None:
    place.mkdir(parents=True)
    os.utime(place, (time.time() - OLD_SECONDS,) * 2)


def write(place: Path, text: str) -> None:
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)


def link(place: Path, target: str) -> None:
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)


def endless_pause(place: Path) -> None:
    began = time.clock_gettime(time.CLOCK_BOOTTIME) - 3601
    write(place, json.dumps({"": {"failures": 1, "began": began, "seconds": 1e300, "why": ""}}))


@pytest.mark.parametrize(
    ("name", "leave"),
    [
        (STRANGE, os.mkfifo),
        (STRANGE, lambda place: link(place, "/dev/zero")),
        ("runs/x", old_directory),
        (".x.part", old_directory),
        ("dead", lambda place: link(place, "/dev/zero")),
        (".used", lambda place: link(place, "/dev/zero")),
        (".later", os.mkfifo),
        (".later", lambda place: write(place, "[" * 100_000)),
        (".later", endless_pause),
        ("99999999T999999.999999-x-START-2.json", lambda place: write(place, "{}")),
        (os.fsdecode(b"20260101T000000.000000-\xff-START-2.json"), lambda place: write(place, "{}")),
        (f"runs/{RUN.format(0)}", lambda place: link(place, "START,xx,yy,0")),
    ],
)
def test_run_beside_what_a_stranger_left_sends_the_rest(
    outbox: Outbox, backend: Any, event: Any, name: str, leave: Callable[[Path], None]
) -> None:
    spool = outbox.spool("marquez")
    lock = spool.take_turn()
    assert lock is not None
    release(lock)
    leave(spool.directory / name)
    put(spool, event(0), event(0, "COMPLETE", 1))
    run(spool, backend)
    assert backend.taken == [event(0), event(0, "COMPLETE", 1)]
    assert len(outbox.destinations()) <= 1
    assert all(entry.put_at.year >= 1970 for entry in spool.waiting())


def test_sendable_of_a_directory_that_is_read_in_pieces_holds_back_what_was_put_last(
    spool: Spool, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(spool, event(0), event(0, "COMPLETE", 1), event(1), event(1, "COMPLETE", 1))
    start, end, other, other_end = spool.waiting()
    # A first list may lack what was put before the rest, and a second one too, of what was put since the first began.
    lists = iter([[end, other], [other_end, start, end, other]])
    monkeypatch.setattr(Spool, "_scan", lambda *_: iter(next(lists)))
    assert spool.sendable(lambda _: False) == [start, end, other]


def test_run_leaves_what_is_being_put(spool: Spool, backend: Any, event: Any) -> None:
    put(spool, event(0, "COMPLETE"), event(1))
    end, _ = spool.waiting()
    # As the process that puts it sees it before it has noted it.
    (spool.directory / "runs" / RUN.format(0)).unlink()
    run(spool, backend)
    assert spool.waiting() == [end]
    # Of one that was killed meanwhile.
    (spool.directory / end.name).rename(spool.directory / f"20260101T000000.000000{end.name[22:]}")
    run(spool, backend)
    assert backend.taken == [event(1), event(0, "COMPLETE")]


def test_put_of_two_processes_at_once_keeps_the_order(
    spool: Spool, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, end = Outgoing.of(event(0)), Outgoing.of(event(0, "COMPLETE", 1))
    original = Spool._note

    def late(self: Spool, putting: Outgoing, *arguments: Any) -> bool:
        monkeypatch.setattr(Spool, "_note", original)
        assert spool.put(first)
        return original(self, putting, *arguments)

    # The START comes while the end is being put.
    monkeypatch.setattr(Spool, "_note", late)
    assert spool.put(end)
    assert types(spool) == ["START", "COMPLETE"]


def test_prune_while_the_clock_is_days_ahead_forgets_no_end(spool: Spool, event: Any) -> None:
    put(spool, event(0, "COMPLETE"))
    old = time.time() - 3 * 24 * 3600
    os.utime(spool.directory / "runs" / RUN.format(0), (old, old), follow_symlinks=False)
    spool.count()
    assert spool.put(Outgoing.of(event(0, "RUNNING", 5))) is None


def test_retry_of_a_whole_run_keeps_its_start(spool: Spool, backend: Any, event: Any) -> None:
    put(spool, event(0), event(0, "COMPLETE", 1))
    backend.answer = lambda _: (400, {}, "no")
    run(spool, backend)
    assert len(spool.dead()) == 2
    spool.retry(spool.dead())
    backend.answer = lambda _: (201, {}, "")
    run(spool, backend)
    assert backend.taken == [event(0), event(0, "COMPLETE", 1)]


def test_put_between_two_counts_holds_the_bound(outbox: Outbox, event: Any) -> None:
    spool = Spool(outbox.directory / "small", max_bytes=200_000)
    put(spool, event())
    spool.count()
    events = (event(number, "COMPLETE", more="x" * 10_000) for number in range(100))
    with pytest.raises(SpoolError, match="is full"):
        put(spool, *events)
    assert 10 <= len(spool.waiting()) <= 20


def test_count_of_a_clock_that_was_ahead_is_made_again(spool: Spool, event: Any) -> None:
    put(spool, event(1))
    spool.count()
    ahead = time.time() + 8 * 24 * 3600
    os.utime(spool.directory / ".used", (ahead, ahead))
    put(spool, event(0))
    (spool.directory / ".added").unlink()
    assert spool.count(is_due=False) == 2 * 4096


def test_outcome_of_a_spool_that_was_removed_is_not_sent(spool: Spool, event: Any) -> None:
    put(spool, event(0))
    (entry,) = spool.waiting()
    shutil.rmtree(spool.directory)
    assert spool.outcome(entry.name) == "gone"
