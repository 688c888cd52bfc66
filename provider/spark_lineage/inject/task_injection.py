"""Everything that is injected into the submission of one task: lineage, Spark's event log, and declarations.

A Python program gets ``spark_lineage.declare`` in an archive that also says where to write.

The driver is asked for an event log if neither the user nor the program has one, else theirs is found.

The program's own settings override ours key by key, and so every mixture must be what the program alone would get:

- Ours are no more than these four, and none of them takes an event from a log.
- The name of our directory is the value of ``spark.eventLog.enabled``, which Spark puts in. Its spelling is one that no
  program uses. Where the program turns a log on itself and names no directory, its own spelling leads through a link to
  the directory that it would have had.
- A program that names these settings is left alone: it may name a directory, and leave the rest to the cluster.

Plans are to name all columns and paths: by default Spark ends a list of columns after 25, of an UPDATE nothing else
names them, and one of paths after 100 characters. That costs little: a write of 2,000 columns has a plan of 380 KB in
place of 367 KB, in the same CPU time; a read of 100 files has a log of 82,870 bytes in place of 82,767.

Spark fails an application whose ``spark.eventLog.dir`` does not exist, so ours is for drivers on this machine alone.
"""

from __future__ import annotations

import inspect
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from spark_lineage.declare import TARGET_FILE
from spark_lineage.inject.preparation import K8S_UPLOAD, PreparedArguments, Submitter, prepare, prepare_unlistened
from spark_lineage.inject.properties import (
    APP_NAME,
    APP_RUN_ID,
    DRIVER_OPTIONS,
    FACETS_PREFIX,
    NAMESPACE,
    TRANSPORT_TYPE,
    JarNotFoundError,
    LineageProperties,
    SubmitArguments,
    TransportConflictError,
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
    local_directory,
    remote_directory,
    split_connection,
    without_scheme,
    write_new,
)
from spark_lineage.launch.line import no_event_log
from spark_lineage.launch.log import Guard
from spark_lineage.secrets.redaction import holds_secret
from spark_lineage.settings import Settings

EVENT_LOG_PREFIX = "spark.eventLog."
_ENABLED = f"{EVENT_LOG_PREFIX}enabled"
_DIRECTORY = f"{EVENT_LOG_PREFIX}dir"
_COMPRESS, _CODEC = f"{EVENT_LOG_PREFIX}compress", f"{EVENT_LOG_PREFIX}compression.codec"
_UNREAD_CODECS = frozenset({"lz4", "lzf", "snappy"})
# Spark's own default.
_DEFAULT_DIRECTORY = "file:///tmp/spark-events"
# A program with this text may set its own log; the short form finds names that it puts together, too.
EVENT_LOG_SETTING = "eventLog"
# Where the program turns a log on: as Python, people, and environment variables spell it.
PROGRAMS_SPELLINGS = ("true", "True", "TRUE")
# More columns than tables have, and paths than a scan has; the bounds are for lists of values, and of partitions.
_WHOLE_LISTS = {"spark.sql.debug.maxToStringFields": "5000", "spark.sql.maxMetadataStringLength": "100000"}
_OURS = {
    _ENABLED: OWN_EVENT_LOGS,
    # Spark's defaults since 4.0. Without compression, the log of 4,000 tasks has 21 MB in place of 1.
    _COMPRESS: "true",
    _CODEC: "zstd",
}
_CAPTURED = "spark.openlineage.capturedProperties"
_NO_PROPERTIES = f"{FACETS_PREFIX}spark_properties.disabled"
# The listener works on no event while less than a fifth of the driver's memory is free and a tenth of its CPU time goes
# into collecting garbage, and gives up one that takes a minute (``JavaRuntimeCircuitBreaker``). All breakers share an
# executor that ends with the first SparkContext (1.53): of a second one there is the event log alone.
_BREAKER_PREFIX = "spark.openlineage.circuitBreaker."
_BREAKER = {f"{_BREAKER_PREFIX}type": "javaRuntime", f"{_BREAKER_PREFIX}timeoutInSeconds": "60"}
_PROGRAM_FILES = BoundedPlace("the files of the program", 5.0)
# The limit of one file; a larger one is data, and no program.
_MOST_BYTES = 4 * 1024 * 1024
_IMPORTED = rb"[\w.]+(?:[ \t]+as[ \t]+\w+)?"
_IMPORTS = re.compile(
    rb"(?:^|[:;])[ \t]*(?:from|import)[ \t]+(%b(?:[ \t]*,[ \t]*%b)*)" % (_IMPORTED, _IMPORTED), re.MULTILINE
)
# A fat jar holds Spark itself, or what knows its settings.
_LIBRARIES = ("org/apache/", "io/openlineage/")


