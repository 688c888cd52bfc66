"""Removes leftovers of completed Spark applications: event logs, YARN's staging directories, checkpoints of streams.

Only what has a name that Spark gives, directly in a directory that the caller names, and never through a link. What may
still be in use stays: where it is not known whether an application runs, or which DAGs there are, nothing is assumed.
"""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from spark_lineage.launch.retention import APPLICATION, EVENT_LOG
from spark_lineage.plans.event_log_files import IN_PROGRESS
from spark_lineage.submission.copies import SourceError
from spark_lineage.submission.stored_event_log import changed_at, open_file_system, why_unreadable

Kind = Literal["event_logs", "staging", "checkpoints"]

_DAY_SECONDS = 24 * 60 * 60
_STAGING = re.compile(r"application_\d+_\d+")
_DAG_ID = re.compile(r"[\w.-]+")
# What Structured Streaming keeps in a checkpoint (``StreamExecution``).
_CHECKPOINT = frozenset({"metadata", "offsets", "commits"})
_MAY_BE_THERE = _CHECKPOINT | {"sources", "state"}


class Leftover(NamedTuple):
    """One entry of a named directory: whether it was removed (or would be, in a dry run), and why, or why not."""

    kind: Kind
    path: str
    is_removed: bool
    reason: str


def remove_leftovers(
    directories: Mapping[Kind, Sequence[str]],
    *,
    older_than_days: float,
    is_running: Callable[[str], bool | None] = lambda _: None,
    dag_ids: Collection[str] | None = None,
    webhdfs_urls: Sequence[Sequence[str]] = (),
    is_dry_run: bool = True,
) -> Iterator[Leftover]:
    """Remove what nothing was added to for ``older_than_days``, and return each entry as it is decided about.

    :param directories: paths or URLs: of event logs, of YARN's staging (``…/.sparkStaging``), of checkpoints (of the
        streams of a DAG in a directory that is called as the DAG)
    :param is_running: whether an application runs, by its id; None where that is not known
    :param dag_ids: all DAGs there are; without them every checkpoint stays
    :param webhdfs_urls: of the NameNodes of each cluster, for ``hdfs://``
    """
    decide: Mapping[Kind, Callable[[_Entry], str]] = {
        "event_logs": lambda entry: _why_log_stays(entry, is_running),
        "staging": lambda entry: _why_used(runs=is_running(entry.name)),
        "checkpoints": lambda entry: _why_checkpoint_stays(entry, dag_ids),
    }
    oldest = time.time() - older_than_days * _DAY_SECONDS
    for kind, url in ((kind, url) for kind, urls in directories.items() for url in urls):
        try:
            place = url if "://" in url else f"file://{Path(url).absolute()}"
            name_nodes = _name_nodes(place, webhdfs_urls)
            if why := why_unreadable(place, name_nodes):
                raise SourceError(why)  # noqa: TRY301 - as those of the lines around
            fs, root = open_file_system(place, name_nodes)
            infos = sorted(fs.ls(root, detail=True), key=lambda info: str(info["name"]))
        except Exception as error:
            why = str(error) if isinstance(error, SourceError) else type(error).__name__
            yield Leftover(kind, url, is_removed=False, reason=f"it cannot be listed: {why}")
            continue
        for info in infos:
            entry = _Entry(fs, f"{root}/{posixpath.basename(_path(info))}", info)
            if not _NAMES[kind].fullmatch(entry.name):
                continue
            paths = [entry.path]
            try:
                why = "it is a link" if entry.is_link else decide[kind](entry) or entry.why_young(oldest)
                if not why and kind == "checkpoints":
                    # The directory may hold files of others.
                    paths = entry.checkpoints()
                for path in paths if not why and not is_dry_run else ():
                    fs.rm(path, recursive=entry.is_directory)
            except Exception as error:
                why = f"it cannot be removed: {type(error).__name__}"
            days = (time.time() - entry.changed) / _DAY_SECONDS
            for path in paths:
                yield Leftover(kind, path, not why, why or f"nothing was added for {days:.0f} days")


