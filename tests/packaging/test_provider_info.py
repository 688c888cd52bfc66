"""What the provider tells Airflow agrees with Airflow's own schema, with the package, and with the documentation."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import Field, fields
from importlib.metadata import distribution
from inspect import signature
from pathlib import Path

import jsonschema
import pytest

from spark_lineage.operators.lineage_operator import LineageOperator
from spark_lineage.provider_info import get_provider_info
from spark_lineage.settings import ARGUMENTS, Settings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONS = get_provider_info()["config"]["spark_lineage"]["options"]


def test_agrees_with_the_schema_of_airflow() -> None:
    schema = distribution("apache-airflow-core").locate_file("airflow/provider_info.schema.json")

    jsonschema.validate(get_provider_info(), json.loads(schema.read_text(encoding="utf-8")))


def test_agrees_with_the_project() -> None:
    info = get_provider_info()

    assert info["package-name"] == PROJECT["name"]
    assert info["versions"][0] == PROJECT["version"]


def test_provider_info_names_every_module_of_an_operator_hook_sensor_or_trigger() -> None:
    ends = {"operators": "Operator", "hooks": "Hook", "sensors": "Sensor", "triggers": "Trigger"}
    # What others derive from.
    bases = {"lineage_aws", "lineage_operator", "lineage_service"}
    found: dict[str, set[str]] = {kind: set() for kind in ends}
    for root in (ROOT / name for name in ("provider", "operators", "listeners")):
        for path in root.rglob("*.py"):
            classes = re.findall(r"^class ([A-Z]\w+)\(", path.read_text(), re.MULTILINE)
            for kind, end in ends.items():
                if path.stem not in bases and any(name.endswith(end) for name in classes):
                    found[kind].add(".".join(path.relative_to(root).with_suffix("").parts))
    info = get_provider_info()
    assert {kind: {module for group in info[kind] for module in group["python-modules"]} for kind in ends} == found


def test_options_are_the_settings_with_their_defaults() -> None:
    # The naming reads its options itself, and only the one without a label can be declared; so do listeners.
    others = {"resolvers", "ndjson_listener_path", "extra_names_code"}
    assert set(OPTIONS) == {setting.name for setting in fields(Settings)} | others
    assert Settings.resolve({}, {}, lambda name: OPTIONS[name]["default"]) == Settings()


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_described(name: str) -> None:
    option = OPTIONS[name]

    assert option["description"].strip().endswith(".")
    assert option["example"] is not None
    assert isinstance(option["default"], str)
    assert "{" not in option["default"], "Airflow 2.11 formats it, and no command of airflow would start"
    assert f"`{name}`" in (ROOT / "docs" / "configuration.md").read_text()


def test_the_operator_has_an_argument_for_each_setting_that_may_be_one() -> None:
    parameters = signature(LineageOperator).parameters
    own = [name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY and one.default is None]

    assert sorted(own) == sorted(ARGUMENTS)
    assert all(f":param {name}:" in (LineageOperator.__doc__ or "") for name in ARGUMENTS)


@pytest.mark.parametrize("one", fields(Settings), ids=lambda one: one.name)
def test_the_documentation_has_type_default_and_description_of_each_setting(one: Field[object]) -> None:
    kind, default = OPTIONS[one.name]["type"], OPTIONS[one.name]["default"]
    shown = f"`{default}`" if default else "empty"
    argument = ", argument" if one.name in ARGUMENTS else ""
    first = re.split(r"(?<=\.)\s", one.metadata["description"])[0].replace("``", "`")
    documented = (ROOT / "docs" / "configuration.md").read_text()

    assert f"### `{one.name}` *{kind}, {shown}{argument}.* {first} " in " ".join(documented.split())
