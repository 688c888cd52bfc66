"""Writes what a running driver's REST API says of SQL executions as lines of an event log: ``/sql`` with its plans.

Shapes: ``org.apache.spark.status.api.v1`` (``ApplicationEnvironmentInfo``, ``sql.ExecutionData``) of Spark 3.5 to 4.2.
The API has no progress of streaming queries, no jobs of RDDs, and up to 4.1 not the execution that one is part of.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from spark_lineage.watch.rest import NoAnswerError, RestClient
from spark_lineage.watch.spark_api import MICRO_BATCH, Application, Attempt, Environment, Execution, time_of

_log = logging.getLogger(__name__)

_UI = "org.apache.spark.sql.execution.ui.SparkListener"
_FILES = "number of written files"
# A plan is some 10 kB of text, at times megabytes: an answer that is too large is asked for again in smaller pages.
_PAGE, _PAGES = 32, 8
_RUNNING = "RUNNING"
_encode = msgspec.json.Encoder().encode


class _Metric(Struct):
    name: str
    value: str


class _Node(Struct):
    metrics: list[_Metric] = field(default_factory=list)


class _Plan(Struct, rename="camel"):
    id: int
    plan_description: str = ""
    success_job_ids: list[int] = field(default_factory=list)
    failed_job_ids: list[int] = field(default_factory=list)
    nodes: list[_Node] = field(default_factory=list)


class SqlLog:
    """The executions of the applications of one driver, written by the thread that asks its UI.

    Another thread sets ``is_wanted`` when it wants what is new, and takes it out of ``lines``: the application with its
    attempt, and the lines that follow in its log. Each plan is asked for when its execution is seen first, and when
    that has ended. ``why_not`` says why the lines are not to be used; nothing is asked for then.
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self.lines: deque[tuple[str, list[bytes]]] = deque()
        self.why_not = ""
        self._length = _PAGE
        self._statuses: dict[str, dict[int, str | None]] = {}
        # Until all pages have come.
        self._plans: dict[str, dict[tuple[int, str | None], _Plan]] = {}

    def read(
        self, client: RestClient, url: str, application: Application, attempt: Attempt, executions: Sequence[Execution]
    ) -> None:
        """Write what is new, if that is wanted; an API that does not answer is asked when it is wanted again."""
        if not self.is_wanted or self.why_not:
            return
        self.is_wanted = False
        if any(MICRO_BATCH.search(one.description or "") for one in executions):
            self.why_not = "a streaming query runs, whose progress only the event log has"
            return
        roots = _roots(executions)
        if roots is None:
            self.why_not = "executions overlap, and Spark before 4.2 does not say which is part of which"
            return
        try:
            self._read(client, url, application, attempt, executions, roots=roots)
        except NoAnswerError as error:
            self._length = max(1, self._length // 2)
            _log.debug("Spark's REST API gives no plans: %s", error)

    def _read(
        self,
        client: RestClient,
        url: str,
        application: Application,
        attempt: Attempt,
        executions: Sequence[Execution],
        *,
        roots: Mapping[int, int],
    ) -> None:
        known, plans = self._statuses.get(url, {}), self._plans.setdefault(url, {})
        due = [
            place
            for place, one in enumerate(executions)
            if known.get(one.id) != one.status and (one.id, one.status) not in plans
        ]
        for _ in range(_PAGES):
            if due:
                first, length = due[0], self._length
                page = f"{url}/sql?details=true&planDescription=true&offset={first}&length={length}"
                answer = {plan.id: plan for plan in client.get_json(page, list[_Plan])}
                read = executions[first : first + length]
                plans |= {(one.id, one.status): answer[one.id] for one in read if one.id in answer}
                due = [place for place in due if place >= first + length]
        if due:
            # All that is inside of an execution must come before its end.
            self.is_wanted = True
            return
        lines = [] if url in self._statuses else list(_head(client, url, application, attempt))
        events: list[tuple[int, bool, int, bytes]] = []
        ids = known.keys() | {number for number, _ in plans}
        for one in executions:
            plan = plans.get((one.id, one.status))
            if plan is None or known.get(one.id) == one.status or roots[one.id] not in ids:
                continue
            start = _millis(one)
            if one.id not in known:
                events.append((start, False, one.id, _start(one, plan, roots[one.id], start)))
            if one.status != _RUNNING:
                end = start + (one.duration or 0)
                events += ((end, True, -one.id, line) for line in _end(one, plan, end))
            known[one.id] = one.status
        # A sort keeps the lines of one end in their order.
        lines += (line for *_, line in sorted(events, key=lambda event: event[:3]))
        self._statuses[url] = known
        plans.clear()
        self.lines.append((url, lines))


def _roots(executions: Sequence[Execution]) -> dict[int, int] | None:
    """Return the execution that each is part of, itself where it is part of none; None where that is not known.

    Where Spark does not say it, it is the one in whose time it runs. Of a program with several threads that need not be
    true; its executions overlap sooner or later.
    """
    roots: dict[int, int] = {}
    around: list[tuple[float, int]] = []
    for one in executions:
        start = _millis(one)
        end = float("inf") if one.status == _RUNNING else start + (one.duration or 0)
        while around and around[-1][0] <= start:
            around.pop()
        if one.root_execution_id is None and around and end > around[-1][0]:
            return None
        around.append((end, one.id))
        roots[one.id] = around[0][1] if one.root_execution_id is None else one.root_execution_id
    return roots


def _millis(one: Execution) -> int:
    time = time_of(one.submission_time)
    return round(time.timestamp() * 1000) if time is not None else 0


def _event(name: str, **values: Any) -> bytes:
    return _encode({"Event": name, **values})


def _head(client: RestClient, url: str, application: Application, attempt: Attempt) -> Iterator[bytes]:
    environment = client.get_json(f"{url}/environment", Environment)
    spark, system = dict(environment.spark_properties), dict(environment.system_properties)
    yield _event("SparkListenerLogStart", **{"Spark Version": attempt.app_spark_version or ""})
    yield _event("SparkListenerEnvironmentUpdate", **{"Spark Properties": spark, "System Properties": system})
    names = {"App Name": application.name or "", "App ID": application.id, "App Attempt ID": attempt.attempt_id}
    yield _event("SparkListenerApplicationStart", **names, Timestamp=attempt.start_time_epoch)


def _start(one: Execution, plan: _Plan, root_id: int, millis: int) -> bytes:
    return _event(
        f"{_UI}SQLExecutionStart",
        executionId=one.id,
        rootExecutionId=root_id,
        description=one.description or "",
        physicalPlanDescription=plan.plan_description,
        time=millis,
    )


def _end(one: Execution, plan: _Plan, millis: int) -> Iterator[bytes]:
    """What the log says when an execution ends: that it had jobs, the numbers of what it wrote, and its error."""
    if job_ids := [*plan.success_job_ids, *plan.failed_job_ids]:
        properties = {"spark.sql.execution.id": str(one.id)}
        yield _event("SparkListenerJobStart", **{"Job ID": job_ids[0], "Properties": properties})
    metrics = ({metric.name: metric.value.replace(",", "") for metric in node.metrics} for node in plan.nodes)
    # A number of bytes is rounded.
    written = next((each for each in metrics if _FILES in each), {})
    numbers = [(name, int(text)) for name, text in written.items() if text.isdecimal()]
    if numbers:
        places = [{"name": name, "accumulatorId": place} for place, (name, _) in enumerate(numbers)]
        yield _event(f"{_UI}SQLAdaptiveExecutionUpdate", executionId=one.id, sparkPlanInfo={"metrics": places})
        updates = [(place, number) for place, (_, number) in enumerate(numbers)]
        yield _event(f"{_UI}DriverAccumUpdates", executionId=one.id, accumUpdates=updates)
    error = (one.error_message or "failed") if one.status == "FAILED" else ""
    yield _event(f"{_UI}SQLExecutionEnd", executionId=one.id, time=millis, errorMessage=error)