def _name_nodes(url: str, webhdfs_urls: Sequence[Sequence[str]]) -> Sequence[str]:
    """Return the addresses of the cluster that an ``hdfs://`` URL is of.

    :raises SourceError: when it may be of another one
    """
    parts = urlsplit(url)
    if parts.scheme != "hdfs" or not webhdfs_urls:
        return ()
    # Several connections may be of one cluster.
    hosts = {urls: {urlsplit(one).hostname for one in urls} for urls in map(tuple, webhdfs_urls)}
    fitting = [urls for urls, of in hosts.items() if not parts.hostname or parts.hostname in of]
    if len(fitting) != 1:
        text = "which webhdfs_url of the connections is of its NameNode is not known: name it as webhdfs://HOST:PORT/…"
        raise SourceError(text)
    return fitting[0]


class _Entry:
    """An entry of a named directory; ``changed`` is the last change of it, or of anything in it, in epoch seconds."""

    def __init__(self, fs: Any, path: str, info: dict[str, Any]) -> None:
        self.path = path
        self.name = posixpath.basename(path)
        self.is_link = _is_link(info)
        self.is_directory = info["type"] == "directory"
        self.fs = fs
        self._info = info
        self.changed = 0.0

    def checkpoints(self) -> list[str]:
        """Return the paths of the directories that are checkpoints, and hold nothing else: its own, or some below."""
        found = []
        for path, below in _listings(self.fs, self.path):
            names = {posixpath.basename(_path(one)) for one in below}
            # Beside local files lie their sums, as hidden ones.
            if names >= _CHECKPOINT and all(name in _MAY_BE_THERE or name.startswith(".") for name in names):
                found.append(path)
        return found

    def why_young(self, oldest: float) -> str:
        files = [self._info]
        if self.is_directory:
            # The time of a directory changes with what is put into it, and object stores have none.
            files = [one for _, below in _listings(self.fs, self.path) for one in below if one["type"] != "directory"]
        self.changed = max(map(changed_at, files), default=changed_at(self._info))
        return "" if self.changed < oldest else "it is not old enough, or its age is not known"


def _listings(fs: Any, path: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Return the path and the content of a directory, and of those below it, without following a link."""
    content = fs.ls(path, detail=True)
    yield path, content
    for one in content:
        if one["type"] == "directory" and not _is_link(one):
            yield from _listings(fs, _path(one))


def _path(info: Mapping[str, Any]) -> str:
    return str(info["name"]).rstrip("/")


def _is_link(info: Mapping[str, Any]) -> bool:
    return bool(info.get("islink")) or info["type"] not in {"file", "directory"}


def _why_log_stays(entry: _Entry, is_running: Callable[[str], bool | None]) -> str:
    found = APPLICATION.search(entry.name)
    runs = is_running(found[0]) if found else None
    paths = entry.fs.ls(entry.path, detail=False) if entry.is_directory else [entry.path]
    is_open = any(path.rstrip("/").endswith(IN_PROGRESS) for path in paths)
    return _why_used(runs=runs) if runs or is_open else ""


def _why_used(*, runs: bool | None) -> str:
    return "" if runs is False else "its application runs" if runs else "it is not known whether its application runs"


def _why_checkpoint_stays(entry: _Entry, dag_ids: Collection[str] | None) -> str:
    if dag_ids is None:
        return "it is not known which DAGs there are"
    if entry.name in dag_ids:
        return "there is a DAG of that name"
    return "" if entry.is_directory and entry.checkpoints() else "it holds no checkpoint, or something else beside it"


_NAMES: Mapping[Kind, re.Pattern[str]] = {"event_logs": EVENT_LOG, "staging": _STAGING, "checkpoints": _DAG_ID}
