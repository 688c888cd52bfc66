"""Kept events, sent again to a real HTTP server."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.deliver.outgoing import append_event
from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.sender import Later, Sender, sender_of
from spark_lineage.replay import replay as replay_module
from spark_lineage.replay.merged_events import MergedEvent, digest_of, events_in
from spark_lineage.replay.replay import Replay, in_order

RUNS = [f"0190e6e0-0000-7000-8000-{number:012}" for number in range(10)]
NO_WAIT = 100_000.0


@dataclass
class Backend:
    """Takes events; ``answers`` are its next ones: a status, or None for none at all. Then it says 201."""

    server: ThreadingHTTPServer
    answers: list[int | None] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    always: int | None = 201

    def sender(self, _destination: str = "") -> Sender:
        return sender_of({"type": "http", "url": f"http://127.0.0.1:{self.server.server_port}"})

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(event["run"]["runId"], event["eventType"]) for event in self.taken]


@pytest.fixture
def backend() -> Iterator[Backend]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            backend.asked += 1
            status = backend.answers.pop(0) if backend.answers else backend.always
            if status is None:
                self.close_connection = True
                return
            if status < 300:
                backend.taken.append(json.loads(body))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b'{"message": "no facet, password=hunter2"}')

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    backend = Backend(server)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield backend
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _retries_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "_GROWING", lambda _state: 0.01)


def event(run: int, kind: str | None, second: float, **values: Any) -> dict[str, Any]:
    made = {
        "eventTime": f"2026-01-01T00:00:{second:09.6f}Z",
        "eventType": kind,
        "run": {"runId": RUNS[run]},
        "job": {"namespace": "shop", "name": f"etl.{run}"},
        **values,
    }
    return {key: value for key, value in made.items() if value is not None}


def steps(tmp_path: Path, *events: dict[str, Any]) -> list[MergedEvent]:
    for each in events:
        (tmp_path / each["job"]["name"]).mkdir(parents=True, exist_ok=True)
        append_event(tmp_path / each["job"]["name"], json.dumps(each).encode())
    return in_order(events_in([str(tmp_path)]))


def profiles(namespaces: dict[str, str | None]) -> dict[str, Profile]:
    return {destination: Profile(namespace) for destination, namespace in namespaces.items()}


def replayed(
    backend: Backend, steps: list[MergedEvent], rate: float = NO_WAIT, **destinations: str | None
) -> tuple[Replay, list[str]]:
    told: list[str] = []
    replay = Replay(steps, profiles(destinations or {"marquez": None}), backend.sender, rate=rate, log=told.append)
    for _ in replay.run():
        pass
    replay.close()
    return replay, told


def test_events_go_by_their_time_each_once(backend: Backend, tmp_path: Path) -> None:
    events = [event(1, "COMPLETE", 3), event(0, "START", 1), event(0, "COMPLETE", 4), event(1, "START", 2)]
    replay, told = replayed(backend, steps(tmp_path, *events, *events))
    assert backend.taken == sorted(events, key=lambda each: str(each["eventTime"]))
    assert replay.tallies["marquez"].sent == replay.tallies["marquez"].total == 4
    assert told == []


def test_a_run_begins_with_its_start_and_ends_with_its_end(backend: Backend, tmp_path: Path) -> None:
    events = [event(0, "COMPLETE", 1), event(0, "RUNNING", 2), event(0, "START", 5), event(1, "FAIL", 3)]
    replayed(backend, steps(tmp_path, *events))
    told = [(RUNS[1], "FAIL"), (RUNS[0], "START"), (RUNS[0], "RUNNING"), (RUNS[0], "COMPLETE")]
    assert backend.told == told


ENDS = ("COMPLETE", "FAIL", "ABORT")
KINDS = st.sampled_from(["START", "RUNNING", "OTHER", None, *ENDS])


def kept(run: int, kind: str | None, second: int, number: int) -> MergedEvent:
    content = json.dumps([run, kind, second, number]).encode()
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    time = begin + timedelta(seconds=second)
    return MergedEvent(time, RUNS[run], kind, "shop etl", Path("f"), 0, digest_of(content))


@given(st.lists(st.builds(kept, st.integers(0, 3), KINDS, st.integers(0, 5), st.integers(0, 2)), max_size=30))
def test_any_events_are_in_the_order_of_their_runs_each_once(events: list[MergedEvent]) -> None:
    ordered = in_order(events + events)
    assert {step.digest for step in ordered} == {each.digest for each in events}
    assert len(ordered) == len({each.digest for each in events})
    for run in RUNS:
        kinds = [step.event_type for step in ordered if step.run_id == run]
        if "START" in kinds:
            assert kinds[0] == "START"
        first_end = next((number for number, kind in enumerate(kinds) if kind in ENDS), len(kinds))
        assert all(kind in ENDS for kind in kinds[first_end:])


@given(st.lists(st.builds(kept, st.integers(0, 9), st.just("COMPLETE"), st.integers(0, 5), st.integers(0, 2))))
def test_where_no_run_has_two_events_only_their_times_count(events: list[MergedEvent]) -> None:
    ordered = in_order(events)
    first = {each.digest: each.time for each in events}
    assert [step.digest for step in ordered] == sorted(first, key=lambda digest: first[digest])


def test_the_rate_is_bounded(backend: Backend, tmp_path: Path) -> None:
    begin = time.monotonic()
    replayed(backend, steps(tmp_path, *(event(0, "RUNNING", second) for second in range(11))), rate=20)
    assert time.monotonic() - begin >= 0.5
    assert len(backend.taken) == 11


@pytest.mark.parametrize("answer", [500, 503, 429, 408, None])
def test_what_may_pass_is_tried_again(answer: int | None, backend: Backend, tmp_path: Path) -> None:
    backend.answers = [answer, answer, answer]
    replay, told = replayed(backend, steps(tmp_path, event(0, "START", 1), event(0, "COMPLETE", 2)))
    assert backend.told == [(RUNS[0], "START"), (RUNS[0], "COMPLETE")]
    assert backend.asked == 5
    assert replay.tallies["marquez"].left == 0
    assert told == []


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_event_is_named_and_the_others_go_on(status: int, backend: Backend, tmp_path: Path) -> None:
    backend.answers = [201, status]
    replay, told = replayed(backend, steps(tmp_path, *(event(run, "COMPLETE", run) for run in range(3))))
    assert backend.told == [(RUNS[0], "COMPLETE"), (RUNS[2], "COMPLETE")]
    tally = replay.tallies["marquez"]
    assert (tally.sent, tally.refused, tally.left) == (2, 1, 0)
    (line,) = told
    assert line.startswith(f"marquez refused the COMPLETE of shop etl.1, run {RUNS[1]}: http://127.0.0.1:")
    assert f"answered {status} " in line
    assert "no facet" in line
    assert "hunter2" not in line


def test_an_event_that_breaks_the_backend_does_not_end_the_replay(backend: Backend, tmp_path: Path) -> None:
    backend.answers = [500] * 4
    replay, told = replayed(backend, steps(tmp_path, *(event(run, "COMPLETE", run) for run in range(3))))
    assert backend.told == [(RUNS[1], "COMPLETE"), (RUNS[2], "COMPLETE")]
    tally = replay.tallies["marquez"]
    assert (tally.sent, tally.refused, tally.left) == (2, 0, 1)
    assert told[0].startswith("marquez did not accept the COMPLETE of shop etl.0")


def test_a_backend_that_breaks_on_each_is_left_alone(backend: Backend, tmp_path: Path) -> None:
    backend.always = 500
    replay, told = replayed(backend, steps(tmp_path, *(event(run, "COMPLETE", run) for run in range(9))))
    assert backend.asked == 3 * 4
    assert told[-1] == "nothing more is sent to marquez"
    tally = replay.tallies["marquez"]
    assert tally.problem
    assert (tally.sent, tally.refused, tally.left) == (0, 0, 9)


def test_a_backend_that_is_away_is_left_alone_and_the_other_gets_all(backend: Backend, tmp_path: Path) -> None:
    def opened(destination: str) -> Sender:
        away = sender_of({"type": "http", "url": "http://127.0.0.1:1"})
        return away if destination == "away" else backend.sender()

    told: list[str] = []
    waiting = steps(tmp_path, *(event(run, "COMPLETE", run) for run in range(9)))
    replay = Replay(waiting, profiles({"away": None, "here": None}), opened, rate=NO_WAIT, log=told.append)
    assert list(replay.run()) == list(range(1, 10))
    replay.close()
    assert len(backend.taken) == 9
    assert replay.tallies["here"].sent == 9
    assert (replay.tallies["away"].left, bool(replay.tallies["away"].problem)) == (9, True)
    assert "127.0.0.1:1" in replay.tallies["away"].problem


def test_the_namespace_of_the_connection_is_that_of_the_job(backend: Backend, tmp_path: Path) -> None:
    replayed(backend, steps(tmp_path, event(0, "COMPLETE", 1)), marquez="prod", other=None)
    assert [each["job"]["namespace"] for each in backend.taken] == ["prod", "shop"]


def test_no_secret_of_a_foreign_file_is_sent(backend: Backend, tmp_path: Path) -> None:
    facet = {"description": "curl -H 'Authorization: Bearer hunter2' https://u:hunter2@h/"}
    made = event(0, "COMPLETE", 1, job={"namespace": "n", "name": "m", "facets": {"documentation": facet}})
    replayed(backend, steps(tmp_path, made))
    assert "hunter2" not in json.dumps(backend.taken)
    assert backend.taken[0]["job"]["facets"].keys() == {"documentation"}


def test_a_file_that_changes_meanwhile_loses_none_in_silence(backend: Backend, tmp_path: Path) -> None:
    waiting = steps(tmp_path, *(event(run, "COMPLETE", run) for run in range(3)))
    waiting[0].path.unlink()
    waiting[1].path.write_text(waiting[1].path.read_text().replace("shop", "barn"))
    replay, told = replayed(backend, waiting)
    assert backend.told == [(RUNS[2], "COMPLETE")]
    assert replay.tallies["marquez"].left == 2
    assert "No such file" in told[0]
    assert "has changed" in told[1]


def test_one_who_interrupts_knows_how_far_it_came(backend: Backend, tmp_path: Path) -> None:
    replay = Replay(
        steps(tmp_path, *(event(run, "COMPLETE", run) for run in range(3))),
        profiles({"marquez": None}),
        backend.sender,
        rate=NO_WAIT,
        log=print,
    )
    run: Iterator[int] = replay.run()
    next(run)
    with contextlib.suppress(KeyboardInterrupt):
        _interrupted(run)
    assert (replay.tallies["marquez"].sent, replay.tallies["marquez"].left) == (1, 2)


def _interrupted(run: Any) -> None:
    run.throw(KeyboardInterrupt)


def test_waiting_grows_and_minds_what_the_backend_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    waits: list[float] = []

    def emit() -> None:
        raise Later("no", retry_after=3)

    sleeping: Callable[[float], None] = waits.append
    with pytest.raises(Later, match="no"):
        replay_module._PERSISTENT.copy(sleep=sleeping)(emit)
    assert len(waits) == 3
    assert all(wait >= 3 for wait in waits)
