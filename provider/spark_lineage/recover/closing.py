"""Sends the end of a lost try, as the OpenLineage provider would have been told it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage.deliver import kept_events
from spark_lineage.deliver.stored_event import restore
from spark_lineage.deliver.through_airflow import operator_lineage
from spark_lineage.deliver.through_connections import ConnectionSender
from spark_lineage.emit.openlineage_provider import emission, send
from spark_lineage.emit.task_event import AirflowTry, JobDetails, task_event
from spark_lineage.launch.guard import Guard
from spark_lineage.launch.task_log import log_lineage, log_status
from spark_lineage.recover.configuration import Configuration
from spark_lineage.recover.recovery import Recovered
from spark_lineage.secrets.redacted_event import encode
from spark_lineage.settings import SettingError, Settings

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import RunEvent

    from spark_lineage.launch.lost_try import LostTry

log = logging.getLogger(__name__)

guard = Guard(lambda: False, log)


def configuration_of(conn_id: str) -> Configuration:
    """Return the settings of a launch; the defaults where they cannot be read."""
    try:
        return Configuration.of(conn_id)
    except SettingError as error:
        log.warning("Settings are not as configured: %s", error)
        return Configuration()


def send_end(lost: LostTry, recovered: Recovered, configuration: Configuration, airflow: AirflowTry) -> bool:
    """Send the terminal event of a try, unless the OpenLineage provider is not to send any of that task.

    Where the process of the task had made it, and kept it before it was killed, it is that one: of two that differ, one
    would be wrong. Nobody knows whether the provider has sent that one too, from a fork that outlives its process: so
    it goes over the provider's transport as the provider would have it, to which a kill is a failure. At worst the same
    is told twice.

    :return: whether it was handed to a transport or to the outbox; trouble there is logged
    """
    from openlineage.client.event_v2 import RunState

    lineage, task, launch = recovered.lineage, lost.task, lost.launch
    wanted = emission(airflow.task, task.dag_id, task.task_id)
    if not wanted.is_sent:
        return False
    directory = Path(launch.directory)
    content = made = None
    with guard("What the task may have told of its end is not known"):
        content = kept_events.end_of(directory, launch.run_id)
    if content is None:
        event = _made_now(lost, recovered, configuration, airflow, has_lineage=wanted.has_lineage)
        content = made = encode(event)
        if directory.is_dir():
            with guard("The event cannot be sent again later"):
                content = kept_events.append_end(directory, content)
    event = restore(content)
    event_type = event.eventType.value if event.eventType is not None else lineage.state
    if content != made and event.eventType is RunState.ABORT:
        event.eventType = RunState.FAIL
    is_sent = send(event)
    is_sent = _to_connections(launch.openlineage_conn_id, content, configuration.settings) or is_sent
    if not is_sent:
        return False
    log.info("Sent the %s that was missing of %s, try %s.", event_type, task, launch.try_number)
    if lineage.status is not None:
        log_status(lineage.status, log)
    log_lineage(lineage, recovered.counts, log)
    return True


def _made_now(
    lost: LostTry, recovered: Recovered, configuration: Configuration, airflow: AirflowTry, *, has_lineage: bool
) -> RunEvent:
    from airflow.providers.openlineage.extractors import OperatorLineage

    lineage, settings = recovered.lineage, configuration.settings
    told: OperatorLineage[Any, Any] = OperatorLineage()
    if has_lineage:
        details = JobDetails.of(settings, airflow.task)
        told = operator_lineage(lineage, recovered.counts, int(settings.max_event_bytes), log, details)
    return task_event(
        airflow,
        told,
        lineage.state,
        guard,
        run_id=lost.launch.run_id,
        error=lineage.status.error if lineage.status is not None else lost.error,
    )


def _to_connections(conn_ids: tuple[str, ...], content: bytes, settings: Settings) -> bool:
    sender = ConnectionSender(conn_ids, settings, guard=guard, logger=log)
    sender.put(content, at_most_seconds=settings.delivery_timeout_seconds)
    sender.deliver(settings.delivery_timeout_seconds)
    return bool(sender.destinations)
