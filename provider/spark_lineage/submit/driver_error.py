"""Finds in the driver's output what a program failed of: Python's exception before the JVM's, then how it exited."""

from __future__ import annotations

import re
import signal

from spark_lineage.secrets.redaction import redact
from spark_lineage.secrets.spelling import without_controls
from spark_lineage.submit.python_error import PrintedException

_JVM = re.compile(r'Exception in thread "[^"]*" (?P<text>.+)')
_CAUSED = re.compile(r"Caused by: (?P<text>.+)")
_OUT_OF_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError(?:: [^\r\n]*)?")
_MAX_LENGTH = 2_000
# What `python` exits with for an exception that nobody caught.
_UNCAUGHT = 1
# org.apache.spark.util.SparkExitCode
_SPARK_EXIT_CODES = {
    50: "an exception that nothing caught",
    51: "an exception while another one was handled",
    52: "java.lang.OutOfMemoryError",
}
_SHELL_SIGNAL = 128


class DriverError:
    """Reads the output of spark-submit in client mode, line by line, and keeps what may explain its end."""

    def __init__(self) -> None:
        self._python = PrintedException()
        self._jvm = self._cause = self._memory = ""

    def feed(self, line: str) -> None:
        """Take the next line of the output."""
        line = line.rstrip("\r\n")
        self._python.feed(line)
        if found := _JVM.search(line):
            self._jvm, self._cause = found["text"], ""
        elif self._jvm and (found := _CAUSED.match(line)):
            self._cause = found["text"]
        if found := _OUT_OF_MEMORY.search(line):
            self._memory = found[0]

    def explain(self, exit_code: int | None) -> str:
        """Return why spark-submit ended with this code, empty for a success.

        A traceback may also be one that the program caught and printed, so that it counts only where Python exits
        as it does for an exception that nothing caught. Where the program went on after it, it is told as what it is,
        and only if nothing else is known.
        """
        if exit_code == 0:
            return ""
        how, printed = _how(exit_code), self._python
        python = "\n".join(printed.lines).strip() if exit_code in (_UNCAUGHT, None) else ""
        if python and not printed.has_gone_on:
            text = python
        elif self._memory and exit_code != _UNCAUGHT:
            text = self._memory
        else:
            text = "\nCaused by: ".join(part for part in (self._jvm, self._cause) if part)
        if not text:
            return _shortened(f"{how}; the last exception in its output: {python}") if python else how
        return f"{_shortened(text)} ({how})"


def _shortened(text: str) -> str:
    # Redacted before it is cut: a login is known by what follows it.
    return without_controls(redact(text))[:_MAX_LENGTH]


def _how(exit_code: int | None) -> str:
    if exit_code is None:
        return "the exit code is not known"
    if exit_code in _SPARK_EXIT_CODES:
        return f"exit code {exit_code}: {_SPARK_EXIT_CODES[exit_code]}"
    number = -exit_code if exit_code < 0 else exit_code - _SHELL_SIGNAL
    if number > 0:
        try:
            name = signal.Signals(number).name
        except ValueError:
            return f"exit code {exit_code}"
        who = "spark-submit" if exit_code < 0 else "the driver"
        return f"{who} was killed by {name}, exit code {exit_code}"
    return f"exit code {exit_code}"
