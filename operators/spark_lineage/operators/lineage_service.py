"""The base of operators that wait for a driver which a service runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class LineageServiceOperator(LineageOperator):
    """Runs what the stock operator does; a task that is killed does not wait for the driver any more."""

    def _why_unreached(self, *, is_resumed: bool, kept: Mapping[str, Any] | None) -> str:
        try:
            return self._why_unfit(is_resumed=is_resumed, kept=kept)
        except Exception as error:
            # The stock operator and its client report it.
            return type(error).__name__

    def _why_unfit(self, *, is_resumed: bool, kept: Mapping[str, Any] | None) -> str:  # noqa: ARG002
        """Return why nothing can be added to the job, empty where that can be.

        :raises Exception: for a job that the service or its client refuses
        """
        return ""

    def _in_session(self, context: Context, run: Callable[[], object], **how: Any) -> object:
        def run_here() -> object:
            with self._waiting():
                return run()

        return super()._in_session(context, run_here, **how)
