"""Reads the output of spark-submit: masks its secrets, and finds why the program failed.

Python prints the exception that ends a program last; later output is the JVM's. A program may also catch an exception,
print it, and exit for another reason.
"""

from __future__ import annotations

import fcntl
import re
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from typing import Any

from spark_lineage.launch.driver import Driver
from spark_lineage.launch.log import without_controls
from spark_lineage.launch.retention import APPLICATION
from spark_lineage.secrets.redaction import beginning, redact_name
from spark_lineage.secrets.secret_keys import MASK, Prefilter

# Log4j's default layouts, those of Python's loggers, and Spark 4's JSON.
_LOG_LINE = re.compile(r'\d\d(?:\d\d)?[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d|\{"ts":')
_SPARK_LOG_LINE = re.compile(r'\d\d/\d\d/\d\d \d\d:\d\d:\d\d [A-Z]+ |\{"ts":')
# The lines that Spark logs when it begins to work; none of them is of its shutdown.
_WORK = re.compile(r"Starting job: |Got (?:map stage )?job ")
_OF_LISTENER = "OpenLineageExtensionVisitorWrapper: "  # a warning of several lines, which may come with any event
_TRACEBACK = re.compile(r"(?:  \+ Exception Group )?Traceback \(most recent call last\):")
# A program that cannot be compiled has no traceback.
_PLACE = re.compile(r'  File ".*", line \d+$')
_SYNTAX_ERROR = re.compile(r"(?P<text>(?:SyntaxError|IndentationError|TabError)(?::.*|$))")
# An exception group is reported as a whole.
_EXCEPTION = re.compile(r"(?P<group>  \| )?(?P<text>[A-Za-z_][\w.]*(?::.*|$))")
# The class of an exception, where the JVM has logged a line while Python wrote.
_TORN = re.compile(rf"[A-Za-z_][\w.]*?(?={_SPARK_LOG_LINE.pattern})")
_END_OF_GROUP = re.compile(r" {4}\+-+$|" + _LOG_LINE.pattern)
# Python marks a place at the very left where it has no line of the source to indent.
_INDENTED = re.compile(r"\s|[~^]+$|$")
# Their messages are Spark's, which have several lines.
_OF_SPARK = ("pyspark.", "py4j.")
_OF_JVM = re.compile(
    r'\s+at |\s+\.\.\. \d+ more|(?:JVM|Driver) stacktrace:$|Caused by: |Exception in thread "'
    r"|(?:[a-z]\w*\.)+[A-Z][\w$]*(?::|$)"
)
# The line before the traceback of an exception that does not end the program: of a thread, or of a destructor.
_HARMLESS = re.compile(r"Exception in thread [^\"]|Exception ignored in")
_JVM = re.compile(r'Exception in thread "[^"]*" (?P<text>.+)')
_CAUSED = re.compile(r"Caused by: (?P<text>.+)")
_OUT_OF_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError(?:: [^\r\n]*)?")
_MAX_LINES = 5
_MAX_LENGTH = 2_000
# The exit code of `python` for an uncaught exception.
_UNCAUGHT = 1
# org.apache.spark.util.SparkExitCode
_SPARK_EXIT_CODES = {
    50: "an exception that nothing caught",
    51: "an exception while another one was handled",
    52: "java.lang.OutOfMemoryError",
}
_SHELL_SIGNAL = 128
# A line that was waited for is read with those of a fifth of a second after it, or with so many bytes: no driver waits
# for room in its pipe, which may hold 4 kB only.
_WAITED_SECONDS, _LOOKS_MILLISECONDS, _BURST_BYTES = 0.001, (5, 15, 60, 120), 2048
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----\s*$")
# The lines within a PEM file; any other line ends it, because the hook reads ids from the log.
_KEY_LINE = r"\s*(?:[A-Za-z0-9+/]{1,100}={0,2}|(?:Proc-Type|DEK-Info): [\w,.-]{1,100})?\s*"
_DIGIT = re.compile(r"\d")
# The ids by which the hook follows and ends the job: they stay, whatever the user's patterns match.
_READ_BY_HOOK = re.compile(
    r"(application_\d+_\d+|driver-\d{14}-\d+|pod name: \S+-driver$|submission ID [a-z0-9-]+:[a-z0-9.-]+"
    r"|application ID spark-\w+|spark-app-selector -> spark-[a-z0-9]+, |[eE]xit code: \d+)"
)
_may_be_read_by_hook = Prefilter("application_|driver|spark-app-selector|xit code: ")
_UI_PORT = re.compile(r"Successfully started service '?SparkUI'? on port (\d+)")
# The ids in the logs of clients: standalone's app-…, YARN's application_…, Kubernetes' spark-….
_APPLICATION_ID = re.compile(
    r"Connected to Spark cluster with app ID (app-[\w-]+)"
    r"|Submitted application (application_\d+_\d+)"
    r"|spark-app-selector -> (spark-\w+)|application ID (spark-\w+) and submission ID"
    # spark-sql prints this once it is ready.
    r"|Spark master: \S+, Application Id: ([\w-]+)"
)
# Spark's EventLogFileWriter logs `file:/logs/local-1`, or a part, `file:/logs/eventlog_v2_local-1/events_1_local-1`.
_EVENT_LOG = re.compile(r"EventLogFiles?Writer: Logging events to file:(/.*)/")


