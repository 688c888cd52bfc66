"""The environment of ``make clouds``: the clients of the clouds, and what stands in for their services."""

from __future__ import annotations

import importlib

import pytest

pytestmark = pytest.mark.clouds


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    ["moto.server", "s3fs", "airflow.providers.amazon", "airflow.providers.databricks", "airflow.providers.google"],
)
def test_environment_has_what_the_tests_need(name: str) -> None:
    assert importlib.import_module(name)
