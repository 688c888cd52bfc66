"""Copies event logs from HDFS, S3, GCS or ABFS while Spark writes them, with the drivers of ``fsspec``.

``fsspec`` and its drivers are optional: ``spark.eventLog.dir`` says which of them is needed. Credentials for an object
store are those of an Airflow connection, where there is one; else a driver finds its own as it always does: in its
environment, in the configuration of ``fsspec``, or from the machine.
"""

from __future__ import annotations

import ctypes.util
import os
import posixpath
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BoundedRun
from spark_lineage.launch.directory import DELIVERED, DELIVERED_JOB, split_connection
from spark_lineage.plans.event_log_files import (
    HEAD_OF_LOG_BYTES,
    IN_PROGRESS,
    EventLogError,
    is_event_log,
    log_filter,
    parts_of,
    run_id_of,
)
from spark_lineage.submission.copies import Copies, SourceError, Wanted

# Hadoop's schemes, and what fsspec calls them; "memory" is that of its own tests.
_PROTOCOLS = {name: name for name in ("hdfs", "webhdfs", "s3", "gs", "abfs", "dbfs", "file", "memory")}
_PROTOCOLS |= {"swebhdfs": "webhdfs", "s3a": "s3", "s3n": "s3", "abfss": "abfs"}
# Connections of Airflow's providers (``default_conn_name`` of their hooks); their file systems have no default.
_CONNECTIONS = {"s3": "aws_default", "gs": "google_cloud_default", "abfs": "wasb_default", "dbfs": "databricks_default"}
_INSTALL = "pip install 'airflow-provider-spark-lineage[remote]'"
END = b'"SparkListenerApplicationEnd"'
# A few events of executors may follow the end of the application.
_END_BYTES = 64 * 1024
_PIECE_BYTES = 4 * 1024 * 1024
_HTTP_SECONDS = (3.0, 20.0)
# A directory may hold very many logs: while the one is not there, it is listed less and less often.
_FIRST_LOOK_SECONDS, _LOOK_GROWTH, _MAX_LOOK_SECONDS = 1.0, 1.4, 60.0
# The keys of the last change in entries of WebHDFS, local files, S3, ABFS, GCS, and memory.
_TIMES = ("modificationTime", "mtime", "LastModified", "last_modified", "updated", "created")


def why_unreadable(url: str, webhdfs_urls: Sequence[str]) -> str:
    """Return why logs below a URL cannot be read on this machine, empty where nothing is known against it."""
    scheme = urlsplit(url).scheme
    if scheme not in _PROTOCOLS:
        return f"{scheme}:// is not read here"
    try:
        import fsspec

        fsspec.get_filesystem_class(_protocol(scheme, webhdfs_urls))
    except ImportError as error:
        reason = "fsspec is not installed" if error.name == "fsspec" else str(error)
        return f"{reason} ({_INSTALL}, and the driver of {scheme}://)"
    places = [os.environ.get("ARROW_LIBHDFS_DIR", ""), f"{os.environ.get('HADOOP_HOME', '')}/lib/native"]
    if _protocol(scheme, webhdfs_urls) == "hdfs" and not (
        any(Path(place, "libhdfs.so").exists() for place in places) or ctypes.util.find_library("hdfs")
    ):
        return "hdfs:// needs the address of WebHDFS (webhdfs_url in the extra of the connection), or libhdfs"
    return ""


def is_missing(url: str, webhdfs_urls: Sequence[str]) -> bool:
    """Whether it is certain that there is no directory at a URL; a store that does not answer is none that says so."""
    found: list[str] = []

    def look() -> None:
        fs, root = open_file_system(url, webhdfs_urls)
        found.append(fs.info(root or "/")["type"])

    try:
        BoundedRun(look, "spark-lineage-files").wait(ANSWER_SECONDS)
    except FileNotFoundError:
        return True
    except Exception:
        return False
    return found == ["file"]


def _protocol(scheme: str, webhdfs_urls: Sequence[str]) -> str:
    if scheme == "hdfs":
        from fsspec.config import conf

        return "webhdfs" if webhdfs_urls or conf.get("webhdfs", {}).keys() & {"host", "port"} else "hdfs"
    return _PROTOCOLS[scheme]


