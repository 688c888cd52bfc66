"""Everything that is injected into the submission of one task: lineage, Spark's event log, and declarations."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spark_lineage.inject.class_path import SubmitArguments
from spark_lineage.inject.declarations import CannotShipError, ship_declare
from spark_lineage.inject.driver_transport import DriverTransport
from spark_lineage.inject.event_log import (
    EVENT_LOG_PREFIX,
    EVENT_LOG_SETTING,
    PROGRAMS_SPELLINGS,
    EventLogInjection,
    inject_event_log,
)
from spark_lineage.inject.preparation import Prepared, Submitter, prepare
from spark_lineage.inject.properties import FACETS_PREFIX, LineageProperties, is_writable_tag
from spark_lineage.inject.transport import PREFIX as TRANSPORT_PREFIX
from spark_lineage.inject.transport import TRANSPORT_TYPE
from spark_lineage.launch.bounded_run import LINEAGE_FILES, BoundedPlace
from spark_lineage.launch.directory import (
    DECLARE_ARCHIVE,
    EVENT_LOG_DIRECTORY,
    EVENTS_FILE,
    LISTENER_FILE,
    OWN_EVENT_LOGS,
    PRIVATE_FILE,
    check_root,
    create_private,
    without_scheme,
)
from spark_lineage.launch.guard import Guard
from spark_lineage.launch.log import Log
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import Settings

_LISTENER_VARIABLE = "OPENLINEAGE_CONFIG"
# Beside the wait for the jar, which has its own limit.
_FILES_SECONDS = 10.0
_PROGRAM_FILES = BoundedPlace("the files of the program", 5.0)
# Of one file; a program has less, and what has more is data.
_MOST_BYTES = 4 * 1024 * 1024
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)", re.MULTILINE)
# A fat jar holds Spark itself, or what knows its settings.
_LIBRARIES = ("org/apache/", "io/openlineage/")


@dataclass
class TaskInjection:
    """What spark-submit is told, and where its driver writes: ``directory`` is private to the launch."""

    prepared: Prepared
    directory: Path
    event_log: EventLogInjection | None = None

    @property
    def has_event_log(self) -> bool:
        """Whether there is going to be an event log that can be read here."""
        return self.event_log is not None and self.event_log.directory is not None

    @LINEAGE_FILES.bounded
    def tidy(self) -> None:
        """Remove what only the submission needed.

        :raises OSError: when something cannot be removed
        """
        for name in (PRIVATE_FILE, LISTENER_FILE, DECLARE_ARCHIVE):
            (self.directory / name).unlink(missing_ok=True)


def inject_task(
    lineage: LineageProperties,
    settings: Settings,
    arguments: SubmitArguments,
    submitter: Submitter,
    *,
    transport: DriverTransport,
    guard: Guard,
    logger: Log,
) -> TaskInjection:
    """Prepare the submission of a task; the directory of its launch is made, and stays, whatever comes after that.

    :param lineage: of the launch
    :param transport: with what the driver itself sends its raw events
    :raises Exception: for a lineage directory that cannot be used, and what
        :func:`spark_lineage.inject.preparation.prepare` raises: there will be no lineage then
    """
    if settings.lineage_dir:
        check_root(settings.lineage_dir)
    directory = Path(lineage.events_file).parent
    create_private(directory)
    for key, value in lineage.tags.items():
        if not is_writable_tag(key, value):
            name = redact(repr(key))
            logger.warning("The tag %s is left out: the listener takes no ':' and ';' in tags.", name)
    preparing = BoundedPlace("what the job is prepared with", settings.jar_timeout_seconds + _FILES_SECONDS)
    prepared = preparing.use(lambda: prepare(arguments, submitter, settings, lineage, transport.properties))
    injected = TaskInjection(prepared, directory)
    if transport.file is not None:
        _add_listener_file(injected, transport.file, arguments.conf, guard, logger)
    if settings.event_log:
        _add_event_log(injected, submitter, guard, logger)
    _add_declare(injected, submitter, guard, logger)
    return injected


def _add_listener_file(
    injected: TaskInjection,
    transport: Mapping[str, Any],
    user: Mapping[str, str],
    guard: Guard,
    logger: Log,
) -> None:
    """Tell the listener of both transports in a file of its own.

    Spark properties cannot tell of a Kafka transport beside another one: the listener splits the keys of its producer
    at their dots, and loses all events (``ArgumentParser`` of openlineage-spark 1.53, measured). Facets that we have no
    use for are left on, unless the user has switched them off: others may want them.
    """
    prepared = injected.prepared
    conf = prepared.arguments.conf
    if prepared.deploy_mode != "client" or conf.get(TRANSPORT_TYPE) != "file":
        logger.warning(
            "The driver sends its raw events to nobody: a connection of this kind needs deploy mode client, and a job "
            "without an OpenLineage transport of its own."
        )
        return
    with guard("The driver sends its raw events to nobody", can_fail=False):
        file = injected.directory / LISTENER_FILE
        _write_listener_file(file, str(injected.directory / EVENTS_FILE), transport)
        ours = (TRANSPORT_PREFIX, FACETS_PREFIX)
        kept = {key: value for key, value in conf.items() if key in user or not key.startswith(ours)}
        injected.prepared = replace(prepared.with_arguments(conf=kept), env={_LISTENER_VARIABLE: str(file)})


@LINEAGE_FILES.bounded
def _write_listener_file(path: Path, events_file: str, transport: Mapping[str, Any]) -> None:
    transports = {"spark_lineage": {"type": "file", "location": events_file}, "user": transport}
    composite = {"type": "composite", "continueOnFailure": True, "transports": transports}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump({"transport": composite}, stream)


def _add_event_log(injected: TaskInjection, submitter: Submitter, guard: Guard, logger: Log) -> None:
    """Have Spark tell what the listener does not; without that the event says what is unknown."""
    with guard("No event log is read", can_fail=False):
        prepared = injected.prepared
        arguments = prepared.arguments
        directory = injected.directory / EVENT_LOG_DIRECTORY
        others = [*(arguments.py_files or "").split(","), *submitter.named]
        # Java's own options are settings of Spark as well.
        options = " ".join((*prepared.properties.values(), *arguments.conf.values(), *submitter.env.values()))
        log = inject_event_log(
            arguments.conf,
            prepared.properties,
            str(directory),
            deploy_mode=prepared.deploy_mode,
            is_programs=EVENT_LOG_PREFIX in options
            or program_says(EVENT_LOG_SETTING.encode(), submitter.application, others),
        )
        if log.is_ours:
            _make_event_logs(directory, log.programs_directory)
        elif log.directory is None:
            logger.info("No event log is read: %s", log.reason)
        injected.prepared = prepared.with_arguments(conf=log.conf)
        injected.event_log = log


@LINEAGE_FILES.bounded
def _make_event_logs(directory: Path, programs: str) -> None:
    create_private(directory / OWN_EVENT_LOGS)
    for spelling in PROGRAMS_SPELLINGS:
        (directory / spelling).symlink_to(programs)


def _add_declare(injected: TaskInjection, submitter: Submitter, guard: Guard, logger: Log) -> None:
    """Let the program declare lineage; without that it still runs, and its other lineage is collected."""
    with guard("The program cannot declare lineage", can_fail=False):
        try:
            injected.prepared = ship_declare(injected.prepared, submitter, injected.directory)
        except CannotShipError as error:
            logger.info("The program cannot declare lineage: %s", error)


@_PROGRAM_FILES.bounded
def program_says(word: bytes, application: str, others: Iterable[str]) -> bool:
    """Whether ``word`` is in the program, in what it imports from beside it, or in ``others``: files or plain texts.

    What is not on this machine is not looked into, nor are modules of the Python that runs the program.
    """
    waiting, seen = [application, *others], set()
    while waiting:
        text = waiting.pop()
        if text in seen:
            continue
        seen.add(text)
        if word in text.encode(errors="replace"):
            return True
        path = Path(without_scheme(text).partition("#")[0])
        try:
            for content in _contents(path):
                if word in content:
                    return True
                if path.suffix == ".py":
                    waiting += _beside(path, content)
        except (OSError, ValueError, zipfile.BadZipFile):
            # Whatever runs the program says so, if it minds.
            continue
    return False


def _contents(path: Path) -> Iterator[bytes]:
    if not path.is_file():
        return
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.filename.startswith(_LIBRARIES) and entry.file_size <= _MOST_BYTES:
                    yield archive.read(entry)
    elif path.stat().st_size <= _MOST_BYTES:
        yield path.read_bytes()


def _beside(program: Path, content: bytes) -> Iterator[str]:
    """Return the files of the modules that a Python file imports from its own directory, as Python would find them."""
    for imported in _IMPORTS.findall(content):
        for name in imported.decode().split(","):
            if top := name.strip().partition(".")[0]:
                yield str(program.parent / f"{top}.py")
                yield from map(str, (program.parent / top).rglob("*.py"))
