"""The links on the page of a task instance: Spark's UI, its history, the cluster manager, the driver's log, the job.

A DAG file imports this module: what a task alone needs is imported when a task runs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs
from airflow.providers.common.compat.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from spark_lineage.launch.log import Guard

_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[^][{}/?#\s]+)([/?#][^{}\s]*)?")


@attrs.frozen
class SparkLink(BaseOperatorLink):
    """A link whose URL the task pushes as an XCom as soon as it knows it; one that is empty is not shown.

    Airflow 3 reads the XCom itself. A try has those of its own: Airflow removes the XComs of the one before.
    """

    name: str = attrs.field()
    xcom_key: str = attrs.field()

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the URL: Airflow 3 asks the operator itself at the end of its task, Airflow 2 a copy without them."""
        urls: dict[str, str] | None = getattr(operator, "lineage_links", None)
        if urls is not None:
            return urls.get(self.xcom_key, "")
        from airflow.providers.common.compat.sdk import XCom

        return XCom.get_value(ti_key=ti_key, key=self.xcom_key) or ""


UI, HISTORY, MANAGER, DRIVER_LOG, JOB = LINKS = (
    SparkLink("Spark UI", "spark_lineage_ui"),
    SparkLink("Spark history", "spark_lineage_history"),
    SparkLink("Cluster manager", "spark_lineage_manager"),
    SparkLink("Driver log", "spark_lineage_log"),
    SparkLink("Lineage", "spark_lineage_job"),
)


class TaskLinks:
    """What the links of one task instance lead to; ``urls`` has what was pushed, by XCom key.

    Any thread may show one; ``push`` is for the task's own thread, the only one that talks to Airflow.
    """

    def __init__(self, task_instance: Any, guard: Guard) -> None:
        self.urls: dict[str, str] = {}
        self._task_instance = task_instance
        self._guard = guard
        self._shown: dict[str, str] = {}

    def show(self, link: SparkLink, url: str | None) -> None:
        """Take a URL, without login and secrets; None changes nothing, and empty text hides the link."""
        from spark_lineage.launch.launch import without_login
        from spark_lineage.secrets.redaction import redact

        if url is None:
            return
        shown = redact(without_login(url))
        if not shown or shown.startswith(("http://", "https://")):
            self._shown[link.xcom_key] = shown

    def push(self) -> None:
        """Push the URLs that are new."""
        while self._shown:
            key, url = self._shown.popitem()
            if self.urls.get(key, "") != url:
                self.urls[key] = url
                self._push(key, url)

    def _push(self, key: str, url: str) -> None:
        from spark_lineage.launch.bounded_run import XCOMS

        with self._guard("A link of the task is not shown", can_fail=False):
            XCOMS.use(lambda: self._task_instance.xcom_push(key=key, value=url))


def job_url(pattern: str, task_instance: Any, *, is_map_index_in_name: bool) -> str:
    """Return the page of a task's job in a backend.

    :param pattern: of ``lineage_url``, with the placeholders that the setting names
    :raises SettingError: where that makes no URL
    """
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.macros import lineage_job_name, lineage_run_id

    from spark_lineage.launch.launch import indexed
    from spark_lineage.settings import SettingError

    ti = task_instance
    values = {
        "namespace": conf.namespace(),
        "job": indexed(lineage_job_name(ti), ti.map_index if is_map_index_in_name else None),
        "run_id": lineage_run_id(ti),
        "dag_id": ti.dag_id,
        "task_id": ti.task_id,
    }
    for name, value in values.items():
        pattern = pattern.replace(f"{{{name}}}", quote(str(value), safe=""))
    if not _URL.fullmatch(pattern):
        known = ", ".join(f"{{{name}}}" for name in values)
        raise SettingError(f"lineage_url makes no URL; give one of http or https, whose placeholders are {known}")
    return pattern
