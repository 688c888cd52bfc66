"""Which snapshot of an Iceberg table was read; and what is left of writes after a RESTORE of a Delta table."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.lineage import UnreadPart
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

OLD, NOW = "7259590589631002707", "7156419400004722923"
TABLE = DatasetName("file", "/t")


def read(program: Any, make_dataset: Any, version: str, *, report: Any, out: str) -> str:
    table = make_dataset("/t")
    table["facets"] |= {"version": {"datasetVersion": version}, "storage": {"storageLayer": "iceberg"}}
    table["inputFacets"] = {"icebergScanReport": {"snapshotId": report}}
    run_id: str = program.run([table], [make_dataset(out, rows=1, edges={"id": ("/t", "id")})])
    return run_id


@pytest.mark.parametrize("is_known", [True, False])
def test_the_snapshot_of_a_scan_is_the_version_that_was_read(
    program: Any, make_dataset: Any, *, is_known: bool
) -> None:
    if is_known:
        read(program, make_dataset, OLD, report=float(OLD), out="/first")
    written = make_dataset("/t", rows=1, edges={"id": ("/in", "id")})
    written["facets"]["version"] = {"datasetVersion": NOW}
    program.run(["/in"], [written], node="append_data")
    read(program, make_dataset, NOW, report=float(OLD), out="/old")
    read(program, make_dataset, NOW, report=float(NOW), out="/now")
    lineage = program.lineage()
    fed_by = {one.dataset.name: [fed.name for fed in one.fed_by] for one in lineage.outputs}
    assert fed_by["/old"] == ["/t"]
    assert "/in" in fed_by["/now"]
    (table,) = (one for one in lineage.inputs if one.dataset == TABLE)
    assert table.versions == ((OLD, NOW) if is_known else (NOW,))
    assert lineage.unread == (() if is_known else (UnreadPart("/t: its version", 1),))


@pytest.mark.parametrize("report", [None, "7", 7, {}])
def test_a_report_without_a_number_leaves_the_version_of_the_listener(
    program: Any, make_dataset: Any, report: Any
) -> None:
    read(program, make_dataset, NOW, report=report, out="/out")
    (table,) = program.lineage().inputs
    assert table.versions == (NOW,)


def test_the_snapshot_in_the_event_log_is_the_version_whatever_the_report_says(program: Any, make_dataset: Any) -> None:
    run_id = read(program, make_dataset, NOW, report=float(NOW), out="/out")
    program.log(run_id, inputs=(Observed(TABLE, versions=frozenset({OLD})),))
    (table,) = program.lineage().inputs
    assert table.versions == (OLD,)


@pytest.mark.parametrize(("version", "fed_by"), [("2", ["/t"]), ("", ["/in", "/t"])])
def test_a_restore_takes_back_the_writes_of_later_versions(
    program: Any, make_dataset: Any, version: str, fed_by: list[str]
) -> None:
    appended = make_dataset("/t", rows=1, edges={"id": ("/in", "id")})
    if version:
        appended["facets"]["version"] = {"datasetVersion": version}
    run_id = program.run(["/in"], [appended])
    program.log(run_id, mode="Append")
    run_id = program.run(node="execute_restore_table_command")
    former = Observed(TABLE, versions=frozenset({"1"}))
    program.log(run_id, command="RestoreTableCommand", inputs=(former,), outputs=(Observed(TABLE),))
    program.run(["/t"], [make_dataset("/now", rows=1, edges={"id": ("/t", "id")})])
    lineage = program.lineage()
    found = {one.dataset.name: [fed.name for fed in one.fed_by] for one in lineage.outputs}
    assert found["/now"] == fed_by
    assert UnreadPart("RestoreTableCommand: the columns that it leaves", 1) in lineage.unread
