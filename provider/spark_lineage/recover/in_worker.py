"""Closes the tries before the one that a worker has just begun, whose own process could not."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from spark_lineage.emit.task_event import AirflowTry
from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.launch.claim import claim
from spark_lineage.launch.lost_try import LostTry, TaskKey
from spark_lineage.launch.stores import WorkerStore
from spark_lineage.recover.closing import configuration_of, guard, send_end
from spark_lineage.recover.recovery import end_leftovers, recover
from spark_lineage.recover.search import launches_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_lineage.launch.launch import Launch

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
    lost = [(LostTry(task, one), end_leftovers(one)) for one in earlier if not one.is_closed]
    if not lost:
        return
    claims = _Claims(store)

    def close() -> None:
        for one, ended_processes in lost:
            with guard("The end of an earlier try is not told"):
                _close(one, ended_processes, task_instance, context, claims)

    BoundedRun(close, "spark-lineage-earlier-try").wait(_WAIT_SECONDS)
    claims.leave_the_store()


class _Claims:
    """Claims right before something is sent, so that a process that is over before leaves the try to others."""

    def __init__(self, store: WorkerStore | None) -> None:
        self._store = store
        self._lock = threading.Lock()

    def claim(self, launch: Launch) -> bool:
        with self._lock:
            return claim(launch, self._store)

    def leave_the_store(self) -> None:
        """The next launch is about to take the place of the last one there: from now on the files alone decide."""
        with self._lock:
            self._store = None


def close_own(task_instance: Any) -> None:
    """Close the try that ends here: if its session could not, its event was sent all the same, by the provider."""
    task, store = TaskKey.of(task_instance), _store(task_instance.get_template_context())
    for one in launches_of(task, store):
        if one.try_number == task_instance.try_number and not one.is_closed:
            claim(one, store)


def _close(
    lost: LostTry, ended_processes: int, task_instance: Any, context: Mapping[str, Any], claims: _Claims
) -> None:
    configuration = configuration_of(lost.launch.conn_id)
    recovered = recover(lost, configuration, ended_processes=ended_processes, logger=log)
    if not claims.claim(lost.launch):
        log.info("The end of %s, try %s, is told by another process.", lost.task, lost.launch.try_number)
        return
    number = {"try_number": lost.launch.try_number}
    earlier = task_instance.model_copy(update=number) if hasattr(task_instance, "model_copy") else task_instance
    airflow = AirflowTry(earlier, context["dag_run"], context["dag"], context["task"])
    send_end(lost, recovered, configuration, airflow)


def _store(context: Mapping[str, Any]) -> WorkerStore | None:
    accessor = context.get("task_state_store")
    return None if accessor is None else WorkerStore(accessor)
