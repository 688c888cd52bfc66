"""The hook of connections of type ``openlineage``, and what it shares with our other hooks."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook

from spark_lineage.deliver.connection_types import connection_types
from spark_lineage.deliver.connections import (
    CONN_TYPE,
    ConnectionFields,
    connection_fields,
    mask_config,
    namespace_of,
    probe,
    transport_config,
)
from spark_lineage.deliver.sender import Sender, sender_of
from spark_lineage.launch.log import escaped
from spark_lineage.secrets.redaction import clean_errors, redact
from spark_lineage.settings import SettingError


class FormHook(BaseHook):
    """A hook whose connection type is declared in ``connection_types``; Airflow before 3.2 asks it for its form.

    What reads the connection raises ``SettingError`` when it is not there, or does not fit.
    """

    conn_name_attr: str
    conn_type: str

    @cached_property
    def fields(self) -> ConnectionFields:
        """The fields of the connection, read once."""
        return connection_fields(getattr(self, self.conn_name_attr), self.conn_type)

    def test_connection(self) -> tuple[bool, str]:
        """Reach the backend, and leave nothing there; what was found, redacted."""
        try:
            is_good, text = self._tested()
        except SettingError as error:
            is_good, text = False, str(error)
        return is_good, escaped(redact(text))

    def _tested(self) -> tuple[bool, str]:
        raise NotImplementedError

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Return the fields of the extra, as WTForms has them."""
        # Not import statements: Airflow 3 has neither, and does not ask.
        wtforms, babel = import_module("wtforms"), import_module("flask_babel")
        widgets: dict[str, Any] = {}
        for name, field in cls._declared()["conn-fields"].items():
            schema, description = field["schema"], field["description"]
            if choices := ", ".join(filter(None, schema.get("enum", ()))):
                description = f"{description} One of {choices}; {schema['values_display']['null']}."
            # The old form has no sections, and knows text only; numbers and objects are read from text as well.
            label = ": ".join(filter(None, (schema.get("section"), field["label"])))
            widgets[name] = wtforms.StringField(babel.lazy_gettext(label), description=description)
        return widgets

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return how the fields that every connection has are shown."""
        return {key.replace("-", "_"): value for key, value in cls._declared()["ui-field-behaviour"].items()}

    @classmethod
    def _declared(cls) -> dict[str, Any]:
        return next(form for form in connection_types() if form["connection-type"] == cls.conn_type)


class OpenLineageHook(FormHook):
    """Any OpenLineage backend: over HTTP, Kafka, into a file, to the log, or several at once."""

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
        """Return the configuration of the transport, as openlineage-python takes it, secrets included."""
        return mask_config(transport_config(self.fields))

    @clean_errors()
    def get_conn(self) -> Sender:
        """Return what sends events: ``send(Outgoing.of(json))`` returns when the backend has taken one, else raises.

        :raises SettingError: also for a connection of kind ``composite``
        """
        return sender_of(self.transport_config())

    def _tested(self) -> tuple[bool, str]:
        return probe(self.transport_config())


def hook_of(conn_id: str) -> FormHook:
    """Return the hook of a connection of one of our types; errors are those of its ``fields``."""
    classes = {form["connection-type"]: form["hook-class-name"] for form in connection_types()}
    hook: FormHook = resolve_name(classes[connection_fields(conn_id, *classes).conn_type])(conn_id)
    return hook
