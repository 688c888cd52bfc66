"""Reads what the driver wrote for a task to its end, and adds what the DAG declares."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spark_lineage.collect.declared import declared_events, declared_span
from spark_lineage.launch.bounded_run import LINEAGE_FILES, BoundedRun, counting_down
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from spark_lineage.collect.collector import Follower
    from spark_lineage.collect.followed_event_logs import FollowedEventLogs
    from spark_lineage.launch.guard import Guard
    from spark_lineage.launch.kill import Kill
    from spark_lineage.merge.lineage import TaskLineage

# In a kill: for the last question to the cluster, the merge and the event, which come after the reading; for what is
# there to be read at once, however late it is; and for what is just being folded when the time is over.
_SECONDS_TO_TELL = 1.0
_SECONDS_AT_LEAST = 0.5
_SECONDS_OF_A_LINE = 0.3


def read_all(
    follower: Follower,
    event_logs: FollowedEventLogs,
    kill: Kill,
    seconds: float,
    *,
    observe: Callable[[], object],
    guard: Guard,
) -> bool:
    """Read to the last line what the driver wrote, and give whether there was time for that.

    Nothing more is collected afterwards.

    :param seconds: how long it may take; while the task is being killed, there may be less time
    :param observe: called by another thread, between the lineage and the event log
    :raises OSError: when a lineage file is there and cannot be read; the rest has been read then
    """
    collector, unread = follower.collector, []

    def read() -> None:
        try:
            follower.stop()
        except OSError as error:
            unread.append(error)
        observe()
        event_logs.finish(guard)

    reading, least = BoundedRun(read, "spark-lineage-reader"), counting_down(_SECONDS_AT_LEAST)
    # What is slow has all the time, and what hangs has not.
    probe = BoundedRun(collector.directory.exists, "spark-lineage-probe")
    most, answer = counting_down(seconds), counting_down(min(seconds, LINEAGE_FILES.seconds_left))

    def remaining() -> float:
        return max(kill.seconds((answer if probe.is_running else most)(), leaving=_SECONDS_TO_TELL), least())

    try:
        is_whole = reading.wait(remaining)
    finally:
        # Also where the task's own time is over.
        collector.close()
    # It may be in the middle of a line; or its file hangs, and so may all others there.
    if not is_whole and not reading.wait(counting_down(_SECONDS_OF_A_LINE)):
        LINEAGE_FILES.hangs(reading)
    if unread:
        raise unread[0]
    return is_whole


def declared_lineage(context: Context, namespace: str, started: datetime, guard: Guard) -> TaskLineage | None:
    """Return what the DAG declares as a lineage of its own, which is all that is known at first; None for nothing."""
    state = LineageState()
    add_inlets_and_outlets(state, context, namespace, started, guard)
    return task_lineage(state, "RUNNING") if state.runs else None


def add_inlets_and_outlets(
    state: LineageState, context: Context, namespace: str, started: datetime, guard: Guard
) -> None:
    """Add what the DAG declares of the task; ``namespace`` is that of the Spark job, empty for Airflow's own."""
    inlets, outlets = context.get("inlets") or [], context.get("outlets") or []
    if not (inlets or outlets):
        return
    with guard("Inlets and outlets are missing in the lineage", can_fail=False):
        from airflow.providers.openlineage import conf
        from airflow.providers.openlineage.plugins.macros import lineage_job_name
        from openlineage.client.uuid import generate_new_uuid

        started, ended = declared_span(state, started, datetime.now(UTC))
        events = declared_events(
            inlets,
            outlets,
            run_id=str(generate_new_uuid()),
            job_namespace=namespace or conf.namespace(),
            job_name=f"{lineage_job_name(context['ti'])}.declared",
            started=started,
            ended=ended,
        )
        for event in events:
            state.add(*event)
