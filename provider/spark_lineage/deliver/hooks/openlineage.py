"""The hook of ``openlineage`` connections: where OpenLineage events go."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from spark_lineage.deliver.hooks.forms import field_behaviour, form_widgets
from spark_lineage.deliver.transports.config import CONN_TYPE, namespace_of, transport_config
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.masking import mask_config
from spark_lineage.deliver.transports.opening import connection_fields, make_transport
from spark_lineage.deliver.transports.probe import probe
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from openlineage.client.transport.transport import Transport


class OpenLineageHook(BaseHook):
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

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Return the fields of the form to Airflow before 3.2."""
        return form_widgets(cls.conn_type)

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return the labels of the form to Airflow before 3.2."""
        return field_behaviour(cls.conn_type)

    @property
    def namespace(self) -> str | None:
        """The OpenLineage namespace of the jobs that this backend is told of; None for that of Airflow's provider."""
        return namespace_of(self._fields)

    def transport_config(self) -> dict[str, Any]:
        """Return the configuration of the transport, as openlineage-python takes it, secrets included.

        :raises SettingError: when the connection is not there, or does not fit
        """
        config = transport_config(self._fields)
        mask_config(config)
        return config

    def get_conn(self) -> Transport:
        """Open the transport: ``emit(event)`` sends one event, and raises unless the backend said yes.

        :raises SettingError: when the connection is not there, or does not fit
        """
        return make_transport(self.transport_config())

    def test_connection(self) -> tuple[bool, str]:
        """Reach the backend, and leave nothing there; what was found, redacted."""
        try:
            config = self.transport_config()
        except SettingError as error:
            return False, redact(str(error))
        return probe(config)

    @cached_property
    def _fields(self) -> ConnectionFields:
        return connection_fields(self.openlineage_conn_id)
