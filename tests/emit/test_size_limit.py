from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from openlineage.client.serde import Serde

from spark_lineage.collect.collector import Collector
from spark_lineage.emit.facets import REDUCED_KEY
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.emit.size_limit import AIRFLOW_BYTES, DEFAULT_LIMIT_BYTES, Sizes, limited, reduction_text
from spark_lineage.emit.size_reduction import ORDER, TaskStep, references
from spark_lineage.merge.lineage import (
    Catalog,
    CatalogChange,
    ColumnLineage,
    DatasetLineage,
    InputField,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    TaskLineage,
    Transformation,
)
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "events").glob("*.ndjson"))
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
DIRECT = Transformation("DIRECT", "IDENTITY")
MADE = Transformation("DIRECT", "TRANSFORMATION", "coalesce(a, b)")
JOIN = Transformation("INDIRECT", "JOIN")
FILTER = Transformation("INDIRECT", "FILTER")


def as_event(lineage: TaskLineage, facet: Any = None) -> RunEvent:
    event = run_event(lineage, None, job_namespace="airflow", job_name="dag.task", run_id=RUN_ID)
    assert event.run.facets is not None
    if facet is not None:
        event.run.facets[REDUCED_KEY] = facet
    return event


def sent_bytes(lineage: TaskLineage, facet: Any = None) -> int:
    return len(Serde.to_json(as_event(lineage, facet)).encode())


def of(name: str, **values: Any) -> DatasetLineage:
    return DatasetLineage(DatasetName("s3://warehouse", name), **values)


def columns(*names: str) -> tuple[SchemaField, ...]:
    return tuple(SchemaField(name, "string") for name in names)


def edge(source: DatasetLineage, field: str, *transformations: Transformation) -> InputField:
    return InputField(source.dataset, field, transformations or (DIRECT,))


def kept(lineage: TaskLineage) -> Any:
    """What is never left out."""
    return [
        [each.dataset for each in lineage.inputs],
        [(each.dataset, each.statistics, each.lifecycle, each.previous_name) for each in lineage.outputs],
    ]


def dangling(lineage: TaskLineage) -> set[tuple[DatasetName, str]]:
    """The ends of column edges that no schema has: Marquez would not show these edges."""
    known = {(each.dataset, field.name) for each in (*lineage.inputs, *lineage.outputs) for field in each.schema}
    ends = set()
    for output in lineage.outputs:
        lineage_of_columns = output.column_lineage or ColumnLineage()
        for column, edges in lineage_of_columns.fields:
            ends |= {(each.dataset, each.field) for each in edges} | ({(output.dataset, column)} if edges else set())
        ends |= {(each.dataset, each.field) for each in lineage_of_columns.dataset}
    return ends - known


def details(facet: Any) -> list[str]:
    assert facet is not None
    return [each["detail"] for each in facet.leftOut]


def wide(width: int = 2_000, description: str = "") -> TaskLineage:
    """A table of which each column comes from three inputs, with a join that concerns all of it."""
    names = [f"column_{number:04d}" for number in range(width)]
    sources = [of(f"shop.db/source_{number}", schema=columns(*names)) for number in range(3)]
    made = Transformation("DIRECT", "TRANSFORMATION", description)
    edges = tuple(
        (name, (*(edge(each, name, made) for each in sources), edge(sources[0], names[0], JOIN))) for name in names
    )
    output = of(
        "shop.db/wide",
        schema=columns(*names),
        column_lineage=ColumnLineage(edges, (edge(sources[0], names[0], JOIN),)),
        statistics=Statistics(row_count=0),
        lifecycle="OVERWRITE",
        fed_by=tuple(each.dataset for each in sources),
    )
    return TaskLineage("COMPLETE", inputs=tuple(sources), outputs=(output,))


