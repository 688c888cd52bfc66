"""The transport of Airflow's OpenLineage provider that sends everything to an Airflow connection.

In ``[openlineage] transport``::

    {"type": "spark_lineage.deliver.connection_transport.ConnectionTransport", "conn_id": "marquez"}
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import attr
from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.transport import Config, Transport

from spark_lineage.deliver.connection_sender import ConnectionSender
from spark_lineage.deliver.outgoing import TERMINAL, Outgoing
from spark_lineage.emit.run_event import value_of
from spark_lineage.emit.task_event import corrected_event
from spark_lineage.launch.bounded_run import Kill
from spark_lineage.launch.log import Guard, Log
from spark_lineage.settings.places import section_settings

if TYPE_CHECKING:
    from openlineage.client.client import Event

_log = Log(__name__)


@attr.define
class ConnectionConfig(Config):
    """The configuration: the id of a connection."""

    conn_id: str

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> ConnectionConfig:
        """Read it; what names no connection is a ``ValueError``."""
        conn_id = params.get("conn_id")
        if not isinstance(conn_id, str) or not conn_id:
            raise ValueError('the transport names no connection; give "conn_id", the id of an openlineage connection')
        return cls(conn_id)


class ConnectionTransport(Transport):
    """Puts each event into the outbox, then delivers what waits there, within a twelfth of ``lineage_timeout``.

    For our tasks the event has what the provider cannot express: ABORT, STREAMING, the tags of the task. The
    connection is read for each event, so that it may be changed at any time; while it cannot be read, events wait.
    """

    kind = "spark_lineage_connection"
    config_class = ConnectionConfig

    def __init__(self, config: ConnectionConfig) -> None:
        self.config = config

    def emit(self, event: Event) -> None:
        """Keep one event, and deliver it if the backend accepts it in time; errors are logged."""
        if _is_ours_to_end(event):
            _log.info("The end of a lost task follows from its driver and the cluster.")
            return
        settings = section_settings(_log)
        seconds = settings.brief_seconds
        if Kill.of_process is not None:
            seconds = Kill.of_process.deadline.within(seconds).seconds_left
        guard = Guard(lambda: False, _log)
        sender = ConnectionSender((self.config.conn_id,), settings, guard, is_for_provider=True)
        sender.put(Outgoing.encode(corrected_event(event)), at_most_seconds=seconds)
        if left := sender.deliver(seconds):
            _log.warning(
                "Of the events for %s, %s: `spark-lineage outbox list` has the reason.",
                ", ".join(sender.destinations),
                left,
            )


def _is_ours_to_end(event: Event) -> bool:
    """Whether this is the provider's empty event, in a server, for the end of a try that we are going to close.

    A scheduler hears of a worker that was killed, an API server of a state set by hand; neither has the lineage. What
    the worker, or whoever recovers the try, sends is the one end of the run.
    """
    is_server = os.environ.get("_AIRFLOW_PROCESS_CONTEXT") == "server"
    if not is_server or not isinstance(event, RunEvent) or event.eventType is None or event.inputs or event.outputs:
        return False
    dag_id = value_of(value_of((event.run.facets or {}).get("parent"), "job"), "name")
    if event.eventType.value not in TERMINAL or not dag_id:
        return False
    from spark_lineage.launch.stores import has_open_launch

    try:
        return has_open_launch(dag_id, event.run.runId)
    except Exception as error:
        _log.debug("It is not known whether a run is closed later: %s", type(error).__name__)
        return False
