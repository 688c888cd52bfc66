"""``LivyOperator``: Apache Livy runs the driver of a batch (provider 4.6, Livy 0.7 and 0.8)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from spark_lineage.adapters.adapter import AdaptedTask, remote_submitter
from spark_lineage.adapters.driver_output import DriverError
from spark_lineage.adapters.service import ServiceAdapter
from spark_lineage.inject.preparation import Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.bounded_run import ANSWER_SECONDS
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.log import Log
from spark_lineage.secrets.redaction import redact_name
from spark_lineage.watch.dialect import LOG_LINES

_SOURCE, _SCHEME = "Livy", "livy:"
# ``SessionState`` of Livy.
_STATUS_OF: Mapping[str, Any] = {"success": "FINISHED", "dead": "FAILED", "error": "FAILED", "killed": "KILLED"}
# ``SessionServlet`` of Livy.
_GONE = "not found"
_HOOK_LINES = ("post_batch", "get_batch_state", "get_batch_logs")


@dataclass(eq=False)
class LivyAdapter(ServiceAdapter):
    """Adapts the hook of Livy: what is added goes into ``conf`` of the batch, and the state of the batch is its end.

    A task that does not poll (``polling_interval`` 0, the default) ends before its batch.

    Upstream faults (4.6): the log of a batch is printed as it is, with the secrets that are in it, and a task that is
    killed while it posts leaves its batch.
    """

    def __post_init__(self) -> None:
        hook = self.hook
        self._state = ""
        self._log = hook._log = Log(hook.log, redact_name)
        self._post, self._ask, self._read = (getattr(hook, name) for name in _HOOK_LINES)
        vars(hook).update(zip(_HOOK_LINES, (self._submit, self._observe_state, self._observe_log), strict=True))

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> Self:
        """Attach to a hook."""
        child = "batch" if operator._polling_interval <= 0 else ""
        return cls(hook, task.before_submit, task.is_killed, operator=operator, task=task, child=child)

    @property
    def submitter(self) -> Submitter:
        """How Livy submits a batch, of which nothing is known here."""
        return remote_submitter(f"{_SCHEME}{self.operator._livy_endpoint_prefix or ''}")

    @property
    def arguments(self) -> SubmitArguments:
        """The ``conf`` of the batch."""
        conf = self.operator.spark_params.get("conf")
        return SubmitArguments({str(key): str(value) for key, value in conf.items()} if isinstance(conf, dict) else {})

    @property
    def has_driver_ended(self) -> bool:
        """Whether Livy has said that the batch is over."""
        return self._state in _STATUS_OF

    def end(self) -> DriverEnd | None:
        """Return the end by the last state that the operator was answered; where a trigger was, ask again."""
        if self._state or self.injected or self.driver.driver_id is None:
            return _end(self._state, self.output.error)
        return self.ask(self.driver.driver_id)

    def ask(self, external_id: str) -> DriverEnd | None:
        """Ask Livy for the batch."""
        return _asked(self.hook, external_id)

    @classmethod
    def end_of(cls, launch: Launch) -> DriverEnd | None:
        """Ask Livy for the state of a batch; one that Livy does not know any more has an unknown end."""
        from airflow.providers.apache.livy.hooks.livy import LivyHook

        hook = LivyHook(launch.conn_id, endpoint_prefix=launch.master.removeprefix(_SCHEME) or None)
        return _asked(hook, str(launch.external_id))

    def _submit(self, *arguments: Any, **params: Any) -> Any:
        self.begin()
        batch = self._post(*arguments, **{**params, "conf": {**(params.get("conf") or {}), **self.injected}})
        self.know(str(batch), is_kept=False)
        if self.is_killed():
            # on_kill came before there was a batch.
            self.hook.delete_batch(batch)
        return batch

    def _observe_state(self, *arguments: Any, **keywords: Any) -> Any:
        state = self._ask(*arguments, **keywords)
        self._state = str(state.value)
        if self.observer is not None:
            self.observer.waiting()
        return state

    def _observe_log(self, *arguments: Any, **keywords: Any) -> Any:
        answer = self._read(*arguments, **keywords)
        with suppress(AttributeError, TypeError):
            answer = {**answer, "log": [self.observe(line) for line in answer.get("log", ())]}
        return answer


def _asked(hook: Any, batch: str) -> DriverEnd | None:
    # Without a time limit, one server that hangs would hold up all that is asked after it.
    hook.extra_options = {**hook.extra_options, "check_response": False, "timeout": ANSWER_SECONDS}
    try:
        found = hook.get_batch(batch)
    except Exception as error:
        if _GONE not in str(error):
            raise
        return DriverEnd("UNKNOWN", _SOURCE, "Livy does not know the batch any more")
    state, seen = found["state"], DriverError()
    if _STATUS_OF.get(state) == "FAILED":
        with suppress(Exception):
            for line in hook.get_batch_logs(batch, -1, LOG_LINES)["log"]:
                seen.feed(line)
    # A server that was restarted counts its batches anew.
    return _end(state, seen, found.get("appId") or "")


def _end(state: str, seen: DriverError, application_id: str = "") -> DriverEnd | None:
    if (status := _STATUS_OF.get(state)) is None:
        return None
    detail = "" if status == "FINISHED" else seen.explain(None, f"the batch is {state}")
    return DriverEnd(status, _SOURCE, detail, application_id)
