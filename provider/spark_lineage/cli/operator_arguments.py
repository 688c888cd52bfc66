"""Reads the arguments that a task of a DAG gives to its operator, as they stand in the DAG file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from spark_lineage.cli.output import InputError
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import Settings

_OPERATOR = "LineageSparkSubmitOperator"


@dataclass(frozen=True)
class Task:
    """Arguments by their name, those that are given; the Spark connection; and what is worth knowing besides."""

    arguments: Mapping[str, Any]
    conn_id: str
    notes: Sequence[str] = ()


def find_task(dag_id: str, task_id: str) -> Task:
    """Parse the DAG files of this Airflow until the DAG is found.

    :raises InputError: when there is no such DAG or task
    """
    errors: dict[str, str] = {}
    for bag in _bags():
        dag = bag.dags.get(dag_id)
        errors |= bag.import_errors
        if dag is not None:
            if task_id not in dag.task_dict:
                raise InputError(f"the DAG {dag_id} has no task {task_id}; it has {', '.join(sorted(dag.task_dict))}")
            return _read(dag.task_dict[task_id])
    broken = f"; these files cannot be imported: {', '.join(sorted(errors))}" if errors else ""
    raise InputError(redact(f"there is no DAG {dag_id} in the DAG folders of this Airflow{broken}"))


def _bags() -> Iterator[Any]:
    """Return the DAGs of each bundle of Airflow 3, or of the DAG folder of Airflow 2; no database is written to."""
    try:
        from airflow.dag_processing.bundles.manager import DagBundlesManager
        from airflow.dag_processing.dagbag import BundleDagBag
    except ImportError:
        from airflow.models.dagbag import DagBag

        yield DagBag(include_examples=False)
        return
    manager: Any = DagBundlesManager  # which has no types
    for bundle in manager().get_all_dag_bundles():
        bundle.initialize()
        yield BundleDagBag(dag_folder=bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)


def _read(task: Any) -> Task:
    # A mapped task has its arguments in here, but for those that it is mapped over.
    given: Mapping[str, Any] = {**task.partial_kwargs} if hasattr(task, "partial_kwargs") else vars(task)
    names = [setting.name for setting in fields(Settings)]
    notes = []
    if str(task.task_type) != _OPERATOR:
        notes.append(f"The task is a {task.task_type}, no {_OPERATOR}: no lineage is gathered for it.")
    arguments = {name: given[name] for name in names if given.get(name) is not None}
    if templated := [name for name, value in arguments.items() if "{{" in str(value)]:
        notes.append(f"Templates are shown as they stand in the DAG: {', '.join(templated)}.")
    return Task(arguments, str(given.get("conn_id") or given.get("_conn_id") or ""), tuple(notes))
