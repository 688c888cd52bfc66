"""Which types are made, updated, and left alone."""

from __future__ import annotations

from typing import Any

from spark_lineage.atlas.types import COLUMN_LINEAGE, DEFINITIONS, TASK, VERSION, left_alone, to_make, to_update

NAMES = {each["name"] for each in DEFINITIONS["entityDefs"]}


def present(**versions: str) -> dict[str, list[dict[str, Any]]]:
    """Atlas's own model, with types in these versions and attributes of their own."""
    own = {"name": "remoteUser", "typeName": "string", "isOptional": True}
    return {
        "entityDefs": [
            {"name": name, "superTypes": ["Process"], "typeVersion": version, "attributeDefs": [own], "guid": "g"}
            for name, version in versions.items()
        ]
    }


def test_what_is_missing_is_made() -> None:
    assert to_make({}) == DEFINITIONS
    missing = to_make(present(**{TASK: "1.0", COLUMN_LINEAGE: "1.0"}))
    assert {each["name"] for each in missing["entityDefs"]} == NAMES - {TASK, COLUMN_LINEAGE}
    assert missing["relationshipDefs"] == DEFINITIONS["relationshipDefs"]
    assert to_make(DEFINITIONS) == {"entityDefs": [], "relationshipDefs": []}


def test_an_older_type_keeps_what_it_has() -> None:
    (update,) = to_update(present(**{TASK: "1.0"}))
    names = [each["name"] for each in update["attributeDefs"]]
    assert names[0] == "remoteUser"
    assert {"dagId", "state"} <= set(names)
    assert (update["typeVersion"], update["guid"]) == (VERSION, "g")
    (update,) = to_update(present(**{TASK: "bad"}))
    assert update["typeVersion"] == VERSION


def test_a_newer_type_is_left_alone() -> None:
    newer = present(**{TASK: "1.10", COLUMN_LINEAGE: VERSION})
    assert to_update(newer) == []
    assert left_alone(newer) == [TASK]
