"""``DatabricksSubmitRunOperator`` and ``DatabricksRunNowOperator`` with lineage: a DAG changes the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.databricks.operators.databricks import DatabricksRunNowOperator, DatabricksSubmitRunOperator

from spark_lineage.operators.lineage_operator import LineageOperator, PollingOperator
from spark_lineage.operators.lineage_service import LineageServiceOperator

if TYPE_CHECKING:
    from spark_lineage.task.session import LineageSession


class _LineageDatabricksOperator(PollingOperator, LineageServiceOperator):
    databricks_conn_id: str

    @property
    def _conn_id(self) -> str:  # type: ignore[override]
        return self.databricks_conn_id

    @property
    def _hook(self) -> Any:
        """The hook that the stock operator makes by ``_get_hook`` once, and again after it was set to None."""
        return super()._hook

    @_hook.setter
    def _hook(self, hook: Any) -> None:
        vars(self).pop("_hook", None)
        if hook is not None:
            vars(self)["_hook"] = hook

    def _why_unfit(self, *, is_resumed: bool, kept: Mapping[str, Any] | None) -> str:  # noqa: ARG002
        from spark_lineage.adapters.databricks import why_unreached

        return why_unreached(self)

    def _attach_adapter(self, session: LineageSession) -> None:  # noqa: ARG002
        # A task that is resumed asks for none. Whoever makes it, attaches to it.
        vars(self)["_hook"] = self._hook


class LineageDatabricksSubmitRunOperator(_LineageDatabricksOperator, DatabricksSubmitRunOperator):  # type: ignore[misc]
    """Submit a run to Databricks, and give its task one truthful OpenLineage event.

    It takes every argument of ``DatabricksSubmitRunOperator``, and those of ``LineageOperator``. What runs on new
    clusters has lineage; nothing can be added to an existing one.
    """

    template_fields: Sequence[str] = (*DatabricksSubmitRunOperator.template_fields, *LineageOperator.template_fields)


class LineageDatabricksRunNowOperator(_LineageDatabricksOperator, DatabricksRunNowOperator):  # type: ignore[misc]
    """Run a job of Databricks, and give its task one truthful OpenLineage event, if it has ``spark_submit_params``.

    It takes every argument of ``DatabricksRunNowOperator``, and those of ``LineageOperator``. The API takes no Spark
    properties for the clusters of a job that is there.
    """

    template_fields: Sequence[str] = (*DatabricksRunNowOperator.template_fields, *LineageOperator.template_fields)
