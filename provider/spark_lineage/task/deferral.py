"""The session of a task that a trigger waits for: it is suspended, and another process resumes it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from spark_lineage.launch.launch import Launch, redacted, storable, without_login
from spark_lineage.merge.transition import StatusTransition, report_of
from spark_lineage.settings.hadoop import resource_managers
from spark_lineage.submit.deferral import follow_job, run_commands
from spark_lineage.submit.hook import environment, master_of
from spark_lineage.task.launching import submitted_with
from spark_lineage.task.session import DEFERRED, LineageSession

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook


class DeferrableSession(LineageSession):
    """A session that a ``TaskDeferred`` does not end; ``resume`` goes on with it in a new one."""

    _resumed: SparkSubmitHook | None = None

    def kept(self, hook: SparkSubmitHook, external_id: str) -> dict[str, Any]:
        """Return what the resuming process needs, as JSON."""
        self.polling()
        launch = self._handle.launch
        if launch is None:
            master = without_login(master_of(hook))
            launch = Launch("", "", conn_id=self._task.conn_id, master=master, deploy_mode="cluster")
        if not launch.yarn_urls and launch.master.startswith("yarn"):
            launch = structs.replace(launch, yarn_urls=resource_managers(environment(hook)))
        summary = self._watching.summary
        transitions = [redacted(one) for one in summary.transitions] if summary is not None else []
        launch = structs.replace(launch, external_id=external_id)
        links = self._watching.links.urls
        return {"launch": storable(launch), "transitions": msgspec.to_builtins(transitions), "links": links}

    def resume(self, hook: SparkSubmitHook, kept: Mapping[str, Any], seen: Sequence[Any]) -> None:
        """Resume the job of a deferred task; ``seen`` are the transitions that the trigger has seen, as JSON."""
        launch = msgspec.convert(kept["launch"], Launch)
        follow_job(hook, launch.external_id or "")
        self._resumed = hook
        self._watching.links.urls |= kept.get("links", {})
        adapter = self._adapter
        if adapter is None:
            return
        with self._guard("The lineage of the job is not collected"):
            adapter.remember_secrets()
            self._handle.launch = launch
            adapter.submission.is_started, adapter.submission.external_id = True, launch.external_id
            self._watching.notify(submitted_with(adapter)[0], self._declared)
            known, new = (msgspec.convert(one, list[StatusTransition]) for one in (kept["transitions"], seen))
            self._watching.resume(launch, known)
            self._receiving.attach(launch, submitted_with(adapter)[0])
            self._follow(adapter, launch).log_where("the deferred job (resumed)")
            for one in new:
                self._watching.tell(report_of(one))
            if self._events is not None:
                self._events.resume()

    def look(self) -> None:
        """Send a RUNNING event of what the job has done so far, where it is known of any dataset."""
        with self._guard("The lineage so far is not sent", can_fail=False):
            if self._collecting is not None:
                self._collecting.look()

    @property
    def next_look(self) -> float | None:
        """When the next RUNNING event is due, in epoch seconds; None where none is sent."""
        return time.time() + self._task.settings.tracking_interval_seconds if self.is_on else None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Finish the task, unless it is deferred."""
        if kind is not None and kind.__name__ == DEFERRED:
            self._suspend()
            return
        if self._resumed is not None:
            run_commands(self._resumed)
        super().__exit__(kind, error, traceback)

    def _suspend(self) -> None:
        with self._guard("The threads that watch the job do not end", can_fail=False):
            if self._collecting is not None:
                self._collecting.abandon()
            self._watching.suspend()
        with self._guard("Files of the submission are not removed", can_fail=False):
            if self._injection is not None:
                self._injection.tidy()
        if self._events is not None:
            self._events.deliver()
