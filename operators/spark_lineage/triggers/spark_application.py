"""Waits for the end of a driver that runs in a cluster, without a worker."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from airflow.utils.state import TaskInstanceState
from asgiref.sync import sync_to_async

from spark_lineage.launch.driver import Driver
from spark_lineage.launch.launch import Launch, storable_transitions, stored_launch
from spark_lineage.launch.log import Log
from spark_lineage.merge.transition import StatusLedger
from spark_lineage.secrets.redaction import beginning
from spark_lineage.settings.places import Places
from spark_lineage.watch.dialect import Dialect, converse_async, pause_seconds
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources, driver_end, kill_driver

TIMEOUT = "TIMEOUT"
"""The status where the driver has not ended when the task has to."""
RUNNING = "RUNNING"
"""The status where a RUNNING event is due, which a worker sends."""
# Diagnostics of YARN may have megabytes, and the event goes into Airflow's database.
_ERROR_LENGTH = 10_000
# The numbers of unanswered requests in a row after which a line is logged as a warning.
_WARNED_AT = (3, 30, 300)
# Answers, one after another, that there is no such application, after which it is taken for gone, as the Spark provider
# does: a ResourceManager was started anew without its state.
_MOST_UNKNOWN = 10
# Airflow's scheduler fails a task that a trigger sends to a worker again before it has read that the last one is done.
_SETTLE_SECONDS = 10.0
# An event loop keeps no task alive.
_killing: set[asyncio.Future[None]] = set()


class SparkApplicationTrigger(BaseTrigger):
    """Ask the cluster manager for the end of a driver, as the Spark connection says.

    Its event has a ``status`` of ``docs/status.md``, the ``error`` of a driver that has failed, and the ``transitions``
    that it has seen. It holds no credentials: those are read from the connection where it runs.

    :param kept: of the session that was deferred, as JSON: in ``launch`` the launch of the job
        (``spark_lineage.launch.launch.Launch``). The event has it, too
    :param poll_seconds: from one question to the next, a fifth more or less; up to a minute while no server answers
    :param deadline: when the task has to end, in epoch seconds
    :param next_look: when a worker has to look what the job has done, in epoch seconds
    """

    def __init__(
        self,
        kept: Mapping[str, Any],
        poll_seconds: float,
        deadline: float | None = None,
        next_look: float | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept = dict(kept)
        self.poll_seconds = poll_seconds
        self.deadline = deadline
        self.next_look = next_look

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments."""
        names = ("kept", "poll_seconds", "deadline", "next_look")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ask until the driver has ended, the time of the task is over, or a worker has to look."""
        try:
            event = await self._awaited()
        except asyncio.CancelledError:
            if not hasattr(BaseTrigger, "on_kill"):
                # Before Airflow 3.3 there is no other caller.
                await self.on_kill()
            raise
        yield event

    async def _awaited(self) -> TriggerEvent:
        managers: Sequence[Dialect] = ()
        unanswered = unknown = 0
        ledger = StatusLedger()
        if self.kept.get("has_looked") and self.next_look is not None:
            await asyncio.sleep(max(0.0, min(_SETTLE_SECONDS, self.next_look - time.time())))
        while True:
            end = None
            try:
                if not managers:
                    launch, endpoints = await self._endpoints()
                    client = endpoints.async_client()
                    managers = Sources(endpoints, Driver(driver_id=launch.external_id)).managers
                end = await converse_async(driver_end(managers, ledger), client.send)
                unanswered = unknown = 0
            except Exception as error:
                unknown = unknown + 1 if getattr(error, "http_status", None) == HTTPStatus.NOT_FOUND else 0
                if unknown >= _MOST_UNKNOWN:
                    return self._event("UNKNOWN", str(error), ledger)
                # A server that is restarted, or a backend of secrets: the driver goes on meanwhile.
                unanswered += 1
                log = Log(self.log)
                write = log.warning if unanswered in _WARNED_AT else log.debug
                write("No server reports the status of %s: %s", self._external_id, error)
            left = math.inf if self.deadline is None else self.deadline - time.time()
            if end is not None:
                return self._event(end.status, end.exception or end.detail, ledger)
            if left <= 0:
                return self._event(TIMEOUT, "", ledger)
            if self.next_look is not None and self.next_look <= time.time() and _is_running(ledger):
                return self._event(RUNNING, "", ledger)
            await asyncio.sleep(min(left, pause_seconds(self.poll_seconds, unanswered, self.poll_seconds)))

    def _event(self, status: str, error: str, ledger: StatusLedger) -> TriggerEvent:
        error, seen = beginning(error, _ERROR_LENGTH), storable_transitions(ledger.transitions)
        payload = {"status": status, "error": error, "transitions": seen, "kept": self.kept}
        return TriggerEvent(payload)  # type: ignore[no-untyped-call]

    @property
    def _external_id(self) -> str:
        return str(self.kept["launch"].get("external_id"))

    async def on_kill(self) -> None:
        """End the driver, where the task was cleared or marked.

        Where it is still deferred, the triggerer ends, or another one waits: Airflow 3.3 calls this then, too. It also
        cancels this after a second, whatever it waits for.
        """
        killing = asyncio.ensure_future(self._kill())
        _killing.add(killing)
        killing.add_done_callback(_killing.discard)
        await asyncio.shield(killing)

    async def _kill(self) -> None:
        external_id = self._external_id
        try:
            if await self._task_state() != TaskInstanceState.DEFERRED:
                launch, endpoints = await self._endpoints()
                managers = Sources(endpoints, Driver()).managers
                await converse_async(kill_driver(managers, launch.external_id or ""), endpoints.async_client().send)
                Log(self.log).info("%s is killed, because its task was cleared or marked.", external_id)
        except Exception as error:
            Log(self.log).warning("%s may still run without its task: %s", external_id, error)

    async def _task_state(self) -> str | None:
        """Return what Airflow's database says.

        :raises LookupError: when it does not know the run
        """
        one: Any = self.task_instance
        if hasattr(one, "current_state"):
            return await sync_to_async(one.current_state)()  # type: ignore[no-any-return]
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        find = sync_to_async(RuntimeTaskInstance.get_task_states)
        found = await find(one.dag_id, one.map_index, [one.task_id], run_ids=[one.run_id])
        (state,) = found[one.run_id].values()
        return state  # type: ignore[no-any-return]

    async def _endpoints(self) -> tuple[Launch, Endpoints]:
        launch = stored_launch(self.kept["launch"]) or Launch("", "")
        places = await sync_to_async(Places.of)(launch.conn_id, {})
        return launch, Endpoints(
            launch.master, launch.deploy_mode, places.extra, places.status, yarn_urls=launch.yarn_urls
        )


def _is_running(ledger: StatusLedger) -> bool:
    """Whether the driver has begun, which may wait for a place in the cluster for hours."""
    return any(one.subject == "DRIVER" and one.new_status == "RUNNING" for one in ledger.transitions)
