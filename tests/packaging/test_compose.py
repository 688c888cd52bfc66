"""The parts of ``compose.yaml`` find one another, and the documentation names the ports. No test here has Docker."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from spark_lineage.deliver.connections import ConnectionFields, transport_config
from spark_lineage.settings.places import Places

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
AIRFLOW: dict[str, str] = SERVICES["airflow"]["environment"]


def published(service: str) -> list[tuple[str, str, str]]:
    """Return address, port on the host and port in the container."""
    return [tuple(port.split(":")) for port in SERVICES[service].get("ports", [])]


def test_airflow_of_compose_sends_to_its_marquez() -> None:
    conn_id = json.loads(AIRFLOW["AIRFLOW__OPENLINEAGE__TRANSPORT"])["conn_id"]
    connection = json.loads(AIRFLOW[f"AIRFLOW_CONN_{conn_id.upper()}"])
    url = urlsplit(transport_config(ConnectionFields(conn_id, **connection))["url"])
    assert str(url.port) in [port for _, _, port in published(str(url.hostname))]
    web = SERVICES["marquez-web"]["environment"]
    assert (web["MARQUEZ_HOST"], web["MARQUEZ_PORT"]) == (url.hostname, str(url.port))
    assert SERVICES["marquez"]["environment"]["POSTGRES_HOST"] in SERVICES


def test_airflow_of_compose_submits_to_its_spark_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", AIRFLOW["AIRFLOW_CONN_SPARK_DEFAULT"])
    master = Places.of("spark_default", {}).master
    assert master == SERVICES["spark-worker"]["entrypoint"][-1]
    assert urlsplit(master).hostname in SERVICES["spark-master"]["entrypoint"]
    assert urlsplit(master).hostname in SERVICES


def test_ports_of_compose_are_on_the_loopback_and_documented() -> None:
    ports = [port for service in SERVICES for port in published(service)]
    document = (ROOT / "docs" / "installation.md").read_text()
    assert len(ports) > 3
    assert {address for address, _, _ in ports} == {"127.0.0.1"}
    assert [port for _, port, _ in ports if f"localhost:{port}" not in document] == []


def test_image_of_compose_has_the_tested_airflow_and_what_the_wheel_is_built_from() -> None:
    (airflow,) = re.findall(r"^apache-airflow==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    dockerfile = SERVICES["airflow"]["build"]["dockerfile_inline"]
    assert {f"apache/airflow:{airflow}-python3.11", f"apache-airflow=={airflow}"} <= set(dockerfile.split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    readme = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["fragments"]
    needed = {path.partition("/")[0] for path in wheel} | {one["path"] for one in readme} | {"pyproject.toml"}
    needed |= set(project["project"]["license-files"])
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == needed
