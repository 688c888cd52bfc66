"""The transport of Airflow's OpenLineage provider that sends everything to an Airflow connection.

In ``[openlineage] transport``::

    {"type": "spark_lineage.transport.ConnectionTransport", "conn_id": "marquez"}
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attr
from openlineage.client.transport.transport import Config, Transport

from spark_lineage.emit.provider_event import as_meant
from spark_lineage.emit.redacted_event import encode
from spark_lineage.emit.through_connections import ConnectionSender
from spark_lineage.settings.places import section_settings
from spark_lineage.tolerance import Tolerance

if TYPE_CHECKING:
    from openlineage.client.client import Event

_log = logging.getLogger(__name__)


@attr.define
class ConnectionConfig(Config):
    """The configuration: the id of a connection of type ``openlineage``."""

    conn_id: str

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> ConnectionConfig:
        """Read it.

        :raises ValueError: when there is no connection in it
        """
        conn_id = params.get("conn_id")
        if not isinstance(conn_id, str) or not conn_id:
            raise ValueError('the transport names no connection; give "conn_id", the id of an openlineage connection')
        return cls(conn_id)


class ConnectionTransport(Transport):
    """Puts each event into the outbox, then delivers what waits there, within ``delivery_timeout_seconds``.

    Of a task of ours the event says what the provider has no word for: ABORT, STREAMING, the tags of the task. The
    connection is read for each event, so that it may be changed at any time; while it cannot be read, events wait.
    """

    kind = "spark_lineage_connection"
    config_class = ConnectionConfig

    def __init__(self, config: ConnectionConfig) -> None:
        self.config = config

    def emit(self, event: Event) -> None:
        """Keep one event, and deliver it if the backend takes it in time; what goes wrong is logged."""
        settings = section_settings(_log)
        sender = ConnectionSender(
            (self.config.conn_id,),
            settings,
            tolerating=Tolerance(lambda: False, _log),
            logger=_log,
            is_for_provider=True,
        )
        sender.put(encode(as_meant(event)), at_most_seconds=settings.delivery_timeout_seconds)
        sender.deliver(settings.delivery_timeout_seconds)
        sender.close()