@dataclass(frozen=True)
class EventLogInjection:
    """The new ``--conf``, and where the application's event log is going to be.

    ``directory`` is a path on this machine, None if none is known yet; then ``elsewhere`` is the URL of a directory
    that it is copied from, or ``reason`` says why there is none. ``is_ours`` says
    whether the directory holds nothing but this application's log, which is ours to remove. ``programs_directory`` is
    where the log goes instead when the program turns one on by itself. ``is_certain``: there is going to be one; a
    program that names the settings may turn none on.
    """

    conf: dict[str, str]
    directory: str | None
    is_ours: bool = False
    reason: str = ""
    programs_directory: str = ""
    is_certain: bool = True
    elsewhere: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """Where the log may lie."""
        return tuple(each for each in (self.directory, self.programs_directory, self.elsewhere) if each)


def inject_event_log(
    conf: Mapping[str, str],
    file_properties: Mapping[str, str],
    directory: str,
    *,
    deploy_mode: str,
    shared_directory: str = "",
    is_programs: bool = False,
    spark_version: str = "",
    is_read_here: bool = True,
    why_not_copied: Callable[[str], str] = lambda _: "it is not brought from elsewhere",
) -> EventLogInjection:
    """Make the driver log its events below ``directory``, unless the user or the program has decided otherwise.

    A log that the user has turned on is left as it is, and one that they have turned off stays off.

    :param shared_directory: path or URL of the directory where a driver elsewhere logs if no other is set
    :param is_programs: whether the program itself has settings of event logs
    :param spark_version: empty where it is not known
    :param is_read_here: whether a log of the user is read in its directory, if that is on this machine
    :param why_not_copied: says why the log in the directory of a URL cannot be copied; empty if it can
    """
    effective = {**file_properties, **conf}
    enabled = effective.get(_ENABLED, "").strip().lower()
    is_free = not is_programs and enabled in {"", "true"} and _DIRECTORY not in effective
    if shared_directory and is_free and deploy_mode != "client":
        return _shared_log(conf, effective, shared_directory, spark_version, why_not_copied, is_read_here=is_read_here)
    reported: dict[str, str] = {}
    has_listener = effective.get(TRANSPORT_TYPE) == "file"
    if has_listener and effective.get(_NO_PROPERTIES) == "true" and _CAPTURED not in effective:
        # The listener reports the directory that the program really logs into, where its events go to us alone.
        reported = {_NO_PROPERTIES: "false", _CAPTURED: _DIRECTORY}
    if is_programs or enabled == "true":
        path, url, reason = _users_place(
            effective, deploy_mode, spark_version, why_not_copied, is_read_here=is_read_here
        )
        added = {**(reported if is_programs else {}), **({} if reason else _whole_lists(effective))}
        return EventLogInjection({**conf, **added}, path, reason=reason, elsewhere=url, is_certain=enabled == "true")
    programs = None
    if enabled:
        reason = f"{_ENABLED} is {enabled}"
    elif deploy_mode != "client":
        own = f"{_ENABLED}=true and a {_DIRECTORY} that is read from here"
        reason = f"the driver runs on another machine; set event_log_dir, or {own}"
    else:
        programs = local_directory(effective.get(_DIRECTORY) or _DEFAULT_DIRECTORY)
        reason = f"{_DIRECTORY} is not on this machine, and the program may turn its log on; set {_ENABLED}"
    if programs is None:
        return EventLogInjection(dict(conf), None, reason=reason)
    has_breaker = any(key.startswith(_BREAKER_PREFIX) for key in effective)
    limits = _BREAKER if has_listener and not has_breaker else {}
    location = f"file://{quote(directory)}/${{{_ENABLED}}}"
    ours = {**_whole_lists(effective), **reported, **limits, **_OURS, _DIRECTORY: location}
    ours_alone = f"{directory}/{OWN_EVENT_LOGS}"
    return EventLogInjection({**conf, **ours}, ours_alone, is_ours=True, programs_directory=programs)


NO_DIRECTORY = "is no directory, and Spark fails a job that would log there: make it"
"""What is wrong with an ``event_log_dir`` that does not exist."""


def _shared_log(
    conf: Mapping[str, str],
    effective: Mapping[str, str],
    directory: str,
    spark_version: str,
    why_not_copied: Callable[[str], str],
    *,
    is_read_here: bool,
) -> EventLogInjection:
    """Return a log in the directory of all drivers; none where it could not be read there."""
    compressed = {_COMPRESS: "true", _CODEC: "zstd"} if _CODEC not in effective else {}
    ours = {**_whole_lists(effective), **compressed, _ENABLED: "true", _DIRECTORY: directory}
    added = {key: value for key, value in ours.items() if key not in effective}
    path, url, reason = _users_place(
        {**effective, **added}, "cluster", spark_version, why_not_copied, is_read_here=is_read_here
    )
    if path is not None and not _PROGRAM_FILES.use(Path(path).is_dir):
        reason = f"event_log_dir {path} {NO_DIRECTORY}"
    if reason:
        return EventLogInjection(dict(conf), None, reason=reason)
    added[_DIRECTORY] = split_connection(directory)[0]
    return EventLogInjection({**conf, **added}, path, elsewhere=url)


