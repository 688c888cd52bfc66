"""Tables that a real program saves, by what it can know of them: whether it made them, and where they are."""

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


@pytest.fixture(scope="module")
def saved() -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """Return where the program ran, and its changes of the catalog by the objects that they are about."""
    application, event = merged_recording("catalog_saves", "4.2")
    changes: dict[str, list[dict[str, Any]]] = {}
    for change in event["run"]["facets"]["sparkLineage_catalogChanges"]["changes"]:
        changes.setdefault(change["objectName"], []).append(change)
    return str(application.work), changes


def test_save_is_a_create_of_a_table_that_was_not_there(saved: Any) -> None:
    _, changes = saved
    made = {name: (one["change"], one["isCertain"]) for name, (one, *_) in changes.items() if "default." in name}
    assert made.items() >= {
        ("default.new_appended", ("CREATE", True)),
        ("default.new_saved", ("CREATE", True)),
        # Spark drops it, if it is there, and makes it.
        ("default.old_overwritten", ("CREATE", False)),
    }
    assert "default.old_appended" not in made


def test_each_change_of_sparks_own_catalog_names_it(saved: Any) -> None:
    _, changes = saved
    assert {one.get("catalog") for each in changes.values() for one in each} == {"spark_catalog"}


def test_table_that_is_made_of_files_has_its_columns_and_its_place(saved: Any) -> None:
    home, changes = saved
    (made,) = changes["default.of_files"]
    assert (made["namespace"], made["name"]) == ("file", f"{home}/placed")
    assert made["schema"] == [{"name": "id", "type": "long", "description": "key"}]


def test_view_with_named_columns_has_its_own_properties(saved: Any) -> None:
    _, changes = saved
    assert [one["properties"] for one in changes["default.named"]] == [{"comment": "one", "team": "sales"}]


def test_tables_go_with_a_database_in_a_place_of_its_own(saved: Any) -> None:
    home, changes = saved
    for name in ("empty", "filled"):
        assert [(one["change"], one["name"]) for one in changes[f"placed_db.{name}"]] == [
            ("CREATE", f"{home}/elsewhere/{name}"),
            ("DROP", f"{home}/elsewhere/{name}"),
        ]
    assert [(one["change"], one.get("unsetProperties")) for one in changes["placed_db"]] == [
        ("CREATE", None),
        ("ALTER", None),
        ("ALTER", ["team", "tier"]),
        ("DROP", None),
    ]
