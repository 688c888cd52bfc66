"""Processes of a launch are found by their environment, and ended, whoever their parent is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from spark_lineage.adapters.processes import LAUNCH_VARIABLE, end_processes, processes_of

SLEEP = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
# Its child outlives it, as a Python driver outlives its JVM.
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); sys.exit()"


@pytest.fixture
def launch() -> str:
    return str(uuid.uuid4())


def start(launch: str, program: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, LAUNCH_VARIABLE: launch}
    return subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE)


def wait_for(launch: str, number: int) -> list[psutil.Process]:
    deadline = time.monotonic() + 20
    while len(found := processes_of(launch)) != number:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


def test_only_processes_of_the_launch_are_ended(launch: str) -> None:
    other = str(uuid.uuid4())
    with start(launch, SLEEP) as ours, start(other, SLEEP) as theirs:
        wait_for(launch, 1)
        wait_for(other, 1)
        assert end_processes(launch, 5) == 1
        assert ours.wait(5) == -signal.SIGTERM
        assert theirs.poll() is None
        assert end_processes(other, 5) == 1


def test_an_orphan_is_found(launch: str) -> None:
    with start(launch, PARENT) as parent:
        parent.wait(20)
        (orphan,) = wait_for(launch, 1)
        assert orphan.pid != parent.pid
        assert end_processes(launch, 5) == 1
        assert processes_of(launch) == []


def test_what_does_not_end_is_killed(launch: str) -> None:
    with start(launch, STUBBORN) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        assert end_processes(launch, 0.2) == 1
        assert stubborn.wait(5) == -signal.SIGKILL


def test_a_zombie_and_nothing_are_no_processes(launch: str) -> None:
    assert end_processes(launch, 5) == 0
    with start(launch, "pass") as zombie:
        deadline = time.monotonic() + 20
        while psutil.Process(zombie.pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert processes_of(launch) == []
        assert zombie.wait() == 0


def test_what_a_program_leaves_behind_is_left_alone_where_nobody_killed_it(launch: str, tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text("import subprocess\nsubprocess.Popen(['nohup', 'sleep', '60']).wait()\n")
    env = {**os.environ, LAUNCH_VARIABLE: launch}
    with subprocess.Popen([sys.executable, str(program), "2024", ""], env=env, stderr=subprocess.DEVNULL) as driver:
        wait_for(launch, 2)
        assert end_processes(launch, 5, program=["elsewhere/job.py", "2025", ""]) == 0
        assert end_processes(launch, 5, program=["elsewhere/job.py", "2024", ""]) == 1
        assert driver.wait(5) == -signal.SIGTERM
        assert [process.name() for process in processes_of(launch)] == ["sleep"]
        assert end_processes(launch, 5) == 1


def test_neither_the_task_itself_nor_another_user_is_ended(launch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(launch, SLEEP) as process:
        wait_for(launch, 1)
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: process.pid)
            assert processes_of(launch) == []
        with monkeypatch.context() as patch:
            user = os.getuid()
            patch.setattr(os, "getuid", lambda: user + 1)
            assert processes_of(launch) == []
        assert end_processes(launch, 5) == 1
