"""Guards the user's task: trouble with lineage is logged with its cause, and fails the task only on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spark_lineage.launch.log import Log
from spark_lineage.secrets.redaction import redact, redact_error


class LineageRequiredError(RuntimeError):
    """There is no lineage, and the task asked to fail then (``lineage_required``)."""


class Guard:
    """Stands between the user's task and all that is done for its lineage.

    :param is_required: whether the task asked to fail; asked only when there is trouble, which may be in the settings
    """

    def __init__(self, is_required: Callable[[], bool], logger: Log) -> None:
        self._is_required = is_required
        self._log = logger

    @contextmanager
    def __call__(self, consequence: str, *, can_fail: bool = True) -> Iterator[None]:
        """Log what goes wrong, with its cause and what follows from it.

        :raises LineageRequiredError: where that is asked for, and ``can_fail``
        """
        try:
            yield
        except Exception as error:
            # In place, because the debug log shows the traceback, and Airflow the chain of what fails the task.
            redact_error(error)
            cause = redact(f"{type(error).__name__}: {error}")
            if can_fail and self._is_required():
                if isinstance(error, LineageRequiredError):
                    raise
                raise LineageRequiredError(f"lineage_required is set, and there is none: {cause}") from None
            self._log.warning("%s: %s", consequence, cause)
            self._log.debug("Where it happened:", exc_info=True)
