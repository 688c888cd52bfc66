"""What the event log lacks of a lineage that it made together with the listener."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.lineage import SchemaField, Statistics, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.merge.task import lacking_in_log
from spark_lineage.naming.identity import DatasetName

READ, WRITTEN = DatasetName("file", "/a"), DatasetName("file", "/b")
EDGE = ("id", READ, "id", Transformation("DIRECT", "IDENTITY"))
LOGGED = {
    "inputs": (Observed(READ, schema=(SchemaField("id"),)),),
    "outputs": (
        Observed(WRITTEN, schema=(SchemaField("id"),), edges=frozenset({EDGE}), statistics=Statistics(1, 10, 1)),
    ),
}


def lacking(program: Any, make_dataset: Any, *, foreign: bool = False, lifecycle: Any = None, **logged: Any) -> str:
    """Return what a log lacks beside a listener that saw all, with the types of columns and one that was not read."""
    written = make_dataset("/b", rows=1, edges={"id": ("/a", "id")}, lifecycle=lifecycle)
    run_id = program.run([make_dataset("/a", columns=("id", "other"))], [written])
    if foreign:
        program.events[-1]["run"]["facets"]["ours"] = {"_producer": "p", "_schemaURL": "s", "is": 1}
    program.log(run_id, command="InsertIntoHadoopFsRelationCommand", has_jobs=True, is_whole=True, **(LOGGED | logged))
    state = program.state()
    return lacking_in_log(state, program.lineage())


def test_log_without_types_and_without_unread_columns_is_enough(program: Any, make_dataset: Any) -> None:
    assert not lacking(program, make_dataset)


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "no rows": ({"outputs": (Observed(WRITTEN, schema=(SchemaField("id"),), edges=frozenset({EDGE})),)}, "outputs"),
    "another column": ({"inputs": (Observed(READ, schema=(SchemaField("new"),)),)}, "inputs"),
    "something unread": ({"unread": ("Scan ExistingRDD",)}, "what it counts"),
    "no change of its life": ({"lifecycle": "CREATE"}, "outputs"),
    "a facet of another tool": ({"foreign": True}, "foreign"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_log_that_says_less_is_not(name: str, program: Any, make_dataset: Any) -> None:
    logged, reason = OTHERS[name]
    assert reason in lacking(program, make_dataset, **logged)
