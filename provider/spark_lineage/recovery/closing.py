"""Sends the end of a lost try, as the OpenLineage provider would have been told it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from spark_lineage.emit.from_outside import AirflowTry, send, terminal_event
from spark_lineage.emit.task_log import log_lineage, log_status
from spark_lineage.emit.through_airflow import operator_lineage
from spark_lineage.recovery.configuration import Configuration
from spark_lineage.recovery.recovery import Recovered
from spark_lineage.settings import SettingError
from spark_lineage.tolerance import Tolerance

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.recovery.lost_try import LostTry

log = logging.getLogger(__name__)

tolerating = Tolerance(lambda: False, log)


def configuration_of(conn_id: str) -> Configuration:
    """Give the settings of a launch; the defaults where they cannot be read."""
    try:
        return Configuration.of(conn_id)
    except SettingError as error:
        log.warning("Settings are not as configured: %s", error)
        return Configuration()


def send_end(lost: LostTry, recovered: Recovered, configuration: Configuration, airflow: AirflowTry) -> bool:
    """Send the terminal event of a try, unless the OpenLineage provider is not to send any of that task.

    :return: whether it was handed to the transport; trouble there is the provider's to log
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy

    lineage = recovered.lineage
    task, launch = lost.task, lost.launch
    policy = resolve_task_emission_policy(airflow.task, task.dag_id, task.task_id)
    if not policy.emit:
        return False
    told: OperatorLineage[Any, Any] = OperatorLineage()
    if policy.extract_operator_metadata:
        told = operator_lineage(lineage, recovered.counts, int(configuration.settings.max_event_bytes), log)
    event = terminal_event(
        airflow,
        told,
        lineage.state,
        tolerating,
        run_id=launch.run_id,
        error=lineage.status.error if lineage.status is not None else lost.error,
    )
    if not send(event):
        return False
    log.info("Sent the %s that was missing of %s, try %s.", lineage.state, task, launch.try_number)
    if lineage.status is not None:
        log_status(lineage.status, log)
    log_lineage(lineage, recovered.counts, log)
    return True
