"""Show every setting, its value, and where it was set; secrets are masked."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from spark_lineage.cli.output import InputError, airflow_on_stderr, print_json, print_line
from spark_lineage.settings import Settings

if TYPE_CHECKING:
    from spark_lineage.doctor.settings import ShownSetting

_DOES_NOT_FIT = 1
_DEFAULT_CONN_ID = "spark_default"
_OPERATOR = "LineageSparkSubmitOperator"


def add(commands: Any) -> None:
    """Add ``config`` to the command."""
    config = commands.add_parser(
        "config", help="print every setting, its value, and where it was set", description=__doc__
    )
    config.add_argument(
        "--spark-conn-id", metavar="ID", help=f"Spark connection; default: that of the task, else {_DEFAULT_CONN_ID}"
    )
    config.add_argument("--dag", metavar="ID", help="with --task: include its arguments, before they are rendered")
    config.add_argument("--task", metavar="ID")
    config.add_argument("--json", action="store_true", help="print one JSON object")
    config.set_defaults(run=_run, parser=config)


def _run(arguments: argparse.Namespace) -> int:
    if bool(arguments.dag) != bool(arguments.task):
        arguments.parser.error("--dag and --task are given together")
    with airflow_on_stderr():
        shown, notes = read_settings(arguments.spark_conn_id, arguments.dag, arguments.task)
    rows = [row for group in shown.values() for row in group]
    if arguments.json:
        print_json({key: [asdict(row) for row in group] for key, group in shown.items()} | {"notes": notes})
    else:
        for row in rows:
            print_line(_line(row), "red" if row.error else "dim" if row.source == "default" else "")
        for note in notes:
            print_line(f"note: {note}", "yellow")
    return _DOES_NOT_FIT if any(row.error for row in rows) else 0


def read_settings(
    spark_conn_id: str | None, dag_id: str | None = None, task_id: str | None = None
) -> tuple[dict[str, list[ShownSetting]], list[str]]:
    """Return every setting, in groups, and notes; with a DAG and its task, the arguments of the task count.

    :raises InputError: where Airflow's configuration cannot be read, or has no such task
    """
    # On purpose here: they import Airflow, which takes seconds.
    from spark_lineage.doctor import settings
    from spark_lineage.settings.places import Places, section

    notes: list[str] = []
    task = _task(dag_id, task_id) if dag_id and task_id else None
    # A mapped task has its arguments in here, but for those that it is mapped over.
    given: Mapping[str, Any] = {} if task is None else getattr(task, "partial_kwargs", None) or vars(task)
    own = {setting.name: given[setting.name] for setting in fields(Settings) if given.get(setting.name) is not None}
    conn_id = str(spark_conn_id or given.get("conn_id") or given.get("_conn_id") or _DEFAULT_CONN_ID)
    try:
        places = Places.of(conn_id, own)
        shown = {
            "settings": list(settings.shown_settings(places, conn_id)),
            "options": list(settings.shown_options(places, conn_id)),
            "endpoints": list(settings.shown_endpoints(places, conn_id)),
        }
        misspelt = list(settings.unknown_settings(section(), places.extra, conn_id))
    except Exception as error:
        wrong = [f"; Airflow does not read the variable {name}: remove it" for name in settings.unreadable()]
        raise InputError(f"the settings cannot be read: {type(error).__name__}: {error}{''.join(wrong)}") from error
    if not places.has_connection:
        notes.append(f"Airflow has no connection {conn_id} here: the Spark provider submits to YARN then.")
    if task is not None and not hasattr(task.operator_class, "has_session"):
        notes.append(f"The task is a {task.task_type}, not a {_OPERATOR}: it has no lineage.")
    if templated := [name for name, value in own.items() if "{{" in str(value)]:
        notes.append(f"Templates are shown as they stand in the DAG: {', '.join(templated)}.")
    return shown, [*notes, *misspelt]


def _task(dag_id: str, task_id: str) -> Any:
    """Parse the DAG files until the DAG is found, and return its task; raises ``InputError`` where there is none."""
    errors: dict[str, str] = {}
    for bag in _bags():
        errors |= bag.import_errors
        dag = bag.dags.get(dag_id)
        if dag is not None:
            if task_id not in dag.task_dict:
                raise InputError(f"the DAG {dag_id} has no task {task_id}; it has {', '.join(sorted(dag.task_dict))}")
            return dag.task_dict[task_id]
    broken = f"; these files cannot be imported: {', '.join(sorted(errors))}" if errors else ""
    raise InputError(f"there is no DAG {dag_id} in the DAG folders of this Airflow{broken}")


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


def _line(row: ShownSetting) -> str:
    value = row.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_text = isinstance(value, str) and value != ""
    text = "" if value is None else value if is_text else json.dumps(value, ensure_ascii=False)
    line = f"{row.name} = {text}  ({row.source})"
    return f"{line}  does not fit: {row.error}" if row.error else line
