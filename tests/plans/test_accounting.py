"""What the accounts of an execution leave over: no plan text is read for them, the nodes are those of real logs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from spark_lineage.merge.lineage import Symlink
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName
from spark_lineage.plans.accounting import Account, Accounts
from spark_lineage.plans.accounting_rules import COMMANDS, LEAVES, WRITES
from spark_lineage.plans.event_log_lines import ExecutionStart, PlanInfo

ORDERS = Observed(DatasetName("file", "/lake/orders.csv"))
OUT = Observed(DatasetName("file", "/lake/out"))
INSERT = "Execute InsertIntoHadoopFsRelationCommand"
SINK = "org.apache.spark.sql.execution.streaming.sources.MemoryStreamingWrite@1f"


def node(name: str, *children: Any, text: str = "", location: str = "") -> dict[str, Any]:
    metadata = {"Location": location} if location else {}
    return {"nodeName": name, "simpleString": text or name, "children": children, "metadata": metadata}


def scan(*paths: str, count: int | None = None, index: str = "InMemoryFileIndex", name: str = "Scan csv ") -> Any:
    return node(name, location=f"{index}({len(paths) if count is None else count} paths)[{', '.join(paths)}]")


def opened(
    plan: Any,
    accounts: Accounts | None = None,
    around: Account | None = None,
    *,
    execution: int = 1,
    root: int | None = None,
    is_batch: bool = False,
    **more: Any,
) -> Account:
    event = {"executionId": execution, "time": 0, "sparkPlanInfo": plan, "rootExecutionId": root, **more}
    started = msgspec.json.decode(
        msgspec.json.encode(event | {"Event": ExecutionStart.__struct_config__.tag}), type=ExecutionStart
    )
    return (accounts or Accounts()).open(started, around, is_batch=is_batch)


def left(account: Account, inputs: tuple[Observed, ...] = (), outputs: tuple[Observed, ...] = ()) -> list[str]:
    return [part.name for part in account.remaining(inputs, outputs)]


def test_leaf_named_by_the_reader_is_not_left() -> None:
    account = opened(node(INSERT, node("Project", scan("file:/lake/orders.csv"))))
    assert left(account, (ORDERS,), (OUT,)) == []
    assert left(account) == ["InsertIntoHadoopFsRelationCommand", "Scan csv"]


def test_query_of_a_cursor_is_left() -> None:
    assert left(opened(node("OpenCursor"))) == ["OpenCursor: its query"]
    assert left(opened(node("FetchCursor"))) == []


def test_leaf_whose_dataset_is_named_wrongly_is_left() -> None:
    other = Observed(DatasetName("file", "/lake/orders"))
    assert left(opened(scan("file:/lake/orders.csv")), (other,)) == ["Scan csv"]


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("s3a://lake/raw/orders", "s3://lake", "raw/orders"),
        ("hdfs://nn:8020/raw/orders", "hdfs://nn:8020", "/raw/orders"),
        ("file:/wh/orders/day=1", "file", "/wh/orders"),
        ("file:///wh/orders", "file", "/wh/orders"),
    ],
)
def test_leaf_at_or_inside_of_a_dataset_is_its_own(location: str, namespace: str, name: str) -> None:
    assert left(opened(scan(location)), (Observed(DatasetName(namespace, name)),)) == []


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("Scan hive spark_catalog.shop.visits", "/wh/shop.db/visits"),
        ("BatchScan ice.db.orders", "/ice/db/orders"),
        ("Scan JDBC v1 Relation from v2 scan h2.SALES.ORDERS ", "SALES.ORDERS"),
        ("Scan JDBCRelation(SALES.ORDERS) [numPartitions=1] ", "SHOP.SALES.ORDERS"),
    ],
)
def test_leaf_of_a_table_is_the_dataset_whose_name_ends_alike(name: str, named: str) -> None:
    account = opened(node(name))
    assert left(account, (Observed(DatasetName("postgres://db:5432", named)),)) == []
    assert left(account, (Observed(DatasetName("postgres://db:5432", "other")),)) != []


def test_leaf_of_a_v2_source_of_files_needs_each_path() -> None:
    account = opened(node("BatchScan csv file:/lake/orders.csv,file:/lake/more.csv"))
    assert left(account, (ORDERS, Observed(DatasetName("file", "/lake/more.csv")))) == []
    assert left(account, (ORDERS,)) != []


def test_leaf_is_called_the_same_in_each_run() -> None:
    assert left(opened(node("Scan PriceRelation@1f3c "))) == ["Scan PriceRelation"]


def test_leaf_of_a_table_is_known_by_a_symlink_as_well() -> None:
    table = Observed(DatasetName("file", "/lake/7f3"), symlinks=frozenset({Symlink("hive://ms", "shop.visits")}))
    assert left(opened(node("Scan hive spark_catalog.shop.visits")), (table,)) == []


def test_cut_list_of_paths_is_left_unless_as_many_datasets_or_their_directory_are_named() -> None:
    account = opened(scan("file:/in/a.csv", "file:/in/b.csv", "...", count=100))
    two = tuple(Observed(DatasetName("file", f"/in/{name}.csv")) for name in "ab")
    assert left(account, two) == ["Scan csv"]
    assert left(account, (Observed(DatasetName("file", "/in")),)) == []


def test_leaf_without_a_name_needs_a_dataset_of_its_own() -> None:
    account = opened(node("Union", scan("file:/lake/orders.csv"), node("BatchScan prices")))
    assert left(account, (ORDERS,)) == ["BatchScan prices"]
    relation = opened(node("Union", scan("file:/lake/orders.csv"), node("Scan PriceRelation(7) ")))
    assert left(relation, (ORDERS,)) == ["Scan PriceRelation(7)"]
    assert left(relation, (ORDERS, Observed(DatasetName("http://prices", "all")))) == []


@pytest.mark.parametrize(
    "plan",
    [
        node("LocalTableScan", text="LocalTableScan [a#1, b#2L]"),
        node("Range", text="Range (0, 4, step=1, splits=2)"),
        node("Scan OneRowRelation"),
        node("Execute CreateViewCommand"),
        node("Execute ClearCacheCommand$"),
        node("DropTable", text="DropTable V2SessionCatalog(spark_catalog), db.t, false"),
        node("Call", text="CallExec[rewritten_data_files_count#35] RewriteDataFilesProcedure"),
        node(""),
        node("MicroBatchScan", text="MicroBatchScan[value#9L] class org.apache.spark.sql.x.RateStreamTable$$anon$1"),
        node("BatchScan /lake/db/t/metadata/v7.metadata.json#all_manifests"),
        node("OverwriteByExpression", node("Range"), text="OverwriteByExpression x, o.a.s.sql.noop.NoopWrite$@5b"),
        scan("file:/lake/t/_delta_log/0.json", index="DeltaLogFileIndex", name="Scan json "),
        node("Scan ExistingRDD Delta Table State #0 - file:///lake/t/_delta_log"),
        node("Scan ExistingRDD mergeMaterializedSource"),
    ],
)
def test_node_that_a_rule_ignores_is_not_left(plan: Any) -> None:
    assert left(opened(plan)) == []


def test_command_without_a_rule_is_left() -> None:
    assert left(opened(node("Execute FrobnicateCommand"))) == ["FrobnicateCommand"]
    assert left(opened(node("Call", text="CallExec[a#1] AddFilesProcedure"))) == ["Call"]


def test_write_to_an_unknown_sink_is_left() -> None:
    assert left(opened(node("AppendData ledger", scan("file:/lake/orders.csv"))), (ORDERS,)) == ["AppendData ledger"]


def test_rules_are_disjoint() -> None:
    assert not WRITES.keys() & (COMMANDS.keys() | LEAVES.keys())
    assert all({**COMMANDS, **LEAVES}.values())


class TestLocalRows:
    READ = node(INSERT, node("LocalTableScan", text="LocalTableScan [sku#5, amount#6]"))

    def test_rows_of_a_memory_sink_that_are_written_are_left(self) -> None:
        accounts = Accounts()
        batch = node(
            "WriteToDataSourceV2", node("Range", text="Project [sku#1, amount#2]"), text=f"MicroBatchWrite[{SINK}]"
        )
        assert left(opened(batch, accounts, is_batch=True)) == []
        assert left(opened(self.READ, accounts), (), (OUT,)) == ["LocalTableScan of a memory sink"]
        other = node(INSERT, node("LocalTableScan", text="LocalTableScan [id#5]"))
        assert left(opened(other, accounts), (), (OUT,)) == []

    def test_answer_of_a_delta_log_needs_the_table(self) -> None:
        accounts = Accounts()
        state = node("Scan ExistingRDD Delta Table State with Stats #0 - file:///lake/t/_delta_log")
        count = node("HashAggregate", state, text="HashAggregate(functions=[sum(_extract_numRecords#2L)])")
        # Spark plans a query, and so runs what it asks, before it reports the query's start.
        opened(count, accounts, execution=2, root=1)
        account = opened(self.READ, accounts)
        assert left(account, (), (OUT,)) == ["LocalTableScan of a Delta log"]
        assert left(account, (Observed(DatasetName("file", "/lake/t")),), (OUT,)) == []

    def test_aggregates_that_a_delta_log_answers_need_the_table_alone(self) -> None:
        accounts = Accounts()
        state = node("Scan ExistingRDD Delta Table State with Stats #0 - file:///lake/t/_delta_log")
        opened(node("HashAggregate", state, text="[sum(_extract_numRecords#2L)]"), accounts, execution=2, root=1)
        answer = node("LocalTableScan", text="LocalTableScan [max(v)#5L, max(id)#6]")
        assert left(opened(node(INSERT, answer), accounts), (), (OUT,)) == ["LocalTableScan of a Delta log"]

    def test_aggregates_of_a_source_are_left(self) -> None:
        answer = node("LocalTableScan", text="LocalTableScan [count(1)#5L, max(id)#6]")
        assert left(opened(node(INSERT, answer)), (), (OUT,)) == ["LocalTableScan of aggregates"]


class TestHidden:
    def test_column_that_is_renamed(self) -> None:
        change = "AlterTable SparkCatalog@1f, db.t, [org.apache.spark.sql.connector.catalog.TableChange$RenameColumn@2]"
        assert left(opened(node("AlterTable", text=change))) == ["AlterTable: the column that it renames"]


def test_execution_that_succeeds_without_a_plan_is_left() -> None:
    account = opened(node(""))
    assert [[part.name for part in account.remaining((), (), is_failed=each)] for each in (True, None, False)] == [
        [], [], ["a plan without nodes"],
    ]  # fmt: skip


def test_executions_inside_of_maintenance_are_ignored() -> None:
    optimize = opened(node("Execute OptimizeTableCommand"))
    inside = opened(node(INSERT, scan("file:/lake/t")), around=optimize)
    assert (left(optimize), left(inside)) == ([], [])
    assert left(opened(node("AppendData", scan("file:/lake/t")), description="Rewriting 2 files (BIN-PACK)")) == []


def test_sink_of_a_query_is_left_unless_a_rule_ignores_it() -> None:
    account = opened(scan("file:/lake/orders.csv"), is_batch=True)
    sinks = ("ForeachBatchSink", "MemorySink", "org.apache.spark.sql.execution.streaming.ConsoleTable$@1", "my.Sink@1")
    found = [[part.name for part in account.remaining((ORDERS,), (), sink)] for sink in sinks]
    assert found == [[], [], [], ["Sink"]]


LOCAL = node("LocalTableScan", text="LocalTableScan [id#1]")
EMPTIED = node("LocalTableScan", text="LocalTableScan <empty>, [id#1]")
RDD = node("Scan ExistingRDD", text="Scan ExistingRDD[id#1]")
OF_PROGRAM = "rows of the program: what they are made of"
CONNECT = (
    'Spark Connect - session_id: "1"\nplan {{\n  root {{\n    common {{\n      plan_id: 2\n    }}\n    {} {{\n    ...'
)
OF_NO_ROW = "LocalTableScan without rows: what it stands for"


def after_query(description: str = "collect at job.py:7", plan: Any = None) -> Accounts:
    """Return the accounts after a query of a dataset, which a method of this description runs."""
    accounts = Accounts()
    if opened(plan or scan("file:/lake/orders.csv"), accounts, description=description).is_collecting:
        accounts.has_collected = True
    return accounts


def test_lines_that_a_view_over_files_reads_for_its_schema_are_not_left() -> None:
    around = opened(node("Execute CreateTempViewUsing"))
    assert left(opened(scan("file:/lake/orders.csv"), around=around, execution=2, root=1)) == []


class TestRowsOfDriver:
    def test_relation_that_spark_leaves_out_of_a_write_is_left(self) -> None:
        assert left(opened(node(INSERT, EMPTIED)), (), (OUT,)) == [OF_NO_ROW]

    def test_relation_that_spark_leaves_out_of_a_query_is_not_left(self) -> None:
        assert left(opened(EMPTIED)) == []

    def test_relation_without_columns_is_not_left(self) -> None:
        plan = node(INSERT, node("LocalTableScan", text="LocalTableScan <empty>"))
        assert left(opened(plan), (), (OUT,)) == []

    def test_relation_that_is_found_empty_while_it_runs_is_not_left(self) -> None:
        account = opened(node(INSERT, scan("file:/lake/orders.csv")))
        account.add(msgspec.json.decode(msgspec.json.encode(node(INSERT, EMPTIED)), type=PlanInfo))
        assert left(account, (ORDERS,), (OUT,)) == []

    def test_source_without_rows_of_a_micro_batch_is_not_left(self) -> None:
        assert left(opened(node(INSERT, EMPTIED), is_batch=True), (), (OUT,)) == []

    @pytest.mark.parametrize("rows", [LOCAL, RDD])
    def test_rows_that_are_written_after_a_query_are_left(self, rows: Any) -> None:
        assert left(opened(node(INSERT, rows), after_query()), (), (OUT,)) == [OF_PROGRAM]
        assert left(opened(node(INSERT, rows)), (), (OUT,)) == []

    def test_rows_of_an_rdd_without_values_of_later_than_the_query_are_not_left(self) -> None:
        account = opened(node(INSERT, RDD), after_query())
        assert account.remaining((), (OUT,), has_values=False) == ()

    def test_rows_of_a_write_that_failed_are_not_left(self) -> None:
        assert opened(node(INSERT, LOCAL), after_query()).remaining((), (OUT,), is_failed=True) == ()

    def test_rows_that_are_written_after_a_query_of_a_remote_client_are_left(self) -> None:
        accounts = after_query(CONNECT.format("aggregate"))
        assert left(opened(node(INSERT, LOCAL), accounts), (), (OUT,)) == [OF_PROGRAM]

    @pytest.mark.parametrize(
        "description", ["showString at job.py:7", "csv at job.py:7", CONNECT.format("show_string")]
    )
    def test_rows_that_are_written_after_other_reads_are_not_left(self, description: str) -> None:
        assert left(opened(node(INSERT, LOCAL), after_query(description)), (), (OUT,)) == []

    def test_command_gives_no_rows_to_the_program(self) -> None:
        assert not opened(node(INSERT, LOCAL), description="sql at job.py:7").is_collecting
        assert opened(node("SetVariable", LOCAL), description="sql at job.py:7").is_collecting

    def test_rows_inside_of_a_command_of_delta_are_left_once(self) -> None:
        accounts = after_query()
        around = opened(node("Execute SaveIntoDataSourceCommand"), accounts, description="save at job.py:7")
        inside = opened(LOCAL, accounts, around, execution=2, root=1, description="save at job.py:7")
        its_log = opened(LOCAL, accounts, around, execution=3, root=1, description="Delta: Filtering files for query")
        assert [left(each, (), (OUT,)) for each in (around, inside, its_log)] == [[], [OF_PROGRAM], []]

    def test_answer_of_a_log_of_delta_is_not_of_the_program(self) -> None:
        accounts = after_query()
        state = node("Scan ExistingRDD Delta Table State with Stats #0 - file:///lake/t/_delta_log")
        opened(node("Project", state, text="Project [numRecords#1]"), accounts, execution=2, root=3)
        account = opened(node(INSERT, LOCAL), accounts, execution=3)
        assert left(account) == ["InsertIntoHadoopFsRelationCommand", "LocalTableScan of a Delta log"]