def many(count: int = 5_000, outputs: int = 10) -> TaskLineage:
    """Many tables, each output made from its share of the inputs."""
    names = [f"column_{number}" for number in range(4)]
    tables = [
        of(
            f"shop.db/table_{number:05d}",
            schema=columns(*names),
            symlinks=(Symlink("hive://metastore:9083", f"shop.table_{number:05d}", "TABLE"),),
            storage=Storage("hive", "parquet"),
            catalog=Catalog("hive", "hive", "spark_catalog", "spark", "thrift://metastore:9083", "s3://warehouse"),
        )
        for number in range(count)
    ]
    inputs = tables[outputs:]
    written = []
    for number, table in enumerate(tables[:outputs]):
        sources = inputs[number::outputs]
        edges = tuple((name, tuple(edge(each, name) for each in sources)) for name in names)
        written.append(
            structs.replace(
                table,
                column_lineage=ColumnLineage(edges),
                statistics=Statistics(1, 2, 3),
                fed_by=tuple(each.dataset for each in sources),
            )
        )
    return TaskLineage("COMPLETE", inputs=tuple(inputs), outputs=tuple(written))


def rich() -> TaskLineage:
    """A bit of everything that can be left out."""
    described = SchemaField("id", "int", "the key")
    nested = SchemaField("customer", "struct", fields=columns("id", "name"))
    orders = of(
        "orders",
        schema=(described, nested, *columns("status", "unused")),
        storage=Storage("delta", "parquet"),
        versions=("7",),
        symlinks=(Symlink("hive://m:9083", "shop.orders", "TABLE"),),
        statistics=Statistics(row_count=3),
    )
    other = of("other", schema=(SchemaField("tags", "struct", fields=columns("deep")),), statistics=Statistics(size=0))
    sales = of(
        "sales",
        schema=columns("id", "name"),
        column_lineage=ColumnLineage(
            (
                ("id", (edge(orders, "id", MADE), edge(orders, "status", FILTER))),
                ("name", (edge(orders, "customer.name"), edge(orders, "status", JOIN))),
            ),
            (edge(orders, "status", FILTER),),
        ),
        lifecycle="CREATE",
        statistics=Statistics(1, 2, 3),
        fed_by=(orders.dataset,),
    )
    log = of("log", schema=columns("line"), fed_by=(other.dataset,))
    return TaskLineage("COMPLETE", inputs=(orders, other), outputs=(log, sales))


def test_a_lineage_that_fits_is_left_as_it_is() -> None:
    lineage = rich()
    assert limited(lineage, sent_bytes(lineage), as_event) == (lineage, None)


def test_one_byte_too_much_costs_the_least_detail() -> None:
    lineage = rich()
    reduced, facet = limited(lineage, sent_bytes(lineage) - 1, as_event)
    # The facet itself takes room, so that the first step alone may not do.
    assert details(facet)[0] == "descriptions"
    assert sent_bytes(reduced, facet) < sent_bytes(lineage)
    assert "directColumnEdges" not in details(facet)


def test_the_order_of_sacrifice() -> None:
    reduced, facet = limited(rich(), 1, as_event)
    assert details(facet) == [
        "descriptions",
        "nestedFields",
        "unusedSchemas",
        "storage",
        "repeatedIndirectEdges",
        "transformationSubtypes",
        "unusedColumns",
        "indirectColumnEdges",
        "indirectDatasetEdges",
        "directColumnEdges",
        "schemas",
        "exactEdges",
        "symlinks",
        "inputStatistics",
        "dataSources",
    ]
    assert kept(reduced) == kept(rich())


def walk(lineage: TaskLineage) -> list[tuple[int, TaskLineage, Any]]:
    """Every lineage of the chain, from the whole to the barest, with a limit that gives it."""
    found = []
    limit = sent_bytes(lineage) - 1
    while True:
        reduced, facet = limited(lineage, limit, as_event)
        assert facet is not None
        found.append((limit, reduced, facet))
        if facet.isOverLimit:
            return found
        limit = sent_bytes(reduced, facet) - 1


