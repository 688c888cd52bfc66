"""What is kept of a program's last end, and when the next run has the event log alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from msgspec import structs

from spark_lineage.merge.accounting import OF_PROGRAM
from spark_lineage.merge.lineage import Catalog, CatalogChange, DatasetLineage, SchemaField, TaskLineage, UnreadPart
from spark_lineage.naming.identity import DatasetName
from spark_lineage.settings import Settings
from spark_lineage.task.last_end import MOST_RUNS, LastEnd, ListenerNeed, Record, with_last_types

AT = datetime(2026, 1, 2, tzinfo=UTC)
ENOUGH = ListenerNeed(AT, "", "4.2")
READ = {
    "namespace": "file",
    "name": "/orders",
    "facets": {"schema": {"fields": [{"name": "id", "type": "int"}, {"name": "shop", "type": "string"}]}},
}
WRITTEN = {"namespace": "file", "name": "/sums", "facets": {"schema": {"fields": [{"name": "id", "type": "int"}]}}}
END = LastEnd(is_streaming=False, inputs=[READ], outputs=[WRITTEN], listener_need=ENOUGH)


def dataset(name: str, *columns: str) -> DatasetLineage:
    return DatasetLineage(DatasetName("file", name), schema=tuple(map(SchemaField, columns)))


ALONE = TaskLineage("COMPLETE", (dataset("/orders", "id"),), (dataset("/sums", "id"),), evidence=("event_log",))


def test_columns_have_the_types_of_the_run_with_both_sources() -> None:
    lineage = with_last_types(ALONE, END)
    assert lineage.inputs[0].schema == (SchemaField("id", "int"), SchemaField("shop", "string"))
    assert lineage.outputs[0].schema == (SchemaField("id", "int"),)
    assert lineage.types_from == AT


def test_catalogs_and_changes_of_the_catalog_have_what_the_run_with_both_sources_knew() -> None:
    facets = {"catalog": {"framework": "hive", "type": "hive", "name": "default", "warehouseUri": "file:/wh"}}
    kept = {"change": "CREATE", "namespace": "file", "name": "/sums", "objectName": "sums"}
    schemas = ([{"name": "id", "type": kind}] for kind in ("int", "long"))
    made = [{**kept, "schema": schema} for schema in schemas]
    end = structs.replace(END, outputs=[{**WRITTEN, "facets": WRITTEN["facets"] | facets}], changes=made)
    sums = DatasetName("file", "/sums")
    create = CatalogChange("CREATE", "TABLE", sums, "sums", AT, schema=(SchemaField("id"),))
    drop = CatalogChange("DROP", "TABLE", sums, "sums", AT)
    lineage = with_last_types(structs.replace(ALONE, catalog_changes=(create, drop, create)), end)
    assert lineage.outputs[0].catalog == Catalog("hive", "hive", "default", warehouse_uri="file:/wh")
    assert [one.schema for one in lineage.catalog_changes] == [
        (SchemaField("id", "int"),),
        (),
        (SchemaField("id", "long"),),
    ]


def test_of_an_input_with_a_new_column_only_the_known_ones_get_a_type() -> None:
    changed = structs.replace(
        ALONE, inputs=(dataset("/orders", "id", "new"),), outputs=(dataset("/sums", "id", "new"),)
    )
    lineage = with_last_types(changed, END)
    for one in (*lineage.inputs, *lineage.outputs):
        assert one.schema == (SchemaField("id", "int"), SchemaField("new"))


def test_with_last_types_gives_an_output_of_another_input_no_type() -> None:
    sums, create = DatasetName("file", "/sums"), {"change": "CREATE", "namespace": "file", "name": "/sums"}
    end = structs.replace(END, changes=[{**create, "objectName": "sums", "schema": [{"name": "id", "type": "int"}]}])
    change = CatalogChange("CREATE", "TABLE", sums, "sums", AT, schema=(SchemaField("id"),))
    for read, kind in (("/orders", "int"), ("/other", None)):
        made = structs.replace(dataset("/sums", "id"), fed_by=(DatasetName("file", read),))
        lineage = structs.replace(ALONE, inputs=(dataset(read, "id"),), outputs=(made,), catalog_changes=(change,))
        typed = with_last_types(lineage, end)
        assert typed.outputs[0].schema == typed.catalog_changes[0].schema == (SchemaField("id", kind),)


@pytest.mark.parametrize(
    ("lineage", "end"),
    [
        (structs.replace(ALONE, evidence=("listener", "event_log")), END),
        (ALONE, None),
        (ALONE, structs.replace(END, listener_need=None)),
        (ALONE, structs.replace(END, listener_need=structs.replace(ENOUGH, lacking="inputs"))),
        (ALONE, structs.replace(END, listener_need=structs.replace(ENOUGH, is_harmed=True))),
    ],
)
def test_others_get_none(lineage: TaskLineage, end: LastEnd | None) -> None:
    assert with_last_types(lineage, end) is lineage


def test_a_log_that_is_enough_is_alone_until_so_many_runs_or_other_versions() -> None:
    assert ENOUGH.why_alone("4.2") == "OpenLineage's listener added nothing to this program on 2026-01-02"
    assert not ENOUGH.why_alone("4.3")
    assert not structs.replace(ENOUGH, lacking="inputs").why_alone("4.2")
    after: ListenerNeed | None = ENOUGH
    for _ in range(MOST_RUNS):
        assert after is not None
        assert after.why_alone("4.2")
        after = after.after(ALONE, END)
    assert after is not None
    assert not after.why_alone("4.2")


OTHERS = {
    "nothing": structs.replace(ALONE, inputs=(), outputs=()),
    "a dataset": structs.replace(ALONE, inputs=(dataset("/other", "id"),)),
    "a column": structs.replace(ALONE, outputs=(dataset("/sums", "id", "new"),)),
    "a change of the catalog": structs.replace(
        ALONE, catalog_changes=(CatalogChange("DROP", "TABLE", DatasetName("file", "/sums"), "sums", AT),)
    ),
    "what is counted": structs.replace(ALONE, unread=(UnreadPart("Scan ExistingRDD", 1),)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_after_a_log_with_something_new_the_listener_is_wanted_again(name: str) -> None:
    assert ENOUGH.after(OTHERS[name], END) is None


def test_rows_of_the_program_do_not_want_a_listener_that_has_none_of_them_either() -> None:
    counted = structs.replace(ALONE, unread=(UnreadPart(OF_PROGRAM.name, 1),))
    assert ENOUGH.after(counted, END) == structs.replace(ENOUGH, runs=1)


def test_a_listener_that_harmed_the_driver_stays_away() -> None:
    harmed = structs.replace(ENOUGH, is_harmed=True)
    assert harmed.after(OTHERS["a dataset"], END) == structs.replace(harmed, runs=1)
    assert harmed.why_alone("4.2") == "the driver ran out of memory with OpenLineage's listener on 2026-01-02"


@pytest.fixture(params=["a path", "a URL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "a path" else f"memory://{tmp_path}"


def test_an_end_is_kept_with_what_was_learnt_and_without_datasets_keeps_those_before(place: str) -> None:
    with DAG("shop", schedule=None):
        load = BashOperator(task_id="load", bash_command="true")
        other = BashOperator(task_id="other", bash_command="true")
    record = Record(Settings(records_dir=place), load)
    assert record.end is None
    change = {"change": "CREATE", "namespace": "file", "name": "/sums", "objectName": "sums"}
    facets = {"sparkLineage_catalogChanges": {"changes": [{**change, "time": "2026-01-02T00:00:00Z"}]}}
    event = {"job": {}, "run": {"facets": facets}, "inputs": [READ], "outputs": [WRITTEN]}
    record.keep(json.dumps(event).encode(), None, ENOUGH)
    kept = structs.replace(END, changes=[change])
    assert Record(Settings(records_dir=place), load).end == kept
    harmed = structs.replace(ENOUGH, is_harmed=True)
    record.keep(None, kept, harmed)
    assert Record(Settings(records_dir=place), load).end == structs.replace(kept, listener_need=harmed)
    assert Record(Settings(records_dir=place), other).end is None
