"""Server processes of the tests: started with a log, waited for, stopped by their process id."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
STOP_SECONDS = 15
_TAIL_CHARACTERS = 4000


class BackendError(RuntimeError):
    """A backend cannot be had or does not start; the text says which, why, and what to install."""


class NotInstalledError(BackendError):
    """What a backend needs of the system is not there; the text says how to install it."""


def cache_directory() -> Path:
    """Where downloads stay from one test run to the next, outside of the checkout."""
    directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spark-lineage-tests"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on now.

    They lie below those that the system hands out by itself (Linux: from 32768), so they stay free until a server takes
    them.
    """
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            port = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
            with contextlib.suppress(OSError):
                stack.enter_context(socket.socket()).bind((HOST, port))
                ports.append(port)
        return ports


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False


def dies_with_parent() -> list[str]:
    """Return what stands before a command that Linux kills when the thread which has started it is over."""
    return ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


@dataclass
class Server:
    """One process, and the log of what it printed."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
    ) -> Server:
        """Start ``command``, as ``user`` if one is given; Linux kills it when the tests themselves are killed."""
        with log.open("ab") as stream:
            process = subprocess.Popen(
                [*dies_with_parent(), *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=dict(os.environ if env is None else env),
                cwd="/",
                user=user,
                extra_groups=[] if user is not None else None,
                start_new_session=True,
            )
        return cls(name, process, log)

    def wait_until(self, is_ready: Callable[[], bool], seconds: float) -> None:
        """Wait until it is ready; ``BackendError`` with the end of its log when it ends or takes too long."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            ended = self.process.poll()
            if ended is not None or time.monotonic() > deadline:
                what = f"was not ready after {seconds:.0f} s" if ended is None else f"ended with {ended}"
                self.stop()
                raise BackendError(f"{self.name} {what}. The end of {self.log}:\n{self.tail()}")
            time.sleep(0.1)

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-_TAIL_CHARACTERS:]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to end, and kill it if it does not; then whatever it has left behind in its session."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def run(
    name: str,
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    user: str | int | None = None,
    cwd: str | Path = "/",
) -> str:
    """Run a program to its end; its output, or ``BackendError`` with it."""
    done = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(env),
        cwd=cwd,
        user=user,
        extra_groups=[] if user is not None else None,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise BackendError(f"{name} failed with exit code {done.returncode}:\n{done.stdout[-_TAIL_CHARACTERS:]}")
    return done.stdout
