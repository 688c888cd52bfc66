"""``BashOperator`` with lineage: for a command that runs spark-submit itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.providers.standard.operators.bash import BashOperator

from spark_lineage.operators.lineage_operator import LineageOperator

if TYPE_CHECKING:
    from spark_lineage.task.session import LineageSession


class LineageBashOperator(LineageOperator, BashOperator):
    """Run a command, and give its task one truthful OpenLineage event of all Spark applications that it submits.

    It takes every argument of ``BashOperator``, and those of ``LineageOperator``. There is no connection.
    """

    template_fields: Sequence[str] = (*BashOperator.template_fields, *LineageOperator.template_fields)
    _conn_id = ""

    @property
    def task_type(self) -> str:
        """The stock name until the task runs: then the OpenLineage provider would use its own extractor for it."""
        return super().task_type if self._task_instance is None else LineageBashOperator.__name__

    def _attach_adapter(self, session: LineageSession) -> None:
        session.attach(self, None)
