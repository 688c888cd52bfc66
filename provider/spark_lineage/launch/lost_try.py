"""A try of a task whose end nobody has told, and what Airflow says of that end."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from spark_lineage.launch.launch import Launch

# `success` and `skipped` are what somebody has set by hand: no try is lost that ended so by itself.
TryEnd = Literal["success", "failed", "skipped"]


class TaskKey(Struct, frozen=True):
    """A task instance of whichever try, as Airflow names it; ``map_index`` is -1 where nothing is mapped."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def __str__(self) -> str:
        mapped = "" if self.map_index < 0 else f"[{self.map_index}]"
        return f"{self.dag_id}.{self.task_id}{mapped} of {self.run_id}"

    @classmethod
    def of(cls, task_instance: Any) -> TaskKey:
        """Name Airflow's own task instance, of the database or of a worker."""
        index = task_instance.map_index
        return cls(task_instance.dag_id, task_instance.run_id, task_instance.task_id, -1 if index is None else index)


class LostTry(Struct, frozen=True, tag=True):
    """The launch of a try whose terminal event is missing.

    ``end`` is the state that Airflow has for it, ``error`` Airflow's words for why, not redacted, or empty.
    """

    task: TaskKey
    launch: Launch
    end: TryEnd = "failed"
    error: str = ""
