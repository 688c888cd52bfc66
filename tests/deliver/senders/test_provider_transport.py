"""Which configurations lead to the same backend."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.deliver.connections import backends_of

MARQUEZ = {"type": "http", "url": "http://marquez:5000"}


@pytest.mark.parametrize(
    "same",
    [
        {"type": "async_http", "url": "http://marquez:5000/", "endpoint": "api/v1/lineage"},
        {"type": "http", "url": "http://user:secret@MARQUEZ:5000", "auth": {"type": "api_key", "apiKey": "k"}},
        {"type": "outbox.Transport", "transport": MARQUEZ, "directory": "/d"},
        {"type": "composite", "transports": {"one": MARQUEZ}},
        {"type": "composite", "transports": [MARQUEZ]},
    ],
)
def test_the_same(same: dict[str, Any]) -> None:
    assert backends_of(same) == backends_of(MARQUEZ) == {"marquez:5000/api/v1/lineage"}


@pytest.mark.parametrize(
    "other",
    [
        {"type": "http", "url": "http://marquez:5001"},
        {"type": "http", "url": "http://other:5000"},
        {"type": "http", "url": "http://marquez:5000", "endpoint": "v2/lineage"},
        {"type": "http", "url": "http://marquez:port"},
        {"type": "http"},
        {"type": "console"},
        {"type": "composite", "transports": "nonsense"},
        {},
    ],
)
def test_others(other: dict[str, Any]) -> None:
    assert not backends_of(other) & backends_of(MARQUEZ)


def test_kafka_is_told_by_any_of_its_brokers_and_the_topic() -> None:
    def kafka(servers: str, topic: str = "lineage") -> frozenset[str]:
        return backends_of({"type": "kafka", "topic": topic, "config": {"bootstrap.servers": servers}})

    assert kafka("a:9092,b:9092") & kafka("B:9092")
    assert not kafka("a:9092") & kafka("b:9092")
    assert not kafka("a:9092") & kafka("a:9092", "other")


def test_files() -> None:
    assert backends_of({"type": "file", "log_file_path": "/a/b"}) == {"file:/a/b"}
