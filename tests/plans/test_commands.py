"""What commands of plans write to, and which part of it."""

from __future__ import annotations

import pytest

from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.commands import read_command
from spark_lineage.plans.content import read_plan
from spark_lineage.plans.plan import parse_plan
from spark_lineage.plans.scope import UNTRACED
from spark_lineage.plans.tables import Tables

SCAN = "(1) Scan parquet \nOutput [1]: [id#1]\nLocation: InMemoryFileIndex [file:/in]\n\n"


def plan_of(name, arguments):
    return (
        f"== Physical Plan ==\nExecute {name} (2)\n+- Scan parquet  (1)\n\n\n"
        f"{SCAN}(2) Execute {name}\nArguments: {arguments}\n\n"
    )


def written(location):
    """Read a write of files to a location."""
    plan = parse_plan(
        plan_of("InsertIntoHadoopFsRelationCommand", f"{location}, false, Parquet, [path=x], Append, [id]")
    )
    assert plan is not None
    command = read_command(plan, Tables(), {})
    assert command is not None
    return command


@pytest.mark.parametrize(
    ("location", "partition"),
    [
        # INSERT INTO t PARTITION (day = 1, hour = 2)
        ("file:/wh/t, [day=1, hour=2]", ("day=1", "hour=2")),
        ("file:/wh/t/day=1, [day=1]", ("day=1",)),
        # Saved to a path that is a partition.
        ("file:/wh/t/day=1/hour=2", ("day=1", "hour=2")),
        ("file:/wh/t/day=1/", ("day=1",)),
        ("file:/wh/t/at=2026-01-01%2012%3A00", ("at=2026-01-01 12:00",)),
        # What is above a folder that is no partition is not one of this dataset.
        ("file:/wh/day=1/t", ()),
        ("file:/wh/t", ()),
        # Nor is what Spark would have escaped.
        ("file:/wh/a=b;c#d", ()),
    ],
)
def test_the_partition_of_a_write_of_files_is_a_static_one_or_that_of_its_path(location, partition) -> None:
    assert written(location).partition == partition


def test_an_overwrite_of_a_partition_by_its_path_is_partial() -> None:
    def overwritten(location):
        text = plan_of("InsertIntoHadoopFsRelationCommand", f"{location}, false, Parquet, [path=x], Overwrite, [id]")
        plan = parse_plan(text)
        assert plan is not None
        command = read_command(plan, Tables(), {})
        assert command is not None
        return command.is_partial

    assert overwritten("file:/wh/t/day=1")
    assert not overwritten("file:/wh/t")


def test_arguments_that_name_no_location_have_no_partition() -> None:
    command = written("nothing")
    assert (command.partition, command.mode) == ((), "Append")


def alone(name, arguments, tables):
    """Read a command that has no query."""
    text = (
        f"== Physical Plan ==\nExecute {name} (1)\n   +- {name} (2)\n\n\n(1) Execute {name}\nOutput: []\n\n"
        f"(2) {name}\nArguments: {arguments}\n\n"
    )
    return read_plan(text, tables, UNTRACED, {})


def test_a_table_that_is_restored_is_made_from_itself_and_from_no_column_of_another() -> None:
    table = "DeltaTableV2(org.apache.spark.sql.SparkSession@1f,file:/data/t,None,None,Map())"
    content = alone("RestoreTableCommand", f"{table}, 1", Tables())
    assert content.command is not None
    assert [one.dataset.name for one in content.inputs] == ["/data/t"]
    assert [(one.dataset.name, one.edges) for one in content.outputs] == [("/data/t", frozenset())]


def test_a_query_is_no_command_and_a_write_of_rows_that_nothing_merged_is_no_merge() -> None:
    query = parse_plan(f"== Physical Plan ==\nScan parquet  (1)\n\n\n{SCAN}")
    assert query is not None
    assert read_command(query, Tables(), {}) is None
    assert written("file:/wh/t").is_merge is False


