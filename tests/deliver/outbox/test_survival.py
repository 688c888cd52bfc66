"""What the outbox survives: kill -9, forks, other processes, a disk that is full. With real processes."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver.spool import Spool

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


@pytest.mark.truth
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
    assert len(acknowledged) > POINTS // 4
    assert acknowledged - came.keys() == set()
    assert {len(contents) for contents in came.values()} == {1}
    sys.stdout.write(
        f"{POINTS} points, {len(acknowledged)} acknowledged, {len(acknowledged & came.keys())} of them arrived, "
        f"{len(orderly_backend.taken) - len(came)} came twice\n"
    )


def test_what_was_put_before_kill_9_is_there(tmp_path: Path) -> None:
    # Without a backend, so that all of it is still there.
    found = result(start("kill_points.py", "http://127.0.0.1:9", tmp_path, 20, 1))
    kept = {
        (int(event["run"]["runId"][-12:]), int(event["eventTime"][-2:-1]))
        for directory in tmp_path.iterdir()
        for entry in Spool(directory).waiting()
        if (event := json.loads(Spool(directory).read(entry) or b"{}"))
    }
    assert {(run, second) for run, second in found["acknowledged"]} <= kept


def can_mount() -> bool:
    """Whether a file system may be mounted here, in a name space of its own."""
    return (
        shutil.which("unshare") is not None
        and not subprocess.run([*MOUNTING, "true"], check=False, capture_output=True).returncode
    )


def test_a_full_disk_keeps_what_it_has_says_so_and_sends(tmp_path: Path, backend: Any) -> None:
    if not can_mount():
        pytest.skip("no file system can be mounted here (unshare --map-root-user --mount)")
    found = result(start("full_disk.py", backend.url, "/mnt/outbox", prefix=MOUNTING))
    assert found["acknowledged"] == found["kept"] == found["sent"] > 100
    assert all("free some space there" in error for error in found["errors"])
    assert found["is_forgotten"]
    assert found["waiting"] == 1
    assert len(backend.taken) == found["sent"]


def test_processes_that_share_a_spool_send_each_event_once_and_in_order(tmp_path: Path, backend: Any) -> None:
    program = """
import json, sys
from pathlib import Path
from spark_lineage.deliver import courier
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.spool import Spool
url, spool, who = sys.argv[1], Spool(Path(sys.argv[2])), sys.argv[3]
names = []
for number in range(30):
    for second, kind in enumerate(("START", "COMPLETE")):
        names.append(spool.put(Outgoing.of(json.dumps({
            "eventTime": f"2024-01-31T12:00:0{second}Z", "eventType": kind, "producer": "p", "schemaURL": "s",
            "job": {"name": "dag.task", "namespace": "airflow"},
            "run": {"runId": f"0190a5b2-7c1e-7d5f-{who}-{number:012}"}}).encode())))
    assert courier.call(spool, {"type": "http", "url": url})
print(json.dumps({"sent": list(courier.wait(spool, names, 60).values()).count("sent")}))
"""
    (tmp_path / "program.py").write_text(program)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "program.py"), backend.url, str(tmp_path / "outbox"), f"{who:04}"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for who in range(3)
    ]
    assert sum(result(process)["sent"] for process in processes) == 3 * 30 * 2
    assert len(backend.taken) == len(set(backend.taken)) == 3 * 30 * 2
    seen: dict[str, list[str]] = {}
    for content in backend.taken:
        event = json.loads(content)
        seen.setdefault(event["run"]["runId"], []).append(event["eventType"])
    assert set(map(tuple, seen.values())) == {("START", "COMPLETE")}
