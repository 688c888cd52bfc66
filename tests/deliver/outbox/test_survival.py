"""What the outbox survives: kill -9, forks, other processes, a disk that is full. With real processes."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver.outbox.outbox import Outbox
from spark_lineage.launch.lock import locked

REPOSITORY = Path(__file__).parents[3]
PROGRAMS = Path(__file__).parent / "programs"
POINTS = 200
# A small disk of its own, on which the rest of the command runs.
MOUNTING = [
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs -o size=12m none /mnt && exec "$@"',
    "-",
]


def start(program: str, *arguments: Any, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
    roots = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
    # A fork beside a thread is what these programs are about.
    command = [
        *prefix,
        sys.executable,
        "-W",
        "ignore::DeprecationWarning",
        str(PROGRAMS / program),
        *map(str, arguments),
    ]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(roots)}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str], seconds: float = 180) -> dict[str, Any]:
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, stderr[-4000:]
    found: dict[str, Any] = json.loads(stdout)
    return found


def test_kill_9_at_200_points_loses_nothing(tmp_path: Path, orderly_backend: Any) -> None:
    seed = secrets.randbits(32)
    sys.stdout.write(f"seed {seed}\n")
    found = result(start("kill_points.py", orderly_backend.url, tmp_path, POINTS, seed))

    acknowledged = {(run, second) for run, second in found["acknowledged"]}
    came: dict[tuple[int, int], set[bytes]] = {}
    last: dict[int, int] = {}
    for content in orderly_backend.taken:
        event = json.loads(content)
        run, second = int(event["run"]["runId"][-12:]), int(event["eventTime"][-2:-1])
        came.setdefault((run, second), set()).add(content)
        # In order, though perhaps twice.
        assert last.get(run, 0) <= second
        last[run] = second
    assert found["waiting"] == 0
    assert len(acknowledged) > POINTS
    assert acknowledged - came.keys() == set()
    assert {len(contents) for contents in came.values()} == {1}
    sys.stdout.write(
        f"{POINTS} points, {len(acknowledged)} acknowledged, {len(acknowledged & came.keys())} of them arrived, "
        f"{len(orderly_backend.taken) - len(came)} came twice\n"
    )


def test_what_was_put_before_kill_9_is_there(tmp_path: Path) -> None:
    # Without a backend, so that all of it is still in the file.
    process = start("kill_points.py", "http://127.0.0.1:9", tmp_path, 20, 1)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr[-4000:]
    found = json.loads(stdout)
    kept = set()
    for directory in tmp_path.iterdir():
        outbox = Outbox(directory)
        kept |= {(int(one.head.run_id[-12:]), int(one.head.event_time[-2:-1])) for one in outbox.events()}
        outbox.close()
    assert {(run, second) for run, second in found["acknowledged"]} <= kept


def can_mount() -> bool:
    """Whether a file system may be mounted here, in a name space of its own."""
    return (
        shutil.which("unshare") is not None
        and not subprocess.run([*MOUNTING, "true"], check=False, capture_output=True).returncode
    )


def test_a_file_that_can_grow_no_more_keeps_what_it_has_and_says_so(tmp_path: Path, backend: Any) -> None:
    found = result(start("full_disk.py", backend.url, tmp_path / "outbox", 6_000_000))
    assert found["acknowledged"] > 5
    assert found["kept"] == found["acknowledged"]
    assert all("is the disk full" in error for error in found["errors"])
    assert found["after"][1] == 0
    assert len(set(backend.taken)) == found["kept"] + 1
    # What cannot be removed afterwards is not sent: every task would send it again. The first one shows that.
    assert len(backend.taken) - len(set(backend.taken)) <= 1


@pytest.mark.parametrize("prefix", [MOUNTING] if can_mount() else [], ids=["tmpfs"] if can_mount() else [])
def test_a_full_disk_keeps_what_it_has_until_there_is_room(tmp_path: Path, backend: Any, prefix: list[str]) -> None:
    found = result(start("full_disk.py", backend.url, "/mnt/outbox", 0, prefix=prefix))
    assert found["acknowledged"] > 100
    assert found["kept"] == found["acknowledged"]
    assert all("free some space there: what it holds is kept" in error for error in found["errors"])
    assert found["after"][1] == 0
    assert len(set(backend.taken)) == found["kept"] + 1
    # What cannot be removed afterwards is not sent: every task would send it again. The first one shows that.
    assert len(backend.taken) - len(set(backend.taken)) <= 1


def test_forks_on_both_sides_of_which_it_is_used(tmp_path: Path) -> None:
    found = result(start("forks.py", tmp_path / "outbox", 6, 25))
    total = 25 * (1 + 1 + 6 + 6)
    assert found == {"codes": [0] * 6, "events": total, "different": total, "sound": "ok"}


def test_a_child_does_not_hold_the_locks_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    program = """
import os, pathlib, sys, time
from spark_lineage.launch.lock import locked
with locked(pathlib.Path(sys.argv[1]), lambda: False) as is_held:
    if is_held and os.fork() == 0:
        print(os.getpid(), flush=True)
    time.sleep(60)