@pytest.mark.parametrize(("operator", "is_merge"), [("MergeRows", True), ("Project", False)])
def test_a_rewrite_of_rows_is_a_merge_where_its_plan_merges_rows(operator, is_merge) -> None:
    plan = parse_plan(
        f"== Physical Plan ==\nReplaceData (3)\n+- {operator} (2)\n   +- Scan parquet  (1)\n\n\n{SCAN}"
        f"(2) {operator}\nInput [1]: [id#1]\n"
        "Arguments: true, true, [keep(Update, true, id#1)], [], [], false, [id#2]\n\n"
        "(3) ReplaceData\nInput [1]: [id#2]\nArguments: IcebergBatchWrite(table=ice.db.t, format=PARQUET)\n\n"
    )
    assert plan is not None
    command = read_command(plan, Tables(), {})
    assert command is not None
    assert (command.name, command.is_merge) == ("ReplaceData", is_merge)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (
            "InsertIntoHadoopFsRelationCommand",
            "file:/wh/t, [day=tue], false, [day#12, hour#13], Parquet, [path=file:/wh/t], Append, `s`.`d`.`t`, [id]",
            ("day", "hour"),
        ),
        (
            "InsertIntoHadoopFsRelationCommand",
            "file:/wh/t, false, [day#18], 2 buckets, bucket columns: [id], Parquet, [path=x], Overwrite, [id, day]",
            ("day",),
        ),
        ("InsertIntoHadoopFsRelationCommand", "file:/wh/t, false, Parquet, [path=x], Append, [id]", ()),
        (
            "InsertIntoHiveTable",
            "`s`.`d`.`t`, x.OrcSerde, [day=None, hour=Some(1)], false, false, [id, day], [day#63], x.HiveFileFormat@5",
            ("day", "hour"),
        ),
        ("InsertIntoHiveTable", "`s`.`d`.`t`, x.OrcSerde, false, false, [id], x.HiveFileFormat@5", ()),
    ],
)
def test_the_columns_that_a_table_is_partitioned_by(name, arguments, expected) -> None:
    plan = parse_plan(plan_of(name, arguments))
    assert plan is not None
    command = read_command(plan, Tables(), {})
    assert command is not None
    assert command.partitioned_by == expected


@pytest.mark.parametrize(
    ("checkpoint", "mode", "expected"),
    [
        ("file:/checkpoints/x/state", "Complete", "complete"),
        ("file:/checkpoints/x/state", "Update", "update"),
        # Spark 3.5 prints a plan that it has made for printing, with Append whatever the query has.
        ("<unknown>", "Append", ""),
    ],
)
def test_the_output_mode_of_a_query_is_that_of_its_aggregation(checkpoint, mode, expected) -> None:
    text = (
        "== Physical Plan ==\nStateStoreSave (2)\n+- Scan parquet  (1)\n\n\n"
        f"{SCAN}(2) StateStoreSave\nInput [1]: [id#1]\nArguments: [id#1], state info [ checkpoint = {checkpoint}, "
        f"runId = 17b8ac2e-ee36-4c1d-b7d2-2c31b669e6e6, opId = 0, ver = 0, numPartitions = 1] "
        f"stateStoreCkptIds = None, {mode}, 0, 0, 2\n\n"
    )
    assert read_plan(text, Tables(), UNTRACED, {}).output_mode == expected


@pytest.mark.parametrize(("overwrite", "mode"), [("true", "Overwrite"), ("false", "Append")])
def test_an_insert_into_a_hive_table_has_the_mode_that_it_is_told(overwrite, mode) -> None:
    plan = parse_plan(
        plan_of("InsertIntoHiveTable", f"`d`.`t`, x.HiveSerDe, [day=None], {overwrite}, false, [id, day]")
    )
    assert plan is not None
    command = read_command(plan, Tables(), {})
    assert command is not None
    assert (command.mode, command.is_partial) == (mode, mode == "Overwrite")


STORAGE = "InputFormat: org.apache.hadoop.mapred.TextInputFormat, Storage Properties: [field.delim=,]), true, [id]"


@pytest.mark.parametrize("serde", ["", "Serde Library: org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe, "])
def test_a_directory_that_hive_writes_is_overwritten_with_the_columns_of_its_query(serde) -> None:
    text = plan_of("InsertIntoHiveDirCommand", f"true, Storage(Location: /out/a, b, {serde}{STORAGE}")
    content = read_plan(text, Tables(), UNTRACED, {})
    (output,) = content.outputs
    assert (output.dataset.name, output.lifecycles, content.command.mode) == ("/out/a, b", {"OVERWRITE"}, "Overwrite")
    assert [(column, name.name, field) for column, name, field, _ in output.edges] == [("id", "/in", "id")]


