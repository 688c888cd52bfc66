"""The rules of the accounts: which nodes of a plan need no dataset, which write, and why; each rule has one class.

``accounting`` counts what no rule names: a class that a new release adds is counted until somebody has looked at it.
Names are those of classes in ``sparkPlanInfo``, without ``Exec`` and without the ``Execute`` that wraps a command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from spark_lineage.merge.accounting import Need


def _rules(*groups: tuple[str, str]) -> Mapping[str, str]:
    """Return the reason of each class, by its name."""
    return {name: reason for reason, names in groups for name in names.split()}


LEAVES: Mapping[str, str] = _rules(
    ("its rows are in the plan", "LocalTableScan OneRowRelation EmptyRelation"),
    ("the command above it shows or changes what it names", "ResolvedNamespace ResolvedTable"),
    ("Spark counts its rows out", "Range"),
    ("another node of the plan has what it repeats", "ReusedExchange ReusedSubquery UnionLoopRef"),
    ("the command that it gives the rows of is an execution itself", "CommandResult"),
)
"""Leaves that read no dataset."""

RELATIONS: Mapping[str, str] = _rules(
    ("Spark makes its rows by the clock", "RateStreamTable RatePerMicroBatchTable"),
    ("what a client sends to a port has no name", "TextSocketTable"),
    ("its rows are in the plan", "MemoryStreamTable"),
)
"""Sources of streams that read no dataset, by the class that a scan names."""

INDEXES: Mapping[str, str] = _rules(("Delta reads its own log to find the files of a table", "DeltaLogFileIndex"))
"""Indexes of files whose scans read no dataset."""

METADATA_SCAN = re.compile(r"BatchScan .+/metadata/[^/]+\.metadata\.json#\w+", re.DOTALL)
"""Scans by which Iceberg reads its own metadata to find the files of a table: no dataset is called by such a file."""

SINKS: Mapping[str, str] = _rules(
    ("the driver keeps the rows", "MemoryStreamingWrite MemorySink MemoryPlan"),
    ("the driver prints the rows", "ConsoleWrite ConsoleWriter ConsoleTable ConsoleSink"),
    ("it writes nothing", "NoopWrite NoopBatchWrite NoopStreamingWrite NoopTable"),
    ("what the function writes is an execution itself", "ForeachBatchSink"),
)
"""Targets of writes that are no dataset, by the class that a write or the progress of a query names."""

MEMORY_SINKS = frozenset({"MemoryStreamingWrite", "MemorySink"})
"""Targets whose rows Spark gives back as a ``LocalTableScan`` without a name."""

MAINTENANCE: Mapping[str, str] = _rules(
    (
        "it computes statistics",
        """AnalyzeColumnCommand AnalyzePartitionCommand AnalyzeTableCommand AnalyzeTablesCommand
        PaimonAnalyzeTableColumnCommand""",
    ),
    (
        "it arranges or removes files of a table, whose rows stay",
        """ConvertToDeltaCommand DeltaGenerateCommand DeltaReorgTableCommand OptimizeTableCommand
        RowTrackingBackfillCommand RowTrackingUnBackfillCommand VacuumTableCommand
        RewriteDataFilesProcedure RewriteManifestsProcedure RewritePositionDeleteFilesProcedure
        RemoveOrphanFilesProcedure ExpireSnapshotProcedure ExpireSnapshotsProcedure""",
    ),
    ("it reads lines of files to learn their schema, and no row", "CreateTempViewUsing"),
    (
        "it shows the log of a table",
        """DescribeDeltaDetailCommand DescribeDeltaHistoryCommand ShowDeltaPartitionsCommand
        ShowDeltaTableColumnsCommand""",
    ),
)
"""Commands whose own executions read and write no more than the table or its log."""

UNREPORTED: Mapping[str, str] = _rules(
    (
        "it changes a view of another catalog, or one of metrics",
        """AlterV2View AlterV2ViewSchemaBinding AlterV2ViewSetProperties AlterV2ViewUnsetProperties
        CreateMetricViewCommand CreateV2MetricView CreateV2View DropV2View DropView RenameV2View""",
    ),
    ("it changes partitions in another catalog", "AddPartition DropPartition RenamePartition TruncatePartition"),
    (
        "it changes a database, where ``spark.sql.legacy.useV1Command`` is set",
        "AlterDatabasePropertiesCommand AlterDatabaseSetLocationCommand CreateDatabaseCommand DropDatabaseCommand",
    ),
)
"""Commands that write no row, and whose change of the catalog neither the listener nor the reader of plans names."""

COMMANDS: Mapping[str, str] = {
    **MAINTENANCE,
    **UNREPORTED,
    **_rules(
        (
            "it shows something",
            """DescribeColumn DescribeColumnCommand DescribeDatabaseCommand DescribeFunctionCommand DescribeNamespace
            DescribeProcedureCommand DescribeQueryCommand DescribeRelationJsonCommand DescribeTable DescribeTableCommand
            DescribeTablePartition DescribeV2View DescribeV2ViewColumn ExplainCommand ExplainOnlySparkPlan
            ListArchivesCommand ListFilesCommand ListJarsCommand PaimonShowColumnsCommand ShowCatalogsCommand
            ShowCollationsCommand ShowColumns ShowColumnsCommand ShowCreateTable ShowCreateTableAsSerdeCommand
            ShowCreateTableCommand ShowCreateV2View ShowCurrentNamespaceCommand ShowFunctions ShowFunctionsCommand
            ShowNamespaces ShowNamespacesCommand ShowPartitions ShowPartitionsCommand ShowProceduresCommand
            ShowTablePartition ShowTableProperties ShowTablePropertiesCommand ShowTables ShowTablesCommand
            ShowTablesExtended ShowV2ViewColumns ShowV2ViewProperties ShowV2Views ShowViews ShowViewsCommand
            StreamingExplainCommand""",
        ),
        (
            "it sets something of the session",
            """AddArchivesCommand AddFilesCommand AddJarsCommand CloseCursor CreateVariable DeclareCursor
            DropTempViewCommand DropVariable FetchCursor MultiResult OpenCursor ResetCommand SetCatalogAndNamespace
            SetCatalogCommand SetCommand SetNamespaceCommand SetPathCommand SetVariable""",
        ),
        ("it makes a view of the session, of the changes of a table", "CreateChangelogViewProcedure"),
        (
            "it keeps or forgets a copy in memory",
            """CacheTable CacheTableAsSelect ClearCacheCommand RefreshFunctionCommand RefreshResource RefreshTable
            RefreshTableCommand UncacheTable""",
        ),
        (
            "it changes what lineage does not have: functions, indexes, branches, constraints",
            """AddCheckConstraint AlterTableAddConstraintDeltaCommand AlterTableClusterByDeltaCommand
            AlterTableDropConstraintDeltaCommand AlterTableDropFeatureDeltaCommand CreateFunctionCommand CreateIndex
            CreateOrReplaceBranch CreateOrReplaceTag CreateSQLFunctionCommand DropBranch DropFunctionCommand DropIndex
            DropTag SetNamespaceCollationCommand""",
        ),
        (
            "it changes a table, a view or a database, and no row",
            """AddPartitionField AlterHoodieTableAddColumnsCommand AlterHoodieTableChangeColumnCommand
            AlterHoodieTableRenameCommand AlterHoodieTableSetPropertiesCommand AlterHoodieTableUnsetPropertiesCommand
            AlterNamespaceSetProperties AlterTable AlterTableAddColumnsCommand AlterTableAddColumnsDeltaCommand
            AlterTableAddPartitionCommand AlterTableChangeColumnCommand AlterTableChangeColumnDeltaCommand
            AlterTableDropColumnsDeltaCommand AlterTableDropPartitionCommand AlterTableRenameCommand
            AlterTableRenamePartitionCommand AlterTableReplaceColumnsDeltaCommand AlterTableSerDePropertiesCommand
            AlterTableSetLocationCommand AlterTableSetLocationDeltaCommand AlterTableSetPropertiesCommand
            AlterTableSetPropertiesDeltaCommand AlterTableUnsetPropertiesCommand AlterTableUnsetPropertiesDeltaCommand
            AlterViewAsCommand AlterViewSchemaBindingCommand AtomicReplaceTable CreateDataSourceTableCommand
            CreateHoodieTableCommand CreateHoodieTableLikeCommand CreateNamespace CreateTable CreateTableCommand
            CreateTableLike CreateTableLikeCommand CreateViewCommand DropHoodieTableCommand DropIdentifierFields
            DropNamespace DropPartitionField DropTable DropTableCommand RenameTable RepairTableCommand
            ReplacePartitionField ReplaceTable SetIdentifierFields SetWriteDistributionAndOrdering
            TruncateDeltaTableCommand TruncateHoodieTableCommand TruncateTable TruncateTableCommand
            UnsetNamespacePropertiesCommand""",
        ),
        (
            "it makes a snapshot that is there the current one",
            """CherrypickSnapshotProcedure FastForwardBranchProcedure PublishChangesProcedure
            RollbackToSnapshotProcedure RollbackToTimestampProcedure SetCurrentSnapshotProcedure""",
        ),
        ("the system of the source runs it", "ExternalCommandExecutor"),
        ("the write that it makes is an execution itself", "SaveAsV1TableCommand"),
    ),
}
"""Commands that write no row."""

WRITES: Mapping[str, str] = _rules(
    (
        "its rows go to a dataset",
        """
    AppendData AppendDataExecV1 AtomicCreateTableAsSelect AtomicReplaceTableAsSelect CloneTableCommand
    CreateDataSourceTableAsSelectCommand CreateDeltaTableCommand CreateHiveTableAsSelectCommand
    CreateHoodieTableAsSelectCommand CreateTableAsSelect DeleteCommand DeleteFromTable DeleteHoodieTableCommand
    DeltaDynamicPartitionOverwriteCommand DeltaInsertReplaceOnOrUsingCommand InsertIntoDataSourceCommand
    InsertIntoDataSourceDirCommand InsertIntoHadoopFsRelationCommand InsertIntoHiveDirCommand InsertIntoHiveTable
    InsertIntoHoodieTableCommand InsertOnlyMerge LoadDataCommand MergeIntoCommand MergeIntoHoodieTableCommand
    OptimizedCreateHiveTableAsSelectCommand OverwriteByExpression OverwriteByExpressionExecV1 OverwritePartitionsDynamic
    ReplaceData ReplaceTableAsSelect RestoreTableCommand SaveIntoDataSourceCommand UpdateCommand
    UpdateHoodieTableCommand WriteDelta WriteIntoDelta WriteToContinuousDataSource WriteToDataSourceV2
""",
    )
)
"""Nodes that write to a dataset."""


class Hidden(NamedTuple):
    """What the plan of a command hides, if the node has a ``sign`` in it, and what has to stand for that."""

    part: str
    needs: Need
    sign: str = ""


HIDDEN: Mapping[str, Hidden] = {
    # Iceberg's changes are printed as classes without names.
    "AlterTable": Hidden("the column that it renames", "listener", "TableChange$RenameColumn@"),
    # The plan has the ids of columns, and neither the source nor its columns.
    "MergeIntoHoodieTableCommand": Hidden("its source", "nothing"),
    # A script may write the values of the rows that it fetches.
    "OpenCursor": Hidden("its query", "nothing"),
}
"""Commands whose plans say less than lineage needs."""
