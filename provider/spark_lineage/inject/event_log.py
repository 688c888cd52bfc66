"""Ask the driver for an event log if neither the user nor the program has one, else find where theirs is.

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

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from spark_lineage.inject.properties import FACETS_PREFIX, TRANSPORT_TYPE
from spark_lineage.launch.bounded_run import BoundedPlace
from spark_lineage.launch.directory import (
    OWN_EVENT_LOGS,
    local_directory,
    remote_directory,
    split_connection,
    without_scheme,
)

EVENT_LOG_PREFIX = "spark.eventLog."
_ENABLED = f"{EVENT_LOG_PREFIX}enabled"
_DIRECTORY = f"{EVENT_LOG_PREFIX}dir"
_COMPRESS, _CODEC = f"{EVENT_LOG_PREFIX}compress", f"{EVENT_LOG_PREFIX}compression.codec"
_UNREAD_CODECS = frozenset({"lz4", "lzf", "snappy"})
# Spark's own default.
_DEFAULT_DIRECTORY = "file:///tmp/spark-events"
# What a program says that may have a log of its own: also where it puts the names of settings together.
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
_PROGRAM_FILES = BoundedPlace("the files of the program", 5.0)
# Of one file; a program has less, and what has more is data.
_MOST_BYTES = 4 * 1024 * 1024
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)", re.MULTILINE)
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
    why_not_home: Callable[[str], str] = lambda _: "it is not brought from elsewhere",
) -> EventLogInjection:
    """Make the driver log its events below ``directory``, unless the user or the program has decided otherwise.

    A log that the user has turned on is left as it is, and one that they have turned off stays off.

    :param shared_directory: path or URL of the directory where a driver elsewhere logs if no other is set
    :param is_programs: whether the program itself has settings of event logs
    :param spark_version: empty where it is not known
    :param is_read_here: whether a log of the user is read in its directory, if that is on this machine
    :param why_not_home: says why the log in the directory of a URL cannot be copied; empty if it can
    """
    effective = {**file_properties, **conf}
    enabled = effective.get(_ENABLED, "").strip().lower()
    is_free = not is_programs and enabled in {"", "true"} and _DIRECTORY not in effective
    if shared_directory and is_free and deploy_mode != "client":
        return _shared_log(conf, effective, shared_directory, spark_version, why_not_home, is_read_here=is_read_here)
    if is_programs or enabled == "true":
        path, url, reason = _users_place(effective, deploy_mode, spark_version, why_not_home, is_read_here=is_read_here)
        added = {**(_told_directory(effective) if is_programs else {}), **({} if reason else _whole_lists(effective))}
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
    location = f"file://{quote(directory)}/${{{_ENABLED}}}"
    ours = {**_whole_lists(effective), **_told_directory(effective), **_OURS, _DIRECTORY: location}
    ours_alone = f"{directory}/{OWN_EVENT_LOGS}"
    return EventLogInjection({**conf, **ours}, ours_alone, is_ours=True, programs_directory=programs)


def _shared_log(
    conf: Mapping[str, str],
    effective: Mapping[str, str],
    directory: str,
    spark_version: str,
    why_not_home: Callable[[str], str],
    *,
    is_read_here: bool,
) -> EventLogInjection:
    """Return a log in the directory of all drivers; none where it could not be read there."""
    compressed = {_COMPRESS: "true", _CODEC: "zstd"} if _CODEC not in effective else {}
    added = {**_whole_lists(effective), **compressed, _ENABLED: "true", _DIRECTORY: directory}
    path, url, reason = _users_place(
        {**effective, **added}, "cluster", spark_version, why_not_home, is_read_here=is_read_here
    )
    if reason:
        return EventLogInjection(dict(conf), None, reason=reason)
    added[_DIRECTORY] = split_connection(directory)[0]
    return EventLogInjection({**conf, **added}, path, elsewhere=url)


def _told_directory(effective: Mapping[str, str]) -> dict[str, str]:
    """Have the listener report the directory that the program really logs into, where its events go to us alone."""
    if effective.get(TRANSPORT_TYPE) != "file" or effective.get(_NO_PROPERTIES) != "true" or _CAPTURED in effective:
        return {}
    return {_NO_PROPERTIES: "false", _CAPTURED: _DIRECTORY}


def _users_place(
    effective: Mapping[str, str],
    deploy_mode: str,
    spark_version: str,
    why_not_home: Callable[[str], str],
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
    why_not = why_not_home(url) if url is not None else "no URL of another file system"
    if url is not None and not why_not:
        return None, url, ""
    return None, "", f"{_DIRECTORY} is not an absolute path on this machine, and is not read from elsewhere: {why_not}"


def _whole_lists(effective: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in _WHOLE_LISTS.items() if key not in effective}


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
