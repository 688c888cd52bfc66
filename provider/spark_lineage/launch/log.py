"""Logs the lineage work of a task, and guards the user's task from its errors."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.line import LineCounts
    from spark_lineage.merge.lineage import TaskLineage
    from spark_lineage.merge.transition import StatusSummary

_NAMED_DATASETS = 10
_NAMED_COUNTS = 3
_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log"})
# The characters of C0, C1 and Unicode that end a line or command a terminal.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# The characters of C0, and DEL, that no backend can hold.
_UNHELD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_PARAMETERS = re.compile(r"\?[\w.%-]+=\S*")
_LONGEST_LINE = 500
# Python's own errors of programs.
_UNEXPLAINED = (LookupError, TypeError, AttributeError, AssertionError, NameError, ArithmeticError)
_SUBJECTS = {"SPARK_JOB": "Spark jobs", "SQL_EXECUTION": "SQL executions", "STREAMING_QUERY": "streaming queries"}


class Log:
    """A logger without secrets, around one of any Airflow version, or that of a module by its name.

    A filter of ``logging`` would see no record of Airflow 3's own loggers, and none of a child's. An error whose
    traceback is logged is redacted in place.

    :param mask: of texts, for a hook, whose lines stay as they are; by default each message is one line
    """

    def __init__(self, logger: Any, mask: Callable[[str], str] | None = None) -> None:
        logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._logger: Any = vars(logger)["_logger"] if isinstance(logger, Log) else logger
        self._mask = mask
        self.masked_line: str | None = None
        """The line of spark-submit that is passed on next, masked already."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._logger, name)
        if name not in _LEVELS:
            return found

        def log_masked(*arguments: Any, **keywords: Any) -> Any:
            if isinstance(self._logger, logging.Logger):
                if name == "debug" and not self._logger.isEnabledFor(logging.DEBUG):
                    return None
                # The record names the caller, not this module.
                keywords.setdefault("stacklevel", 2)
            given = keywords.get("exc_info", name == "exception")
            if error := given if isinstance(given, BaseException) else given and sys.exc_info()[1]:
                # On purpose here, and below: each process of Airflow imports this, and seldom logs anything.
                from spark_lineage.secrets.redaction import redact_error

                redact_error(error)
            return found(*self._masked(name, arguments), **keywords)

        # Found at once from now on: a driver has many lines.
        vars(self)[name] = log_masked
        return log_masked

    def _masked(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        from spark_lineage.secrets.redaction import redact, redact_command

        if arguments == (self.masked_line,):
            return arguments
        mask, level = self._mask or redact, arguments[:1] if name == "log" else ()
        said = [
            redact_command(each)
            if isinstance(each, list | tuple) and all(isinstance(part, str) for part in each)
            else (mask(str(each)) if isinstance(each, str | BaseException) else each)
            for each in arguments[len(level) :]
        ]
        if not said:
            return arguments
        try:
            text = mask(str(said[0]) % tuple(said[1:]) if said[1:] else str(said[0]))
        except (TypeError, ValueError):
            text = mask(" ".join(map(str, said)))
        text = text if self._mask is not None else escaped(text)
        # A "%" that is there now stands for itself.
        return (*level, "%s", text) if "%" in text else (*level, text)


def escaped(text: str) -> str:
    """Return a text as one line that a terminal shows as it is: names and answers of servers may hold anything."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def without_controls(text: str) -> str:
    """Replace what no backend can hold: of control characters, all but tab and line end."""
    return _UNHELD.sub("\ufffd", text)


def log_trouble(logger: Log, consequence: str, error: Exception) -> None:
    """Log the consequence of an error and its cause; the traceback is logged for developers."""
    logger.warning("%s: %s", consequence, error_text(error))
    logger.debug("Where it happened:", exc_info=error)


def error_text(error: BaseException) -> str:
    """Return the text of an error, behind its class where the text alone explains nothing."""
    text = ""
    # The text of an error of Java is in its JVM, which may be gone.
    with suppress(Exception):
        text = str(error)
    # Libraries that raise these errors themselves, such as fsspec, give the path alone.
    is_path = isinstance(error, FileNotFoundError | PermissionError) and error.errno is None
    if text and not (is_path or isinstance(error, _UNEXPLAINED)):
        return text
    return f"{type(error).__name__}: {text}".rstrip(": ")


def error_line(error: Exception) -> str:
    """Return the beginning of an error, without parameters of URLs, which may hold a token."""
    from spark_lineage.secrets.redaction import beginning

    return beginning(_PARAMETERS.sub("?…", " ".join(error_text(error).split())), _LONGEST_LINE)


class LineageRequiredError(RuntimeError):
    """There is no lineage, or not all of it, and the task asked to fail then (``lineage_required``)."""


class Guard:
    """Guards the user's task from errors of its lineage; ``log`` gets each once.

    :param is_required: whether the task asked to fail; asked only when there is trouble, which may be in the settings
    """

    def __init__(self, is_required: Callable[[], bool], logger: Any) -> None:
        self._is_required = is_required
        self.log = Log(logger)
        self._logged: set[str] = set()

    @contextmanager
    def __call__(self, consequence: str, *, can_fail: bool = True) -> Iterator[None]:
        """Log what goes wrong, with its cause and what follows from it.

        :raises LineageRequiredError: where that is asked for, and ``can_fail``
        """
        try:
            yield
        except Exception as error:
            if can_fail and self._is_required():
                from spark_lineage.secrets.redaction import redact_error

                # Airflow shows it, and what it was raised from.
                redact_error(error)
                if isinstance(error, LineageRequiredError):
                    raise
                cause = escaped(error_text(error))
                raise LineageRequiredError(f"lineage_required is set, and there is no lineage: {cause}") from None
            if (trouble := f"{consequence}: {error_text(error)}") in self._logged:
                self.log.debug("Again: %s", trouble)
            else:
                self._logged.add(trouble)
                log_trouble(self.log, consequence, error)


def log_lineage(
    lineage: TaskLineage, counts: LineCounts, logger: Log, listened: Launch | None = None, url: str = ""
) -> None:
    """Log the lineage: a line of numbers, and one each for the first inputs, outputs and attempted outputs.

    :param listened: the launch, where its driver has the listener
    :param url: of the job in a backend
    """
    if listened is not None and listened.deploy_mode == "cluster" and not (listened.events_from or counts.read):
        logger.warning(
            "The listener's file did not come. The host of the driver does not share %s with this worker, and keeps "
            "the file there. Set lineage_dir to a directory that both share, or evidence to event_log.",
            listened.directory,
        )
    from spark_lineage.secrets.redaction import beginning

    if incomplete := incompleteness(lineage):
        logger.warning("%s See docs/troubleshooting.md#the-lineage-is-not-complete", incomplete)
    rows = [
        one.statistics.row_count for one in lineage.outputs if one.statistics and one.statistics.row_count is not None
    ]
    numbers = [
        _many(len(lineage.inputs), "input"),
        _many(len(lineage.outputs), "output"),
        f"{_many(sum(rows), 'row')} written" if rows else "",
        _many(len(lineage.attempted), "attempted output") if lineage.attempted else "",
    ]
    aside = counts.set_aside_total
    origin = (
        f"{_many(counts.read, 'event')} of {_many(lineage.run_count, 'Spark run')}",
        f"{_many(aside, 'line')} set aside" if aside else "",
        "all from the event log" if lineage.evidence == ("event_log",) else "",
    )
    logger.info(
        "Lineage: %s, %s (%s)%s",
        lineage.state,
        ", ".join(filter(None, numbers)),
        ", ".join(filter(None, origin)),
        url and f": {url}",
    )
    named = (("Read", lineage.inputs), ("Wrote", lineage.outputs), ("Attempted", lineage.attempted))
    for kind, datasets in named:
        names = [
            beginning(f"{one.dataset.namespace} {one.dataset.name}", _LONGEST_LINE)
            for one in datasets[:_NAMED_DATASETS]
        ]
        if others := len(datasets) - len(names):
            names.append(f"and {others:,} more")
        if names:
            logger.info("%s: %s", kind, ", ".join(names))
    several = [one.dataset.namespace for _, datasets in named[:2] for one in datasets if "," in one.dataset.namespace]
    if several:
        logger.debug(
            "%s names several hosts; the option hostnamePattern.<cluster> gives their cluster one name, whichever of "
            "them a program was given: see docs/naming.md#clusters-with-several-hosts",
            several[0],
        )


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def incompleteness(lineage: TaskLineage) -> str:
    """Return what is unknown of a lineage in one line, with the first three names; empty where it is complete."""
    counted = [(one.command, one.count) for one in lineage.unknown] + [(one.part, one.count) for one in lineage.unread]
    if not counted:
        return ""
    names = [name if count == 1 else f"{name} ({count} times)" for name, count in counted[:_NAMED_COUNTS]]
    others = len(counted) - len(names)
    more = f", and {others} more" if others else ""
    return f"The lineage is not complete: {escaped(', '.join(names))}{more}."


def log_status(status: StatusSummary, logger: Log) -> None:
    """Log how applications, drivers and what they ran ended, and where to read on, for developers."""
    last = {(one.subject, one.subject_id): one for one in status.transitions if one.subject not in _SUBJECTS}
    lines = [
        f"{one.subject.capitalize()} {one.subject_id}: {one.new_status}{one.detail and f' ({one.detail})'} "
        f"(source: {one.source})"
        for one in last.values()
    ]
    numbers = [f"{count} {_SUBJECTS[subject]} {state}" for subject, state, count in status.counts]
    if numbers:
        lines.append(f"Of the application: {', '.join(numbers)}")
    if status.error:
        lines.append(f"The application failed: {status.error}")
    if status.history_url:
        lines.append(f"History: {status.history_url}")
    log_group("Status of the job", lines, logger.debug)


def log_group(title: str, lines: Iterable[str], log: Callable[..., object]) -> None:
    """Log lines that belong together as a group, which Airflow's UI folds; nothing for no lines."""
    if lines := list(lines):
        for line in (f"::group::{title}", *lines, "::endgroup::"):
            log("%s", line)