def without(lineage: TaskLineage, last: str) -> TaskLineage:
    """The lineage without any detail up to the last one."""
    for step in ORDER:
        if isinstance(step, TaskStep):
            lineage = step.without(lineage)
        else:
            named = references(lineage)
            inputs, outputs = (
                tuple(step.without(each, named) for each in datasets) if is_for else datasets
                for datasets, is_for in ((lineage.inputs, True), (lineage.outputs, not step.is_for_inputs_only))
            )
            lineage = structs.replace(lineage, inputs=inputs, outputs=outputs)
        if step.detail == last:
            return lineage
    raise AssertionError(last)


def edges_of(lineage: TaskLineage) -> dict[str, tuple[InputField, ...]]:
    found = lineage.outputs[-1].column_lineage
    return {} if found is None else dict(found.fields)


def test_each_detail_is_what_its_name_says() -> None:
    lineage = rich()
    orders, other = without(lineage, "nestedFields").inputs
    assert orders.schema[1].fields, "an edge refers to a field of it"
    assert not other.schema[0].fields
    assert [each.description for each in orders.schema] == [None] * 4
    orders, other = without(lineage, "unusedSchemas").inputs
    assert (len(orders.schema), len(other.schema)) == (4, 0)
    orders, _ = without(lineage, "storage").inputs
    assert (orders.storage, orders.versions, len(orders.symlinks)) == (None, (), 1)
    # The filter of "id" is that of the dataset, the join of "name" is not.
    edges = edges_of(without(lineage, "repeatedIndirectEdges"))
    assert {name: len(each) for name, each in edges.items()} == {"id": 1, "name": 2}
    assert edges["id"][0].transformations == (Transformation("DIRECT", "TRANSFORMATION"),)
    assert edges_of(without(lineage, "transformationSubtypes"))["id"][0].transformations == (Transformation("DIRECT"),)
    orders, _ = without(lineage, "unusedColumns").inputs
    assert [each.name for each in orders.schema] == ["id", "customer", "status"]
    edges = edges_of(without(lineage, "indirectColumnEdges"))
    assert {name: len(each) for name, each in edges.items()} == {"id": 1, "name": 1}
    assert without(lineage, "indirectDatasetEdges").outputs[1].column_lineage == ColumnLineage(tuple(edges.items()))
    assert without(lineage, "directColumnEdges").outputs[1].column_lineage is None
    assert without(lineage, "directColumnEdges").outputs[1].schema
    assert not any(each.schema for each in without(lineage, "schemas").outputs)


def test_what_is_not_in_the_event_cannot_be_left_out() -> None:
    # A column without edges is never sent.
    output = of("a", schema=columns("x"), column_lineage=ColumnLineage((("x", ()),)))
    reduced, facet = limited(TaskLineage("COMPLETE", outputs=(output,)), 1, as_event)
    assert details(facet) == ["schemas", "dataSources"]
    assert sent_bytes(reduced) < sent_bytes(TaskLineage("COMPLETE", outputs=(output,)))


def test_a_column_that_only_an_edge_of_the_dataset_names_is_used() -> None:
    source = of("a", schema=columns("x", "unused"))
    output = of("b", column_lineage=ColumnLineage(dataset=(edge(source, "x", FILTER),)))
    (left,) = without(TaskLineage("COMPLETE", inputs=(source,), outputs=(output,)), "unusedColumns").inputs
    assert [each.name for each in left.schema] == ["x"]


def test_an_edge_of_which_no_transformation_is_known_repeats_nothing() -> None:
    source = of("a", schema=columns("x"))
    unknown = InputField(source.dataset, "x")
    output = of("b", column_lineage=ColumnLineage((("x", (unknown,)),), (edge(source, "x", FILTER),)))
    lineage = TaskLineage("COMPLETE", inputs=(source,), outputs=(output,))
    assert edges_of(without(lineage, "repeatedIndirectEdges")) == {"x": (unknown,)}
    written = json.loads(to_json(as_event(lineage)))["outputs"][0]["facets"]["columnLineage"]
    assert written["fields"]["x"]["inputFields"] == [{"namespace": "s3://warehouse", "name": "a", "field": "x"}]


