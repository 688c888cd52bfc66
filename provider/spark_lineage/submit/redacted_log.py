"""What the Spark provider's hook writes to the task's log, without secrets."""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

from spark_lineage.secrets.redaction import MASK, redact_command, redact_error, redact_name, redact_value
from spark_lineage.secrets.secret_keys import Prefilter

_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log"})
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----\s*$")
# What a PEM file has between its first and its last line; anything else ends it, for the hook reads ids from the log.
_KEY_LINE = re.compile(r"\s*(?:[A-Za-z0-9+/]{1,100}={0,2}|(?:Proc-Type|DEK-Info): [\w,.-]{1,100})?\s*")
# By these the hook finds the job again, to follow and to end it: they stay, whatever the user's patterns match.
_READ_BY_HOOK = re.compile(
    r"(application_\d+_\d+|driver-\d{14}-\d+|pod name: \S+-driver$|submission ID spark:\S+?-driver"
    r"|spark-app-selector -> spark-[a-z0-9]+, |[eE]xit code: \d+)"
)
_may_be_read_by_hook = Prefilter("application_|driver|spark-app-selector|xit code: ")


class LineRedaction:
    """Masks the output of spark-submit line by line."""

    def __init__(self) -> None:
        self._is_in_key = False

    def __call__(self, line: str) -> str:
        """Mask the next line; those of a PEM key, which is known only as a whole, go altogether.

        A secret that Airflow has registered stays where it could be a name: Airflow masks it in the log itself, after
        the hook has read its ids from the line.
        """
        if self._is_in_key and _KEY_LINE.fullmatch(line):
            return f"{MASK}\n"
        self._is_in_key = _KEY_BEGIN.search(line) is not None
        masked = redact_name(line)
        is_read = masked != line and _may_be_read_by_hook(line)
        if is_read and any(found not in masked for found in _READ_BY_HOOK.findall(line)):
            parts = _READ_BY_HOOK.split(line)
            return "".join(part if index % 2 else redact_name(part) for index, part in enumerate(parts))
        return masked


class RedactedLog:
    """Stands before a logger, whatever Airflow's version takes for one, and masks what it is told."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self.masked_line: str | None = None
        """The line of spark-submit that is passed on next, masked already."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._logger, name)
        if name not in _LEVELS:
            return found

        def tell(*arguments: Any, **keywords: Any) -> Any:
            error = sys.exc_info()[1]
            if error is not None:
                # The traceback may be asked for.
                redact_error(error)
            if isinstance(self._logger, logging.Logger):
                # Where the hook said it, not where it was masked.
                keywords.setdefault("stacklevel", 2)
            return found(*self._masked(name, arguments), **keywords)

        # Found at once from now on: a driver has many lines.
        vars(self)[name] = tell
        return tell

    def _masked(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        if arguments == (self.masked_line,):
            return arguments
        level = arguments[:1] if name == "log" else ()
        message, values = arguments[len(level) : len(level) + 1], arguments[len(level) + 1 :]
        if not message:
            return arguments
        masked = tuple(map(_masked, values))
        try:
            text = str(_masked(message[0])) % masked if masked else str(_masked(message[0]))
        except (TypeError, ValueError):
            text = " ".join(map(str, (message[0], *masked)))
        # A "%" that is there now stands for itself.
        return (*level, "%s", redact_name(text)) if "%" in text else (*level, redact_name(text))


def _masked(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return redact_command(value)
    return redact_name(str(value)) if isinstance(value, (str, BaseException)) else redact_value(value)