def in_bursts(lines: Iterator[str], pipe: Any) -> Iterator[str]:
    """Return the lines of a pipe, those that come soon after each other together; once it is closed, at once.

    A process that wakes up for each line has cold caches, and takes three times as long for it.
    """
    closing = select.poll()
    closing.register(pipe, 0)
    unread = pipe, termios.FIONREAD, bytes(4)
    asked = time.monotonic()
    for line in lines:
        if time.monotonic() - asked > _WAITED_SECONDS:
            for look in _LOOKS_MILLISECONDS:
                if int.from_bytes(fcntl.ioctl(*unread), sys.byteorder) >= _BURST_BYTES or closing.poll(look):
                    break
        yield line
        asked = time.monotonic()


class _PythonError:
    """The last exception that Python printed, and whether the program went on after it.

    ``lines`` are its class and the start of its message; ``cause`` is the last cause of one of the JVM, which may be an
    exception of a Python function.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.cause = ""
        self.has_gone_on = False
        self._expected: re.Pattern[str] | None = None
        """What the first line after the frames of a traceback is; None outside of one."""
        self._is_in_message = False
        self._has_spark_log = self._is_of_listener = self._is_torn = False
        self._last_line = ""

    def feed(self, line: str) -> None:
        """Take the next line, without its end."""
        if self._expected is _EXCEPTION and (torn := _TORN.match(line)):
            self.feed(torn[0])
            line, self._is_torn = line[torn.end() :], True
        self._has_spark_log = self._has_spark_log or _SPARK_LOG_LINE.match(line) is not None
        if _TRACEBACK.match(line):
            self.lines, self.cause, self._expected = [], "", _EXCEPTION
            self.has_gone_on = _HARMLESS.match(self._last_line) is not None
        elif self._expected is not None:
            self._take_frame(line, self._expected)
        elif self.lines:
            self._take_later(line)
        elif _PLACE.match(line):
            self._expected = _SYNTAX_ERROR
        self._last_line = line

    def _take_frame(self, line: str, expected: re.Pattern[str]) -> None:
        found = expected.match(line)
        if found is None and (expected is _END_OF_GROUP or _INDENTED.match(line)):
            return
        self._expected = None
        if found and not self.lines:
            self.lines, self._is_in_message = [found["text"]], True
            if found.groupdict().get("group"):
                self._expected, self._is_in_message = _END_OF_GROUP, False
        elif expected is _EXCEPTION and found:
            self.cause = found["text"]
        elif self.lines and expected is not _END_OF_GROUP:
            self._take_later(line)

    def _take_later(self, line: str) -> None:
        if self._is_torn and line.startswith(": "):
            self.lines[0] += line
            self._is_in_message, self._is_torn = True, False
            return
        is_of_spark = self.lines[0].startswith(_OF_SPARK)
        if self._is_in_message and not line.startswith("\tat ") and not _LOG_LINE.match(line):
            # The next line of the message, or of what the program prints: it is unknown which.
            if not _INDENTED.match(line) and not is_of_spark and not _OF_JVM.match(line):
                self.has_gone_on = True
            if len(self.lines) < _MAX_LINES:
                self.lines.append(line)
            return
        self._is_in_message = False
        if is_of_spark and (caused := _CAUSED.match(line)):
            self.cause = caused["text"]
            # The traceback that a Python worker has sent to the JVM.
            self._expected = _EXCEPTION if _TRACEBACK.search(line) else None
        elif _SPARK_LOG_LINE.match(line):
            self._is_of_listener = _OF_LISTENER in line
            self.has_gone_on = self.has_gone_on or _WORK.search(line) is not None
        elif _LOG_LINE.match(line):
            # Where Spark logs in its own layout, a program's logger that has another one is recognised.
            self.has_gone_on = self.has_gone_on or self._has_spark_log
        elif line.strip() and not self._is_of_listener and not _OF_JVM.match(line):
            self.has_gone_on = True

    def __str__(self) -> str:
        return "\n".join([*self.lines, *([f"Caused by: {self.cause}"] if self.cause else [])]).strip()


class DriverError:
    """Reads what a driver prints, line by line, and keeps what may explain its end."""

    def __init__(self) -> None:
        self._python = _PythonError()
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

    def explain(self, exit_code: int | None, how: str = "") -> str:
        """Return why the driver ended with this code, empty for a success.

        A traceback may also be one that the program caught and printed, so that it counts only where Python exits
        as it does for an exception that nothing caught. If the program continued after it, it is reported as the last
        exception, and only if nothing else is known.
        """
        if exit_code == 0:
            return ""
        how = how or _how(exit_code)
        python = str(self._python) if exit_code in (_UNCAUGHT, None) else ""
        if python and not self._python.has_gone_on:
            text = python
        elif self._memory and exit_code != _UNCAUGHT:
            text = self._memory
        else:
            text = "\nCaused by: ".join(part for part in (self._jvm, self._cause) if part)
        if not text:
            return _shortened(f"{how}; the last exception in its output: {python}") if python else how
        return f"{_shortened(text)} ({how})"


def _shortened(text: str) -> str:
    return without_controls(beginning(text, _MAX_LENGTH))


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


class LineRedaction:
    """Masks the output of spark-submit line by line."""

    def __init__(self) -> None:
        self._key_line: re.Pattern[str] | None = None

    def __call__(self, line: str) -> str:
        """Mask the next line; those of a PEM key, which is known only as a whole, go altogether.

        Before each of them may be what a logger puts there, the same for all but for its digits.

        A secret that Airflow has registered stays where it could be a name: Airflow masks it in the log itself, after
        the hook has read its ids from the line.
        """
        if self._key_line is not None and self._key_line.fullmatch(line):
            return f"{MASK}\n"
        self._key_line = None
        if begin := _KEY_BEGIN.search(line):
            before = _DIGIT.sub(r"\\d", re.escape(line[: begin.start()]))
            self._key_line = re.compile(before + _KEY_LINE)
        masked = redact_name(line)
        is_read = masked != line and _may_be_read_by_hook(line)
        if is_read and any(found not in masked for found in _READ_BY_HOOK.findall(line)):
            parts = _READ_BY_HOOK.split(line)
            return "".join(part if index % 2 else redact_name(part) for index, part in enumerate(parts))
        return masked


class DriverOutput:
    """Reads what a driver prints, masks its secrets, and keeps what may explain its end."""

    def __init__(self) -> None:
        self.error = DriverError()
        self.redact = LineRedaction()
        self.host = "127.0.0.1"
        """Where Spark binds its UI (``org.apache.spark.ui.JettyUtils``)."""

    def read(self, line: str, driver: Driver) -> bool:
        """Take the next line, note what it says of the driver, and return whether that is new."""
        self.error.feed(line)
        is_news = False
        if port := _UI_PORT.search(line):
            driver.ui_address, is_news = f"http://{self.host}:{port[1]}", True
        # All that it may match has "pp" in it, which is found faster.
        if driver.application_id is None and "pp" in line and (found := _APPLICATION_ID.search(line)):
            driver.application_id, is_news = next(group for group in found.groups() if group), True
        if "Logging events" in line:
            logged = APPLICATION.findall(line.rpartition("/")[2])
            driver.logged_ids = tuple(dict.fromkeys((*driver.logged_ids, *logged)))
            if found := _EVENT_LOG.search(line):
                driver.event_logs = tuple(dict.fromkeys((*driver.event_logs, found[1])))
        return is_news