def _dbfs(conn_id: str) -> Any:
    """Return the file system of Databricks, which has no provider: fsspec's own, with a connection of Databricks."""
    import fsspec
    from airflow.providers.databricks.hooks.databricks import DatabricksHook

    hook = DatabricksHook(conn_id)

    def authorized(request: Any) -> Any:
        # A token may last for less time than a job.
        request.headers["Authorization"] = f"Bearer {hook._get_token(raise_error=True)}"  # noqa: SLF001
        return request

    instance = urlsplit(hook._endpoint_url("")).netloc  # noqa: SLF001
    fs = fsspec.filesystem("dbfs", instance=instance, token="", use_listings_cache=False, skip_instance_cache=True)
    fs.session.auth, fs.session.request = authorized, partial(fs.session.request, timeout=_HTTP_SECONDS)
    return fs


class StoredEventLog:
    """The logs of a launch, in the directories that the user or the applications name.

    ``is_growing``: it has logs of applications that run, a piece at a time. ``patience_seconds``: how long the end of
    an application that is over may take to arrive.
    """

    name = "event_log"
    is_growing = True
    # Spark renames a log before the driver ends.
    patience_seconds = 5.0

    def __init__(
        self, urls: Callable[[], Sequence[str]], copies: Copies, wanted: Wanted, webhdfs_urls: Sequence[str]
    ) -> None:
        self._urls = urls
        self._make = partial(_Directory, copies=copies, wanted=wanted, webhdfs_urls=webhdfs_urls)
        self._directories: dict[str, Any] = {}

    @property
    def description(self) -> str:
        """The name of the source, for a log."""
        return f"where it lies ({', '.join(self._urls()) or 'no directory is known'})"

    def _opened(self, url: str) -> Any:
        if not url.endswith(DELIVERED):
            return self._make(url)
        from spark_lineage.submission.delivered_logs import DeliveredLogs

        known = self._make.keywords
        return DeliveredLogs(url, copies=known["copies"], wanted=known["wanted"])

    def pull(self, *, is_last: bool = False) -> bool:
        """Copy what was added, and return whether the logs are there to the end of their applications.

        :param is_last: whether nothing more is asked for: what is there is to be had, whole or not
        :raises Exception: when a directory cannot be read, now or at all
        """
        for url in self._urls():
            # The directory of a job has no name before its submission.
            if url not in self._directories and not url.endswith(DELIVERED_JOB):
                if reason := why_unreadable(url, self._make.keywords["webhdfs_urls"]):
                    raise SourceError(reason)
                self._directories[url] = self._opened(url)
        ends = [directory.pull(is_last=is_last) for directory in self._directories.values()]
        found = [end for end in ends if end is not None]
        return bool(found) and all(found)


