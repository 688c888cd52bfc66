"""The truth about every real application of the fixtures, written by hand from its program."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_lineage.merge.conclusion import EndFacts, conclude
from spark_lineage.merge.lineage import DatasetLineage, TaskLineage
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
DATA, OUT, WAREHOUSE = "/data/lab/data", "/data/lab/out", "/data/lab/wh"
OTHER = "/data/lab/warehouse"
ORDERS = f"{DATA}/orders.csv"

# file: (exit code, inputs, outputs with the rows written, attempted outputs)
TRUTH = {
    # The listener alone cannot tell that the catalog refused one of the tables.
    "catalog_420": (0, ["/data/lab/orders.csv"], {f"{OTHER}/good": 2, f"{OTHER}/with,comma": 2}, {}),
    "a_414": (0, [f"{DATA}/cust.csv", ORDERS], {f"{OUT}/a_parquet": 2}, {}),
    "a_359": (0, [f"{DATA}/cust.csv", ORDERS], {f"{OUT}/a_parquet": 2}, {}),
    "b_414": (0, [ORDERS], {f"{WAREHOUSE}/b_414/db1.db/t_src": 1802}, {}),
    "bhive_414": (
        0,
        [ORDERS],
        {f"{WAREHOUSE}/bhive_414/db1.db/t_hive": 100, f"{WAREHOUSE}/bhive_414/db1.db/t_src": 1802},
        {},
    ),
    # The listener alone cannot tell the three JDBC writes that failed in the driver from the one that did not.
    "c_414": (
        0,
        ["src"],
        {f"{OUT}/c_p1": 39, f"{OUT}/c_p3": 50, "DST": 39, "DST2": None, "db.public.t": None, "t": None},
        {},
    ),
    "d_414": (0, [DATA], {f"{OUT}/d_rdd": 500}, {}),
    "e_414": (0, [f"{DATA}/stream_in"], {f"{OUT}/e_batch": 35}, {}),
    "fdelta_414": (0, [], {f"{OUT}/f_delta": None, f"{WAREHOUSE}/fdelta_414/dt1": None}, {}),
    "fice_414": (0, [], {f"{WAREHOUSE}/ice/db/t": 341, f"{WAREHOUSE}/ice/db/t2": 141}, {}),
    "h_414": (0, [ORDERS], {f"{OUT}/h_cached": 100, f"{OUT}/h_cdf": 2, f"{OUT}/h_rdd_27829": 100}, {}),
    "i2_ol1": (0, [ORDERS], {}, {}),
    "gtask_414": (1, [ORDERS], {f"{OUT}/g_ok_task": 2000}, {f"{OUT}/g_bad": "failed"}),
    "udf_420": (1, ["/data/lab/udf/orders.csv"], {"/data/lab/udf/good": 3}, {"/data/lab/udf/bad": "unfinished"}),
    "gpyexc_414": (1, [ORDERS], {f"{OUT}/g_ok_pyexc": 2000}, {}),
    "gkillmid_414": (137, [ORDERS], {f"{OUT}/g_ok_killmid": 2000}, {f"{OUT}/g_slow": "unfinished"}),
    "gkilljvm_414": (137, [ORDERS], {}, {f"{OUT}/g_ok_killjvm": "unfinished"}),
    "gtermmid_414": (143, [ORDERS], {f"{OUT}/g_ok_termmid": 2000}, {f"{OUT}/g_slow": "unfinished"}),
}


def merged(name: str, exit_code: int) -> TaskLineage:
    collector = Collector()
    with (FIXTURES / f"{name}.ndjson").open("rb") as stream:
        collector.read(stream, source=name)
    assert collector.counts.set_aside == {}
    return task_lineage(collector.state, conclude(EndFacts(exit_code=exit_code)))


def rows(output: DatasetLineage) -> int | None:
    return output.statistics.row_count if output.statistics else None


def test_truth_is_known_of_every_fixture() -> None:
    assert {path.stem for path in FIXTURES.glob("*.ndjson")} == set(TRUTH)


@pytest.mark.parametrize("name", TRUTH)
def test_datasets(name: str) -> None:
    exit_code, inputs, outputs, attempted = TRUTH[name]
    lineage = merged(name, exit_code)
    assert lineage.state == ("COMPLETE" if exit_code == 0 else "FAIL")
    assert [one.dataset.name for one in lineage.inputs] == inputs
    assert {one.dataset.name: rows(one) for one in lineage.outputs} == outputs
    assert {one.dataset.name: one.reason for one in lineage.attempted} == attempted


def test_schema_reading_does_not_hide_the_schema() -> None:
    customers, orders = merged("a_414", 0).inputs
    assert [field.name for field in customers.schema] == ["cust_id", "name", "country"]
    assert [(field.name, field.type) for field in orders.schema] == [
        ("order_id", "integer"),
        ("cust_id", "integer"),
        ("amount", "integer"),
    ]


def test_column_lineage_of_a_join_and_an_aggregate() -> None:
    (output,) = merged("a_414", 0).outputs
    assert output.column_lineage is not None
    assert [
        (
            column,
            [
                (source.dataset.name, source.field, [how.subtype for how in source.transformations])
                for source in sources
            ],
        )
        for column, sources in output.column_lineage.fields
    ] == [
        ("country", [(f"{DATA}/cust.csv", "country", ["IDENTITY"])]),
        ("total", [(ORDERS, "amount", ["AGGREGATION"])]),
    ]
    assert [
        (source.dataset.name, source.field, [how.subtype for how in source.transformations])
        for source in output.column_lineage.dataset
    ] == [
        (f"{DATA}/cust.csv", "country", ["GROUP_BY"]),
        (f"{DATA}/cust.csv", "cust_id", ["FILTER", "JOIN"]),
        (ORDERS, "amount", ["FILTER"]),
        (ORDERS, "cust_id", ["FILTER", "JOIN"]),
    ]


def test_a_table_carries_its_table_name() -> None:
    (output,) = merged("b_414", 0).outputs
    assert [(link.namespace, link.name, link.type) for link in output.symlinks] == [
        (f"file:{WAREHOUSE}/b_414", "db1.t_src", "TABLE")
    ]
    assert output.lifecycle == "CREATE"


def test_column_lineage_leads_through_renamed_and_dropped_intermediates_to_the_input() -> None:
    hive = merged("bhive_414", 0).outputs[0]
    assert hive.column_lineage is not None
    assert {source.dataset.name for _, sources in hive.column_lineage.fields for source in sources} == {ORDERS}
    assert [name.name for name in hive.fed_by] == [ORDERS]


def test_writes_without_statistics_are_unconfirmed_until_they_are_read() -> None:
    assert [one.name for one in merged("c_414", 0).unconfirmed] == ["DST2", "t", "db.public.t"]
    assert merged("fdelta_414", 0).unconfirmed == ()


def test_what_is_known_of_the_application() -> None:
    lineage = merged("a_359", 0)
    (application,) = lineage.applications
    assert (application.application_id, application.spark_version) == ("local-1795215478939", "3.5.9")
    assert (application.job_namespace, application.job_name, application.is_ended) == ("lab", "job_a_csv", True)
    assert lineage.parent is not None
    assert (lineage.parent.job_namespace, lineage.parent.job_name) == ("af", "dag1.task1")
    assert lineage.parent.run_id == "01890a5d-ac96-7dde-8a63-0123456789ab"
    assert not merged("gkillmid_414", 1).applications[0].is_ended
