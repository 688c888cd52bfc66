"""Everything that is injected into the submission of one task: lineage, Spark's event log, and declarations.

A Python program gets ``spark_lineage.declare`` in an archive that also says where to write.
"""

from __future__ import annotations

import inspect
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from spark_lineage.declare import TARGET_FILE
from spark_lineage.inject.event_log import (
    EVENT_LOG_PREFIX,
    EVENT_LOG_SETTING,
    PROGRAMS_SPELLINGS,
    EventLogInjection,
    inject_event_log,
    program_says,
)
from spark_lineage.inject.jar import has_class_archive
from spark_lineage.inject.preparation import K8S_UPLOAD, PreparedArguments, Submitter, prepare, prepare_unlistened
from spark_lineage.inject.properties import (
    APP_NAME,
    APP_RUN_ID,
    DRIVER_OPTIONS,
    NAMESPACE,
    JarNotFoundError,
    LineageProperties,
    NoRoomError,
    SubmitArguments,
    identity_of,
    is_writable_tag,
    misread_in_lists,
    split,
    transports,
)
from spark_lineage.launch.bounded_run import LINEAGE_FILES, BoundedPlace
from spark_lineage.launch.directory import (
    DECLARE_ARCHIVE,
    EVENT_LOG_DIRECTORY,
    LOG_DIRECTORY,
    OWN_EVENT_LOGS,
    check_free_space,
    check_root,
    create_private,
    write_new,
)
from spark_lineage.launch.log import Guard
from spark_lineage.secrets.redaction import holds_secret
from spark_lineage.settings import Settings
from spark_lineage.settings.places import jar_cache

# Beside the wait for the jar, which has its own limit.
_FILES_SECONDS = 10.0
_PY_FILES = "spark.submit.pyFiles"
_YARN_PY_FILES = "spark.yarn.dist.pyFiles"
_PACKAGE = "spark_lineage"
# The earliest that a zip file can hold: equal content gives equal bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass
class TaskInjection:
    """The arguments of spark-submit, and where its driver writes: ``directory`` is private to the launch."""

    prepared: PreparedArguments
    directory: Path
    event_log: EventLogInjection | None = None

    @property
    def evidence(self) -> str:
        """The sources of the job's lineage."""
        listener = "OpenLineage's listener" if self.prepared.has_listener else ""
        return " and ".join(filter(None, (listener, "Spark's event log" if self.has_event_log else "")))

    @property
    def has_event_log(self) -> bool:
        """Whether there is going to be an event log that can be read here, or copied."""
        return self.event_log is not None and bool(self.event_log.places)

    @property
    def is_certain(self) -> bool:
        """Whether the job is certain to have a source of lineage, whatever settings the program has."""
        return self.prepared.has_listener or (self.has_event_log and self.event_log.is_certain)  # type: ignore[union-attr]


def inject_task(
    lineage: LineageProperties,
    settings: Settings,
    arguments: SubmitArguments,
    submitter: Submitter,
    *,
    why_not_home: Callable[[str], str],
    guard: Guard,
) -> TaskInjection:
    """Prepare the submission of a task; the directory of its launch is made, and stays, whatever comes after that.

    :param why_not_home: says why an event log in the directory of a URL cannot be copied from there; empty if it can
    :raises NoEvidenceError: when the job has neither the listener nor an event log
    :raises Exception: for a lineage directory that cannot be used, and what
        :func:`spark_lineage.inject.preparation.prepare` raises: there will be no lineage then
    """
    if settings.lineage_dir:
        check_root(settings.lineage_dir)
    directory = Path(lineage.events_file).parent
    create_private(directory)
    for key, value in lineage.tags.items():
        if not is_writable_tag(key, value):
            guard.log.warning("The tag %r is left out: the listener takes no ':' and ';' in tags.", key)
    task = _Task(lineage, arguments, submitter, why_not_home, guard)
    injected, why_not = task.injected(settings)
    if settings.evidence == "auto" and not injected.is_certain:
        # Better to wait for the jar than to have nothing.
        injected, why_not = task.injected(replace(settings, evidence="both"))
    if not injected.evidence:
        log = injected.event_log
        no_log = log.reason if log is not None else "its setting could not be made, as is logged above"
        raise NoEvidenceError(f"{why_not or 'no listener is wanted'}; and no event log is read: {no_log}")
    if why_not:
        write = guard.log.warning if settings.evidence == "both" or settings.openlineage_jar else guard.log.debug
        write("The job runs without OpenLineage's listener: %s", why_not)
    if not injected.is_certain:
        guard.log.warning(
            "The program names settings of event logs, so no event log is added. If it turns none on itself, the "
            "job has no lineage. Set spark.eventLog.enabled=true and spark.eventLog.dir for it, or provide the jar."
        )
    with guard("The program cannot declare lineage", can_fail=False):
        try:
            injected.prepared = ship_declare(injected.prepared, submitter, directory)
        except CannotShipError as error:
            guard.log.debug("The program cannot declare lineage: %s", error)
    with guard("The driver starts without a class archive", can_fail=False):
        if has_class_archive(jar_cache(submitter.env)):
            from spark_lineage.inject.class_archive import use_archive

            injected.prepared = use_archive(injected.prepared, submitter, guard.log)
    return injected


