"""What the operators of AWS share: each attaches before it makes its hook, and connects what that has made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_lineage.operators.lineage_operator import HookOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.task.session import LineageSession


class LineageAwsOperator(HookOperator):
    """Runs an operator of AWS within a lineage session."""

    aws_conn_id: str | None
    lineage_connect: Callable[[Any], object] | None = None
    """Is called with the client of each hook."""

    @property
    def _conn_id(self) -> str:  # type: ignore[override]
        return self.aws_conn_id or ""

    def _attach_adapter(self, session: LineageSession) -> None:
        # That of a former execution is another session's.
        vars(self).pop("hook", None)
        session.attach(self, None)

    def _made(self, hook: Any) -> Any:
        """Connect the client of a hook that was made."""
        if self.lineage_connect is not None:
            self.lineage_connect(hook.conn)
        return hook

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on as every operator does; what began with waiting for something else begins anew, without its event."""
        if next_method == "execute":
            next_kwargs = {}
        return super().resume_execution(next_method, next_kwargs, context)
