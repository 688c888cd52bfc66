"""What operators share that wait for a driver which a service runs.

Every DAG file imports this module, so modules that only a running task needs are imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage


class LineageServiceOperator(LineageOperator):
    """Runs what the stock operator does; a task that is killed does not wait for the driver any more."""

    def _why_unreached(self, *, is_resumed: bool, kept: Mapping[str, Any] | None) -> str:
        """Return why nothing can be added to the driver; then the task is one of the stock operator."""
        raise NotImplementedError

    def _why_stock_now(self, *, is_resumed: bool, kept: Mapping[str, Any] | None) -> str:
        from spark_lineage.settings.places import TaskSettings

        try:
            is_off = TaskSettings(self._lineage_arguments, self._conn_id).is_off()
            return "" if is_off else self._why_unreached(is_resumed=is_resumed, kept=kept)
        except Exception as error:
            # The stock operator and its client report it.
            return type(error).__name__

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Return what every operator returns, or why the job has no lineage."""
        from spark_lineage.task.task_events import lineage_of_stock

        # A job that a worker has submitted has had this event before.
        why = self._why_stock_now(is_resumed=getattr(self, "deferrable", False), kept=None)
        return lineage_of_stock(self, why) if why else super().get_openlineage_facets_on_start()

    def _in_session(
        self,
        context: Context,
        run: Callable[[], object],
        *,
        is_resumed: bool = False,
        kept: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> object:
        from spark_lineage.task.session import LineageSession

        self._why_stock = why = self._why_stock_now(is_resumed=is_resumed, kept=kept)
        if why:
            LineageSession.absent(self.log, why)
            self._session, self._is_stock = None, True
            return run()

        def run_here() -> object:
            with self._waiting():
                return run()

        return super()._in_session(context, run_here, is_resumed=is_resumed, kept=kept, **how)
