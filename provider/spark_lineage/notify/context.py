"""The context of a listener: the task, its configuration, a logger, and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from spark_lineage.notify.events import TaskRun
from spark_lineage.secrets.redaction import redact_value

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Log


class ListenerContext(Struct, frozen=True):
    """The context of a listener.

    ``configuration`` are the Spark properties of the job, without secrets. ``options`` are the section
    ``[spark_lineage]`` and, above it, the extra of the Spark connection, keys in lower case: a listener of yours finds
    its own options there, which are as they were set, secrets too. ``metrics`` is Airflow's ``Stats``.
    """

    task: TaskRun
    configuration: Mapping[str, str]
    options: Mapping[str, Any]
    logger: Log
    metrics: Any


def listener_context(
    context: Context, *, configuration: Mapping[str, str], options: Mapping[str, Any], logger: Log
) -> ListenerContext:
    """Return the context of the listeners of one try of a task.

    :param context: Airflow's own
    :param configuration: the Spark properties as they are; they are redacted here
    """
    from airflow.providers.common.compat.sdk import Stats

    instance = context["ti"]
    map_index = -1 if instance.map_index is None else instance.map_index
    return ListenerContext(
        task=TaskRun(instance.dag_id, instance.task_id, instance.run_id, map_index, instance.try_number),
        configuration=redact_value(dict(configuration)),
        options=options,
        logger=logger,
        metrics=Stats,
    )
