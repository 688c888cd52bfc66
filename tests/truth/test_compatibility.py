"""The listener's events that OpenLineage's compatibility-tests have recorded elsewhere become one true event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.cli import main

FIXTURES = Path(__file__).parents[1] / "fixtures" / "compatibility"
WORDS = "bigquery-public-data.samples.shakespeare"


def merged(scenario: str, path: Path) -> dict[str, Any]:
    assert main(["merge", str(FIXTURES / f"{scenario}.ndjson"), "--exit-code", "0", "--output", str(path)]) == 0
    event: dict[str, Any] = json.loads(path.read_text())
    assert event["eventType"] == "COMPLETE"
    return event


def names(datasets: list[dict[str, Any]]) -> list[str]:
    """Return the last part of the path of each dataset."""
    return [one["name"].rpartition("/")[2] for one in datasets]


def edges(event: dict[str, Any], kind: str) -> set[tuple[str, str, str]]:
    """Return column, table and field of each edge of the only output."""
    (output,) = event["outputs"]
    return {
        (column, source["name"].rpartition("/")[2], source["field"])
        for column, each in output["facets"]["columnLineage"]["fields"].items()
        for source in each["inputFields"]
        if kind in {how["type"] for how in source["transformations"]}
    }


@pytest.mark.parametrize("shift", [0, 3])
def test_columns_of_their_query_are_those_of_its_text(tmp_path: Path, shift: int) -> None:
    lines = (FIXTURES / "column_lineage.ndjson").read_text().splitlines()
    (tmp_path / "events.ndjson").write_text("\n".join([*lines[shift:], *lines[:shift]]))
    main(["merge", str(tmp_path / "events.ndjson"), "--exit-code", "0", "--output", str(tmp_path / "event.json")])
    event = json.loads((tmp_path / "event.json").read_text())
    assert names(event["inputs"]) == ["cll_source1", "cll_source2"]
    assert names(event["outputs"]) == ["tbl1"]
    direct = {("ident", "cll_source1", "a"), ("trans", "cll_source1", "b"), ("agg", "cll_source2", "c")}
    assert edges(event, "DIRECT") == direct
    deciding = {("cll_source1", "a"), ("cll_source1", "b"), ("cll_source2", "a")}
    assert {each[1:] for each in edges(event, "INDIRECT")} == deciding


def test_table_of_bigquery_feeds_their_files(tmp_path: Path) -> None:
    event = merged("shakespeare", tmp_path / "event.json")
    assert [(one["namespace"], one["name"]) for one in event["inputs"]] == [("bigquery", WORDS)]
    assert names(event["outputs"]) == ["1729097570970"]
    assert edges(event, "DIRECT") == {("word", WORDS, "word"), ("sum(word_count)", WORDS, "word_count")}


def test_table_that_their_program_makes_and_reads_is_an_output(tmp_path: Path) -> None:
    event = merged("hive", tmp_path / "event.json")
    assert names(event["inputs"]) == []
    assert names(event["outputs"]) == ["t1", "t2"]