class _Directory:
    """One directory of logs; ``_logs`` are those of the launch by name, and whether each is a rolling one."""

    def __init__(self, url: str, *, copies: Copies, wanted: Wanted, webhdfs_urls: Sequence[str]) -> None:
        self._copies = copies
        self._wanted = wanted
        self._fs, self._root = open_file_system(url, webhdfs_urls)
        self._is_delivered = posixpath.basename(self._root) == posixpath.basename(DELIVERED_JOB)
        self._logs: dict[str, bool] = {}
        self._others: set[str] = set()
        """Logs of other runs, which are not looked into again."""
        self._next_look, self._look_seconds = 0.0, _FIRST_LOOK_SECONDS

    def pull(self, *, is_last: bool) -> bool | None:
        """Copy what was added, and return whether the logs are whole; None where there is none."""
        now = time.monotonic()
        if is_last or (not self._logs and now >= self._next_look):
            self._look()
            self._next_look = now + self._look_seconds
            self._look_seconds = min(_LOOK_GROWTH * self._look_seconds, _MAX_LOOK_SECONDS)
        ends = [self._copy(log, is_rolling=is_rolling) for log, is_rolling in self._logs.items()]
        return all(ends) if ends else None

    def _look(self) -> None:
        is_of = log_filter(ids) if (ids := self._wanted.application_ids()) else None
        for entry in self._fs.ls(self._root, detail=True):
            name, is_rolling = posixpath.basename(entry["name"].rstrip("/")), entry["type"] == "directory"
            plain = name.removesuffix(IN_PROGRESS)
            if entry["name"].rstrip("/") == self._root:
                # The object that stands for the directory itself, in S3.
                continue
            if not is_event_log(name, is_directory=is_rolling) or plain in self._logs or self._copies.is_over():
                continue
            is_known = is_of is not None and is_of(name)
            looks = not is_known and (is_of is None or self._wanted.has_several)
            if is_known or (looks and self._is_of_run(entry, name, is_rolling=is_rolling)):
                self._logs[plain] = is_rolling

    def _is_of_run(self, entry: dict[str, Any], name: str, *, is_rolling: bool) -> bool:
        if name in self._others:
            return False
        # The time of a directory of an object store is unknown, or that of its first file.
        is_older = not is_rolling and changed_at(entry) < self._wanted.earliest
        run_id = "" if is_older else self._run_id(entry["name"], is_rolling=is_rolling)
        if run_id not in {None, self._wanted.run_id}:
            self._others.add(name)
        return run_id == self._wanted.run_id

    def _run_id(self, path: str, *, is_rolling: bool) -> str | None:
        if is_rolling:
            if not (parts := parts_of(self._names(path))):
                return None
            path = f"{path}/{parts[0][1]}"
        with tempfile.TemporaryDirectory() as folder, suppress(FileNotFoundError):
            head = Path(folder, posixpath.basename(path))
            head.write_bytes(next(self._pieces(path, 0, HEAD_OF_LOG_BYTES), b""))
            try:
                return run_id_of(head)
            except EventLogError:
                return ""
        return None

    def _copy(self, log: str, *, is_rolling: bool) -> bool:
        """Copy what was added to a log, and return whether it has its end."""
        path = f"{self._root}/{log}"
        if is_rolling:
            # Listed once: when the end is among them, so is all before it.
            names = {posixpath.basename(each["name"]): changed_at(each) for each in self._fs.ls(path, detail=True)}
            files = {part: f"{path}/{part}" for part in self._copies.parts(log, names)}
            if self._wanted.is_shared:
                self._skip_old(log, files, names)
            if self._is_delivered:
                # EMR Serverless may write the status file when the job begins.
                is_ended = any(END in self._fs.tail(file, _END_BYTES) for file in list(files.values())[-1:])
            else:
                is_ended = any(name.startswith("appstatus_") and not name.endswith(IN_PROGRESS) for name in names)
        else:
            is_ended = bool(self._fs.exists(path))
            files = {"": path if is_ended else path + IN_PROGRESS}
        for part, file in files.items():
            self._copies.add(log, part, self._pieces(file, self._copies.size(log, part)))
        return is_ended

    def _skip_old(self, log: str, files: dict[str, str], changed: Mapping[str, float]) -> None:
        """Take the parts from before the launch out of ``files``, but for the beginning of the first.

        The last part stays, whose time HDFS changes only when it is closed.
        """
        for position, part in enumerate(list(files)[:-1]):
            if changed[part] < self._wanted.earliest:
                path = files.pop(part)
                if position == 0:
                    beginning = next(self._pieces(path, 0, HEAD_OF_LOG_BYTES), b"")
                    self._copies.add_beginning(log, part, beginning, changed[part])

    def _names(self, path: str) -> list[str]:
        return [posixpath.basename(each) for each in self._fs.ls(path, detail=False)]

    def _pieces(self, path: str, offset: int, piece_bytes: int = _PIECE_BYTES) -> Iterator[bytes]:
        """Return what a file holds from an offset on."""
        if "webhdfs" in self._fs.protocol:
            yield from self._visible(path, offset, piece_bytes)
            return
        # The length that HDFS reports is behind what can be read.
        if "hdfs" not in self._fs.protocol and self._fs.info(path)["size"] <= offset:
            return
        with self._fs.open(path, "rb") as stream:
            stream.seek(offset)
            while piece := stream.read(piece_bytes):
                yield piece

    def _visible(self, path: str, offset: int, piece_bytes: int) -> Iterator[bytes]:
        """Return what WebHDFS shows of a file that is being written, which is more than the length that it reports.

        A DataNode gives all that was flushed. The NameNode refuses offsets beyond the length that it knows
        (``NamenodeWebHdfsMethods.chooseDatanode``), and so is only asked which DataNode that is.
        """
        fs = self._fs
        known = max(0, fs.info(path)["size"] - 1)
        piece = b""
        while not piece or len(piece) == piece_bytes:
            wanted = {"offset": offset, "length": piece_bytes}
            # Not `open`, which ends where the NameNode says.
            answer = fs._call("OPEN", path=path, redirect=False, **wanted | {"offset": min(offset, known)})  # noqa: SLF001
            if place := answer.headers.get("Location"):
                parts = urlsplit(fs._apply_proxy(place))  # noqa: SLF001
                query = urlencode(dict(parse_qsl(parts.query, keep_blank_values=True)) | wanted)
                answer = fs.session.request("GET", parts._replace(query=query).geturl())
                answer.raise_for_status()
                piece = answer.content
            else:
                # HttpFS, which is no NameNode, answers itself.
                piece = answer.content[offset - min(offset, known) :]
            if not piece:
                return
            offset += len(piece)
            yield piece


