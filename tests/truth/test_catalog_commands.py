"""Each command of a real program that changes a table is one change of the catalog, with what it changed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

# Tests are no package.
sys.path.insert(0, str(Path(__file__).parent))
merged_recording = importlib.import_module("truth_recording").merged_recording

pytestmark = pytest.mark.shares("recordings")
JOB = "catalog_commands"
# Of a change, what it changed besides the schema: keys of the facet's entries.
CONTENT = ("columns", "properties", "unsetProperties", "partitions", "repair", "partitionedBy")


def changed(home: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        ("CREATE", "shop", {}),
        ("CREATE", "shop.orders", {"partitionedBy": ["day"]}),
        ("ALTER", "shop.orders", {"properties": {"team": "sales", "tier": "1"}}),
        ("ALTER", "shop.orders", {"unsetProperties": ["team", "tier"]}),
        ("ALTER", "shop.orders", {"columns": [{"new": {"name": "tax", "type": "decimal(10,2)"}}]}),
        ("ALTER", "shop.orders", {"partitions": [{"new": "day=d1"}, {"new": "day=d2", "location": f"{home}/late"}]}),
        ("ALTER", "shop.orders", {"partitions": [{"old": "day=d1"}, {"old": "day=d2"}]}),
        ("ALTER", "shop.orders", {"partitions": [{"old": "day=d0", "new": "day=d9"}]}),
        ("ALTER", "shop.orders", {"partitions": [{"old": "day=d9", "new": "day=d9", "location": f"{home}/nine"}]}),
        ("ALTER", "shop.orders", {"repair": "ADD"}),
        ("ALTER", "shop.orders", {"repair": "SYNC"}),
        ("ALTER", "shop.orders", {"properties": {"comment": "one row an order"}}),
        ("CREATE", "shop.plain", {}),
        ("ALTER", "shop.plain", {"properties": {"location": f"{home}/elsewhere"}}),
        ("CREATE", "shop.loaded", {}),
        ("CREATE", "shop.ids", {"properties": {"team": "sales"}}),
        ("ALTER", "shop.ids", {"unsetProperties": ["team"]}),
        ("DROP", "shop.missing", {}),
        ("DROP", "default.missing", {}),
        ("DROP", "shop.plain", {}),
    ]


@pytest.mark.parametrize("evidence", ["all", "event_log"])
def test_each_command_is_one_change_with_its_content_and_its_catalog(evidence: str) -> None:
    application, event = merged_recording(JOB, "4.2", evidence)
    changes = event["run"]["facets"]["sparkLineage_catalogChanges"]["changes"]
    # LOAD DATA changes what is in a table; only a log names its OVERWRITE.
    changes = [one for one in changes if one["change"] != "OVERWRITE"]
    assert [
        (one["change"], one["objectName"], {key: one[key] for key in CONTENT if key in one}) for one in changes
    ] == changed(str(application.work))
    assert {one["catalog"] for one in changes} == {"spark_catalog"}


@pytest.mark.parametrize("evidence", ["all", "event_log"])
def test_table_that_may_have_been_missing_has_no_path(evidence: str) -> None:
    _, event = merged_recording(JOB, "4.2", evidence)
    changes = event["run"]["facets"]["sparkLineage_catalogChanges"]["changes"]
    dropped = [one for one in changes if "missing" in one["objectName"]]
    assert [(one["namespace"], one["name"], one["isCertain"]) for one in dropped] == [
        ("spark_catalog", "shop.missing", False),
        ("spark_catalog", "default.missing", False),
    ]


# Change, name, where the listener's event has it, where a log alone has it, whether it is certain, and ignored.
PLACES: list[tuple[str, str, str, str, bool, bool | None]] = [
    ("DROP", "old.apart", "old.apart", "old.apart", True, False),
    ("DROP", "old.plain", "old.plain", "old.plain", True, False),
    ("CREATE", "shop", "shop", "shop", True, False),
    ("CREATE", "shop.made", "{home}/warehouse/shop.db/made", "{home}/warehouse/shop.db/made", True, False),
    ("CREATE", "shop.placed", "shop.placed", "shop.placed", True, False),
    ("DROP", "shop.made", "{home}/warehouse/shop.db/made", "{home}/warehouse/shop.db/made", True, False),
    ("DROP", "shop.placed", "shop.placed", "shop.placed", True, False),
    ("DROP", "shop", "shop", "shop", True, False),
    ("CREATE", "default.apart", "default.apart", "default.apart", True, False),
    ("DROP", "default.apart", "default.apart", "default.apart", True, False),
    ("CREATE", "default.filled", "{home}/filled", "{home}/filled", True, False),
    ("DROP", "default.filled", "{home}/filled", "{home}/filled", True, False),
    ("CREATE", "default.moved", "{home}/warehouse/moved", "default.moved", True, False),
    ("ALTER", "default.moved", "{home}/moved", "default.moved", True, False),
    ("DROP", "default.moved", "{home}/moved", "default.moved", True, False),
    ("CREATE", "default.moved", "{home}/warehouse/moved", "default.moved", True, False),
    ("ALTER", "default.moved", "{home}/again", "default.moved", True, False),
    ("DROP", "default.moved", "{home}/again", "default.moved", True, False),
    ("CREATE", "default.days", "{home}/warehouse/days", "default.days", True, False),
    # A comment, a column, a partition.
    *[("ALTER", "default.days", "{home}/warehouse/days", "default.days", True, False)] * 3,
    # ADD IF NOT EXISTS and DROP IF EXISTS of a partition.
    *[("ALTER", "default.days", "{home}/warehouse/days", "default.days", False, None)] * 2,
    ("ALTER", "default.days", "{home}/warehouse/days", "default.days", True, False),
    ("ALTER", "default.days", "{home}/warehouse/days", "default.days", False, None),
    ("CREATE", "default.copied", "{home}/warehouse/copied", "default.copied", True, False),
    ("CREATE", "default.copied", "{home}/warehouse/copied", "default.copied", False, True),
    ("CREATE", "passing", "passing", "passing", True, False),
    ("DROP", "passing", "passing", "passing", True, False),
    ("DROP", "passing", "passing", "passing", False, True),
]


@pytest.mark.parametrize("evidence", ["all", "event_log"])
def test_no_place_and_no_drop_is_made_up(evidence: str) -> None:
    application, event = merged_recording("catalog_places", "4.2", evidence)
    changes = event["run"]["facets"]["sparkLineage_catalogChanges"]["changes"]
    assert [
        (one["change"], one["objectName"], one["namespace"], one["name"], one["isCertain"], one.get("isIgnored"))
        for one in changes
    ] == [
        (change, name, "file" if "/" in place else "spark_catalog", place, certain, ignored)
        for change, name, listened, logged, certain, ignored in PLACES
        for place in [(logged if evidence == "event_log" else listened).format(home=application.work)]
    ]


NUMBER = {"name": "number"}
PLAIN: list[tuple[str, str, dict[str, Any]]] = [
    ("ALTER", "shop.plain", {"properties": {"team": "sales", "tier": "1"}}),
    ("ALTER", "shop.plain", {"unsetProperties": ["team", "tier"]}),
    # Spark logs no comment of a column, and no place.
    ("ALTER", "shop.plain", {"columns": [{"old": {"name": "id"}, "new": {"name": "id"}}]}),
    (
        "ALTER",
        "shop.plain",
        {
            "columns": [
                {"new": {"name": "at.z", "type": "int"}},
                {"new": {"name": "part", "type": "struct<a: INT, b: STRING>"}},
            ]
        },
    ),
    ("ALTER", "shop.plain", {"columns": [{"old": {"name": "at.x"}, "new": {"name": "at.lon"}}]}),
    ("ALTER", "shop.plain", {"columns": [{"old": {"name": "id"}, "new": NUMBER}]}),
    ("ALTER", "shop.plain", {"columns": [{"old": NUMBER, "new": NUMBER}]}),
    ("ALTER", "shop.plain", {"columns": [{"old": {"name": "at.y"}}]}),
    ("ALTER", "shop.plain", {"columns": [{"old": {"name": "part"}}]}),
    # DROP COLUMN IF EXISTS of a missing one.
    ("ALTER", "shop.plain", {}),
    ("ALTER", "shop.plain", {"unsetProperties": ["team"]}),
]


def content_of(job: str, evidence: str) -> list[tuple[str, str, dict[str, Any]]]:
    _, event = merged_recording(job, "4.2", evidence)
    changes = event["run"]["facets"]["sparkLineage_catalogChanges"]["changes"]
    keys = (*CONTENT, "previousObjectName")
    return [(one["change"], one["objectName"], {key: one[key] for key in keys if key in one}) for one in changes]


@pytest.mark.parametrize("evidence", ["all", "event_log"])
def test_changes_of_a_delta_table_have_their_content(evidence: str) -> None:
    changes = content_of("delta_changes", evidence=evidence)
    assert changes == [
        ("CREATE", "shop", {}),
        ("CREATE", "shop.a", {}),
        ("RENAME", "shop.b", {"previousObjectName": "shop.a"}),
        ("CREATE", "shop.gone", {}),
        ("RENAME", "shop.away", {"previousObjectName": "shop.gone"}),
        ("DROP", "shop.away", {}),
        ("CREATE", "shop.apart", {}),
        ("RENAME", "shop.elsewhere", {"previousObjectName": "shop.apart"}),
        ("DROP", "shop.elsewhere", {}),
        ("CREATE", "shop.plain", {"properties": {"delta.columnMapping.mode": "name"}}),
        *PLAIN,
    ]


@pytest.mark.parametrize("evidence", ["all", "event_log"])
def test_changes_in_a_database_that_is_a_catalog_have_its_name_and_their_content(evidence: str) -> None:
    assert content_of("catalog_of_database", evidence=evidence) == [
        ("CREATE", "S 1", {}),
        ("CREATE", "S 1.orders", {}),
        ("CREATE", "S 1.orders", {}),
        ("ALTER", "S 1.orders", {"columns": [{"new": {"name": "tax", "type": "int"}}]}),
        ("ALTER", "S 1.orders", {"columns": [{"old": {"name": "c.d"}, "new": {"name": "e = f"}}]}),
        ("ALTER", "S 1.orders", {"columns": [{"old": {"name": "tax"}}]}),
        ("CREATE", "S 1.made", {}),
        ("RENAME", "S 1.named", {"previousObjectName": "S 1.made"}),
        ("DROP", "S 1.named", {}),
        ("DROP", "S 1.named", {}),
        ("DROP", "S 1.orders", {}),
        ("DROP", "S 1", {}),
    ]
    _, event = merged_recording("catalog_of_database", "4.2", evidence)
    changes = event["run"]["facets"]["sparkLineage_catalogChanges"]["changes"]
    assert {one["catalog"] for one in changes} == {"the db"}
    assert [(one["name"], one["type"]) for one in changes[1]["schema"]] == [
        ("a b", "integer"),
        ("c.d", "string"),
        ("price", "decimal(10,2)"),
        ("at", "timestamp"),
    ]


@pytest.mark.parametrize("evidence", ["all", "event_log"])
def test_changed_columns_of_a_table_of_spark_have_their_names_types_and_fields(evidence: str) -> None:
    changes = content_of("catalog_places", evidence=evidence)
    fields = [
        {"name": "x", "type": "integer"},
        {
            "name": "y",
            "type": "array",
            "fields": [{"name": "_element", "type": "struct", "fields": [{"name": "z", "type": "string"}]}],
        },
    ]
    assert [each for _, name, content in changes if name == "default.days" for each in content.get("columns", ())] == [
        {"old": {"name": "id"}, "new": {"name": "id", "type": "integer"}},
        {"new": {"name": "at", "type": "struct", "fields": fields}},
    ]
