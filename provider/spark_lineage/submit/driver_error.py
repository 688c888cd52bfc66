"""Finds in the driver's output what a program failed of: Python's exception before the JVM's, then how it exited."""

from __future__ import annotations

import re
import signal

from spark_lineage.emit.redaction import redact
from spark_lineage.emit.spelling import without_controls

# log4j's default layout, and that of Spark 4's JSON log.
_LOG_LINE = re.compile(r'\d\d(?:\d\d)?[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d|\{"ts":')
_TRACEBACK = "Traceback (most recent call last):"
_JVM = re.compile(r'Exception in thread "[^"]*" (?P<text>.+)')
_CAUSED = re.compile(r"Caused by: (?P<text>.+)")
_OUT_OF_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError(?:: [^\r\n]*)?")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_MAX_LINES, _MAX_LENGTH = 5, 2_000
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
        self._python: list[str] = []
        self._is_in_traceback = self._is_in_message = False
        self._jvm = self._cause = self._memory = ""

    def feed(self, line: str) -> None:
        """Take the next line of the output."""
        line = line.rstrip("\r\n")
        if line.startswith(_TRACEBACK):
            self._is_in_traceback, self._is_in_message, self._python = True, False, []
        elif self._is_in_traceback:
            self._feed_traceback(line)
        if found := _JVM.search(line):
            self._jvm, self._cause = found["text"], ""
        elif self._jvm and (found := _CAUSED.match(line)):
            self._cause = found["text"]
        if found := _OUT_OF_MEMORY.search(line):
            self._memory = found[0]

    def _feed_traceback(self, line: str) -> None:
        if self._python and (line.startswith("\tat ") or _LOG_LINE.match(line)):
            # The frames of the JVM, or what Spark logs after the end of the program.
            self._is_in_message = self._is_in_traceback = False
        elif self._is_in_message:
            if len(self._python) < _MAX_LINES:
                self._python.append(line)
        elif not line.startswith((" ", "\t")) and _EXCEPTION.match(line):
            self._python, self._is_in_message = [line], True

    def explain(self, exit_code: int | None) -> str:
        """Give why spark-submit ended with this code, empty for a success.

        A traceback may also be one that the program caught and printed, so that it counts only where Python exits
        as it does for an exception that nothing caught.
        """
        if exit_code == 0:
            return ""
        how = _how(exit_code)
        if exit_code in (_UNCAUGHT, None) and self._python:
            text = "\n".join(self._python).strip()
        elif self._memory and exit_code != _UNCAUGHT:
            text = self._memory
        else:
            text = "\nCaused by: ".join(part for part in (self._jvm, self._cause) if part)
        # Redacted before it is cut: a login is known by what follows it.
        return f"{without_controls(redact(text))[:_MAX_LENGTH]} ({how})" if text else how


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
