"""Finds in the driver's output the last exception that its Python program printed, and whether it went on after it.

Python prints the exception that ends a program as the last thing of all; what comes after it is the JVM's. A program
may as well catch one, print it, and exit for another reason.
"""

from __future__ import annotations

import re

# Log4j's default layouts, those of Python's loggers, and Spark 4's JSON.
_LOG_LINE = re.compile(r'\d\d(?:\d\d)?[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d|\{"ts":')
_SPARK_LOG_LINE = re.compile(r'\d\d/\d\d/\d\d \d\d:\d\d:\d\d [A-Z]+ |\{"ts":')
# What Spark logs when it begins to work; of its shutdown it logs no such thing.
_WORK = re.compile(r"Starting job: |Got (?:map stage )?job ")
_TRACEBACK = "Traceback (most recent call last):"
_GROUP_TRACEBACK = "  + Exception Group Traceback (most recent call last):"
_GROUP_LINE = re.compile(r" *\| (?P<text>.*)")
_END_OF_GROUP = re.compile(r" {4}\+-+$")
# A program that cannot be compiled has no traceback.
_PLACE = re.compile(r'  File ".*", line \d+$')
_SYNTAX_ERROR = re.compile(r"(?:SyntaxError|IndentationError|TabError)(?::|$)")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
# Their messages are Spark's, which have several lines.
_OF_SPARK = ("pyspark.", "py4j.")
_JAVA = re.compile(
    r'\s+at |\s+\.\.\. \d+ more|(?:JVM|Driver) stacktrace:$|Caused by: |Exception in thread "'
    r"|(?:[a-z]\w*\.)+[A-Z][\w$]*(?::|$)"
)
# What comes before the traceback of an exception that does not end the program: of a thread, or of a destructor.
_HARMLESS = re.compile(r"Exception in thread [^\"]|Exception ignored in")
_CAUSED = "Caused by: "
_MAX_LINES = 5


class PrintedException:
    """Reads the output line by line.

    ``lines`` are the first of the last exception: its class and its message, of a group also those of its members, of
    one of the JVM its last cause, which may be an exception of a Python function.
    ``has_gone_on`` says that the program printed or did something after it: it may have ended of something else.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._cause = ""
        self.has_gone_on = False
        self._take = self._outside
        self._has_spark_log = False
        self._last_line = ""

    @property
    def lines(self) -> list[str]:
        """The first lines of the last exception, and its last cause."""
        return [*self._lines, f"{_CAUSED}{self._cause}"] if self._cause else self._lines

    def feed(self, line: str) -> None:
        """Take the next line, without its end."""
        self._has_spark_log = self._has_spark_log or _SPARK_LOG_LINE.match(line) is not None
        if line.startswith(_TRACEBACK):
            self._begin()
            self._take = self._in_frames
        elif line.startswith(_GROUP_TRACEBACK):
            self._begin()
            self._take = self._in_group
        else:
            self._take(line)
        self._last_line = line

    def _begin(self) -> None:
        self._lines, self._cause = [], ""
        self.has_gone_on = _HARMLESS.match(self._last_line) is not None

    def _outside(self, line: str) -> None:
        if not self._lines:
            if _PLACE.match(line):
                self._take = self._in_source
        elif self._lines[0].startswith(_OF_SPARK) and line.startswith(_CAUSED):
            self._cause = line.removeprefix(_CAUSED)
            if line.endswith(_TRACEBACK):
                self._take = self._in_cause
        elif self._is_of_program(line):
            self.has_gone_on = True

    def _in_cause(self, line: str) -> None:
        """Take the traceback that a Python worker has sent to the JVM."""
        if not line.startswith((" ", "\t")):
            self._take = self._outside
            if _EXCEPTION.match(line):
                self._cause = line
            else:
                self._outside(line)

    def _in_source(self, line: str) -> None:
        if line.startswith(" "):
            return
        self._take = self._outside
        if _SYNTAX_ERROR.match(line):
            self._lines, self._take = [line], self._in_message

    def _in_frames(self, line: str) -> None:
        if not line.startswith((" ", "\t")) and _EXCEPTION.match(line):
            self._lines, self._take = [line], self._in_message

    def _in_message(self, line: str) -> None:
        if line.startswith("\tat ") or _LOG_LINE.match(line):
            self._take = self._outside
            self._outside(line)
            return
        is_of_spark = self._lines[0].startswith(_OF_SPARK) or _JAVA.match(line)
        if line.strip() and not line.startswith((" ", "\t")) and not is_of_spark:
            # The next line of the message, or of what the program prints: nobody can tell.
            self.has_gone_on = True
        if len(self._lines) < _MAX_LINES:
            self._lines.append(line)

    def _in_group(self, line: str) -> None:
        if _END_OF_GROUP.match(line) or _LOG_LINE.match(line):
            self._take = self._outside
        elif (found := _GROUP_LINE.match(line)) and _EXCEPTION.match(found["text"]) and len(self._lines) < _MAX_LINES:
            self._lines.append(found["text"])

    def _is_of_program(self, line: str) -> bool:
        if _SPARK_LOG_LINE.match(line):
            return _WORK.search(line) is not None
        if _LOG_LINE.match(line):
            # Where Spark logs in its own layout, a program's logger that has another one is told from it.
            return self._has_spark_log
        return bool(line.strip()) and _JAVA.match(line) is None
