"""Closes the tries before the one that a worker has just begun, whose own process could not."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from spark_lineage.emit.task_event import AirflowTry
from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.launch.claim import claim
from spark_lineage.launch.lost_try import LostTry, TaskKey
from spark_lineage.launch.stores import WorkerStore
from spark_lineage.recover.closing import close, guard
from spark_lineage.recover.recovery import end_leftovers
from spark_lineage.recover.search import launches_of

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    # The next launch is about to take the place of the last one in the store: then the files alone decide.
    is_late = threading.Event()
    # Airflow 2 has a row of the database.
    is_model = hasattr(task_instance, "model_copy")

    def close_all() -> None:
        for one, ended_processes in lost:
            with guard("The end of an earlier try is not sent"):
                number = {"try_number": one.launch.try_number}
                earlier_try = task_instance.model_copy(update=number) if is_model else task_instance
                airflow = AirflowTry(earlier_try, context["dag_run"], context["dag"], context["task"])
                close(one, airflow, lambda: None if is_late.is_set() else store, ended_processes=ended_processes)

    BoundedRun(close_all, "spark-lineage-earlier-try").wait(_WAIT_SECONDS)
    is_late.set()


def close_own(task_instance: Any) -> None:
    """Close the try that ends here: if its session could not, its event was sent all the same, by the provider."""
    task, store = TaskKey.of(task_instance), _store(task_instance.get_template_context())
    for one in launches_of(task, store):
        if one.try_number == task_instance.try_number and not one.is_closed:
            claim(one, store)


def _store(context: Mapping[str, Any]) -> WorkerStore | None:
    accessor = context.get("task_state_store")
    return None if accessor is None else WorkerStore(accessor)
