"""By which names of RDDs, filters of sources and descriptions of sinks something is known to be read or written."""

from __future__ import annotations

import pytest

from spark_lineage.merge.lineage import IDENTITY
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.commands import Command
from spark_lineage.plans.content import PlanContent, read_plan, streamed
from spark_lineage.plans.event_log_lines import JobStart, Rdd, Stage
from spark_lineage.plans.names import Names
from spark_lineage.plans.scope import UNTRACED, Column, Traced
from spark_lineage.plans.tables import Tables


def rdd(name, method, parents=()):
    return Rdd(name=name, scope=f'{{"id":"0","name":"{method}"}}', parents=list(parents))


@pytest.mark.parametrize(
    ("one", "is_path"),
    [
        (rdd("/in/a", "textFile"), True),
        (rdd("/in/a", "newAPIHadoopFile"), True),
        # Of two RDDs that textFile makes, the second has the name that the program gives it.
        (rdd("my lines", "textFile", [0]), False),
        (rdd("MapPartitionsRDD", "textFile", [0]), False),
        (rdd("HadoopRDD", "textFile"), False),
        (rdd("/in/a", "wholeTextFiles", [0]), True),
        (rdd("/in/a", "wholeTextFiles"), False),
        (rdd("/in/a", "parallelize"), False),
        (Rdd(name="/in/a"), False),
    ],
)
def test_an_rdd_is_named_by_its_path_where_spark_named_it(one, is_path) -> None:
    assert one.is_named_by_path is is_path


def test_an_rdd_of_several_files_names_each() -> None:
    job = JobStart(id=0, stage_infos=[Stage(rdds=[rdd("/in/a, /in/b", "textFile"), rdd("mine", "parallelize")])])
    assert job.paths == {"/in/a", "/in/b"}


def filtered(pushed):
    """Read a scan of a database that picks rows itself."""
    name = "Scan JDBCRelation(orders) [numPartitions=1]"
    text = (
        f"== Physical Plan ==\n{name} (1)\n\n\n(1) {name}\nOutput [1]: [id#1]\n"
        f"PushedFilters: [{pushed}]\nReadSchema: struct<id:int>\n\n"
    )
    traced = read_plan(text, Tables(), UNTRACED, {}).traced
    assert {how.subtype for _, _, how in traced.dataset_wide} <= {"FILTER"}
    return {column for _, column, _ in traced.dataset_wide}


@pytest.mark.parametrize(
    ("pushed", "columns"),
    [
        ("*IsNotNull(id), *GreaterThan(id,3)", {"id"}),
        ("*In(kind, [a,b])", {"kind"}),
        ("*Not(EqualTo(`a.b`,1))", {"a.b"}),
        ("*Or(EqualTo(kind,x),LessThan(at,2))", {"kind", "at"}),
        # Without a star Spark filters once more, and its filter says so.
        ("IsNotNull(id), In(kind, [a,b])", set()),
    ],
)
def test_what_a_source_alone_filters_by_decides_on_the_rows(pushed, columns) -> None:
    assert filtered(pushed) == columns


@pytest.mark.parametrize(
    ("sink", "path"),
    [
        ("FileSink[file:/out]", "/out"),
        # As the program says it, in Spark 3.5.
        ("FileSink[out/orders]", "/data/lab/out/orders"),
        ("DeltaSink[out/orders]", "/data/lab/out/orders"),
        ("DeltaSink[file:/out]", "/out"),
        ("ForeachBatchSink", None),
        ("MemorySink", None),
    ],
)
def test_a_sink_of_files_may_be_relative_to_the_directory_of_the_driver(sink, path) -> None:
    tables = Tables()
    tables.configure({}, "/data/lab")
    _, outputs = streamed(PlanContent(), (), sink, tables)
    assert [one.dataset for one in outputs] == ([DatasetName("file", path)] if path else [])


def test_a_command_in_a_batch_writes_what_it_names_whatever_the_sink() -> None:
    own = Observed(DatasetName("file", "/own"))
    _, outputs = streamed(PlanContent(Command("AppendData", target=own)), (), "FileSink[file:/out]", Tables())
    assert [one.dataset for one in outputs] == [own.dataset]


def query_of(*columns):
    source = DatasetName("file", "/t")
    traced = Traced(tuple(Column(each, f"c{each}", frozenset({(source, "c", IDENTITY)})) for each in columns))
    return PlanContent(inputs=(Observed(source),), traced=traced)


def test_the_query_of_a_command_is_the_one_that_has_its_columns_else_the_first() -> None:
    files, feed, own = query_of(1, 2), query_of(3, 4, 5), query_of(5, 6)
    for ids, query in (({5, 6, 7}, own), ({8}, files)):
        command = PlanContent(Command("InsertIntoHadoopFsRelationCommand", has_data=False), ids=frozenset(ids))
        assert command.completed([files, feed, own], Names()).traced is query.traced


@pytest.mark.parametrize(
    ("order", "above", "deciding"),
    [
        ("day#2 ASC NULLS FIRST", "", set()),
        ("id#1 ASC NULLS FIRST", "", {"id"}),
        ("day#2 ASC NULLS FIRST, id#1 ASC NULLS FIRST", "", {"day", "id"}),
        ("day#2 ASC NULLS FIRST", "Project", {"day"}),
        ("day#2 ASC NULLS FIRST", "SortAggregate", set()),
        # A text that is empty is the partition of null.
        ("day#2 ASC NULLS FIRST", "empty2null", set()),
        ("day#2 ASC NULLS FIRST, id#1 ASC NULLS FIRST", "empty2null", {"day", "id"}),
    ],
)
def test_a_sort_within_partitions_is_of_the_user_where_nothing_above_needs_it(order, above, deciding) -> None:
    name, partition, made = "Execute InsertIntoHadoopFsRelationCommand", "day#2", "id#1, day#2"
    if above == "empty2null":
        above, partition, made = "Project", "day#9", "id#1, empty2null(day#2) AS day#9"
    between = f"   +- {above} (3)\n      +- Sort (2)\n         +- Scan" if above else "   +- Sort (2)\n      +- Scan"
    given = "Output [2]" if above == "Project" else "Keys [2]: [id#1, day#2]\nResults [2]"
    block = f"(3) {above}\n{given}: [{made}]\nInput [2]: [id#1, day#2]\n\n" if above else ""
    text = (
        f"== Physical Plan ==\n{name} (5)\n+- WriteFiles (4)\n{between} parquet  (1)\n\n\n"
        "(1) Scan parquet \nOutput [2]: [id#1, day#2]\nLocation: InMemoryFileIndex [file:/in]\n\n"
        f"(2) Sort\nInput [2]: [id#1, day#2]\nArguments: [{order}], false, 0\n\n{block}"
        f"(4) WriteFiles\nInput [2]: [id#1, {partition}]\n\n(5) {name}\nInput [2]: [id#1, {partition}]\n"
        f"Arguments: file:/out, false, [{partition}], Parquet, [path=file:/out], Append, [id, day]\n\n"
    )
    found = read_plan(text, Tables(), UNTRACED, {}).traced.dataset_wide
    assert {column for _, column, how in found if how.subtype == "SORT"} == deciding
