"""What the driver is told about the Airflow task that it works for: parents, names, and where to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_lineage.inject.properties import LineageProperties
from spark_lineage.launch.directory import EVENTS_FILE, check_root, launch_directory
from spark_lineage.launch.launch import indexed

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.settings import Settings

_PARENT_JOB = "spark.openlineage.parentJobName"


def task_run_id(task_instance: Any) -> str:
    """Return the OpenLineage run of a try, as the Airflow OpenLineage provider builds it."""
    from airflow.providers.openlineage.plugins.macros import lineage_run_id

    return str(lineage_run_id(task_instance))


def lineage_properties(context: Context, settings: Settings) -> LineageProperties:
    """Return a new application run of this try, with parent and root as the Airflow OpenLineage provider builds them.

    :raises ValueError: for a lineage directory that the listener cannot write to
    """
    # On purpose here: Airflow takes seconds to import, and the command line does without it.
    from airflow.configuration import AIRFLOW_HOME
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.macros import lineage_job_name
    from airflow.providers.openlineage.utils.spark import inject_parent_job_information_into_spark_properties
    from openlineage.client.uuid import generate_new_uuid

    ti = context["ti"]
    parent = inject_parent_job_information_into_spark_properties({}, context)
    if settings.map_index_in_job_name:
        parent[_PARENT_JOB] = indexed(parent[_PARENT_JOB], ti.map_index)
    application_run_id = str(generate_new_uuid())
    directory = launch_directory(
        check_root(settings.lineage_dir or f"{AIRFLOW_HOME}/spark_lineage"),
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task_id=ti.task_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        try_number=ti.try_number,
        application_run_id=application_run_id,
    )
    return LineageProperties(
        events_file=str(directory / EVENTS_FILE),
        namespace=settings.lineage_namespace or conf.namespace(),
        # Not the task's own job name: the application is another job, and would overwrite the task's in a backend.
        application_name=settings.lineage_job_name or f"{lineage_job_name(ti)}.spark",
        application_run_id=application_run_id,
        parent=parent,
        tags=settings.lineage_tags,
    )
