"""What is declared of a program beside what Spark was seen to do, on made-up programs."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.lineage import TaskLineage

DAG = {"kind": "DECLARED", "types": ("START", "RUNNING")}
SPARK_PROGRAM = {"kind": "DECLARED", "types": ("START", "COMPLETE")}


def feeds(lineage: TaskLineage) -> dict[str, list[str]]:
    return {one.dataset.name: [name.name for name in one.fed_by] for one in lineage.outputs}


def rows(lineage: TaskLineage) -> dict[str, int | None]:
    return {one.dataset.name: one.statistics and one.statistics.row_count for one in lineage.outputs}


def columns(lineage: TaskLineage) -> dict[str, list[str]]:
    (written,) = lineage.outputs
    assert written.column_lineage is not None
    return {column: [source.field for source in sources] for column, sources in written.column_lineage.fields}


def test_a_program_adds_edges_to_what_spark_was_seen_to_write(program: Any, make_dataset: Any) -> None:
    program.run(["/a"], [make_dataset("/t", rows=3, edges={"x": ("/a", "x")})])
    program.run(["/b"], [make_dataset("/t", rows=99, edges={"y": ("/b", "y")})], **SPARK_PROGRAM)
    lineage = program.lineage()
    assert feeds(lineage) == {"/t": ["/a", "/b"]}
    assert columns(lineage) == {"x": ["x"], "y": ["y"]}
    assert rows(lineage) == {"/t": 3}


def test_what_is_declared_fills_what_spark_left_open(program: Any, make_dataset: Any) -> None:
    bare = make_dataset("/t", columns=())
    program.run(["/a"], [bare], node="execute_save_into_data_source_command")
    assert [one.name for one in program.lineage().unconfirmed] == ["/t"]
    program.run([], [make_dataset("/t", columns=("id",), rows=7)], **SPARK_PROGRAM)
    lineage = program.lineage()
    assert lineage.unconfirmed == ()
    assert [field.name for field in lineage.outputs[0].schema] == ["id"]


def test_inlets_feed_only_outlets_of_which_nobody_saw_what_feeds_them(program: Any, make_dataset: Any) -> None:
    program.run(["/a"], ["/t"])
    program.run([], ["/u"])
    program.run(["/b"], ["/t", "/u", "/v"], **DAG)
    assert feeds(program.lineage()) == {"/t": ["/a"], "/u": ["/b"], "/v": ["/b"]}


@pytest.mark.parametrize(("types", "reason"), [(("START", "FAIL"), "failed"), (("START",), "unfinished")])
def test_a_failed_task_keeps_what_was_seen_to_become_of_its_outlets(
    program: Any, types: tuple[str, ...], reason: str
) -> None:
    program.run(["/a"], ["/done"])
    program.run(["/a"], ["/broken"], types=types)
    program.run([], ["/done", "/broken", "/never"], **DAG)
    lineage = program.lineage(exit_code=1)
    assert [one.dataset.name for one in lineage.outputs] == ["/done"]
    assert {one.dataset.name: one.reason for one in lineage.attempted} == {"/broken": reason, "/never": "unfinished"}


def test_an_outlet_that_was_seen_to_fail_is_no_output_of_a_task_that_succeeded(program: Any) -> None:
    program.run(["/a"], ["/t"], types=("START", "FAIL"))
    program.run([], ["/t"], **DAG)
    lineage = program.lineage()
    assert lineage.outputs == ()
    assert [(one.dataset.name, one.reason) for one in lineage.attempted] == [("/t", "failed")]
