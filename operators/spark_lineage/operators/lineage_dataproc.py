"""``DataprocSubmitJobOperator`` and ``DataprocCreateBatchOperator`` with lineage: a DAG changes the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.google.cloud.hooks.dataproc import DataprocHook
from airflow.providers.google.cloud.operators.dataproc import DataprocCreateBatchOperator, DataprocSubmitJobOperator

from spark_lineage.operators.lineage_operator import LineageOperator
from spark_lineage.operators.lineage_service import LineageServiceOperator

if TYPE_CHECKING:
    from spark_lineage.task.session import LineageSession


class _LineageDataprocOperator(LineageServiceOperator):
    gcp_conn_id: str

    @property
    def _conn_id(self) -> str:  # type: ignore[override]
        return self.gcp_conn_id


class LineageDataprocSubmitJobOperator(_LineageDataprocOperator, DataprocSubmitJobOperator):  # type: ignore[misc]
    """Submit a job to a Dataproc cluster, and give its task one truthful OpenLineage event.

    It takes every argument of ``DataprocSubmitJobOperator``, and those of ``LineageOperator``. A job that is not one of
    Spark has no lineage, nor has one that ``start_from_trigger`` submits, because no worker does.
    """

    stock_attributes = frozenset({"hook"})
    template_fields: Sequence[str] = (*DataprocSubmitJobOperator.template_fields, *LineageOperator.template_fields)

    @property
    def hook(self) -> Any:
        """The hook, which the stock operator makes when it executes."""
        return self.__dict__.get("hook")

    @hook.setter
    def hook(self, hook: Any) -> None:
        self.__dict__["hook"] = hook if hook is None or self._session is None else self._session.attach(self, hook)

    def _why_unfit(self, *, is_resumed: bool, kept: Mapping[str, Any] | None) -> str:
        from spark_lineage.adapters.adapter import NO_SPARK
        from spark_lineage.adapters.dataproc_job import is_spark_job

        if not is_spark_job(self.job):
            return NO_SPARK
        is_without_worker = is_resumed and kept is None and self.start_from_trigger
        return "start_from_trigger has submitted its job without a worker" if is_without_worker else ""

    def _attach_adapter(self, session: LineageSession) -> None:  # noqa: ARG002
        # A task that is resumed executes nothing, and so makes none.
        self.hook = DataprocHook(gcp_conn_id=self.gcp_conn_id, impersonation_chain=self.impersonation_chain)


class LineageDataprocCreateBatchOperator(_LineageDataprocOperator, DataprocCreateBatchOperator):  # type: ignore[misc]
    """Run a batch of Dataproc, and give its task one truthful OpenLineage event.

    It takes every argument of ``DataprocCreateBatchOperator``, and those of ``LineageOperator``.
    """

    template_fields: Sequence[str] = (*DataprocCreateBatchOperator.template_fields, *LineageOperator.template_fields)

    def _attach_adapter(self, session: LineageSession) -> None:
        # That of a former execution is another session's.
        self.__dict__.pop("hook", None)
        session.attach(self, self.hook)
