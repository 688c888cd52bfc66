"""The hook of ``openlineage`` connections: where OpenLineage events go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_lineage.deliver.hooks.forms import FormHook
from spark_lineage.deliver.transports.config import CONN_TYPE, namespace_of, transport_config
from spark_lineage.deliver.transports.masking import mask_config
from spark_lineage.deliver.transports.opening import make_transport
from spark_lineage.deliver.transports.probe import probe
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from openlineage.client.transport.transport import Transport


class OpenLineageHook(FormHook):
    """Any OpenLineage backend: over HTTP, Kafka, into a file, to the log, or several at once.

    :param openlineage_conn_id: id of a connection of type ``openlineage``
    """

    conn_name_attr = "openlineage_conn_id"
    default_conn_name = "openlineage_default"
    conn_type = CONN_TYPE
    hook_name = "OpenLineage"

    def __init__(self, openlineage_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.openlineage_conn_id = openlineage_conn_id

    @property
    def namespace(self) -> str | None:
        """The OpenLineage namespace of the jobs for this backend; None for that of Airflow's provider."""
        return namespace_of(self.fields)

    def transport_config(self) -> dict[str, Any]:
        """Return the configuration of the transport, as openlineage-python takes it, secrets included.

        :raises SettingError: when the connection is not there, or does not fit
        """
        config = transport_config(self.fields)
        mask_config(config)
        return config

    def get_conn(self) -> Transport:
        """Open the transport: ``emit(event)`` sends one event, and raises unless the backend said yes.

        :raises SettingError: when the connection is not there, does not fit, or is of kind ``composite``
        """
        return make_transport(self.transport_config())

    def test_connection(self) -> tuple[bool, str]:
        """Reach the backend, and leave nothing there; what was found, redacted."""
        try:
            config = self.transport_config()
        except SettingError as error:
            return False, redact(str(error))
        return probe(config)