def test_masking_outlives_the_other_details_of_a_transformation() -> None:
    hashed = Transformation("DIRECT", "TRANSFORMATION", "sha2(mail, 256)", masking=True)
    source = of("people", schema=columns("mail"))
    safe = of(
        "safe", schema=columns("mail"), column_lineage=ColumnLineage((("mail", (edge(source, "mail", hashed),)),))
    )
    lineage = TaskLineage("COMPLETE", inputs=(source,), outputs=(safe,))
    (left,) = edges_of(without(lineage, "transformationSubtypes"))["mail"]
    assert left.transformations == (Transformation("DIRECT", masking=True),)


def test_edges_that_inputs_and_outputs_imply_go_first_and_all_others_late() -> None:
    source = of("a", schema=(SchemaField("x", "int", "some words to leave out" * 20),))
    lineage = TaskLineage("COMPLETE", inputs=(source,), outputs=(of("b", fed_by=(source.dataset,)),))
    assert details(limited(lineage, 1, as_event)[1])[:2] == ["exactEdges", "descriptions"]
    lineage = structs.replace(lineage, outputs=(*lineage.outputs, of("c")))
    assert details(limited(lineage, 1, as_event)[1])[-2:] == ["exactEdges", "dataSources"]


def test_catalog_changes_stay_without_their_schemas() -> None:
    moment = datetime(2024, 1, 31, tzinfo=UTC)
    change = CatalogChange(
        "CREATE", "TABLE", DatasetName("file", "/t"), "db.t", moment, schema=columns("a"), properties=(("k", "v"),)
    )
    reduced, facet = limited(TaskLineage("COMPLETE", catalog_changes=(change,)), 1, as_event)
    assert reduced.catalog_changes == (structs.replace(change, schema=(), properties=()),)
    assert details(facet) == ["catalogSchemas"]


def test_the_biggest_dataset_of_a_step_loses_first() -> None:
    small, big = of("a", schema=columns("x")), of("b", schema=columns(*(f"x{number}" for number in range(40))))
    lineage = TaskLineage("COMPLETE", inputs=(small, big))
    reduced, facet = limited(lineage, sent_bytes(lineage) - 1, as_event)
    assert [bool(each.schema) for each in reduced.inputs] == [True, False]
    assert facet is not None
    assert [each["name"] for each in facet.leftOut[0]["datasets"]] == ["b"]


def test_a_wide_table_loses_no_more_direct_edges_than_needed() -> None:
    lineage = wide(30)
    chain = [each for each in walk(lineage) if details(each[2])[-1] == "directColumnEdges"]
    counts = [facet.leftOut[-1]["datasets"][0].get("columnCount") for _, _, facet in chain]
    assert len(chain) > 20
    assert counts == [*sorted(each or 0 for each in counts[:-1]), None]
    for limit, reduced, facet in chain[:-1]:
        left = reduced.outputs[0].column_lineage
        assert left is not None
        assert len(left.fields) + facet.leftOut[-1]["datasets"][0].get("columnCount") == 30
        one_column = sent_bytes(lineage) // 30
        assert limit - one_column < sent_bytes(reduced, facet) <= limit


def test_a_table_that_lost_a_part_is_named_before_one_that_lost_all() -> None:
    lineage = wide(30)
    (table,) = lineage.outputs
    lineage = structs.replace(lineage, outputs=(table, structs.replace(table, dataset=of("shop.db/wider").dataset)))
    losers = [facet.leftOut[-1]["datasets"] for _, _, facet in walk(lineage)]
    parts = [["columnCount" in each for each in datasets] for datasets in losers if len(datasets) > 1]
    assert [True, False] in parts
    assert [False, True] not in parts


@pytest.mark.parametrize("description", ["", "coalesce(column, other_column)"])
def test_a_table_of_2_000_columns_fits_and_keeps_edges(description: str) -> None:
    lineage = wide(2_000, description)
    reduced, facet = limited(lineage, DEFAULT_LIMIT_BYTES, as_event, reserved_bytes=AIRFLOW_BYTES)
    assert facet is not None
    assert facet.fullBytes == sent_bytes(lineage) + AIRFLOW_BYTES > DEFAULT_LIMIT_BYTES
    assert sent_bytes(reduced, facet) + AIRFLOW_BYTES <= DEFAULT_LIMIT_BYTES
    assert kept(reduced) == kept(lineage)
    assert not dangling(reduced)
    columns_left = reduced.outputs[0].column_lineage
    assert columns_left is not None
    assert len(columns_left.fields) > 1_000


