"""Create our types in an Apache Atlas, and remove the DAGs and tasks that Airflow has no more."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from spark_lineage.cli.output import InputError, airflow_on_stderr, print_line

if TYPE_CHECKING:
    from spark_lineage.atlas.rest import AtlasRest

HasTask = Callable[[str, str | None], bool]


def add(commands: Any) -> None:
    """Add ``atlas`` to the command."""
    atlas = commands.add_parser(
        "atlas", help="make types in Apache Atlas, remove tasks that are gone", description=__doc__
    )
    actions = atlas.add_subparsers(required=True, metavar="ACTION")
    for name, run, text in (
        ("types", _types, "make the types that tasks need, or update them"),
        ("prune", _prune, "delete the DAGs and tasks that Airflow has no more"),
    ):
        action = actions.add_parser(name, help=text)
        action.set_defaults(run=run)
        action.add_argument("--conn-id", default="atlas_default", metavar="ID", help="an atlas connection of kind rest")
        if name == "prune":
            action.add_argument("--dry-run", action="store_true", help="show them, and delete nothing")
            action.add_argument("--namespace", metavar="NAME", help="of the jobs; default: as Airflow is configured")


def _types(arguments: argparse.Namespace) -> int:
    with _atlas(arguments.conn_id) as atlas:
        atlas.make_types()
    print_line("The types are there.")
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    out, results = sys.stdout, []
    with _atlas(arguments.conn_id) as atlas:
        from airflow.providers.openlineage import conf

        namespace = arguments.namespace or conf.namespace()
        done = prune(atlas, _tasks_of_airflow(), namespace, is_dry_run=arguments.dry_run)
        for line, is_done in done:
            print_line(line, file=out)
            results.append(is_done)
    if not results:
        print_line(f"Every task of {namespace} in Atlas has a DAG.")
    return int(not all(results))


def prune(atlas: AtlasRest, has_task: HasTask, namespace: str, *, is_dry_run: bool) -> Iterator[tuple[str, bool]]:
    """Delete the DAGs and tasks of a namespace that Airflow has no more, and go on where one is not deleted.

    :param has_task: whether Airflow has a task of a DAG, or, without a task, a DAG
    :return: a line for each as soon as it is done, and whether it is
    """
    from spark_lineage.atlas.types import DAG, TASK
    from spark_lineage.deliver.sender import Later, Refused

    # All first: a search goes wrong when what it finds is deleted meanwhile.
    found = [(each, each.get("attributes") or {}) for kind in (TASK, DAG) for each in atlas.all_of(kind, namespace)]
    for header, names in found:
        dag_id, task_id = names.get("dagId"), names.get("taskId")
        if not dag_id or has_task(dag_id, task_id):
            continue
        name = f"{dag_id}.{task_id}" if task_id else dag_id
        try:
            if not is_dry_run:
                atlas.delete_all([header["guid"]])
        except (Later, Refused) as error:
            if isinstance(error, Later) and error.is_away:
                raise
            yield f"not deleted {name}: {error}", False
        else:
            yield f"{'would delete' if is_dry_run else 'deleted'} {name}", True


@contextmanager
def _atlas(conn_id: str) -> Iterator[AtlasRest]:
    with airflow_on_stderr():
        from spark_lineage.atlas.hook import AtlasHook

        with AtlasHook(conn_id).rest() as atlas:
            yield atlas


def _tasks_of_airflow() -> HasTask:
    """Return whether Airflow has a task, or without a task a DAG, by the DAGs in its database.

    :raises InputError: where it has no DAG at all: that is more likely another Airflow than one without tasks
    """
    from airflow.models.dag import DagModel
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        # Airflow 2 has the opposite under another name. A DAG that cannot be imported just now has its tasks still.
        there = DagModel.is_active if hasattr(DagModel, "is_active") else ~DagModel.is_stale
        dag_ids = set(session.scalars(select(DagModel.dag_id).where(there | DagModel.has_import_errors)))
    if not dag_ids:
        raise InputError("Airflow's database has no DAG; run this where its scheduler runs, with its configuration")

    @cache
    def tasks(dag_id: str) -> frozenset[str] | None:
        """Return the tasks of a DAG, None where Airflow has not serialized it."""
        dag = SerializedDagModel.get_dag(dag_id)
        return frozenset(dag.task_ids) if dag is not None else None

    def has_task(dag_id: str, task_id: str | None) -> bool:
        return dag_id in dag_ids and (not task_id or (known := tasks(dag_id)) is None or task_id in known)

    return has_task
