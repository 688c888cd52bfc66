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
    from collections.abc import Iterable, Mapping

    from spark_lineage.launch.log import Guard

_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[^][{}/?#\s]+)([/?#][^{}\s]*)?")
_MARQUEZ_JOB, _MARQUEZ_DATASET = "/lineage/job/{namespace}/{job}", "/lineage/dataset/{dataset_namespace}/{dataset}"
_TRIES_KEY = "spark_lineage_tries"
KEY = "spark_lineage"
"""The key of the only XCom of a task: what the add-on ``view`` makes for the tab, and the links of the task."""


@attrs.frozen
class SparkLink(BaseOperatorLink):
    """A link whose URL the task pushes as soon as it knows it; one without a URL is not shown.

    Servers read the URL from the XCom of the task. A try has its own: Airflow removes the XCom of the one before.
    """

    name: str = attrs.field()

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002
        """Return the URL of a task instance from the database of the server that shows its page."""
        from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

        from spark_lineage import add_ons

        if (tab := add_ons.part("tab")) is None:
            return ""
        if not AIRFLOW_V_3_0_PLUS:
            from airflow.models.xcom import XCom

            return str(tab.links_of(XCom.get_value(ti_key=ti_key, key=KEY)).get(self.name, ""))
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        of = {name: getattr(ti_key, name) for name in ("dag_id", "task_id", "run_id", "map_index")}
        with create_session() as session:
            value = session.scalar(select(XComModel.value).filter_by(**of, key=KEY))
        return str(tab.links_of(value).get(self.name, ""))


UI, HISTORY, MANAGER, DRIVER_LOG, JOB = LINKS = (
    SparkLink("Spark UI"),
    SparkLink("Spark history"),
    SparkLink("Cluster manager"),
    SparkLink("Driver log"),
    SparkLink("Lineage"),
)
DATASET = SparkLink("Dataset")
"""A pattern with ``{dataset_namespace}`` and ``{dataset}``, for the tab alone."""


class TaskLinks:
    """The XCom of one task instance: its links, and what the tab shows; ``urls`` has the pushed links, by name.

    Any thread may show a link; ``push`` is for the task's own thread, and ``show_event`` for the one that reports.

    :param store: Airflow's task state store, which keeps the earlier tries; None where there is none
    """

    def __init__(self, task_instance: Any, guard: Guard, store: Any = None) -> None:
        self.urls: dict[str, str] = {}
        self._view: Mapping[str, Any] = {"v": 1}
        # The earlier tries of the task instance, read once with the first event.
        self._tries: list[Any] | None = None
        self._store = store
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
            self._shown[link.name] = shown

    def push(self) -> None:
        """Push the links that are new, with what the tab shows already."""
        before, found = self.urls, dict(self.urls)
        while self._shown:
            name, url = self._shown.popitem()
            found[name] = url
        self.urls = {name: url for name, url in found.items() if url}
        if self.urls != before:
            with self._guard("A link of the task is not shown", can_fail=False):
                self._push()

    def show_event(self, state: str, event: bytes, why: str = "") -> None:
        """Leave an event, or why there is no lineage, and earlier tries for the tab of Airflow 3.1 and newer."""
        with self._guard("The tab of the task does not show its lineage", can_fail=False):
            from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_1_PLUS

            from spark_lineage import add_ons
            from spark_lineage.launch.bounded_run import XCOMS
            from spark_lineage.secrets.redaction import redact

            if not AIRFLOW_V_3_1_PLUS or (tab := add_ons.part("tab")) is None:
                return
            number, store = self._task_instance.try_number, self._store
            try:
                if self._tries is None:
                    self._tries = (XCOMS.use(lambda: store.get(_TRIES_KEY)) if store is not None else None) or []
                self._view = tab.of_event(event, why=redact(why), number=number, tries=self._tries)
                self._push()
                if store is not None and state in ("FAIL", "ABORT"):
                    XCOMS.use(lambda: store.set(_TRIES_KEY, tab.with_try(self._tries or [], event, number)))
            except Exception as error:
                # A clear gives the next try another id: Airflow's API server no longer knows this one.
                if "'status_code': 404" not in str(error):
                    raise

    def _push(self) -> None:
        from spark_lineage.launch.bounded_run import XCOMS

        value = {**self._view, **({"links": self.urls} if self.urls else {})}
        XCOMS.use(lambda: self._task_instance.xcom_push(key=KEY, value=value))


def show_pages(links: TaskLinks, setting: str, task_instance: Any, *, is_map_index_in_name: bool) -> None:
    """Show the pages in a backend: that of the task's job, and the pattern of those of datasets.

    :param setting: ``lineage_url``; Marquez's pattern of a job implies that of datasets
    :raises SettingError: where that makes no URL
    """
    job, *others = setting.split(maxsplit=1)
    dataset = others[0] if others else job.replace(_MARQUEZ_JOB, _MARQUEZ_DATASET) if _MARQUEZ_JOB in job else ""
    links.show(JOB, job_url(job, task_instance, is_map_index_in_name=is_map_index_in_name))
    if dataset:
        filled = dataset.replace("{dataset_namespace}", "n").replace("{dataset}", "d")
        _checked(filled, ("dataset_namespace", "dataset"))
        links.show(DATASET, dataset)


def job_url(pattern: str, task_instance: Any, *, is_map_index_in_name: bool) -> str:
    """Return the page of a task's job in a backend.

    :param pattern: with the placeholders that ``lineage_url`` names
    :raises SettingError: where that makes no URL
    """
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.macros import lineage_job_name, lineage_run_id

    from spark_lineage.launch.launch import indexed

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
    return _checked(pattern, values)


def _checked(url: str, names: Iterable[str]) -> str:
    from spark_lineage.settings import SettingError

    if not _URL.fullmatch(url):
        known = ", ".join(f"{{{name}}}" for name in names)
        raise SettingError(f"lineage_url makes no URL; give one of http or https, whose placeholders are {known}")
    return url
