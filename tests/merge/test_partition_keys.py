"""By which columns a dataset is partitioned: as a write, a CREATE or a scan of Hive's names them."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName


def keys(lineage: TaskLineage) -> list[tuple[str, ...]]:
    return [one.partition_keys for one in (*lineage.inputs, *lineage.outputs)]


def test_output_has_the_keys_of_its_write(program: Any, make_dataset: Any) -> None:
    run_id = program.run(["/in"], [make_dataset("/out", rows=2)])
    program.log(run_id, partitioned_by=("day", "region"))
    program.run(["/in"], [make_dataset("/out", rows=2)])
    assert keys(program.lineage()) == [(), ("day", "region")]


def test_output_has_the_keys_of_its_creation(program: Any, make_dataset: Any) -> None:
    created = make_dataset("/wh/t", table="db.t", lifecycle="CREATE", rows=1)
    statement = CatalogStatement("CREATE", "TABLE", "ice.db.t", partitioned_by=("days(at)",))
    program.log(program.run([], [created]), statement=statement)
    assert keys(program.lineage()) == [("days(at)",)]


def test_keys_of_a_write_are_those_of_the_creation_of_its_table_alone(program: Any, make_dataset: Any) -> None:
    for name in ("t", "u"):
        created = make_dataset(f"/wh/{name}", table=f"db.{name}", lifecycle="CREATE")
        program.run([], [created], node="execute_create_data_source_table_command")
    for name in ("t", "other"):
        run_id = program.run(["/in"], [make_dataset(f"/wh/{name}/day=1", table=f"db.{name}", rows=2)])
        program.log(run_id, partitioned_by=("day",), partition=("day=1",), mode="Append")
    changes = program.lineage().catalog_changes
    assert [(one.name, one.partitioned_by) for one in changes] == [("db.t", ("day",)), ("db.u", ())]


@pytest.mark.parametrize("named", [(), ("day",)])
def test_input_has_the_keys_that_its_scan_names(program: Any, named: tuple[str, ...]) -> None:
    run_id = program.run(["/in"], ["/out"])
    program.log(run_id, inputs=(Observed(DatasetName("file", "/in"), partition_keys=named),))
    assert keys(program.lineage()) == [named, ()]