@pytest.mark.parametrize("place", ["/out/a", "/out/a, b (c)"])
def test_directory_that_hive_writes_by_default_has_a_location_alone(place) -> None:
    # USING hive without OPTIONS; ROW FORMAT and STORED AS say more.
    text = plan_of("InsertIntoHiveDirCommand", f"false, Storage(Location: {place}), true, [id]")
    (output,) = read_plan(text, Tables(), UNTRACED, {}).outputs
    assert output.dataset.name == place


@pytest.mark.parametrize(("is_encoded", "name"), [(True, "/out/a b%"), (False, "/out/a%20b%25")])
def test_location_of_a_catalog_is_a_uri_where_spark_prints_it_so(is_encoded, name) -> None:
    tables = Tables()
    tables.has_encoded_places = is_encoded
    text = plan_of("InsertIntoHiveDirCommand", "false, Storage(Location: /out/a%20b%25), true, [id]")
    (output,) = read_plan(text, tables, UNTRACED, {}).outputs
    assert output.dataset.name == name


@pytest.mark.parametrize(
    ("place", "dataset"),
    [
        ("Hive, HiveTempPath(file:/lake/t)", DatasetName("file", "/lake/t")),
        # Spark 3.5; the table may be external.
        ("x.HiveFileFormat@1f, x.HiveTempPath@1f", DatasetName("file:/wh", "d.t")),
        ("x.HiveFileFormat@1f, x.HiveTempPath@1f, known", DatasetName("file", "/known/t")),
    ],
)
def test_table_of_hive_that_is_written_without_its_place_has_the_name_of_the_catalog(place, dataset) -> None:
    tables = Tables()
    tables.configure({"spark.sql.warehouse.dir": "/wh"}, "/jobs")
    if place.endswith("known"):
        tables.at("/known/t", "`d`.`t`")
    text = plan_of("InsertIntoHiveTable", f"`d`.`t`, x.HiveSerDe, false, false, [id], {place}")
    (output,) = read_plan(text, tables, UNTRACED, {}).outputs
    assert output.dataset == dataset


DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog@1f"


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        # Spark 3.5, and from 4.0.
        ("TableSpec(Map(),Some(delta),Map(),None,None,None,false)", "/wh/t"),
        ("TableSpec(Map(),Some(delta),Map(),Some(file:/lake/t),None,None,false)", "/lake/t"),
        (
            "TableSpec(Map(),Some(delta),Map(),Some(file:/lake/t (1)),Some(a (b), c),None,None,false,List())",
            "/lake/t (1)",
        ),
        ("TableSpec(Map(a -> b),Some(delta),Map(path -> /x),Some(/lake/t),None,None,None,false,List())", "/lake/t"),
    ],
)
def test_delta_table_that_a_query_makes_is_where_its_command_puts_it(spec, place) -> None:
    tables = Tables()
    tables.configure({"spark.sql.warehouse.dir": "/wh"}, "/jobs")
    text = (
        f"== Physical Plan ==\nAtomicCreateTableAsSelect (1)\n\n\n(1) AtomicCreateTableAsSelect\n"
        f"Arguments: {DELTA}, default.t, Project [id#1], {spec}, false\n\n"
    )
    (output,) = read_plan(text, tables, UNTRACED, {}).outputs
    assert output.dataset.name == place


@pytest.mark.parametrize("is_located", [False, True])
@pytest.mark.parametrize("relation", ["HiveTableRelation", "LogicalRelation"])
def test_table_that_a_logical_plan_reads_is_in_the_catalog_where_no_plan_says_its_place(relation, is_located) -> None:
    tables = Tables()
    tables.configure({"spark.sql.warehouse.dir": "/wh"}, "/jobs")
    if is_located:
        tables.at("file:/lake/t", "spark_catalog.default.t")
    text = (
        "== Physical Plan ==\nExecute CreateHiveTableAsSelectCommand (1)\n   +- CreateHiveTableAsSelectCommand (2)\n"
        f"         +- {relation} (3)\n\n\n(2) CreateHiveTableAsSelectCommand\n"
        "Arguments: [Database: default, TableName: made]\n\n"
        f"(3) {relation}\nArguments: `spark_catalog`.`default`.`t`, x.LazySimpleSerDe, [id#1]\n\n"
    )
    (read,) = read_plan(text, tables, UNTRACED, {}).inputs
    place = DatasetName("file", "/lake/t") if is_located else DatasetName("file:/wh", "default.t")
    assert read.dataset == place


