"""A real program on Kafka: each topic is a dataset with columns, and what no evidence names is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.cli import main
from spark_lineage.launch.line import LineDecoder
from spark_lineage.merge.lineage import Subscription
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.plans.event_log import read_event_log

FIXTURES = Path(__file__).parents[1] / "fixtures"
EVENTS, LOG = FIXTURES / "kafka" / "events.ndjson", FIXTURES / "kafka" / "log.zstd"
BROKER = "kafka://broker:9092"
BOTH = {
    "assigned": ["* < refunds.topic", "topic < refunds.topic"],
    "bodies": [
        *(f"* < {topic}.key" for topic in ("orders", "refunds")),
        *(f"body < {topic}.value" for topic in ("orders", "refunds")),
        *(f"timestamp < {topic}.timestamp" for topic in ("orders", "refunds")),
        *(f"topic < {topic}.topic" for topic in ("orders", "refunds")),
    ],
    # Streams subscribe to patterns, and to two topics that they join.
    "kept": [
        *(f"topic < {topic}.topic" for topic in ("refunds", "returns")),
        *(f"v < {topic}.value" for topic in ("refunds", "returns")),
    ],
    "keys": ["headers < orders.headers", "k < orders.key", "offset < orders.offset"],
    "loud": ["key < orders.key", "value < orders.value"],
    # A batch subscribes to a pattern.
    "matched": [],
    "pairs": ["* < orders.key", "* < refunds.key", "k < orders.key", "o < orders.value", "r < refunds.value"],
    "parts": ["partition < refunds.partition", "v < refunds.value"],
    "shouted": ["key < orders.key", "value < orders.value"],
}


@pytest.fixture
def merged(tmp_path: Path) -> Any:
    def merge(*evidence: str) -> dict[str, Any]:
        path = tmp_path / "merged.json"
        assert main(["merge", *evidence, "--exit-code", "0", "--output", str(path)]) == 0
        event: dict[str, Any] = json.loads(path.read_bytes())
        return event

    return merge


def edges(output: dict[str, Any]) -> list[str]:
    lineage = output["facets"].get("columnLineage", {})
    fields = {name: made["inputFields"] for name, made in lineage.get("fields", {}).items()}
    found = [*fields.items(), ("*", lineage.get("dataset", []))]
    return sorted({f"{column} < {source['name']}.{source['field']}" for column, sources in found for source in sources})


def counts(event: dict[str, Any]) -> dict[str, int]:
    facets = event["run"]["facets"]
    parts = facets.get("sparkLineage_unreadPlans", {}).get("parts", [])
    commands = facets.get("sparkLineage_unknownDatasets", {}).get("commands", [])
    return {each.get("name") or each["command"].rpartition(".")[2]: each["count"] for each in (*parts, *commands)}


def test_topics_have_the_names_of_the_listener_and_the_columns_of_the_log(merged: Any) -> None:
    event = merged(str(EVENTS), "--event-log", str(LOG))
    assert [(one["namespace"], one["name"]) for one in event["inputs"]] == [
        (BROKER, topic) for topic in ("orders", "refunds", "returns")
    ]
    outputs = {one["name"].rpartition("/")[2]: edges(one) for one in event["outputs"]}
    assert outputs == BOTH
    assert {one["name"] for one in event["outputs"] if one["namespace"] == BROKER} == {"loud", "shouted"}
    assert counts(event) == {"Kafka: the topics of a pattern": 1, "write_to_data_source_v2": 1}


def test_topics_without_brokers_are_counted_where_the_log_is_alone(merged: Any) -> None:
    event = merged("--event-log", str(LOG))
    assert event["inputs"] == []
    outputs = {one["name"].rpartition("/")[2]: edges(one) for one in event["outputs"]}
    assert outputs == {name: [] for name in BOTH if name != "shouted"}
    assert counts(event) == {
        "Kafka: the topics of a pattern": 1,
        "orders: its brokers": 8,
        "refunds: its brokers": 6,
        "returns: its brokers": 1,
        "execute_write_to_data_source_v2": 2,
    }


def test_the_listener_alone_has_topics_without_columns(merged: Any) -> None:
    event = merged(str(EVENTS))
    assert {one["name"] for one in event["inputs"]} == {"orders", "refunds", "returns"}


def test_inputs_name_their_pattern_and_their_first_offsets() -> None:
    state, decoder = LineageState(), LineDecoder()
    for line in EVENTS.read_bytes().splitlines():
        state.add(*decoder.decode(line))
    for execution in read_event_log(LOG):
        state.add_execution(execution)
    found = {one.dataset.name: one.subscription for one in task_lineage(state, "COMPLETE").inputs}
    assert found == {
        "orders": Subscription("", "earliest"),
        "refunds": Subscription("", "earliest"),
        # A new stream of a pattern.
        "returns": Subscription("re.*", ""),
    }
