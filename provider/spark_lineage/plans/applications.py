"""Reads what an event log says of its application (``SparkListenerApplicationStart``)."""

from __future__ import annotations

from spark_lineage.merge.execution import LoggedApplication, logged_run_id
from spark_lineage.merge.lineage import Application, ParentRun
from spark_lineage.plans.event_log_lines import ApplicationStart, Environment


def logged_application(start: ApplicationStart, environment: Environment, version: str) -> LoggedApplication | None:
    """Return an application by its start and its properties, None for one without an id or a time.

    :param version: that of Spark, empty where the log does not say it
    """
    if not start.id or start.millis is None:
        return None
    submitted, properties = environment.openlineage, environment.spark
    application = Application(
        run_id=submitted.get("applicationRunId") or logged_run_id(start.id, start.millis),
        job_namespace=submitted.get("namespace") or "default",
        job_name=submitted.get("appName") or start.name,
        application_id=start.id,
        spark_version=version or None,
        master=properties.get("spark.master"),
        deploy_mode=properties.get("spark.submit.deployMode"),
    )
    parent = None
    if parent_id := submitted.get("parentRunId"):
        parent = ParentRun(parent_id, submitted.get("parentJobNamespace", ""), submitted.get("parentJobName", ""))
    return LoggedApplication(application, start.millis / 1000, parent=parent, attempt_id=start.attempt_id or "")
