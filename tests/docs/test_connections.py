"""The connections of the documentation are what they say: read by Airflow, as JSON and as URI, and by our hooks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from airflow.models.connection import Connection as CoreConnection
from airflow.sdk import Connection as SdkConnection

from spark_lineage.atlas.hook import AtlasHook
from spark_lineage.deliver.connection_types import ATLAS_KEYS, OPENLINEAGE_KEYS
from spark_lineage.deliver.connections import ConnectionFields, exchange_config
from spark_lineage.deliver.hooks import OpenLineageHook

PAGES = sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))
REFERENCE = Path(__file__).parents[2] / "docs" / "connections.md"
BLOCK = re.compile(r"^```sh connection\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(block["lines"].splitlines(), id=f"{page.name}:{text.count(chr(10), 0, block.start()) + 1}")
    for page in PAGES
    for text in [page.read_text()]
    for block in BLOCK.finditer(text)
]


def _assignment(line: str) -> tuple[str, str]:
    (word,) = shlex.split(line)
    name, _, value = word.partition("=")
    return name, value


def _meaning(conn_type: str, conn_id: str) -> object:
    if conn_type == "openlineage":
        hook = OpenLineageHook(conn_id)
        return hook.transport_config(), hook.namespace
    atlas = AtlasHook(conn_id)
    if atlas.kind == "kafka":
        return atlas.kafka_config()
    return atlas.url, exchange_config(atlas.fields)


@pytest.mark.parametrize("lines", BLOCKS)
def test_the_forms_of_an_example_are_one_connection(lines, monkeypatch):
    meanings = []
    for line in lines:
        name, value = _assignment(line)
        conn_id = name.removeprefix("AIRFLOW_CONN_").lower()
        monkeypatch.setenv(name, value)
        conn_type = re.match(r'(?:\{"conn_type": ")?(?P<type>\w+)', value)["type"]
        meanings.append(_meaning(conn_type, conn_id))
    assert all(meaning == meanings[0] for meaning in meanings)


@pytest.mark.parametrize("lines", BLOCKS)
def test_the_core_of_airflow_reads_the_same(lines):
    for line in lines:
        _, value = _assignment(line)
        found = [
            ConnectionFields.of(
                connection.from_json(value, conn_id="c")
                if value.startswith("{")
                else connection(conn_id="c", uri=value)
            )
            for connection in (CoreConnection, SdkConnection)
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("field", sorted(ATLAS_KEYS | OPENLINEAGE_KEYS))
def test_each_field_of_the_forms_is_described(field):
    assert f"`{field}`" in REFERENCE.read_text()


def test_the_documentation_has_examples():
    assert len(BLOCKS) > 10