def _users_place(
    effective: Mapping[str, str],
    deploy_mode: str,
    spark_version: str,
    why_not_copied: Callable[[str], str],
    *,
    is_read_here: bool,
) -> tuple[str | None, str, str]:
    """Return path or URL of the user's log, or why there is none; in cluster mode the path is taken for shared."""
    codec = effective.get(_CODEC, "").strip().lower()
    # Spark's default is true since 4.0. What an unknown one does, its log shows.
    compress = effective.get(_COMPRESS) or str(spark_version.partition(".")[0] not in {"", "3"})
    if codec in _UNREAD_CODECS and compress.strip().lower() == "true":
        return None, "", f"{_CODEC} is {codec}, and only zstd is read"
    given = effective.get(_DIRECTORY, _DEFAULT_DIRECTORY)
    path = local_directory(given)
    if is_read_here and path is not None and (deploy_mode == "client" or _DIRECTORY in effective):
        return path, "", ""
    url = Path(path).as_uri() if path is not None else remote_directory(given)
    why_not = why_not_copied(url) if url is not None else "no URL of another file system"
    if url is not None and not why_not:
        return None, url, ""
    return None, "", f"{_DIRECTORY} is not an absolute path on this machine, and is not read from elsewhere: {why_not}"


def _whole_lists(effective: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in _WHOLE_LISTS.items() if key not in effective}


@_PROGRAM_FILES.bounded
def is_in_program(word: bytes, application: str, others: Iterable[str]) -> bool:
    """Whether ``word`` is in the program, in what it imports from beside it, or in ``others``: files or plain texts.

    What is not on this machine is not looked into, nor are modules of the Python that runs the program.
    """
    texts = [application, *others]
    if any(word in text.encode(errors="replace") for text in texts):
        return True
    for path in files_of_program(texts):
        # A file that cannot be read is reported by the program that runs it.
        with suppress(OSError, ValueError, zipfile.BadZipFile):
            if any(word in content for content in chain([str(path).encode(errors="replace")], _contents(path))):
                return True
    return False


def files_of_program(texts: Iterable[str]) -> Iterator[Path]:
    """Return the files on this machine that texts name, and those that Python imports from beside them, each once."""
    waiting, seen = list(texts), set[Path]()
    homes, searched = {Path(without_scheme(text)).parent for text in waiting if text.endswith(".py")}, set[Path]()
    for text in waiting:
        path = Path(without_scheme(text).partition("#")[0])
        with suppress(OSError, ValueError):
            if path in seen or not path.is_file():
                continue
            seen.add(path)
            yield path
            if path.suffix == ".py" and path.stat().st_size <= _MOST_BYTES:
                # A module of a package imports others from where the program is.
                modules = {home / name for home in homes | {path.parent} for name in _imports(path.read_bytes())}
                for module in modules - searched:
                    waiting += map(str, [module.with_suffix(".py"), *module.rglob("*.py")])
                searched |= modules


def _contents(path: Path) -> Iterator[bytes]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.filename.startswith(_LIBRARIES) and entry.file_size <= _MOST_BYTES:
                    yield archive.read(entry)
    elif path.stat().st_size <= _MOST_BYTES:
        yield path.read_bytes()


def _imports(content: bytes) -> set[str]:
    """Return the packages, and modules outside of packages, that a Python file imports."""
    names = (name for imported in _IMPORTS.findall(content) for name in imported.decode().split(","))
    return {name.split()[0].partition(".")[0] for name in names} - {""}