@pytest.mark.parametrize(("told", "mode", "partition"), [
    ("true, false", "Append", ()),
    ("false, true, Map(day -> 1, hour -> a b)", "Overwrite", ("day=1", "hour=a b")),
])  # fmt: skip
def test_what_is_loaded_into_a_table_is_what_a_path_held(told, mode, partition) -> None:
    tables = Tables()
    tables.configure({"spark.sql.warehouse.dir": "/wh"}, "/jobs")
    content = alone("LoadDataCommand", f"`spark_catalog`.`db`.`t`, new, 1/day=2/x.csv, {told}", tables)
    command = content.command
    assert [one.dataset.name for one in content.inputs] == ["/jobs/new, 1/day=2/x.csv"]
    assert [link.name for one in content.outputs for link in one.tables] == ["db.t"]
    assert (command.mode, command.partition, command.is_partial) == (mode, partition, bool(partition))


@pytest.mark.parametrize(("mode", "lifecycle"), [
    ("ErrorIfExists", "CREATE"), ("Append", "CREATE"), ("Ignore", "CREATE"), ("Overwrite", "OVERWRITE"),
])  # fmt: skip
def test_a_table_that_is_saved_may_be_new_in_each_mode(mode, lifecycle) -> None:
    tables = Tables()
    tables.configure({"spark.sql.warehouse.dir": "/wh"}, "/jobs")
    content = alone("CreateDataSourceTableAsSelectCommand", f"`spark_catalog`.`db`.`t`, {mode}, [id]", tables)
    assert [one.lifecycles for one in content.outputs] == [{lifecycle}]


@pytest.mark.parametrize(("option", "partition", "is_partial"), [
    ("replacewhere=day = '2026-01-02' AND `region` == 'eu'", ("day=2026-01-02", "region=eu"), True),
    ("replacewhere=day = 2 and v > 1", (), True),
    ("partitionoverwritemode=dynamic", (), True),
    ("mergeschema=true", (), False),
])  # fmt: skip
def test_overwrite_of_delta_by_path_replaces_what_its_options_name(option, partition, is_partial) -> None:
    text = f"org.apache.spark.sql.delta.sources.DeltaDataSource@3d75, [{option}, path=/lake/t], Overwrite"
    command = alone("SaveIntoDataSourceCommand", text, Tables()).command
    assert (command.partition, command.is_partial) == (partition, is_partial)


@pytest.mark.parametrize(("options", "path"), [
    ("path=/lake/a b,c", "/lake/a b,c"),
    ("path=/lake/a], b", "/lake/a], b"),
    ("mergeschema=true, path=/lake/t", "/lake/t"),
    ("path=/lake/t, hoodie.table.name=t, mode=x", "/lake/t"),
    ("path=/lake/t, userMetadata=a, b=c", "/lake/t"),
    ("path=/lake/a, b=c", None),
    ("path=/lake/a, b=c, mergeschema=true", None),
])  # fmt: skip
def test_path_of_a_save_that_may_hold_what_looks_as_an_option_is_not_cut(options, path) -> None:
    text = f"org.apache.spark.sql.delta.sources.DeltaDataSource@3d75, [{options}], Append"
    target = alone("SaveIntoDataSourceCommand", text, Tables()).command.target
    assert (target and target.dataset) == (path and DatasetName("file", path))


def iceberg(text, configs=None):
    tables = Tables()
    tables.configure({"spark.sql.catalog.ice.type": "hadoop", "spark.sql.catalog.ice.warehouse": "/ice"}, "/w")
    return read_plan(text, tables, UNTRACED, configs or {})


@pytest.mark.parametrize(
    ("procedure", "counted"),
    [
        ("RollbackToSnapshotProcedure@6754b304, [db.t,23]", ("RollbackToSnapshotProcedure: the state of db.t",)),
        ("FastForwardBranchProcedure@64, [db.t,main,fix]", ("FastForwardBranchProcedure: the state of db.t",)),
        # Another table, and what leaves the rows as they are.
        ("CherrypickSnapshotProcedure@6d, [db.other,9]", ()),
        ("ExpireSnapshotsProcedure@6d, [db.t,9]", ()),
    ],
)
def test_a_call_that_moves_a_table_that_was_written_is_counted(procedure, counted) -> None:
    text = (
        "== Physical Plan ==\nCall (1)\n\n\n(1) Call\nArguments: [previous_snapshot_id#118L], org.apache.iceberg.spark"
    )
    found = iceberg(f"{text}.procedures.{procedure}\n\n")
    assert found.moves({DatasetName("file", "/ice/db/t")}) == counted
    assert found.unread == ()


