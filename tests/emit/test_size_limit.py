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

from spark_lineage.emit.run_event import REDUCED_KEY, run_event, to_json, to_text
from spark_lineage.emit.size_limit import (
    AIRFLOW_BYTES,
    DEFAULT_LIMIT_BYTES,
    LADDER,
    cut,
    merged_event,
    reduction_text,
)
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.merge.conclusion import EndFacts, conclude
from spark_lineage.merge.lineage import (
    Catalog,
    CatalogChange,
    ColumnLineage,
    DatasetLineage,
    InputField,
    ParentRun,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    TaskLineage,
    Transformation,
)
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.submission.collector import Collector

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "events").glob("*.ndjson"))
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
DIRECT = Transformation("DIRECT", "IDENTITY")
MADE = Transformation("DIRECT", "TRANSFORMATION", "coalesce(a, b)")
JOIN = Transformation("INDIRECT", "JOIN")
FILTER = Transformation("INDIRECT", "FILTER")


def as_event(lineage: TaskLineage) -> RunEvent:
    return run_event(lineage, None, job_namespace="airflow", job_name="dag.task", run_id=RUN_ID)


def sent_bytes(event: RunEvent) -> int:
    return len(Serde.to_json(event).encode())


def limited(lineage: TaskLineage, limit: int, **options: Any) -> tuple[RunEvent, Any]:
    """The event, cut to the limit, and the facet that says so."""
    event = as_event(lineage)
    reduced = cut(event, limit, **options)
    assert (event.run.facets or {}).get(REDUCED_KEY) is reduced
    return event, reduced


def document(event: RunEvent) -> Any:
    return json.loads(to_json(event))


def of(name: str, **values: Any) -> DatasetLineage:
    return DatasetLineage(DatasetName("s3://warehouse", name), **values)


def columns(*names: str) -> tuple[SchemaField, ...]:
    return tuple(SchemaField(name, "string") for name in names)


def edge(source: DatasetLineage, field: str, *transformations: Transformation) -> InputField:
    return InputField(source.dataset, field, transformations or (DIRECT,))


def kept(event: RunEvent) -> Any:
    """What is never left out."""
    made = document(event)
    return [
        [(each["namespace"], each["name"]) for each in made["inputs"]],
        [
            (
                each["namespace"],
                each["name"],
                each["facets"].get("lifecycleStateChange"),
                {key: each["outputFacets"].get(key) for key in ("outputStatistics", "sparkLineage_writes")},
            )
            for each in made["outputs"]
        ],
    ]


def dangling(event: RunEvent) -> set[tuple[str, str]]:
    """The ends of column edges that no schema has: Marquez would not show these edges."""
    made = document(event)
    known = {
        (each["name"], field["name"])
        for each in (*made["inputs"], *made["outputs"])
        for field in each["facets"].get("schema", {}).get("fields", ())
    }
    ends = set()
    for output in made["outputs"]:
        lineage = output["facets"].get("columnLineage", {})
        for column, each in lineage.get("fields", {}).items():
            ends |= {(output["name"], column), *((edge["name"], edge["field"]) for edge in each["inputFields"])}
        ends |= {(each["name"], each["field"]) for each in lineage.get("dataset", ())}
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


