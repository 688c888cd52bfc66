"""What operators share that wait for a driver which a service runs.

Every DAG file imports this module, so modules that only a running task needs are imported when it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class LineageServiceOperator(LineageOperator):
    """Runs what the stock operator does; a task that is killed does not wait for the driver any more."""

    _waits_in: int | None = None
    """The thread that runs what the stock operator does."""

    def on_kill(self) -> None:
        """Kill the driver as the stock operator does, and note that in the lineage.

        :raises AirflowException: within the handler of a signal, where the task waits for the driver: it may look at it
            again too late, because the process is killed before that
        """
        try:
            super().on_kill()
        finally:
            # Where the service refuses, too: what waits takes an error of a server for one of its own, and goes on.
            if self._waits_in == threading.get_ident() and self._session is not None and self._session.is_killed:
                raise AirflowException("The driver was killed with its task.")

    def _why_unreached(self, *, is_resumed: bool, kept: Mapping[str, Any] | None) -> str:
        """Return why nothing can be added to the driver; then the task is one of the stock operator."""
        raise NotImplementedError

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

        try:
            why = self._why_unreached(is_resumed=is_resumed, kept=kept)
        except Exception as error:
            # The stock operator and its client report it.
            why = type(error).__name__
        if why:
            LineageSession.absent(self.log, why)
            self._session, self._is_stock = None, True
            return run()

        def run_here() -> object:
            self._waits_in = threading.get_ident()
            try:
                return run()
            finally:
                self._waits_in = None

        return super()._in_session(context, run_here, is_resumed=is_resumed, kept=kept, **how)
