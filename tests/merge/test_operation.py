"""What kind of write an output comes from, and the actions one by one, on made-up programs."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.lineage import Write

INSERT = "execute_insert_into_hadoop_fs_relation_command"


@pytest.mark.parametrize(
    ("node", "lifecycle", "told", "expected"),
    [
        (INSERT, None, None, Write("INSERT")),
        (INSERT, "OVERWRITE", None, Write("OVERWRITE", "overwrite")),
        (INSERT, None, {"mode": "Append"}, Write("INSERT", "append")),
        ("micro_batch", None, {"output_mode": "complete"}, Write("INSERT", output_mode="complete")),
        (
            INSERT,
            "OVERWRITE",
            {"mode": "Overwrite", "is_partial": True},
            Write("OVERWRITE", "overwrite", is_partial=True),
        ),
        (INSERT, None, {"mode": "Overwrite"}, Write("OVERWRITE", "overwrite")),
        ("execute_merge_into_command", None, None, Write("MERGE")),
        ("replace_data", None, {"command": "MergeIntoCommand"}, Write("MERGE")),
        ("replace_data", None, {"command": "ReplaceData", "is_merge": True}, Write("MERGE")),
        ("replace_data", None, None, Write("UPDATE")),
        ("execute_delete_command", None, None, Write("DELETE")),
        ("execute_truncate_table_command", "TRUNCATE", None, Write("TRUNCATE")),
        ("truncate", "TRUNCATE", None, Write("TRUNCATE")),
    ],
)
def test_kind_of_write(
    program: Any, make_dataset: Any, node: str, lifecycle: str | None, told: dict[str, Any] | None, expected: Write
) -> None:
    run_id = program.run(["/a"], [make_dataset("/t", rows=1, lifecycle=lifecycle)], node=node)
    if told is not None:
        program.log(run_id, **told)
    assert program.lineage().outputs[0].writes == (expected,)


@pytest.mark.parametrize("lifecycle", ["CREATE", "ALTER"])
def test_ddl_writes_no_data(program: Any, make_dataset: Any, lifecycle: str) -> None:
    program.run([], [make_dataset("/wh/t", table="t", lifecycle=lifecycle)], node="command")
    lineage = program.lineage()
    assert (lineage.outputs, [one.change for one in lineage.catalog_changes]) == ((), [lifecycle])


def test_kinds_are_kept_in_order_and_once(program: Any, make_dataset: Any) -> None:
    program.run(["/a"], [make_dataset("/t", rows=1, lifecycle="OVERWRITE")])
    for _ in range(2):
        program.run(["/a"], [make_dataset("/t", rows=1)])
    program.run(["/a"], [make_dataset("/t", rows=1)], node="execute_merge_into_command")
    assert [write.operation for write in program.lineage().outputs[0].writes] == ["OVERWRITE", "INSERT", "MERGE"]


def test_actions_one_by_one(program: Any, make_dataset: Any) -> None:
    table = make_dataset("/wh/t", table="t", rows=1, lifecycle="CREATE")
    program.run(["/a"], [table])
    program.run([], [])
    program.run([], [make_dataset("/wh/u", table="u", lifecycle="RENAME", previous="/wh/t")], node="rename")
    program.run(["/wh/u"], ["/x"], types=("START", "FAIL"))
    program.run(["/wh/u"], ["/y"], types=("START",))
    lineage = program.lineage(exit_code=1, has_actions=True)
    assert [
        (one.job_name, one.state, [name.name for name in one.inputs], [name.name for name in one.outputs])
        for one in lineage.actions
    ] == [
        (f"app.{INSERT}", "COMPLETE", ["/a"], ["/wh/u"]),
        ("app.rename", "COMPLETE", [], ["/wh/u"]),
        (f"app.{INSERT}", "FAIL", ["/wh/u"], ["/x"]),
        (f"app.{INSERT}", "FAIL", ["/wh/u"], ["/y"]),
    ]
    assert all(one.started_at <= one.ended_at for one in lineage.actions)


def test_actions_are_told_when_asked_for_only(program: Any) -> None:
    program.run(["/a"], ["/b"])
    assert program.lineage().actions == ()


def test_reads_that_are_the_same_are_actions_each(program: Any) -> None:
    for _ in range(3):
        program.run(["/a"], [])
    assert len(program.lineage(has_actions=True).actions) == 3


def test_each_write_inside_a_micro_batch_reads_what_that_batch_read(program: Any) -> None:
    for number in (1, 2):
        with program.running([f"/in/{number}.json"], [], node="project", processing="STREAMING"):
            program.run([], ["/t"])
    written = [one for one in program.lineage(has_actions=True).actions if one.outputs]
    assert [[name.name for name in one.inputs] for one in written] == [["/in/1.json"], ["/in/2.json"]]


def test_schema_reading_is_no_action(program: Any, make_dataset: Any) -> None:
    lines = make_dataset("/a.csv", columns=("value",))
    lines["facets"]["schema"]["fields"][0]["type"] = "string"
    program.run([lines], [], node="collect_limit")
    assert program.lineage(has_actions=True).actions == ()