def open_file_system(url: str, webhdfs_urls: Sequence[str]) -> tuple[Any, str]:
    """Return a file system, and the path of the directory in it.

    :param url: its user is an Airflow connection, as ``split_connection`` finds it
    :raises Exception: when it does not answer, or there is no such directory or connection
    """
    import fsspec

    url, conn_id = split_connection(url)
    parts = urlsplit(url)
    protocol = _protocol(parts.scheme, webhdfs_urls)
    # A cached listing would hide new files.
    options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
    if protocol != "webhdfs":
        location = protocol + url.removeprefix(parts.scheme)
        if (connected := _connected(protocol, conn_id)) is not None:
            return connected, connected._strip_protocol(location).rstrip("/")  # noqa: SLF001
        fs, root = fsspec.core.url_to_fs(location, **options)
        return fs, root.rstrip("/")
    # The port of hdfs:// is not that of WebHDFS, which fsspec's own configuration has then.
    port = parts.port if parts.scheme != "hdfs" else None
    own = {"host": parts.hostname, "port": port, "use_https": parts.scheme == "swebhdfs"}
    tried = [urlsplit(each) for each in webhdfs_urls] if parts.scheme == "hdfs" else []
    named = [{"host": each.hostname, "port": each.port, "use_https": each.scheme == "https"} for each in tried]
    places: list[dict[str, Any]] = named or [own]
    for position, place in enumerate(places, 1):
        fs = fsspec.filesystem("webhdfs", **{key: value for key, value in place.items() if value}, **options)
        fs.session.request = partial(fs.session.request, timeout=_HTTP_SECONDS)
        try:
            # A NameNode that stands by refuses.
            fs.info(parts.path)
        except Exception:
            if position == len(places):
                raise
        else:
            break
    return fs, parts.path.rstrip("/")


def _connected(protocol: str, conn_id: str) -> Any:
    """Return the file system that an Airflow provider opens with a connection; None without a connection.

    :param conn_id: empty for the default of the file system, which counts if it exists and its provider is installed
    :raises SourceError: when a connection that was named cannot be used
    """
    known = conn_id or _CONNECTIONS.get(protocol)
    if known is None:
        return None
    from airflow.providers.common.compat.sdk import AirflowException, BaseHook

    try:
        from airflow.sdk.io import get_fs, has_fs
    except ImportError:
        from airflow.io import get_fs, has_fs  # type: ignore[no-redef,attr-defined] # Airflow 2

    reason = ""
    try:
        BaseHook.get_connection(known)
        if protocol == "dbfs":
            return _dbfs(known)
        reason = "" if has_fs(protocol) else f"no provider with a file system for {protocol}:// is installed"
    except AirflowException as error:
        reason = str(error)
    if reason and conn_id:
        raise SourceError(f"the connection {conn_id} cannot be used: {reason}")
    if reason:
        return None
    from fsspec.dircache import DirCache

    fs = get_fs(protocol, known)
    # The providers make it with a cache. Nobody else has this instance: fsspec has one of them for each thread.
    fs.dircache = DirCache(use_listings_cache=False)
    return fs


def changed_at(entry: dict[str, Any]) -> float:
    """Return when a file was changed, in epoch seconds; infinity if it is unknown."""
    found = next((entry[key] for key in _TIMES if entry.get(key)), None)
    with suppress(ValueError):
        found = datetime.fromisoformat(found) if isinstance(found, str) else found
    if isinstance(found, datetime):
        return found.timestamp()
    if isinstance(found, int | float):
        return found / 1000 if "modificationTime" in entry else float(found)
    return float("inf")
