"""A task that Airflow kills: its event goes out while there is time, and says what is true."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from cluster_manager import standalone, yarn
from launches import is_running
from notified import notified

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.long

FIXTURES = Path(__file__).parents[1] / "fixtures"
EVENTS = FIXTURES / "events" / "a_414.ndjson"
# After which Airflow kills the process of a task that it has told to end.
AIRFLOW_SECONDS = 5.0

# One more file of lineage, which nobody writes.
FIFO = 'time.sleep(1); os.mkfifo(os.path.join(os.path.dirname(location), "a.ndjson"))'
# More than can be read within the time.
LONG_EVENT_LOG = f"""
log = open({str(FIXTURES / "event_logs" / "stream")!r}, "rb").read()
logs = os.path.join(os.path.dirname(location), "event-log", "tRuE")
os.makedirs(logs, exist_ok=True)
with open(os.path.join(logs, "local-1795215390665"), "wb") as stream:
    for _ in range(20000):
        stream.write(log)
"""

# As on a share that is gone: whoever opens it waits.
HANGING_STATUS_FILE = """
file = os.path.join(os.path.dirname(location), "status-transitions.jsonl")
if os.path.exists(file):
    os.remove(file)
os.mkfifo(file)
"""


def driver_does(bench: Any, does: str) -> None:
    """Have the fake driver do something more, after it has written its lineage and its log."""
    fake = bench.root / "bin" / "fake.py"
    before, signals, after = fake.read_text().partition('if script["signal"]')
    signalled = f'open(os.path.join(here, "signalled"), "w").close()\n{signals}'
    fake.write_text(f"{before}{does}\n{signalled}{after}")


def seconds_from_signal_to_end(bench: Any) -> float:
    """Return how long the task took from its signal until it had ended and handed over its event."""
    signalled, ended = bench.root / "bin" / "signalled", bench.root / "result.json"
    return float(ended.stat().st_mtime - signalled.stat().st_mtime)


def killing(bench: Any, after_seconds: float = 0.0, *, call: int = 1) -> Callable[[], None]:
    """Return what sends the task its signal, once, so long after that call."""
    calls = itertools.count(1)

    def send() -> None:
        (bench.root / "bin" / "signalled").touch()
        for task in psutil.Process(bench.laboratory._process.pid).children():
            task.send_signal(signal.SIGUSR1)

    def kill() -> None:
        if next(calls) == call:
            threading.Timer(after_seconds, send).start()

    return kill


def when_it_has_ended(bench: Any, act: Callable[[], None]) -> None:
    """Do something when the fake driver has ended."""
    told = bench.root / "bin" / "told.jsonl"
    # A line that is being written has no end yet.
    while not told.exists() or not (line := told.read_text()).endswith("\n") or is_running(json.loads(line)["pid"]):
        time.sleep(0.05)
    act()


def state(outcome: Any) -> str:
    """Return the state that the event of a task says."""
    return str(outcome.lineage["run_facets"]["sparkLineage_status"]["state"])


def test_what_could_be_read_in_time_is_told(bench: Any) -> None:
    driver_does(bench, LONG_EVENT_LOG)
    outcome = bench.run(lineage=[EVENTS], poll_interval_seconds=0.05, signal_parent=int(signal.SIGUSR1))
    assert outcome.error is not None
    assert state(outcome) == "ABORT"
    assert "Some lineage may be missing: the task is being killed, and there was no time to read all" in outcome.printed
    assert "No lineage came from the driver" not in outcome.printed
    assert outcome.names("inputs") == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert seconds_from_signal_to_end(bench) < AIRFLOW_SECONDS
    assert not is_running(outcome.command["pid"])


def test_a_kill_before_there_is_a_process_ends_the_one_that_comes(bench: Any) -> None:
    bench.operator, bench.is_by_policy = "own_operators:KilledEarly", True
    outcome = bench.run(until="/nowhere")
    assert outcome.error is not None
    assert state(outcome) == "ABORT"
    assert not is_running(outcome.last["driver"]["process_id"])


def test_kill_with_a_fifo_for_a_lineage_file_loses_nothing(bench: Any) -> None:
    driver_does(bench, FIFO)
    outcome = bench.run(lineage=[EVENTS], poll_interval_seconds=0.05, signal_parent=int(signal.SIGUSR1))
    assert state(outcome) == "ABORT"
    assert "there was no time to read all" not in outcome.printed
    assert outcome.names("inputs") == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert outcome.lineage["run_facets"]["sparkLineage_collection"]["setAside"] == {"no file": 1}
    assert [*bench.root.rglob("run-events.jsonl")]
    assert seconds_from_signal_to_end(bench) < AIRFLOW_SECONDS


def test_a_lineage_directory_that_hangs_keeps_no_job_alive(bench: Any) -> None:
    driver_does(bench, HANGING_STATUS_FILE)
    seconds: list[float] = []

    def watch() -> None:
        signalled = bench.root / "bin" / "signalled"
        while not signalled.exists():
            time.sleep(0.05)
        when_it_has_ended(bench, lambda: seconds.append(time.time() - signalled.stat().st_mtime))
        # Now it is there again: a reader that is a writer, too, waits for nobody.
        (file,) = bench.root.rglob("status-transitions.jsonl")
        os.open(file, os.O_RDWR)

    watcher = threading.Thread(target=watch)
    watcher.start()
    outcome = bench.run(lineage=[EVENTS], poll_interval_seconds=0.05, signal_parent=int(signal.SIGUSR1))
    watcher.join()
    assert outcome.error is not None
    assert seconds[0] < AIRFLOW_SECONDS


def test_a_driver_that_has_ended_cannot_be_killed_and_its_end_is_told_in_time(bench: Any) -> None:
    driver_does(bench, LONG_EVENT_LOG)
    watcher = threading.Thread(target=when_it_has_ended, args=(bench, killing(bench, 1)))
    watcher.start()
    outcome = bench.run(lineage=[EVENTS], poll_interval_seconds=0.05)
    watcher.join()
    assert outcome.error is None
    assert state(outcome) == "COMPLETE"
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert seconds_from_signal_to_end(bench) < AIRFLOW_SECONDS


@pytest.mark.parametrize(("end", "expected"), [("FINISHED", "COMPLETE"), ("FAILED", "FAIL")])
def test_a_driver_of_a_cluster_whose_end_was_seen_cannot_be_killed(bench: Any, end: str, expected: str) -> None:
    driver_does(bench, LONG_EVENT_LOG)
    # The reading at the end finds no end, until the task is killed.
    states = ["RUNNING"] * 3 + [end]
    outcome = standalone(
        bench, states, killing(bench, 3, call=len(states)), lineage=[EVENTS], poll_interval_seconds=0.05
    )
    assert (outcome.error is None) is (end == "FINISHED")
    assert state(outcome) == expected
    assert seconds_from_signal_to_end(bench) < AIRFLOW_SECONDS


@pytest.mark.parametrize(
    ("on_kill", "status_poll_interval"),
    [(threading.Event().wait, 0), (lambda: None, 30)],
    ids=["slow to kill", "slow to ask"],
)
def test_a_driver_of_a_cluster_is_killed_without_waiting_for_it(
    bench: Any, on_kill: Callable[..., object], status_poll_interval: int
) -> None:
    is_killed = threading.Event()

    def kill() -> None:
        is_killed.set()
        on_kill(20)

    outcome = standalone(
        bench,
        ["RUNNING"],
        killing(bench, 2),
        kill,
        status_poll_interval=status_poll_interval,
        lineage=[EVENTS],
        poll_interval_seconds=0.2,
    )
    assert outcome.error is not None
    assert state(outcome) == "ABORT"
    assert is_killed.is_set()
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert seconds_from_signal_to_end(bench) < AIRFLOW_SECONDS


def test_an_application_of_yarn_is_killed_without_waiting_for_the_next_question(bench: Any) -> None:
    # The provider asks YARN every ten seconds.
    outcome = yarn(bench, "RUNNING", killing(bench, 1), lineage=[EVENTS], store={})
    assert state(outcome) == "ABORT"
    assert seconds_from_signal_to_end(bench) < AIRFLOW_SECONDS


def test_a_command_after_the_job_does_not_take_the_time_of_the_event(bench: Any) -> None:
    driver_does(bench, "")
    outcome, told = notified(
        bench, lineage=[EVENTS], post_submit_commands=["sleep 20"], signal_parent=int(signal.SIGUSR1)
    )
    assert state(outcome) == "ABORT"
    assert told[-1]["new_status"] == "KILLED"
    assert seconds_from_signal_to_end(bench) < AIRFLOW_SECONDS


def test_a_kill_while_a_command_after_the_job_runs_is_no_end_of_the_job(bench: Any) -> None:
    watcher = threading.Thread(target=when_it_has_ended, args=(bench, killing(bench, 1)))
    watcher.start()
    outcome, told = notified(bench, lineage=[EVENTS], post_submit_commands=["sleep 3"])
    watcher.join()
    assert state(outcome) == "COMPLETE"
    assert told[-1]["new_status"] == "FINISHED"
