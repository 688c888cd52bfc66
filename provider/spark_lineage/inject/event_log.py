"""Make the driver write an event log where it writes none, or tell where the user's own is; pure.

Its plans are to name all columns: by default Spark ends a list after 25, and of an UPDATE nothing else names them. That
costs little: a write of 2,000 columns has a plan of 380 KB in place of 367 KB, in the same CPU time.

Spark fails an application whose ``spark.eventLog.dir`` does not exist, so ours is for drivers on this machine alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

_PREFIX = "spark.eventLog."
_ENABLED = f"{_PREFIX}enabled"
_DIRECTORY = f"{_PREFIX}dir"
# Spark's own default.
_DEFAULT_DIRECTORY = "file:///tmp/spark-events"
_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
# The events that we do not read, which are nearly all of a log, by their whole names. Spark 4.1 and later leaves them
# out (EventLogFileWriter.writeLine); others write them, compressed.
UNREAD_EVENTS = (
    "SparkListenerTaskStart",
    "SparkListenerTaskGettingResult",
    "SparkListenerTaskEnd",
    "SparkListenerSpeculativeTaskSubmitted",
    "SparkListenerStageSubmitted",
    "SparkListenerStageCompleted",
    "SparkListenerStageExecutorMetrics",
    "SparkListenerExecutorAdded",
    "SparkListenerExecutorRemoved",
    "SparkListenerExecutorMetricsUpdate",
    "SparkListenerBlockManagerAdded",
    "SparkListenerBlockManagerRemoved",
    "SparkListenerBlockUpdated",
    "SparkListenerUnpersistRDD",
    f"{_SQL}DriverAccumUpdates",
    f"{_SQL}SQLAdaptiveExecutionUpdate",
    f"{_SQL}SQLAdaptiveSQLMetricUpdates",
)
# More columns than tables have; the bound is for lists of values.
_WHOLE_LISTS = {"spark.sql.debug.maxToStringFields": "5000"}
_OURS = {
    _ENABLED: "true",
    f"{_PREFIX}excludedPatterns": ",".join(UNREAD_EVENTS),
    f"{_PREFIX}includeTaskMetricsAccumulators": "false",
    f"{_PREFIX}compress": "true",
    f"{_PREFIX}compression.codec": "zstd",
    f"{_PREFIX}rolling.enabled": "false",
}


@dataclass(frozen=True)
class EventLogInjection:
    """The new ``--conf``, and where the application's event log is going to be.

    ``directory`` is a path on this machine, None where there is no log that can be read here; then ``reason`` says why.
    ``is_ours`` tells whether the directory holds nothing but this application's log, which is ours to remove.
    """

    conf: dict[str, str]
    directory: str | None
    is_ours: bool = False
    reason: str = ""


def inject_event_log(
    conf: Mapping[str, str], file_properties: Mapping[str, str], directory: str, *, deploy_mode: str
) -> EventLogInjection:
    """Make the driver log its events into ``directory``, which must exist, unless the user has decided otherwise.

    A log that the user has turned on is left as it is, and one that they have turned off stays off. Other settings of a
    log that they do not write mean nothing, and give way to ours.
    """
    effective = {**file_properties, **conf}
    location = f"file://{quote(directory)}"
    enabled = effective.get(_ENABLED, "").strip().lower()
    if enabled == "true" and effective.get(_DIRECTORY) != location:
        return _users(conf, effective, deploy_mode)
    if enabled not in {"", "true"}:
        return EventLogInjection(dict(conf), None, reason=f"{_ENABLED} is {enabled}")
    if deploy_mode != "client":
        reason = f"the driver runs on another machine; set {_ENABLED}=true and a {_DIRECTORY} that this one reads"
        return EventLogInjection(dict(conf), None, reason=reason)
    return EventLogInjection(
        {**conf, **_whole_lists(effective), **_OURS, _DIRECTORY: location}, directory, is_ours=True
    )


def _users(conf: Mapping[str, str], effective: Mapping[str, str], deploy_mode: str) -> EventLogInjection:
    """Tell where the user's log is; in cluster mode their path is believed to be shared, as ``lineage_dir`` is."""
    given = effective.get(_DIRECTORY, _DEFAULT_DIRECTORY).strip()
    parts = urlsplit(given)
    if parts.scheme not in {"", "file"} or (deploy_mode != "client" and _DIRECTORY not in effective):
        return EventLogInjection(
            dict(conf), None, reason=f"{_DIRECTORY} is not on this machine ({parts.scheme or 'file'})"
        )
    path = unquote(parts.path) if parts.scheme else given
    if not path.startswith("/"):
        return EventLogInjection(dict(conf), None, reason=f"{_DIRECTORY} is no absolute path")
    return EventLogInjection({**conf, **_whole_lists(effective)}, path)


def _whole_lists(effective: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in _WHOLE_LISTS.items() if key not in effective}
