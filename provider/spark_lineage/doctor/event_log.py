"""Whether this machine reads the event logs of drivers that run elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from spark_lineage.doctor.setup import Finding, Setup, ok, problem, warning
from spark_lineage.doctor.status_endpoints import endpoints_of
from spark_lineage.inject.installation import PropertiesFileError
from spark_lineage.launch.directory import local_directory, remote_directory
from spark_lineage.launch.log import error_line
from spark_lineage.settings import SettingError
from spark_lineage.settings.hadoop import is_event_log_on
from spark_lineage.submission.log_mirror import why_not_copied
from spark_lineage.submission.stored_event_log import changed_at, open_file_system, why_unreadable
from spark_lineage.watch.endpoints import Endpoints

_REMEDY = {
    "hdfs": "set webhdfs_url in the extra of the Spark connection to the NameNodes (http://nn:9870), and let the user "
    "of tasks read there",
    "": "correct event_log_dir or spark.eventLog.dir, or let the user of tasks read there",
}


def check_event_log(setup: Setup) -> Iterator[Finding]:
    """Read the latest log in ``event_log_dir``, and where the properties say that drivers elsewhere log."""
    try:
        properties, endpoints = setup.user_properties.properties, endpoints_of(setup)
    except (PropertiesFileError, SettingError):
        # Other checks say so.
        return
    # The services of clouds have this one, whatever the Spark connection is.
    if shared := setup.settings.event_log_dir:
        path = local_directory(shared)
        if path is None:
            yield _read(remote_directory(shared) or shared, setup, endpoints)
        elif os.access(path, os.R_OK | os.X_OK):
            yield ok(f"event_log_dir {path} can be read")
        else:
            yield problem(f"event_log_dir {path} cannot be read", "make it, on a disk that drivers and workers share")
    directory = properties.get("spark.eventLog.dir", "")
    if not endpoints.is_cluster or setup.settings.evidence == "listener" or (shared and not directory):
        return
    if not (is_event_log_on(properties) and directory):
        yield ok("spark-defaults.conf turns no event log on: lineage comes from the listener alone")
        return
    if local_directory(directory) is not None:
        yield warning(
            f"spark.eventLog.dir is {directory}, on the driver's machine",
            "set it to a directory on HDFS or in an object store, or let both machines mount it",
        )
        return
    yield _read(remote_directory(directory) or directory, setup, endpoints)


def _read(url: str, setup: Setup, endpoints: Endpoints) -> Finding:
    has_history = bool(endpoints.history_server_url)
    if why_not := why_unreadable(url, endpoints.webhdfs_urls):
        if not why_not_copied(url, setup.settings.event_log_from, endpoints.webhdfs_urls, has_history=has_history):
            return ok(f"{url} is not read from here ({why_not}): event logs come from the History Server")
        return problem(f"{url} cannot be read: {why_not}", _remedy(url))
    try:
        fs, root = open_file_system(url, endpoints.webhdfs_urls)
        name = _read_latest(fs, root)
    except Exception as error:
        return problem(f"{url} cannot be read: {error_line(error)}", _remedy(url))
    return ok(f"{url} can be read" + (f", as {name} was" if name else ", and has no event log"))


def _read_latest(fs: Any, root: str) -> str:
    """Read a little of the latest log, and return its name; empty where there is none."""
    # In S3, an object may stand for the directory itself.
    logs = (one for one in fs.ls(root, detail=True) if one["name"].rstrip("/") != root)
    for entry in sorted(logs, key=changed_at)[-1:]:
        if entry["type"] == "directory":
            fs.ls(entry["name"], detail=False)
        else:
            with fs.open(entry["name"], "rb") as stream:
                stream.read(1)
        return str(entry["name"]).rstrip("/").rpartition("/")[2]
    return ""


def _remedy(url: str) -> str:
    return _REMEDY.get(url.partition("://")[0], _REMEDY[""])
