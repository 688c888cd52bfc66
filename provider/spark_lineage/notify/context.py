"""What a listener is given when it is made: whose events come, with what configuration, and where to say something."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from spark_lineage.notify.events import TaskRun
from spark_lineage.notify.outlets import OutletEvents
from spark_lineage.secrets.redaction import redact_value

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Log


class Metrics(Protocol):
    """Where numbers go; names have dots (``spark_lineage.jobs``), tags are texts."""

    def incr(self, name: str, count: int = 1, *, tags: Mapping[str, str] | None = None) -> None:
        """Count something."""
        ...

    def gauge(self, name: str, value: float, *, tags: Mapping[str, str] | None = None) -> None:
        """Report a number as it is now."""
        ...

    def timing(self, name: str, seconds: float, *, tags: Mapping[str, str] | None = None) -> None:
        """Report how long something took."""
        ...


class AirflowMetrics:
    """Airflow's own metrics (``[metrics]``: StatsD, Datadog or OpenTelemetry); nothing where they are not set up."""

    def incr(self, name: str, count: int = 1, *, tags: Mapping[str, str] | None = None) -> None:
        """Count something."""
        _stats().incr(name, count, tags=dict(tags or {}))

    def gauge(self, name: str, value: float, *, tags: Mapping[str, str] | None = None) -> None:
        """Report a number as it is now."""
        _stats().gauge(name, value, tags=dict(tags or {}))

    def timing(self, name: str, seconds: float, *, tags: Mapping[str, str] | None = None) -> None:
        """Report how long something took."""
        # A bare number would be milliseconds, or not, depending on where Airflow sends its metrics.
        _stats().timing(name, timedelta(seconds=seconds), tags=dict(tags or {}))


class ListenerContext(Struct, frozen=True):
    """What a listener may use.

    ``configuration`` are the Spark properties of the job, without secrets. ``options`` are the section
    ``[spark_lineage]`` and, above it, the extra of the Spark connection, keys in lower case: a listener of yours finds
    its own options there, which are as they were set, secrets too. ``outlets`` makes asset events.
    """

    task: TaskRun
    configuration: Mapping[str, str]
    options: Mapping[str, Any]
    logger: Log
    metrics: Metrics
    outlets: OutletEvents


def listener_context(
    context: Context, *, configuration: Mapping[str, str], options: Mapping[str, Any], logger: Log
) -> ListenerContext:
    """Return the context of the listeners of one try of a task.

    :param context: Airflow's own
    :param configuration: the Spark properties as they are; they are redacted here
    """
    return ListenerContext(
        task=task_run(context["ti"]),
        configuration=redact_value(dict(configuration)),
        options=options,
        logger=logger,
        metrics=AirflowMetrics(),
        outlets=OutletEvents(context.get("outlets") or (), context.get("outlet_events"), logger),
    )


def task_run(task_instance: Any) -> TaskRun:
    """Return whose events these are."""
    map_index = task_instance.map_index
    return TaskRun(
        dag_id=task_instance.dag_id,
        task_id=task_instance.task_id,
        run_id=task_instance.run_id,
        map_index=-1 if map_index is None else map_index,
        try_number=task_instance.try_number,
    )


def _stats() -> Any:
    from airflow.providers.common.compat.sdk import Stats

    return Stats
