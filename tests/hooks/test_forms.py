"""What Airflow makes of our connection types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from importlib.metadata import distribution

import jsonschema
import pytest

from spark_lineage.connection_types import connection_types
from spark_lineage.emit.transports.config import _KEYS as OPENLINEAGE_KEYS
from spark_lineage.hooks.atlas import _KEYS as ATLAS_KEYS
from spark_lineage.hooks.atlas import AtlasHook
from spark_lineage.hooks.openlineage import OpenLineageHook

TYPES = {each["connection-type"]: each for each in connection_types()}
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


@pytest.mark.parametrize(("name", "known"), [("openlineage", OPENLINEAGE_KEYS), ("atlas", ATLAS_KEYS)])
def test_the_fields_of_the_form_are_read(name, known):
    assert set(TYPES[name]["conn-fields"]) <= known


def test_airflow_has_the_forms(tmp_path):
    program = """
import json
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
found = {each.connection_type: each for each in HookMetaService.hook_meta_data()}
print(json.dumps({name: [found[name].hook_name, list(found[name].extra_fields)] for name in ("openlineage", "atlas")}))
"""
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {name: [each["hook-name"], list(each["conn-fields"])] for name, each in TYPES.items()}


def test_airflow_tests_a_connection_by_its_uri(tmp_path):
    """As its API does: the connection is put into the environment as a URI, and the hook is found by the type."""
    program = """
import os
from airflow.models.connection import Connection
given = Connection(conn_id="it", conn_type="openlineage", extra='{"kind": "console", "namespace": "n"}')
os.environ["AIRFLOW_CONN_IT"] = given.get_uri()
print(given.test_connection())
"""
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
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
    assert HOOKS[name].get_connection_form_widgets() == {
        key: (field["label"], field["description"]) for key, field in fields.items()
    }
    assert set(HOOKS[name].get_ui_field_behaviour()) == {"hidden_fields", "relabeling", "placeholders"}
