"""The forms of our connection types for Airflow before 3.2, which asks the hook for them; made of the same fields."""

from __future__ import annotations

from typing import Any

from spark_lineage.deliver.hooks.connection_types import connection_types


def form_widgets(conn_type: str) -> dict[str, Any]:
    """Return the fields of the extra, as WTForms has them.

    :raises ImportError: without WTForms; Airflow that asks has it
    """
    from importlib import import_module

    # Not import statements: Airflow 3 has neither.
    wtforms, babel = import_module("wtforms"), import_module("flask_babel")
    widgets: dict[str, Any] = {}
    for name, field in _declared(conn_type)["conn-fields"].items():
        # The old form knows text only where ours has numbers and objects; both are read from text as well. It has no
        # sections either.
        label = ": ".join(filter(None, (field["schema"].get("section"), field["label"])))
        widgets[name] = wtforms.StringField(babel.lazy_gettext(label), description=_described(field))
    return widgets


def _described(field: dict[str, Any]) -> str:
    choices = ", ".join(filter(None, field["schema"].get("enum", ())))
    unset = field["schema"].get("values_display", {}).get("null")
    return f"{field['description']} One of {choices}; {unset}." if choices else str(field["description"])


def field_behaviour(conn_type: str) -> dict[str, Any]:
    """Return how the fields that every connection has are shown."""
    behaviour = _declared(conn_type)["ui-field-behaviour"]
    return {key.replace("-", "_"): value for key, value in behaviour.items()}


def _declared(conn_type: str) -> dict[str, Any]:
    return next(each for each in connection_types() if each["connection-type"] == conn_type)