# Beside the wait for the jar, which has its own limit.
_FILES_SECONDS = 10.0
_PY_FILES = "spark.submit.pyFiles"
_YARN_PY_FILES = "spark.yarn.dist.pyFiles"
_PACKAGE = "spark_lineage"
# The earliest that a zip file can hold: equal content gives equal bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass
class TaskInjection:
    """The arguments of spark-submit, and where the event log of its driver is going to be."""

    prepared: PreparedArguments
    event_log: EventLogInjection | None = None
    why_alone: str = ""
    """Why the job needs no listener, where it could have one."""
    why_not: str = ""
    """Why the job is without the listener that it should have."""

    @property
    def evidence(self) -> str:
        """The sources of the job's lineage."""
        listener = "OpenLineage's listener" if self.prepared.has_listener else ""
        sources = " and ".join(filter(None, (listener, "Spark's event log" if self.has_event_log else "")))
        return f"{sources} ({self.why_alone})" if self.why_alone else sources

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
    why_not_copied: Callable[[str], str],
    guard: Guard,
    why_alone: str = "",
) -> TaskInjection:
    """Prepare the submission of a task; the directory of its launch is made, and stays, whatever comes after that.

    :param why_alone: why a certain event log is enough; empty where it is not known to be
    :param why_not_copied: says why an event log in the directory of a URL cannot be copied from there; empty if it can
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
    task = _Task(lineage, arguments, submitter, why_not_copied, guard)
    injected = task.chosen(settings, why_alone)
    if not injected.evidence:
        log = injected.event_log
        no_log = log.reason if log is not None else "its setting could not be made, as is logged above"
        raise NoEvidenceError(injected.why_not or "no listener is wanted", no_event_log(no_log))
    if injected.why_not:
        write = guard.log.warning if settings.evidence == "both" or settings.openlineage_jar else guard.log.debug
        write("The job runs without OpenLineage's listener: %s", injected.why_not)
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
    return injected


def inject_session(lineage: LineageProperties, submitter: Submitter) -> TaskInjection:
    """Prepare a session of a driver that was started by others: its directory is made, and it gets no properties."""
    directory = Path(lineage.events_file).parent
    create_private(directory)
    identity = SubmitArguments(identity_of(lineage, {}))
    prepared = PreparedArguments(identity, None, "client", {}, has_listener=False)
    return TaskInjection(ship_declare(prepared, submitter, directory))


class NoEvidenceError(Exception):
    """The job has no source of lineage; the text says why, ``lacking`` why there is no event log."""

    def __init__(self, why_not: str, lacking: str) -> None:
        super().__init__(f"{why_not}; and {lacking}")
        self.lacking = lacking


@dataclass(frozen=True)
class _Task:
    """The job that is injected into; the fields are the arguments of ``inject_task``."""

    lineage: LineageProperties
    arguments: SubmitArguments
    submitter: Submitter
    why_not_copied: Callable[[str], str]
    guard: Guard

    def chosen(self, settings: Settings, why_alone: str) -> TaskInjection:
        """Return what ``injected`` does with the evidence that ``auto`` chooses."""
        if settings.evidence != "auto":
            return self.injected(settings)
        if why_alone:
            injected = self.injected(replace(settings, evidence="event_log"))
            if injected.is_certain:
                injected.why_alone = why_alone
                return injected
        injected = self.injected(settings)
        # Better to wait for the jar than to have nothing.
        return injected if injected.is_certain else self.injected(replace(settings, evidence="both"))

    def injected(self, settings: Settings) -> TaskInjection:
        """Return the submission with the available evidence."""
        downloading = settings.jar_seconds if settings.evidence in ("both", "listener") else 0.0
        preparing = BoundedPlace("what the job is prepared with", downloading + _FILES_SECONDS)
        return preparing.use(lambda: self._injected(settings))

    def _injected(self, settings: Settings) -> TaskInjection:
        injected = self._prepared(settings)
        if settings.evidence != "listener":
            self._add_event_log(injected, settings)
        return injected

    def _prepared(self, settings: Settings) -> TaskInjection:
        why_not, arguments, submitter, lineage = "", self.arguments, self.submitter, self.lineage
        if settings.evidence != "event_log":
            try:
                return TaskInjection(prepare(arguments, submitter, settings, lineage))
            except (JarNotFoundError, TransportConflictError) as error:
                if settings.evidence == "listener":
                    raise
                why_not = str(error)
        return TaskInjection(prepare_unlistened(arguments, submitter, lineage), why_not=why_not)

    def _add_event_log(self, injected: TaskInjection, settings: Settings) -> None:
        with self.guard("No event log is read", can_fail=False):
            prepared, submitter = injected.prepared, self.submitter
            arguments = prepared.arguments
            directory = Path(self.lineage.events_file).with_name(EVENT_LOG_DIRECTORY)
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
                or is_in_program(EVENT_LOG_SETTING.encode(), submitter.application, others),
                spark_version=spark.spark_version if (spark := submitter.known_installation) else "",
                is_read_here=settings.event_log_from in {"auto", "directory"},
                why_not_copied=self.why_not_copied,
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
        # The flag replaces the property, so it keeps the user's files.
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
    # The loaders give the sources, from several roots, an editable install, or an archive.
    modules = {"__init__.py": _PACKAGE, "declare.py": f"{_PACKAGE}.declare"}
    content = {name: inspect.getsource(import_module(module)).encode() for name, module in modules.items()}
    content[TARGET_FILE] = json.dumps(_target(conf, directory)).encode("ascii")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(f"{_PACKAGE}/{name}", _NO_TIME), data)
    return buffer.getvalue()
