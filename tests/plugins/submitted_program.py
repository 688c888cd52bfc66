"""A program that a service of the tests runs, by a real ``spark-submit``, with the properties that it was given."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


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
    _process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        conf = {"spark.ui.enabled": "false", **self.conf}
        options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        command = [f"{self.env['SPARK_HOME']}/bin/spark-submit", "--master", "local[2]", *options, self.program]
        with self.log.open("wb") as stream:
            self._process = subprocess.Popen(
                [*command, *self.arguments], env={**self.env}, stdout=stream, stderr=stream, cwd=self.log.parent
            )
        self._thread = threading.Thread(target=self._wait)
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
        if self._process.poll() is None:
            self._process.kill()
        self._thread.join()

    @property
    def why(self) -> str:
        """The last line that its output has of an exception."""
        lines = self.log.read_text(errors="replace").splitlines()
        return next((line for line in reversed(lines) if "Error: " in line or "Exception: " in line), "")
