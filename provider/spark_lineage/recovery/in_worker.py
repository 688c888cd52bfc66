"""Closes the tries before the one that a worker has just begun, whose own process could not."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from spark_lineage.emit.task_event import AirflowTry
from spark_lineage.recovery.claim import claim
from spark_lineage.recovery.closing import configuration_of, send_end, tolerating
from spark_lineage.recovery.lost_try import LostTry, TaskKey
from spark_lineage.recovery.recovery import end_leftovers, recover
from spark_lineage.recovery.search import launches_of
from spark_lineage.recovery.stores import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

# The task waits no longer than this. It waits at all, because the OpenLineage provider forks its process at the end.
_WAIT_SECONDS = 10.0


def close_earlier(task_instance: Any) -> None:
    """Send the ends of earlier tries that are missing, before this try puts its own launch in the place of theirs.

    Their processes on this host are ended: two drivers would write the same table.
    """
    task, context = TaskKey.of(task_instance), task_instance.get_template_context()
    store = _store(context)
    earlier = [one for one in launches_of(task, store) if one.try_number < task_instance.try_number]
    ended_processes = [0 if one.is_closed else end_leftovers(one) for one in earlier]
    lost = [
        (LostTry(task, one), ended)
        for one, ended in zip(earlier, ended_processes, strict=True)
        if not one.is_closed and claim(one, store)
    ]
    if not lost:
        return

    def close() -> None:
        for one, ended_processes in lost:
            with tolerating("The end of an earlier try is not told"):
                _close(one, ended_processes, task_instance, context)

    thread = threading.Thread(target=close, name="spark-lineage-earlier-try", daemon=True)
    thread.start()
    thread.join(_WAIT_SECONDS)


def close_own(task_instance: Any) -> None:
    """Close the try that ends here: if its session could not, its event was sent all the same, by the provider."""
    task, store = TaskKey.of(task_instance), _store(task_instance.get_template_context())
    for one in launches_of(task, store):
        if one.try_number == task_instance.try_number and not one.is_closed:
            claim(one, store)


def _close(lost: LostTry, ended_processes: int, task_instance: Any, context: Mapping[str, Any]) -> None:
    configuration = configuration_of(lost.launch.conn_id)
    recovered = recover(lost, configuration, ended_processes=ended_processes, logger=log)
    number = {"try_number": lost.launch.try_number}
    earlier = task_instance.model_copy(update=number) if hasattr(task_instance, "model_copy") else task_instance
    airflow = AirflowTry(earlier, context["dag_run"], context["dag"], context["task"])
    send_end(lost, recovered, configuration, airflow)


def _store(context: Mapping[str, Any]) -> WorkerStore | None:
    accessor = context.get("task_state_store")
    return None if accessor is None else WorkerStore(accessor)