def inject_session(lineage: LineageProperties, submitter: Submitter) -> TaskInjection:
    """Prepare a session of a driver that was started by others: its directory is made, and it gets no properties."""
    directory = Path(lineage.events_file).parent
    create_private(directory)
    identity = SubmitArguments(identity_of(lineage, {}))
    prepared = PreparedArguments(identity, None, "client", {}, has_listener=False)
    return TaskInjection(ship_declare(prepared, submitter, directory), directory)


class NoEvidenceError(Exception):
    """The job has no source of lineage; the text says why."""


@dataclass(frozen=True)
class _Task:
    """What is to be injected into; the fields are the arguments of ``inject_task``."""

    lineage: LineageProperties
    arguments: SubmitArguments
    submitter: Submitter
    why_not_home: Callable[[str], str]
    guard: Guard

    def injected(self, settings: Settings) -> tuple[TaskInjection, str]:
        """Return the submission with the available evidence, and why a wanted listener is missing."""
        downloading = settings.jar_seconds if settings.evidence in ("both", "listener") else 0.0
        preparing = BoundedPlace("what the job is prepared with", downloading + _FILES_SECONDS)
        prepared, why_not = preparing.use(lambda: self._prepared(settings))
        injected = TaskInjection(prepared, Path(self.lineage.events_file).parent)
        if settings.evidence != "listener":
            self._add_event_log(injected, settings)
        return injected, why_not

    def _prepared(self, settings: Settings) -> tuple[PreparedArguments, str]:
        """Return the submission, and why it is without the listener that it should have."""
        why_not, arguments, submitter, lineage = "", self.arguments, self.submitter, self.lineage
        if settings.evidence != "event_log":
            try:
                return prepare(arguments, submitter, settings, lineage), ""
            except (JarNotFoundError, NoRoomError) as error:
                if settings.evidence == "listener":
                    raise
                why_not = str(error)
        return prepare_unlistened(arguments, submitter, lineage), why_not

    def _add_event_log(self, injected: TaskInjection, settings: Settings) -> None:
        with self.guard("No event log is read", can_fail=False):
            prepared, submitter = injected.prepared, self.submitter
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
                shared_directory=settings.event_log_dir,
                is_programs=EVENT_LOG_PREFIX in options
                or program_says(EVENT_LOG_SETTING.encode(), submitter.application, others),
                spark_version=spark.spark_version if (spark := submitter.known_installation) else "",
                is_read_here=settings.event_log_from in {"auto", "directory"},
                why_not_home=self.why_not_home,
            )
            if log.is_ours:
                _make_event_logs(directory, log.programs_directory)
            elif not log.places:
                self.guard.log.debug("No event log is read: %s", log.reason)
            injected.prepared = prepared.with_arguments(conf=log.conf)
            injected.event_log = log


