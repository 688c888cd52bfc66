"""The process that sends: one for a spool, beyond the end of its task, without Airflow. With real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver import courier
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.spool import Spool
from spark_lineage.launch.lock import release

WAIT_SECONDS = 30
RUN = "0190a5b2-7c1e-7d5f-9d4b-{:012x}"
# Of a courier over HTTP, in MiB.
MEMORY = 40


def put(spool: Spool, *contents: bytes) -> list[str]:
    return [name for content in contents if (name := spool.put(Outgoing.of(content)))]


def couriers(spool: Spool) -> list[int]:
    """Return the processes that have the lock of the spool open."""
    found, lock = [], str(spool.directory / ".sender")
    for directory in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            if any(target(link) == lock for link in directory.iterdir()):
                found.append(int(directory.parent.name))
    return found


def target(link: Path) -> str:
    # It may be closed meanwhile.
    with suppress(OSError):
        return str(link.readlink())
    return ""


@pytest.fixture(autouse=True)
def ended(spool: Spool) -> Iterator[None]:
    yield
    for process_id in couriers(spool):
        if process_id != os.getpid():
            os.kill(process_id, signal.SIGKILL)


def until(condition: Any) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_call_sends_once_and_ends_soon(spool: Spool, backend: Any, event: Any) -> None:
    names = put(spool, event(0), event(0, "COMPLETE", 1))
    assert courier.call(spool, backend.config)
    assert set(courier.wait(spool, names, WAIT_SECONDS).values()) == {"sent"}
    assert backend.taken == [event(0), event(0, "COMPLETE", 1)]
    (process_id,) = couriers(spool)
    status = Path(f"/proc/{process_id}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert memory / 1024 <= MEMORY
    assert "airflow" not in Path(f"/proc/{process_id}/maps").read_text()
    until(lambda: not couriers(spool))


def test_call_while_one_sends_starts_no_other(spool: Spool, backend: Any, event: Any) -> None:
    backend.hangs.set()
    put(spool, event(0))
    assert courier.call(spool, backend.config)
    before = couriers(spool)
    names = put(spool, event(1))
    assert courier.call(spool, backend.config)
    assert couriers(spool) == before
    assert len(before) == 1
    backend.hangs.clear()
    assert set(courier.wait(spool, names, WAIT_SECONDS).values()) == {"sent"}


def test_call_lives_on_when_the_group_of_the_task_is_killed(spool: Spool, backend: Any, event: Any) -> None:
    backend.hangs.set()
    (name,) = put(spool, event(0))
    program = (
        "import json, sys, time\nfrom pathlib import Path\nfrom spark_lineage.deliver import courier\n"
        "from spark_lineage.deliver.spool import Spool\n"
        "courier.call(Spool(Path(sys.argv[1])), json.loads(sys.argv[2]))\nprint('called', flush=True)\ntime.sleep(60)\n"
    )
    task = subprocess.Popen(
        [sys.executable, "-c", program, str(spool.directory), f'{{"type": "http", "url": "{backend.url}"}}'],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert task.stdout is not None
    assert task.stdout.readline() == "called\n"
    os.killpg(task.pid, signal.SIGKILL)
    task.wait()
    task.stdout.close()
    assert courier.wait(spool, [name], WAIT_SECONDS) == {name: "sent"}
    assert len(backend.came) == 1


def test_call_after_a_courier_was_killed_sends_the_rest(spool: Spool, backend: Any, event: Any) -> None:
    backend.hangs.set()
    name, end, other = put(spool, event(0), event(0, "COMPLETE", 1), event(1))
    assert courier.call(spool, backend.config)
    until(lambda: backend.came)
    for process_id in couriers(spool):
        os.kill(process_id, signal.SIGKILL)
    backend.hangs.clear()
    until(lambda: not couriers(spool))
    assert courier.call(spool, backend.config)
    assert courier.wait(spool, [other], WAIT_SECONDS) == {other: "sent"}
    # The backend may have taken what was sent and not answered: its run steps aside.
    assert courier.wait(spool, [name, end], 1) == {name: "waiting", end: "waiting"}
    assert backend.came == [event(0), event(1)]
    assert 50 < spool.pauses.seconds_left(RUN.format(0)) <= 60


def test_call_with_what_cannot_be_opened_says_why(spool: Spool, event: Any) -> None:
    names = put(spool, event(0))
    assert courier.call(spool, {"type": "http", "url": "http://127.0.0.1:1", "verify": "/nowhere.pem"})
    assert courier.wait(spool, names, WAIT_SECONDS) == {names[0]: "waiting"}
    assert "the certificates in /nowhere.pem cannot be used" in spool.pauses.why("")


def test_call_while_somebody_has_removed_the_spool_leaves_one_that_sends(
    spool: Spool, backend: Any, event: Any
) -> None:
    backend.hangs.set()
    put(spool, event(0), event(1), event(2))
    assert courier.call(spool, backend.config)
    until(lambda: backend.came)
    (first,) = couriers(spool)
    shutil.rmtree(spool.directory)
    backend.hangs.clear()
    names = put(spool, event(3), event(4))
    assert courier.call(spool, backend.config)
    assert set(courier.wait(spool, names, WAIT_SECONDS).values()) == {"sent"}
    until(lambda: not Path(f"/proc/{first}").exists())
    assert sorted(backend.came) == sorted([event(0), event(3), event(4)])


def test_call_while_the_backend_pauses_starts_nothing(spool: Spool, backend: Any, event: Any) -> None:
    names = put(spool, event(0))
    spool.pauses.failed("", "503", retry_after=60)
    assert courier.call(spool, backend.config)
    assert couriers(spool) == []
    began = time.monotonic()
    assert courier.wait(spool, names, 20) == {names[0]: "waiting"}
    assert time.monotonic() - began < 2


def test_call_ends_when_the_backend_pauses(spool: Spool, backend: Any, event: Any) -> None:
    backend.answer = lambda _: (503, {"Retry-After": "600"}, "closed")
    put(spool, event(0))
    assert courier.call(spool, backend.config)
    until(lambda: backend.came)
    until(lambda: not couriers(spool))


def test_call_a_secret_in_an_answer_is_masked(spool: Spool, backend: Any, event: Any) -> None:
    backend.answer = lambda _: (422, {}, "who is orchid7?")
    names = put(spool, event(0))
    config = backend.config | {"auth": {"type": "api_key", "apiKey": "orchid7"}}
    assert courier.call(spool, config, ["orchid7"])
    assert courier.wait(spool, names, WAIT_SECONDS) == {names[0]: "refused"}
    (entry,) = spool.dead()
    assert "who is ***?" in spool.why(entry)
    assert not any(b"orchid7" in path.read_bytes() for path in spool.directory.rglob("*") if path.is_file())


def test_call_where_no_process_may_be_started_is_false(
    spool: Spool, backend: Any, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(spool, event(0))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert not courier.call(spool, backend.config)
    lock = spool.take_turn()
    assert lock is not None
    release(lock)


def test_main_what_was_put_before_it_gives_up_its_turn_is_sent(
    spool: Spool, backend: Any, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def release_late(lock: int) -> None:
        monkeypatch.setattr(courier, "release", release)
        put(spool, event(1))
        assert courier.call(spool, backend.config)
        release(lock)

    put(spool, event(0))
    monkeypatch.setattr(courier, "release", release_late)
    monkeypatch.setattr(courier, "_LINGER_SECONDS", 0.2)
    # This process is not to be ended by it.
    monkeypatch.setattr(courier, "_reset_watchdog", lambda: False)
    given = {"directory": spool.directory, "lock": spool.take_turn(), "config": backend.config, "secrets": ()}
    courier.main(given)
    assert backend.taken == [event(0), event(1)]
    assert couriers(spool) == []


def test_put_at_the_moment_when_a_courier_ends_is_sent_by_it_or_the_next(
    spool: Spool, backend: Any, event: Any
) -> None:
    for number in range(4):
        (name,) = put(spool, event(number))
        assert courier.call(spool, backend.config)
        assert courier.wait(spool, [name], WAIT_SECONDS) == {name: "sent"}
        time.sleep(2.0 + number / 20)
    assert len(backend.came) == 4
