"""What a listener knows of a job before it runs: what the DAG declares, and what the last run did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
BATCH, STREAM = FIXTURES / "a_414.ndjson", FIXTURES / "e_414.ndjson"
NDJSON = "spark_lineage.listeners.ndjson_listener.NdjsonListener"
DECLARED = {"inlets": ["/in"], "outlets": ["/out"]}


def told(bench: Any, lineage: Path, **scenario: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return what came of a run, and the events of its job."""
    path: Path = bench.root / "told.ndjson"
    path.unlink(missing_ok=True)
    bench.connection["extra"] = {"ndjson_listener_path": str(path)}
    outcome = bench.run(lineage=[lineage], lineage_listeners=[NDJSON], **scenario)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return outcome, [one for one in events if one["event"] != "CatalogModificationEvent"]


def names(event: dict[str, Any], side: str) -> set[str]:
    return {one["dataset"]["name"] for one in event["lineage"][side]}


def test_inlets_and_outlets_are_inputs_and_outputs_of_a_job_that_is_created(bench: Any) -> None:
    _, (created, *_) = told(bench, BATCH, context=DECLARED)
    assert (names(created, "inputs"), names(created, "outputs")) == ({"/in"}, {"/out"})
    assert (created["lineage"]["attempted"], created["job_type"]) == ([], None)


def test_second_run_begins_with_the_datasets_and_the_type_of_the_first(bench: Any) -> None:
    first, _ = told(bench, BATCH)
    _, (created, *_, end) = told(bench, BATCH, context=DECLARED, task={"try_number": 2})
    assert names(created, "inputs") == {"/in", *first.names("inputs")}
    assert names(created, "outputs") == {"/out", *first.names("outputs")}
    assert any(one["schema"] for one in created["lineage"]["outputs"])
    assert (created["job_type"], end["job_type"]) == ("BATCH", "BATCH")


def test_type_of_a_run_is_its_own_in_the_end(bench: Any) -> None:
    told(bench, STREAM, exit_code=1)
    _, (created, *_, end) = told(bench, BATCH, task={"try_number": 2})
    assert (created["job_type"], end["job_type"]) == ("STREAMING", "BATCH")


@pytest.mark.parametrize("is_sql", [True, False])
def test_job_of_sql_is_a_batch_from_the_start(bench: Any, is_sql: bool) -> None:
    if is_sql:
        bench.operator = "lineage_spark_sql:LineageSparkSqlOperator"
        bench.application = {"sql": "CREATE TABLE a AS SELECT * FROM b"}
    _, (created, *_) = told(bench, BATCH)
    assert (created["job_type"], created["lineage"]) == ("BATCH" if is_sql else None, None)
