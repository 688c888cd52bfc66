"""What a payload of Databricks' API of jobs has of Spark properties, and where further ones can go; no Airflow here.

A cluster that a run makes has them in ``spark_conf``. The API allows none beside a ``spark_submit_task``, whose
``parameters`` take ``--conf``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spark_lineage.adapters.service import properties_in
from spark_lineage.launch.directory import DELIVERED

_CONF = "--conf"
_EVENT_LOG = "spark.eventLog."
_SPARK_TASKS = (
    *("notebook_task", "spark_jar_task", "spark_python_task", "spark_submit_task", "python_wheel_task"),
    "for_each_task",
)


_READABLE = ("s3://", "s3a://", "gs://", "abfss://", "dbfs:/")


@dataclass(frozen=True)
class Place:
    """Takes Spark properties, as ``owner[key]``: those of a new cluster, or the parameters of ``spark-submit``."""

    owner: dict[str, Any]
    key: str = "spark_conf"

    @property
    def conf(self) -> dict[str, str]:
        """The properties that it has."""
        given = self.owner.get(self.key) or {}
        if isinstance(given, dict):
            return {key: str(value) for key, value in given.items()}
        return properties_in(given)

    @property
    def delivered(self) -> dict[str, str]:
        """The properties that stand for the delivery of the cluster's logs, where it is a place that can be read."""
        own, places = self.conf, (self.owner.get("cluster_log_conf") or {}).values()
        destination = next((str(one.get("destination", "")) for one in places if isinstance(one, dict)), "").rstrip("/")
        if f"{_EVENT_LOG}dir" in own or not destination.startswith(_READABLE):
            return {}
        return {f"{_EVENT_LOG}enabled": "true", f"{_EVENT_LOG}dir": f"{destination}{DELIVERED}"}

    def add(self, added: Mapping[str, str]) -> None:
        """Add properties that it has not; where it has an event log of its own, none of another."""
        own = self.conf
        has_log = any(key.startswith(_EVENT_LOG) for key in {**own, **self.delivered})
        new = {
            key: value
            for key, value in added.items()
            if key not in own and not (has_log and key.startswith(_EVENT_LOG))
        }
        given = self.owner.get(self.key) or {}
        if isinstance(given, dict):
            self.owner[self.key] = {**given, **new}
        else:
            self.owner[self.key] = [*(part for one in new.items() for part in (_CONF, "=".join(one))), *given]


def places_of(payload: dict[str, Any]) -> list[Place]:
    """Return where a run takes Spark properties: of ``runs/submit``, or of ``run-now``."""
    if isinstance(given := payload.get("spark_submit_params"), list):
        return [Place(payload, "spark_submit_params")] if given else []
    shared = [one.get("new_cluster") for one in payload.get("job_clusters") or ()]
    of_tasks = (_place(task) for _, task in tasks_of(payload))
    return [*(Place(one) for one in shared if isinstance(one, dict)), *filter(None, of_tasks)]


def tasks_of(payload: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the tasks of a run with their names; of one that is repeated, what is repeated."""
    for task in payload.get("tasks") or [payload]:
        name = str(task.get("task_key", "the task"))
        yield name, (task.get("for_each_task") or {}).get("task") or task


def unreached(payload: dict[str, Any]) -> list[str]:
    """Return the names of the tasks that run Spark and take no properties: their cluster is there, or serverless."""
    keys = {one.get("job_cluster_key") for one in payload.get("job_clusters") or ()}
    return [
        name
        for name, task in tasks_of(payload)
        if _place(task) is None and task.get("job_cluster_key") not in keys and any(map(task.get, _SPARK_TASKS))
    ]


def _place(task: dict[str, Any]) -> Place | None:
    if isinstance(submit := task.get("spark_submit_task"), dict):
        given = submit.get("parameters")
        return Place(submit, "parameters") if given and isinstance(given, list) else None
    cluster = task.get("new_cluster")
    return Place(cluster) if isinstance(cluster, dict) else None
