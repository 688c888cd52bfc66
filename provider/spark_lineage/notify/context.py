"""What a listener may use: whose events come, with what configuration, and where to say something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from spark_lineage.notify.events import TaskRun
from spark_lineage.notify.outlets import OutletEvents
from spark_lineage.secrets.redaction import redact_value

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.launch.log import Log


class ListenerContext(Struct, frozen=True):
    """What a listener may use.

    ``configuration`` are the Spark properties of the job, without secrets. ``options`` are the section
    ``[spark_lineage]`` and, above it, the extra of the Spark connection, keys in lower case: a listener of yours finds
    its own options there, which are as they were set, secrets too. ``metrics`` is Airflow's ``Stats``, ``outlets``
    makes asset events.
    """

    task: TaskRun
    configuration: Mapping[str, str]
    options: Mapping[str, Any]
    logger: Log
    metrics: Any
    outlets: OutletEvents


def listener_context(
    context: Context, *, configuration: Mapping[str, str], options: Mapping[str, Any], logger: Log
) -> ListenerContext:
    """Return the context of the listeners of one try of a task.

    :param context: Airflow's own
    :param configuration: the Spark properties as they are; they are redacted here
    """
    from airflow.providers.common.compat.sdk import Stats

    task_instance = context["ti"]
    task = TaskRun(
        dag_id=task_instance.dag_id,
        task_id=task_instance.task_id,
        run_id=task_instance.run_id,
        map_index=-1 if task_instance.map_index is None else task_instance.map_index,
        try_number=task_instance.try_number,
    )
    return ListenerContext(
        task=task,
        configuration=redact_value(dict(configuration)),
        options=options,
        logger=logger,
        metrics=Stats,
        outlets=OutletEvents(context.get("outlets") or (), context.get("outlet_events"), logger),
    )
