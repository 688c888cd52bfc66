"""What Airflow makes of our connection types."""

from __future__ import annotations

import json
import os
import sys
import types
from importlib.metadata import distribution

import jsonschema
import pytest

from spark_lineage.atlas.hook import AtlasHook
from spark_lineage.deliver.connection_types import connection_types
from spark_lineage.deliver.hooks import OpenLineageHook

TYPES = {each["connection-type"]: each for each in connection_types()}
KINDS = {"openlineage": "http, marquez, kafka, file, console, composite; http", "atlas": "rest, kafka; rest"}
HOOKS = {"openlineage": OpenLineageHook, "atlas": AtlasHook}


@pytest.mark.parametrize("name", TYPES)
def test_agrees_with_the_hook(name):
    declared, hook = TYPES[name], HOOKS[name]
    assert declared["hook-class-name"] == f"{hook.__module__}.{hook.__name__}"
    assert (declared["connection-type"], declared["hook-name"]) == (hook.conn_type, hook.hook_name)


@pytest.mark.parametrize("name", TYPES)
def test_agrees_with_the_schema_of_airflow(name):
    path = distribution("apache-airflow-core").locate_file("airflow/provider.yaml.schema.json")
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate([TYPES[name]], schema["properties"]["connection-types"])


@pytest.mark.parametrize("name", TYPES)
def test_choices_show_what_counts_without_one(name):
    """Airflow shows a choice of ``None`` by its entry in ``values_display``, else as the word ``null``."""
    schemas = {key: field["schema"] for key, field in TYPES[name]["conn-fields"].items()}
    choices = {key: schema for key, schema in schemas.items() if "enum" in schema}
    assert {"kind", "acks", "sasl_mechanism", "security_protocol"} <= set(choices)
    for key, schema in choices.items():
        assert schema["enum"][0] is None, key
        assert schema["values_display"]["null"] not in ("", "null"), key


@pytest.mark.parametrize("name", TYPES)
def test_fields_of_one_kind_stand_together(name):
    """A section of the form is where its first field is; Airflow before 3.2 has none, and says it with the label."""
    sections = {key: field["schema"].get("section", "") for key, field in TYPES[name]["conn-fields"].items()}
    in_order = list(sections.values())
    assert in_order == sorted(in_order, key=in_order.index)
    assert not sections["kind"]
    assert {sections[key] for key in ("topic", "acks", "sasl_mechanism", "security_protocol", "properties")} == {
        "Kafka"
    }
    assert "HTTP" in sections["headers"]
    labels = [field["label"] for field in TYPES[name]["conn-fields"].values()]
    assert not [label for label in labels if "Kafka" in label or "HTTP" in label]


def test_airflow_has_the_forms(tmp_path, warm_python):
    program = """
import json
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
found = {each.connection_type: each for each in HookMetaService.hook_meta_data()}
names = ("openlineage", "atlas")
shown = {name: {key: field["schema"] for key, field in found[name].extra_fields.items()} for name in names}
print(json.dumps({name: [found[name].hook_name, shown[name]] for name in names}))
"""
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    done = warm_python.run("-c", program, env=env)
    found = json.loads(done.stdout.splitlines()[-1])
    for name, each in TYPES.items():
        fields = {key: field["schema"] | {"title": field["label"]} for key, field in each["conn-fields"].items()}
        assert found[name] == [each["hook-name"], fields]
        assert list(found[name][1]) == list(fields)


def test_airflow_tests_a_connection_by_its_uri(tmp_path, warm_python):
    """As its API does: the connection is put into the environment as a URI, and the hook is found by the type."""
    program = """
import os
from airflow.models.connection import Connection
given = Connection(conn_id="it", conn_type="openlineage", extra='{"kind": "console", "namespace": "n"}')
os.environ["AIRFLOW_CONN_IT"] = given.get_uri()
print(given.test_connection())
"""
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    done = warm_python.run("-c", program, env=env)
    assert done.stdout.splitlines()[-1] == "(True, 'events go to the log of the task')"


@pytest.mark.parametrize("name", TYPES)
def test_airflow_before_3_2_asks_the_hook(name, monkeypatch):
    """WTForms is not installed with Airflow 3, and Airflow puts stand-ins in its place as here."""
    forms, babel = types.ModuleType("wtforms"), types.ModuleType("flask_babel")
    forms.StringField = lambda label, *, description: (label, description)
    babel.lazy_gettext = str
    monkeypatch.setitem(sys.modules, "wtforms", forms)
    monkeypatch.setitem(sys.modules, "flask_babel", babel)
    fields = TYPES[name]["conn-fields"]
    widgets = HOOKS[name].get_connection_form_widgets()
    assert list(widgets) == list(fields)
    assert widgets["kind"] == ("Kind", f"{fields['kind']['description']} One of {KINDS[name]} (default).")
    assert widgets["topic"] == ("Kafka: Topic", fields["topic"]["description"])
    assert set(HOOKS[name].get_ui_field_behaviour()) == {"hidden_fields", "relabeling", "placeholders"}
