"""Create our types in an Apache Atlas, and remove the processes of tasks that no DAG has any more."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from spark_lineage.cli.output import InputError, airflow_on_stderr, print_line

if TYPE_CHECKING:
    from spark_lineage.atlas.rest import AtlasRest


def add(commands: Any) -> None:
    """Add ``atlas`` to the command."""
    atlas = commands.add_parser(
        "atlas", help="make types in Apache Atlas, remove tasks that are gone", description=__doc__
    )
    actions = atlas.add_subparsers(required=True, metavar="ACTION")
    for name, run, text in (
        ("types", _types, "make the types that tasks need, or update them"),
        ("prune", _prune, "delete the processes of tasks that no DAG has any more"),
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
    from spark_lineage.atlas.types import APPLICATION

    with _atlas(arguments.conn_id) as atlas:
        from airflow.providers.openlineage import conf

        namespace = arguments.namespace or conf.namespace()
        has_task = _tasks_of_airflow()
        # All first: a search goes wrong when what it finds is deleted meanwhile.
        gone = [
            (header["guid"], f"{found['dagId']}.{found['taskId']}")
            for header in atlas.all_of(APPLICATION)
            if (found := header.get("attributes") or {}).get("jobNamespace") == namespace
            and found.get("dagId")
            and not has_task(found["dagId"], found.get("taskId") or "")
        ]
        for guid, _ in () if arguments.dry_run else gone:
            atlas.delete_all([guid])
    for _, name in gone:
        print_line(f"{'would delete' if arguments.dry_run else 'deleted'} {name}")
    if not gone:
        print_line(f"Every task of {namespace} in Atlas has a DAG.")
    return 0


@contextmanager
def _atlas(conn_id: str) -> Iterator[AtlasRest]:
    with airflow_on_stderr():
        from spark_lineage.atlas.hook import AtlasHook

        with AtlasHook(conn_id).rest() as atlas:
            yield atlas


def _tasks_of_airflow() -> Callable[[str, str], bool]:
    """Return whether Airflow has a task, by the DAGs in its database.

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

    def has_task(dag_id: str, task_id: str) -> bool:
        return dag_id in dag_ids and ((known := tasks(dag_id)) is None or task_id in known)

    return has_task
