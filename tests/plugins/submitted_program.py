"""A program that a service of the tests runs, by a real ``spark-submit``, with the properties that it was given."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Kills the group of a command, with the program that Java started, when nobody holds its standard input any more.
_UNTIL_CLOSED = 'exec 3<&0; { cat <&3; kill -KILL 0; } >/dev/null 2>&1 & exec "$@" 3<&- </dev/null'


class Driver(subprocess.Popen[bytes]):
    """A command in a process group of its own, which ends with this process, however that ends."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        guarded = ["sh", "-c", _UNTIL_CLOSED, "sh", *command]
        super().__init__(guarded, stdin=subprocess.PIPE, start_new_session=True, **options)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the command, and leave nothing of its group behind."""
        exit_code = super().wait(timeout)
        if self.stdin is not None:
            self.stdin.close()
        self.kill()
        return exit_code

    def kill(self) -> None:
        """Kill the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


@dataclass(eq=False)
class SubmittedProgram:
    """It runs once it is made; ``conf`` are its properties.

    :param env: of ``spark-submit``, with SPARK_HOME
    :param log: the file of its output
    :param ended: called at its end
    """

    program: str
    arguments: Sequence[str]
    conf: Mapping[str, str]
    env: Mapping[str, str]
    log: Path
    ended: Callable[[], object] = lambda: None
    is_cancelled: bool = False
    exit_code: int | None = None
    _process: Driver = field(init=False)

    def __post_init__(self) -> None:
        conf = {"spark.ui.enabled": "false", **self.conf}
        options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        command = [f"{self.env['SPARK_HOME']}/bin/spark-submit", "--master", "local[2]", *options, self.program]
        with self.log.open("wb") as stream:
            self._process = Driver(
                [*command, *self.arguments], env={**self.env}, stdout=stream, stderr=stream, cwd=self.log.parent
            )
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        exit_code = self._process.wait()
        self.ended()
        self.exit_code = exit_code

    def cancel(self) -> None:
        """End the driver as a service does; it may close its event log."""
        self.is_cancelled = True
        self._process.terminate()

    def close(self) -> None:
        """Leave no process behind."""
        self._process.kill()
        self._thread.join()

    @property
    def why(self) -> str:
        """The last line that its output has of an exception."""
        lines = self.log.read_text(errors="replace").splitlines()
        return next((line for line in reversed(lines) if "Error: " in line or "Exception: " in line), "")
