"""Leaves and writes of a plan are compared with the datasets of its run."""

from __future__ import annotations

import pytest

from spark_lineage.merge.accounting import PlanPart, left_over
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName


def datasets(*names: str) -> list[Observed]:
    return [Observed(DatasetName(*name.split(" "))) for name in names]


@pytest.mark.parametrize(
    ("source", "named", "is_met"),
    [
        ("file:/lake/orders", "file /lake/orders", True),
        ("file:/lake/orders/day=1", "file /lake/orders", True),
        ("file:/lake/orders", "file /lake/orders/a.csv", True),
        ("file:/lake/orders", "file /lake/orders2", False),
        ("s3a://lake/orders", "s3://lake orders", True),
        ("hdfs://nn:8020/lake/orders", "hdfs://nn:8020 /lake/orders", True),
        ("/lake/orders", "postgres://db:5432 /lake/orders", False),
        ("ice.db.orders", "postgres://db:5432 shop.public.ORDERS", True),
        ("ice.db.orders", "postgres://db:5432 shop.public.items", False),
    ],
)
def test_leaf_is_met_by_the_dataset_at_its_source(source, named, is_met) -> None:
    part = PlanPart("Scan", "input", (source,))
    assert left_over([part], datasets(named), []) == ([] if is_met else [part])


@pytest.mark.parametrize(
    ("named", "is_met"),
    [
        # Of three paths two are known.
        (["file /lake/a.csv", "file /lake/b.csv"], False),
        (["file /lake/a.csv", "file /lake/b.csv", "file /lake/c.csv"], True),
        (["file /lake"], True),
    ],
)
def test_cut_list_of_paths_is_met_by_its_directory_or_as_many_files(named, is_met) -> None:
    part = PlanPart("Scan csv", "input", ("file:/lake/a.csv", "file:/lake/b.csv"), count=3)
    assert left_over([part], datasets(*named), []) == ([] if is_met else [part])


def test_leaf_without_a_source_needs_an_input_that_no_other_leaf_is() -> None:
    scan, rows = PlanPart("Scan csv", "input", ("file:/lake/a.csv",)), PlanPart("BatchScan odd", "input")
    assert left_over([scan, rows], datasets("file /lake/a.csv"), []) == [rows]
    assert left_over([scan, rows], datasets("file /lake/a.csv", "odd:x t"), []) == []
