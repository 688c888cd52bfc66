"""What is logged leaves here, without secrets: by loggers of ours, of operators and of hooks, lines of drivers.

The loggers of the modules and those of Airflow's objects have nothing else in common: a filter of ``logging`` sees no
record of Airflow 3's, and one of a parent none of its children.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Any, Protocol

_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log"})
# Of C0, C1 and Unicode: what ends a line, and what a terminal takes for a command.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----\s*$")
# What a PEM file has between its first and its last line; anything else ends it, for the hook reads ids from the log.
_KEY_LINE = r"\s*(?:[A-Za-z0-9+/]{1,100}={0,2}|(?:Proc-Type|DEK-Info): [\w,.-]{1,100})?\s*"
_DIGIT = re.compile(r"\d")
# By these the hook finds the job again, to follow and to end it: they stay, whatever the user's patterns match.
_READ_BY_HOOK = re.compile(
    r"(application_\d+_\d+|driver-\d{14}-\d+|pod name: \S+-driver$|submission ID [a-z0-9-]+:[a-z0-9.-]+"
    r"|application ID spark-\w+|spark-app-selector -> spark-[a-z0-9]+, |[eE]xit code: \d+)"
)
_MAY_BE_READ_BY_HOOK = re.compile("application_|driver|spark-app-selector|xit code: ")


class Log(Protocol):
    """What is used of a logger: the standard library's and Airflow's own both fit."""

    def debug(self, *args: Any, **kwargs: Any) -> Any:
        """Log for developers."""

    def info(self, *args: Any, **kwargs: Any) -> Any:
        """Log what was done."""

    def error(self, *args: Any, **kwargs: Any) -> Any:
        """Log what is lost."""

    def warning(self, *args: Any, **kwargs: Any) -> Any:
        """Log what went wrong."""


def escaped(text: str) -> str:
    """Return a text as one line that a terminal shows as it is: names and answers of servers may hold anything."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def logger_of(name: str) -> Log:
    """Return the logger of a module."""
    return clean_log(logging.getLogger(name))


def clean_log(logger: Any) -> Log:
    """Return what logs to a logger without secrets; itself where it does so."""
    found: Any = logger if isinstance(logger, RedactedLog) else RedactedLog(logger)
    return found  # type: ignore[no-any-return]


class RedactedLog:
    """Wraps a logger of any Airflow version: each message is one line without secrets, and its error has none.

    An error whose traceback is logged is redacted in place.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._logger, name)
        if name not in _LEVELS:
            return found

        def log_masked(*arguments: Any, **keywords: Any) -> Any:
            if (
                name == "debug"
                and isinstance(self._logger, logging.Logger)
                and not self._logger.isEnabledFor(logging.DEBUG)
            ):
                return None
            given = keywords.get("exc_info", name == "exception")
            if error := given if isinstance(given, BaseException) else given and sys.exc_info()[1]:
                # On purpose here: it takes a while, and modules of every process of Airflow have a logger.
                from spark_lineage.secrets.redaction import redact_error

                redact_error(error)
            if isinstance(self._logger, logging.Logger):
                # Where it was said, not where it was masked.
                keywords.setdefault("stacklevel", 2)
            return found(*self._masked(name, arguments), **keywords)

        # Found at once from now on: a driver has many lines.
        vars(self)[name] = log_masked
        return log_masked

    def _masked(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        level = arguments[:1] if name == "log" else ()
        message, values = arguments[len(level) : len(level) + 1], arguments[len(level) + 1 :]
        if not message:
            return arguments
        masked = tuple(map(self._value, values))
        try:
            text = str(self._value(message[0])) % masked if masked else str(self._value(message[0]))
        except (TypeError, ValueError):
            text = " ".join(map(str, (message[0], *masked)))
        text = self._line(text)
        # A "%" that is there now stands for itself.
        return (*level, "%s", text) if "%" in text else (*level, text)

    def _value(self, value: Any) -> Any:
        from spark_lineage.secrets.redaction import redact_command, redact_value

        if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
            return redact_command(value)
        return self._text(str(value)) if isinstance(value, (str, BaseException)) else redact_value(value)

    def _text(self, text: str) -> str:
        from spark_lineage.secrets.redaction import redact

        return redact(text)

    def _line(self, text: str) -> str:
        return escaped(self._text(text))


class HookLog(RedactedLog):
    """Wraps the logger of a hook of the Spark provider.

    A secret that Airflow has registered stays where it could be a name: Airflow masks it in the log itself, after the
    hook has read its ids from the line.
    """

    masked_line: str | None = None
    """The line of spark-submit that is passed on next, masked already."""

    def _masked(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return arguments if arguments == (self.masked_line,) else super()._masked(name, arguments)

    def _text(self, text: str) -> str:
        from spark_lineage.secrets.redaction import redact_name

        return redact_name(text)

    def _line(self, text: str) -> str:
        # Its lines, and ends of them, are the hook's own.
        return self._text(text)


class LineRedaction:
    """Masks the output of a driver line by line."""

    def __init__(self) -> None:
        self._key_line: re.Pattern[str] | None = None

    def __call__(self, line: str) -> str:
        """Mask the next line; those of a PEM key, which is known only as a whole, go altogether.

        Before each of them may be what a logger puts there, the same for all but for its digits. A secret that Airflow
        has registered stays as in :class:`HookLog`.
        """
        from spark_lineage.secrets.redaction import redact_name
        from spark_lineage.secrets.secret_keys import MASK

        if self._key_line is not None and self._key_line.fullmatch(line):
            return f"{MASK}\n"
        self._key_line = None
        if begin := _KEY_BEGIN.search(line):
            before = _DIGIT.sub(r"\\d", re.escape(line[: begin.start()]))
            self._key_line = re.compile(before + _KEY_LINE)
        masked = redact_name(line)
        is_read = masked != line and _MAY_BE_READ_BY_HOOK.search(line)
        if is_read and any(found not in masked for found in _READ_BY_HOOK.findall(line)):
            parts = _READ_BY_HOOK.split(line)
            return "".join(part if index % 2 else redact_name(part) for index, part in enumerate(parts))
        return masked