def test_5_000_datasets_all_stay() -> None:
    lineage = many()
    reduced, facet = limited(lineage, DEFAULT_LIMIT_BYTES, as_event, reserved_bytes=AIRFLOW_BYTES)
    assert facet is not None
    assert facet.fullBytes == sent_bytes(lineage) + AIRFLOW_BYTES
    assert not facet.isOverLimit
    assert sent_bytes(reduced, facet) + AIRFLOW_BYTES <= DEFAULT_LIMIT_BYTES
    assert kept(reduced) == kept(lineage)
    assert all(len(each["datasets"]) <= 10 for each in facet.leftOut)
    assert max(each["datasetCount"] for each in facet.leftOut) == 5_000


def test_names_that_alone_are_too_much_are_sent_and_the_event_says_so() -> None:
    lineage = many(2_000)
    reduced, facet = limited(lineage, 50_000, as_event)
    assert facet is not None
    assert facet.isOverLimit
    assert sent_bytes(reduced, facet) > 50_000
    assert kept(reduced) == kept(lineage)
    assert "still over the limit" in reduction_text(facet)


def test_the_log_tells_what_was_left_out() -> None:
    _, facet = limited(wide(), DEFAULT_LIMIT_BYTES, as_event)
    assert facet is not None
    text = reduction_text(facet)
    assert f"{facet.fullBytes:,} bytes, over the limit of 1,000,000" in text
    assert "repeatedIndirectEdges of 1" in text
    assert "still over" not in text


def task_of(path: Path) -> TaskLineage:
    collector = Collector()
    collector.add(path.read_bytes().splitlines(), source=path.name)
    return task_lineage(collector.state, task_state(exit_code=0))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_real_events_are_measured_to_the_byte(path: Path) -> None:
    lineage = task_of(path)
    for limit, reduced, facet in walk(lineage)[::3]:
        assert facet.fullBytes == sent_bytes(lineage)
        assert sent_bytes(reduced) == facet.fullBytes - sum(each["bytes"] for each in facet.leftOut)
        assert facet.isOverLimit or sent_bytes(reduced, facet) <= limit
        assert len(to_json(as_event(reduced, facet))) <= sent_bytes(reduced, facet)
        assert kept(reduced) == kept(lineage)
        assert dangling(reduced) <= dangling(lineage)


def test_the_events_of_a_wide_table_are_cut_to_the_limit() -> None:
    lineage = wide()
    event = json.loads(Serde.to_json(as_event(lineage)))
    event["eventType"] = "COMPLETE"
    collector = Collector()
    collector.add([json.dumps({**event, "eventType": kind}).encode() for kind in ("START", "COMPLETE")], source="wide")
    assert collector.counts.set_aside == {}
    folded = task_lineage(collector.state, task_state(exit_code=0))
    assert folded.outputs[0].column_lineage is not None
    assert len(folded.outputs[0].column_lineage.fields) == 2_000
    reduced, facet = limited(folded, DEFAULT_LIMIT_BYTES, as_event)
    assert sent_bytes(reduced, facet) <= DEFAULT_LIMIT_BYTES < sent_bytes(folded)
    assert kept(reduced) == kept(folded)