@LINEAGE_FILES.bounded
def _make_event_logs(directory: Path, programs: str) -> None:
    create_private(directory / OWN_EVENT_LOGS)
    # Spark fails an application whose log it cannot begin.
    check_free_space(directory)
    for spelling in PROGRAMS_SPELLINGS:
        (directory / spelling).symlink_to(programs)


class CannotShipError(Exception):
    """Our Python file cannot be shipped to the driver; the text says why, and what to do."""


@LINEAGE_FILES.bounded
def ship_declare(prepared: PreparedArguments, submitter: Submitter, directory: Path) -> PreparedArguments:
    """Add the archive to the Python files of a Python application; others are left as they are.

    As every file of ``--py-files`` it goes to the executors too: 20 kB. A driver inside YARN warns that such a file is
    missing, although it has it, which ends a program that takes warnings for errors. It does not warn of the files of
    ``spark.yarn.dist.pyFiles``.

    :param directory: the existing private directory of the launch; the archive in it is to be removed after the launch
    :raises CannotShipError: when a Python driver cannot be reached or its Python files cannot be extended
    :raises OSError: when the archive cannot be made
    """
    if not submitter.application:
        return replace(prepared, declares=_target(prepared.conf, directory))
    # As SparkSubmit.isPython decides; it refuses --py-files for anything else.
    if not submitter.application.endswith(".py"):
        return prepared
    is_on_kubernetes = prepared.deploy_mode == "cluster" and submitter.master.startswith("k8s")
    # Its client refuses to go on without; that of YARN uploads by itself, and standalone clusters run no Python.
    if is_on_kubernetes and K8S_UPLOAD not in prepared.properties:
        raise CannotShipError(f"on Kubernetes, the program can declare lineage only with {K8S_UPLOAD} set")
    archive = directory / DECLARE_ARCHIVE
    if misread := misread_in_lists(str(archive)):
        raise CannotShipError(f"its path {archive} holds {misread}, which --py-files does not take; set lineage_dir")
    arguments = prepared.arguments
    is_on_yarn = prepared.deploy_mode == "cluster" and submitter.master == "yarn"
    setting, users = (_YARN_PY_FILES, None) if is_on_yarn else (_PY_FILES, arguments.py_files)
    if users is None:
        # What is effective today is kept in what we set, which replaces it.
        users = prepared.properties.get(setting, "")
        if setting not in arguments.conf and holds_secret("", users):
            raise CannotShipError(f"{setting} in the properties file holds a secret; give the files as py_files")
    is_elsewhere = prepared.deploy_mode == "cluster"
    place = _place_of_declared(prepared.conf, directory) if is_elsewhere else directory
    write_new(archive, archive_bytes(prepared.conf, place))
    files = ",".join([*split(users), str(archive)])
    if is_on_yarn:
        return prepared.with_arguments(conf={**arguments.conf, setting: files})
    return prepared.with_arguments(py_files=files)


def _place_of_declared(conf: Mapping[str, str], directory: Path) -> Path | str:
    """Return the directory for what a program in a cluster declares; empty where events are lines of its log."""
    if LOG_DIRECTORY in conf.get(DRIVER_OPTIONS, ""):
        return LOG_DIRECTORY
    return "" if "console" in transports(conf) else directory


def _target(conf: Mapping[str, str], directory: Path | str) -> dict[str, str]:
    return {
        "directory": str(directory),
        "namespace": conf[NAMESPACE],
        "application_name": conf[APP_NAME],
        "application_run_id": conf[APP_RUN_ID],
    }


def archive_bytes(conf: Mapping[str, str], directory: Path | str) -> bytes:
    """Return an archive of the package's ``__init__`` and ``declare``, and of the target that ``declare`` looks for."""
    # By their loaders: of several roots, in an editable install, or in an archive, from which this was imported.
    modules = {"__init__.py": _PACKAGE, "declare.py": f"{_PACKAGE}.declare"}
    content = {name: inspect.getsource(import_module(module)).encode() for name, module in modules.items()}
    content[TARGET_FILE] = json.dumps(_target(conf, directory)).encode("ascii")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(f"{_PACKAGE}/{name}", _NO_TIME), data)
    return buffer.getvalue()