"""
    path = tmp_path / "lock"
    roots = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(roots)}
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        with locked(path, lambda: False) as is_held:
            assert not is_held
        process.kill()
        process.wait()
        with locked(path, lambda: False) as is_held:
            assert is_held
    finally:
        process.kill()
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_processes_share_a_directory(tmp_path: Path, backend: Any) -> None:
    directory = tmp_path / "outbox"
    program = """
import json, sys
from pathlib import Path
from spark_lineage.deliver.outbox.outbox import Outbox
from spark_lineage.deliver.transports.opening import make_transport
url, directory, who = sys.argv[1:]
outbox = Outbox(Path(directory))
sent = waiting = 0
for number in range(30):
    for second, kind in enumerate(("START", "COMPLETE")):
        outbox.put("marquez", json.dumps({
            "eventTime": f"2024-01-31T12:00:0{second}Z", "eventType": kind, "producer": "p", "schemaURL": "s",
            "job": {"name": "dag.task", "namespace": "airflow"},
            "run": {"runId": f"0190a5b2-7c1e-7d5f-{who}-{number:012}"}}).encode())
    done = outbox.deliver(["marquez"], lambda _: make_transport({"type": "http", "url": url}), 20)
    sent += done.sent
outbox.close()
print(json.dumps({"sent": sent}))
"""
    (tmp_path / "program.py").write_text(program)
    roots = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(roots)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "program.py"), backend.url, str(directory), f"{who:04}"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for who in range(3)
    ]
    sent = sum(result(process)["sent"] for process in processes)
    assert sent == len(backend.taken) == len(set(backend.taken)) == 3 * 30 * 2
    seen: dict[str, list[str]] = {}
    for content in backend.taken:
        event = json.loads(content)
        seen.setdefault(event["run"]["runId"], []).append(event["eventType"])
    assert set(map(tuple, seen.values())) == {("START", "COMPLETE")}
    assert Outbox(directory).events() == []


def test_who_was_killed_while_it_delivered_holds_nobody_up(tmp_path: Path, backend: Any, event: Any) -> None:
    outbox = Outbox(tmp_path / "outbox")
    outbox.put("marquez", event())
    program = """
import sys, time
from pathlib import Path
from spark_lineage.deliver.outbox.outbox import Outbox
class Hanging:
    def emit(self, event):
        print("in flight", flush=True)
        time.sleep(60)
    def close(self, timeout=-1):
        return True
Outbox(Path(sys.argv[1])).deliver(["marquez"], lambda _: Hanging(), 60)
"""
    (tmp_path / "program.py").write_text(program)
    roots = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
    command = [sys.executable, str(tmp_path / "program.py"), str(outbox.directory)]
    process = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": os.pathsep.join(roots)}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in flight\n"
    begin = time.monotonic()
    assert outbox.deliver(["marquez"], backend.open, 0.3).waiting == 1
    assert time.monotonic() - begin < 1
    assert backend.taken == []
    process.kill()
    process.wait()
    process.stdout.close()
    assert outbox.deliver(["marquez"], backend.open, 20).sent == 1
    outbox.close()