FIELDS = st.sampled_from(["a", "b", "c", "a.x", "ü"])
TRANSFORMATIONS = st.builds(
    Transformation,
    st.sampled_from(["DIRECT", "INDIRECT"]),
    st.sampled_from(["", "IDENTITY", "JOIN"]),
    st.sampled_from(["", "a + b"]),
    st.booleans(),
)
NAMES = st.builds(DatasetName, st.just("file"), st.sampled_from(["/a", "/b", "/c", "/d"]))
EDGES = st.lists(
    st.builds(InputField, NAMES, FIELDS, st.lists(TRANSFORMATIONS, max_size=2).map(tuple)), max_size=3
).map(tuple)
SCHEMAS = st.lists(
    st.builds(
        SchemaField,
        FIELDS,
        st.sampled_from([None, "int"]),
        st.sampled_from([None, 'a "description"']),
        st.sampled_from([(), (SchemaField("x", "int"),)]),
    ),
    max_size=4,
    unique_by=lambda field: field.name,
).map(tuple)
DATASETS = st.builds(
    DatasetLineage,
    NAMES,
    schema=SCHEMAS,
    symlinks=st.sampled_from([(), (Symlink("hive", "db.t", "TABLE"),)]),
    storage=st.sampled_from([None, Storage("delta")]),
    statistics=st.sampled_from([None, Statistics(row_count=0)]),
)
COLUMNS = st.builds(
    ColumnLineage, st.dictionaries(FIELDS, EDGES, max_size=3).map(lambda each: tuple(each.items())), EDGES
)


@st.composite
def lineages(draw: st.DrawFn) -> TaskLineage:
    inputs, outputs = (draw(st.lists(DATASETS, max_size=4, unique_by=lambda each: each.dataset)) for _ in range(2))
    known = sorted({each.dataset for each in inputs})
    fed_by = st.lists(st.sampled_from(known), unique=True).map(tuple) if known else st.just(())
    return TaskLineage(
        "COMPLETE",
        inputs=tuple(inputs),
        outputs=tuple(
            structs.replace(each, column_lineage=draw(st.none() | COLUMNS), fed_by=draw(fed_by)) for each in outputs
        ),
    )


@settings(deadline=None)
@given(lineages(), st.integers(0, 6_000), st.integers(0, 6_000), st.randoms(use_true_random=False))
def test_any_lineage_and_limit(lineage: TaskLineage, limit: int, other: int, random: Any) -> None:
    reduced, facet = limited(lineage, limit, as_event)
    if facet is None:
        assert reduced == lineage
        assert sent_bytes(lineage) <= limit
    else:
        assert facet.fullBytes == sent_bytes(lineage)
        assert sent_bytes(reduced) == facet.fullBytes - sum(each["bytes"] for each in facet.leftOut)
        assert facet.isOverLimit or sent_bytes(reduced, facet) <= limit
    assert kept(reduced) == kept(lineage)
    assert dangling(reduced) <= dangling(lineage)
    assert limited(reduced, limit, as_event)[0] == reduced, "again changes nothing"
    low, high = (limited(lineage, each, as_event)[0] for each in sorted((limit, other)))
    assert sent_bytes(low) <= sent_bytes(high)
    for one, more in zip((*low.inputs, *low.outputs), (*high.inputs, *high.outputs), strict=True):
        # What a higher limit leaves out, a lower one does too.
        assert Sizes().facets(one, is_output=True) <= Sizes().facets(more, is_output=True)
    shuffled = structs.replace(
        lineage,
        inputs=tuple(random.sample(lineage.inputs, len(lineage.inputs))),
        outputs=tuple(random.sample(lineage.outputs, len(lineage.outputs))),
    )
    again, facet_again = limited(shuffled, limit, as_event)
    assert sorted(again.inputs, key=lambda each: each.dataset) == sorted(reduced.inputs, key=lambda each: each.dataset)
    assert sorted(again.outputs, key=lambda each: each.dataset) == sorted(
        reduced.outputs, key=lambda each: each.dataset
    )
    assert facet is None or (facet_again is not None and facet_again.fullBytes == facet.fullBytes)


def test_every_detail_is_in_the_schema_of_the_facet() -> None:
    path = Path(__file__).parents[2] / "docs" / "facets" / "1-0-0" / "ReducedRunFacet.json"
    schema = json.loads(path.read_text())
    assert set(schema["$defs"]["LeftOut"]["properties"]["detail"]["enum"]) == {step.detail for step in ORDER}
