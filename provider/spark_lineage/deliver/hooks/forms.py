"""What our hooks share: the fields of their connection, and its form for Airflow before 3.2, which asks the hook."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook

from spark_lineage.deliver.hooks.connection_types import connection_types
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.opening import connection_fields


class FormHook(BaseHook):
    """A hook whose connection type is declared in ``connection_types``."""

    conn_name_attr: str
    conn_type: str

    @cached_property
    def fields(self) -> ConnectionFields:
        """The fields of the connection, read once.

        :raises SettingError: when the connection is not there, or does not fit
        """
        return connection_fields(getattr(self, self.conn_name_attr), self.conn_type)

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Return the fields of the extra, as WTForms has them.

        :raises ImportError: without WTForms; Airflow that asks has it
        """
        # Not import statements: Airflow 3 has neither.
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
        return next(each for each in connection_types() if each["connection-type"] == cls.conn_type)