def test_cut_event_that_fits_is_left_as_it_is() -> None:
    limit = measured(as_event(rich()))
    event, reduced = limited(rich(), limit)
    assert reduced is None
    assert to_json(event) == to_json(as_event(rich()))
    assert limited(rich(), limit - 1)[1] is not None


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_cut_event_that_fits_twice_is_not_measured(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = as_event(task_of(path))
    limit = 2 * (sent_bytes(event) + 256)
    assert measured(as_event(task_of(path))) < limit
    monkeypatch.setattr("spark_lineage.emit.size_limit._Ladder", None)
    assert cut(event, limit) is None


def measured(event: RunEvent) -> int:
    """The bytes that the ladder finds in an event, of which it takes every one for too many."""
    return int(cut(event, 0).fullBytes)


def test_cut_one_byte_too_much_costs_the_least_detail() -> None:
    event, reduced = limited(rich(), measured(as_event(rich())) - 1)
    # The facet itself has some bytes, so that the first rung alone may not do.
    assert details(reduced)[0] == "descriptions"
    assert sent_bytes(event) < sent_bytes(as_event(rich()))
    assert "columnEdges" not in details(reduced)


def test_cut_everything_leaves_out_details_in_order() -> None:
    event, reduced = limited(rich(), 1)
    assert details(reduced) == [
        "descriptions",
        "storage",
        "unusedColumns",
        "indirectColumnEdges",
        "columnEdges",
        "schemas",
        "exactEdges",
        "symlinks",
        "inputStatistics",
        "dataSources",
    ]
    assert kept(event) == kept(as_event(rich()))


def walk(lineage: TaskLineage) -> list[tuple[int, RunEvent, Any]]:
    """Every event of the ladder, from the whole to the barest, with a limit that gives it."""
    found = []
    limit = measured(as_event(lineage)) - 1
    while True:
        event, reduced = limited(lineage, limit)
        assert reduced is not None
        found.append((limit, event, reduced))
        if reduced.isOverLimit:
            return found
        limit = sent_bytes(event) - 1


def without(lineage: TaskLineage, last: str) -> Any:
    """The event without any detail up to the last one: the first of the ladder that has lost a part of the next."""
    limit = measured(as_event(lineage))
    place = [rung.detail for rung in LADDER].index(last)
    ladder = LADDER[: place + 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spark_lineage.emit.size_limit.LADDER", ladder)
        event, _ = limited(lineage, min(limit, 1))
    return document(event)


def edges_of(event: Any) -> dict[str, Any]:
    return {
        column: each["inputFields"]
        for column, each in event["outputs"][-1]["facets"].get("columnLineage", {}).get("fields", {}).items()
    }


def test_cut_each_detail_is_what_its_name_says() -> None:
    lineage = rich()
    orders, other = without(lineage, "descriptions")["inputs"]
    assert "description" not in json.dumps([orders, other])
    assert (len(orders["facets"]["schema"]["fields"]), len(other["facets"]["schema"]["fields"])) == (4, 1)
    orders, _ = without(lineage, "storage")["inputs"]
    assert {"storage", "version"}.isdisjoint(orders["facets"])
    assert "symlinks" in orders["facets"]
    orders, other = without(lineage, "unusedColumns")["inputs"]
    assert [each["name"] for each in orders["facets"]["schema"]["fields"]] == ["id", "customer", "status"]
    assert orders["facets"]["schema"]["fields"][1]["fields"], "an edge refers to a field of it"
    assert "schema" not in other["facets"]
    left = without(lineage, "indirectColumnEdges")
    assert {name: len(each) for name, each in edges_of(left).items()} == {"id": 1, "name": 1}
    assert len(left["outputs"][1]["facets"]["columnLineage"]["dataset"]) == 1
    left = without(lineage, "columnEdges")
    assert ["columnLineage" in each["facets"] for each in left["outputs"]] == [False, False]
    assert left["outputs"][1]["facets"]["schema"]
    assert not any("schema" in each["facets"] for each in without(lineage, "schemas")["outputs"])


def test_cut_column_called_description_keeps_its_edges() -> None:
    source = of("a", schema=(SchemaField("description", "string", "a text"),))
    output = of("b", column_lineage=ColumnLineage((("description", (edge(source, "description", MADE),)),)))
    left = without(TaskLineage("COMPLETE", inputs=(source,), outputs=(output,)), "descriptions")
    (found,) = edges_of(left)["description"]
    assert found["transformations"] == [{"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": False}]
    assert left["inputs"][0]["facets"]["schema"]["fields"] == [{"name": "description", "type": "string"}]


def test_cut_what_is_not_in_the_event_cannot_be_left_out() -> None:
    # A column without edges is never sent.
    output = of("a", schema=columns("x"), column_lineage=ColumnLineage((("x", ()),)))
    _, reduced = limited(TaskLineage("COMPLETE", outputs=(output,)), 1)
    assert details(reduced) == ["schemas", "dataSources"]


def test_cut_a_column_that_only_an_edge_of_the_dataset_names_is_used() -> None:
    source = of("a", schema=columns("x", "unused"))
    output = of("b", column_lineage=ColumnLineage(dataset=(edge(source, "x", FILTER),)))
    (left,) = without(TaskLineage("COMPLETE", inputs=(source,), outputs=(output,)), "unusedColumns")["inputs"]
    assert [each["name"] for each in left["facets"]["schema"]["fields"]] == ["x"]


def test_cut_an_edge_of_which_no_transformation_is_known_is_no_indirect_one() -> None:
    source = of("a", schema=columns("x"))
    output = of("b", column_lineage=ColumnLineage((("x", (InputField(source.dataset, "x"),)),)))
    left = without(TaskLineage("COMPLETE", inputs=(source,), outputs=(output,)), "indirectColumnEdges")
    assert edges_of(left)["x"] == [{"namespace": "s3://warehouse", "name": "a", "field": "x"}]


def test_cut_catalog_changes_stay_without_their_schemas() -> None:
    moment = datetime(2024, 1, 31, tzinfo=UTC)
    change = CatalogChange(
        "CREATE", "TABLE", DatasetName("file", "/t"), "db.t", moment, schema=columns("a"), properties=(("k", "v"),)
    )
    event, reduced = limited(TaskLineage("COMPLETE", catalog_changes=(change,)), 1)
    found = document(event)["run"]["facets"]["sparkLineage_catalogChanges"]
    assert found["_schemaURL"].endswith("/CatalogChangesRunFacet.json#/$defs/CatalogChangesRunFacet")
    (left,) = found["changes"]
    assert {"schema", "properties"}.isdisjoint(left)
    assert left["objectName"] == "db.t"
    assert details(reduced) == ["catalogSchemas"]


def test_cut_the_biggest_dataset_of_a_rung_loses_first() -> None:
    small, big = of("a", schema=columns("x")), of("b", schema=columns(*(f"x{number}" for number in range(40))))
    lineage = TaskLineage("COMPLETE", inputs=(small, big))
    event, reduced = limited(lineage, sent_bytes(as_event(lineage)) - 1)
    assert ["schema" in each["facets"] for each in document(event)["inputs"]] == [True, False]
    assert [each["name"] for each in reduced.leftOut[0]["datasets"]] == ["b"]


def test_cut_a_wide_table_loses_no_more_column_edges_than_needed() -> None:
    chain = [each for each in walk(wide(30)) if details(each[2])[-1] == "columnEdges"]
    counts = [reduced.leftOut[-1]["datasets"][0].get("columnCount") for _, _, reduced in chain]
    assert len(chain) > 20
    assert counts == [*sorted(each or 0 for each in counts[:-1]), None]
    one_column = sent_bytes(as_event(wide(30))) // 30
    for (limit, event, reduced), count in zip(chain[:-1], counts, strict=False):
        assert_is_cut(event, reduced, limit, wide(30))
        assert len(edges_of(document(event))) + count == 30
        assert limit - one_column < sent_bytes(event) <= limit


def test_cut_a_table_that_lost_a_part_is_named_before_one_that_lost_all() -> None:
    lineage = wide(30)
    (table,) = lineage.outputs
    lineage = structs.replace(lineage, outputs=(table, structs.replace(table, dataset=of("shop.db/wider").dataset)))
    losers = [reduced.leftOut[-1]["datasets"] for _, _, reduced in walk(lineage)]
    parts = [["columnCount" in each for each in datasets] for datasets in losers if len(datasets) > 1]
    assert [True, False] in parts
    assert [False, True] not in parts


@pytest.mark.parametrize("description", ["", "coalesce(column, other_column)"])
def test_cut_a_table_of_2_000_columns_fits_and_keeps_edges(description: str) -> None:
    lineage = wide(2_000, description)
    event, reduced = limited(lineage, DEFAULT_LIMIT_BYTES, reserved_bytes=AIRFLOW_BYTES)
    assert reduced.fullBytes > DEFAULT_LIMIT_BYTES
    assert sent_bytes(event) + AIRFLOW_BYTES <= DEFAULT_LIMIT_BYTES
    assert kept(event) == kept(as_event(lineage))
    assert not dangling(event)
    assert len(edges_of(document(event))) > 1_000


def test_cut_5_000_datasets_all_stay() -> None:
    event, reduced = limited(many(), DEFAULT_LIMIT_BYTES, reserved_bytes=AIRFLOW_BYTES)
    assert not reduced.isOverLimit
    assert sent_bytes(event) + AIRFLOW_BYTES <= DEFAULT_LIMIT_BYTES
    assert kept(event) == kept(as_event(many()))
    assert all(len(each["datasets"]) <= 10 for each in reduced.leftOut)
    assert max(each["datasetCount"] for each in reduced.leftOut) == 5_000


def test_cut_names_that_alone_are_too_much_are_sent_and_the_event_says_so() -> None:
    event, reduced = limited(many(2_000), 50_000)
    assert reduced.isOverLimit
    assert sent_bytes(event) > 50_000
    assert kept(event) == kept(as_event(many(2_000)))
    assert "still over the limit" in reduction_text(reduced)


def test_cut_when_the_time_is_over_leaves_out_all_details_of_an_event_that_is_too_big() -> None:
    event, reduced = limited(many(), 200_000, deadline=Deadline(0))
    bare, _ = limited(many(), 1)
    assert [each["facets"] for each in document(event)["outputs"]] == [
        each["facets"] for each in document(bare)["outputs"]
    ]
    assert kept(event) == kept(as_event(many()))
    assert max(each["datasetCount"] for each in reduced.leftOut) == 5_000
    small, reduced = limited(rich(), DEFAULT_LIMIT_BYTES, deadline=Deadline(0))
    assert reduced is None
    assert to_json(small) == to_json(as_event(rich()))


def test_cut_when_the_time_is_over_measures_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0

    def counted(value: Any) -> str:
        nonlocal encoded
        text = to_text(value)
        encoded += len(text)
        return text

    monkeypatch.setattr("spark_lineage.emit.size_limit.to_text", counted)
    event, _ = limited(many(), 200_000, deadline=Deadline(0))
    assert encoded < 1.5 * sent_bytes(event) + 300_000 < sent_bytes(as_event(many()))


def test_cut_of_json_is_that_of_the_event() -> None:
    for limit in (3_000, 4_000, 5_000, 6_000):
        event, _ = limited(rich(), limit)
        made = document(as_event(rich()))
        cut(made, limit)
        made["run"]["facets"][REDUCED_KEY] = document(event)["run"]["facets"][REDUCED_KEY]
        assert made == document(event)


def test_reduction_text_names_what_was_left_out() -> None:
    _, reduced = limited(wide(), DEFAULT_LIMIT_BYTES)
    text = reduction_text(reduced)
    assert f"{reduced.fullBytes:,} bytes, over the limit of 1,000,000" in text
    assert "indirectColumnEdges of 1" in text
    assert "still over" not in text


def task_of(path: Path) -> TaskLineage:
    collector = Collector()
    collector.add(path.read_bytes().splitlines(), source=path.name)
    return task_lineage(collector.state, conclude(EndFacts(exit_code=0)))


def assert_is_cut(event: RunEvent, reduced: Any, limit: int, lineage: TaskLineage) -> None:
    whole = as_event(lineage)
    datasets = len(lineage.inputs) + len(lineage.outputs)
    if reduced is None:
        assert to_json(event) == to_json(whole)
        assert sent_bytes(event) <= limit
        return
    assert sent_bytes(whole) <= reduced.fullBytes <= sent_bytes(whole) + 300 + 32 * datasets
    assert reduced.isOverLimit or sent_bytes(event) <= limit
    assert len(to_json(event)) <= sent_bytes(event)
    assert kept(event) == kept(whole)
    assert dangling(event) <= dangling(whole)
    left = document(event)
    del left["run"]["facets"][REDUCED_KEY]
    assert cut(left, 0).fullBytes == reduced.fullBytes - sum(each["bytes"] for each in reduced.leftOut)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_cut_real_events_are_measured(path: Path) -> None:
    lineage = task_of(path)
    for limit, event, reduced in walk(lineage)[::3]:
        assert_is_cut(event, reduced, limit, lineage)


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
def test_cut_any_lineage_and_limit(lineage: TaskLineage, limit: int, other: int, random: Any) -> None:
    event, reduced = limited(lineage, limit)
    assert_is_cut(event, reduced, limit, lineage)
    low, high = (limited(lineage, each)[0] for each in sorted((limit, other)))
    # What a higher limit leaves out, a lower one does too.
    for side in ("inputs", "outputs"):
        for one, more in zip(document(low)[side], document(high)[side], strict=True):
            assert len(json.dumps(one)) <= len(json.dumps(more))
    shuffled = structs.replace(
        lineage,
        inputs=tuple(random.sample(lineage.inputs, len(lineage.inputs))),
        outputs=tuple(random.sample(lineage.outputs, len(lineage.outputs))),
    )
    again, reduced_again = limited(shuffled, limit)
    for side in ("inputs", "outputs"):
        by_name = [sorted(document(each)[side], key=lambda one: one["name"]) for each in (event, again)]
        assert by_name[0] == by_name[1]
    assert (reduced and reduced.fullBytes) == (reduced_again and reduced_again.fullBytes)


def test_ladder_details_are_in_the_schema_of_the_facet() -> None:
    path = Path(__file__).parents[2] / "docs" / "facets" / "1-0-0" / "ReducedRunFacet.json"
    schema = json.loads(path.read_text())
    assert schema["$defs"]["LeftOut"]["properties"]["detail"]["enum"] == [rung.detail for rung in LADDER]


def test_merged_event_with_run_id_that_is_no_uuid_raises() -> None:
    with pytest.raises(ValueError, match="badly formed"):
        merged_event(TaskLineage(state="COMPLETE"), ParentRun("run-1", "airflow", "dag.task"), DEFAULT_LIMIT_BYTES)