@pytest.mark.parametrize(
    ("configs", "counted"), [({"spark.wap.id": "w1"}, ("AppendData: whether it is staged",)), ({}, ())]
)
def test_a_write_that_the_session_may_stage_is_counted(configs, counted) -> None:
    text = (
        f"== Physical Plan ==\nAppendData (2)\n+- Scan parquet  (1)\n\n\n{SCAN}"
        "(2) AppendData\nInput [1]: [id#1]\nArguments: IcebergWrite(table=ice.db.t, format=PARQUET)\n\n"
    )
    found = iceberg(text, configs)
    assert found.unread == counted
    assert found.command.target is not None


@pytest.mark.parametrize(("query", "is_counted"), [("Project [ID#0]", True), ("LocalTableScan [ID#0]", False)])
def test_write_to_a_jdbc_catalog_that_prints_the_top_of_its_query_alone_is_counted(query, is_counted):
    table = "JDBCTable(SALES.ORDERS,StructType(StructField(ID,IntegerType,true)),JDBCOptions@4df6cf1c,Map())"
    plan = (
        f"== Physical Plan ==\nAppendDataExecV1 (1)\n\n\n(1) AppendDataExecV1\nArguments: {table}, {query}, X$1@16\n\n"
    )
    found = read_plan(plan, Tables(), UNTRACED, {})
    assert found.unread == (("AppendDataExecV1: its query",) if is_counted else ())


@pytest.mark.parametrize("catalog", ["org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog", "x.Own"])
def test_table_that_a_catalog_renames_is_named(catalog):
    plan = "== Physical Plan ==\nRenameTable (1)\n\n\n(1) RenameTable\n"
    found = read_plan(f"{plan}Arguments: {catalog}@51, S.SUMS, S.DOUBLES, X$1@16\n\n", Tables(), UNTRACED, {})
    assert found.unread == ()
    assert found.statement is not None
    assert (found.statement.change, found.statement.new_name.rpartition(".")[2]) == ("RENAME", "DOUBLES")


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ("[day=Some(d2), hour=None], ", ("day=d2",)),
        ("[day=None], ", ()),
        ("[a=Some(1), b=Some(x y)], ", ("a=1", "b=x y")),
        ("", ()),
    ],
)
def test_static_partition_of_an_insert_into_a_hive_table_is_that_of_the_write(partitions, expected):
    arguments = f"`s`.`d`.`t`, x.OrcSerde, {partitions}false, false, [id], Hive, HiveTempPath(file:/wh/t)"
    plan = parse_plan(plan_of("InsertIntoHiveTable", arguments))
    assert plan is not None
    command = read_command(plan, Tables(), {})
    assert command is not None
    assert command.partition == expected


def test_a_command_whose_result_is_shown_is_an_execution_of_its_own() -> None:
    # As spark-sql plans a CREATE TABLE AS SELECT once more when it has run (Spark 4.2).
    text = (
        "== Physical Plan ==\nCommandResult (1)\n   +- Execute CreateDataSourceTableAsSelectCommand (2)\n"
        "         +- CreateDataSourceTableAsSelectCommand (3)\n               +- Project (5)\n"
        "                  +- LogicalRelation (4)\n\n\n(1) CommandResult\nOutput: []\nArguments: <empty>\n\n"
        "(2) Execute CreateDataSourceTableAsSelectCommand\nOutput: []\n\n(3) CreateDataSourceTableAsSelectCommand\n"
        "Arguments: `spark_catalog`.`default`.`t1`, ErrorIfExists, [id]\n\n(4) LogicalRelation\n"
        "Arguments: json, [id#1L], false\n\n(5) Project\nArguments: [id#1L]\n\n"
    )
    plan = parse_plan(text)
    assert plan is not None
    assert read_command(plan, Tables(), {}) is None
    content = read_plan(text, Tables(), UNTRACED, {})
    assert (content.command.name, content.outputs, content.unread) == ("", (), ())
