"""``spark-lineage archive merge`` as a task: merges the lineage files of many tasks into their events, and tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spark_lineage.archive
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

_JOB = Path(spark_lineage.archive.__file__).with_name("job.py")
_DRIVER_PYTHON = "spark.pyspark.driver.python"
_DRIVER_PYTHON_VARIABLE = "PYSPARK_DRIVER_PYTHON"


class LineageArchiveOperator(LineageSparkSubmitOperator):
    r"""Merge the lineage files, or the event logs, of many tasks with a Spark job: one event for each, and tables.

    It takes every argument of ``LineageSparkSubmitOperator`` but ``application`` and ``application_args``. The driver
    runs on the worker with the Python of the task, whatever the connection says, and sends this package to the
    executors. With ``deploy_mode="cluster"`` the package must be installed where the driver runs. ``max_event_bytes``
    limits the events of the archive, too.

    :param sources: directories, files or globs of lineage files: one, or a list (templated)
    :param event_logs: event logs, directories of them, or globs, likewise; enough without ``sources`` (templated)
    :param destination: directory of the events and tables (templated)
    :param full: whether all files are read again, and not only those that are new or have changed
    :param naming: how datasets are named, as in ``[spark_lineage]``: ``{"hostnamePattern.prod": "10\.1\..*"}``
        (templated)
    """

    template_fields: Sequence[str] = (
        *LineageSparkSubmitOperator.template_fields,
        "sources",
        "event_logs",
        "destination",
        "naming",
    )

    def __init__(
        self,
        *,
        sources: Sequence[str] | str = (),
        destination: str,
        event_logs: Sequence[str] | str = (),
        full: bool = False,
        naming: Mapping[str, str] | None = None,
        name: str = "spark-lineage archive",
        deploy_mode: str = "client",
        **kwargs: Any,
    ) -> None:
        super().__init__(application=str(_JOB), application_args=None, name=name, deploy_mode=deploy_mode, **kwargs)
        self.sources = sources
        self.event_logs = event_logs
        self.destination = destination
        self.full = full
        self.naming = naming

    def execute(self, context: Context) -> None:
        """Submit the job as ``LineageSparkSubmitOperator`` does."""
        self.application_args = self._application_args()
        if self._deploy_mode == "client" and _DRIVER_PYTHON_VARIABLE not in (self.env_vars or {}):
            # As a property, because it comes before what is set for the programs of others.
            self.conf = {_DRIVER_PYTHON: sys.executable, **(self.conf or {})}
        # As that of ``LineageSparkSubmitOperator`` calls its own.
        unwrap(super().execute.__func__)(self, context)  # type: ignore[attr-defined]

    def _application_args(self) -> list[str]:
        sources, event_logs = ([one] if isinstance(one, str) else one for one in (self.sources, self.event_logs))
        arguments = [*sources, *(part for log in event_logs for part in ("--event-log", log))]
        arguments += ["--out", self.destination]
        if self.full:
            arguments.append("--full")
        for key, value in (self.naming or {}).items():
            arguments += ["--naming", f"{key}={value}"]
        if self.max_event_bytes is not None:
            arguments += ["--max-event-bytes", str(self.max_event_bytes)]
        return arguments
