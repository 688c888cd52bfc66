"""Reads what the command at the root of a plan writes, and how (``org.apache.spark.sql.execution.command`` and v2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from urllib.parse import unquote

from spark_lineage.merge.execution import unnamed
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import PARTITION, DatasetName
from spark_lineage.plans.database_query import REDACTED
from spark_lineage.plans.kafka import UNNAMED_SINK, is_written
from spark_lineage.plans.lists import arguments, attributes
from spark_lineage.plans.names import hidden, plain
from spark_lineage.plans.plan import Node, Plan
from spark_lineage.plans.row_changes import HUDI_DELETE, HUDI_INSERT, HUDI_RELATION, HUDI_STATIC, HUDI_UPDATE
from spark_lineage.plans.tables import IDENTIFIER, Tables, is_session_catalog, scanned

_EXECUTE = "Execute "
_MODES = frozenset({"Append", "Overwrite", "ErrorIfExists", "Ignore"})
# These operators stand above a command and change nothing about it.
_WRAPPERS = ("AdaptiveSparkPlan", "ResultQueryStage")
_V2_WRITES = re.compile(
    r"(?:AppendData|OverwriteByExpression|OverwritePartitionsDynamic|ReplaceData|WriteDelta|DeleteFromTable"
    r"|(?:Atomic)?(?:Create|Replace)TableAsSelect)(?:Exec)?(?:V1)?"
)
_V2_CHANGES = re.compile(
    r"(?:Atomic)?(?:Create|Replace|Drop|Alter|Rename|Truncate)(?:Table|View|Namespace)\w*"
    # Iceberg's.
    r"|(?:Add|Drop|Replace)PartitionField|(?:Set|Drop)IdentifierFields|SetWriteDistributionAndOrdering"
)
_IS_PARTITION = re.compile(PARTITION).fullmatch
DELTA = re.compile(r"Delta\[version=(?P<version>-?\d+), (?P<location>[^\]]+)\]")
_CATALOG_TABLE = re.compile(r"^Location: (?P<location>\S.*)$", re.MULTILINE)
_CATALOG_NAME = re.compile(
    r"CatalogTable\(\n(?:Catalog: (?P<catalog>.*)\n)?Database: (?P<database>.*)\nTable: (?P<table>.*)\n"
)
_HADOOP_WRITE = re.compile(
    r"(?P<location>.*?), (?P<static>\[[^\]]*=[^\]]*\], )?(?:true|false), (?P<partitions>\[[^\]]*#[^\]]*\], )?",
    re.DOTALL,
)
_STORAGE = re.compile(
    r"Storage\(Location: (?P<location>.*?)"
    r"(?:, (?:Serde \w+|InputFormat|OutputFormat|Compressed|Storage Properties)\b.*)?\), (?P<overwrite>true|false), \[",
    re.DOTALL,
)
# The place of a table that a query makes: properties, provider, options, location.
_SPEC_LOCATION = re.compile(
    r"TableSpec\(Map\(.*?\),(?:None|Some\([^()]*\)),Map\(.*?\),Some\((?P<location>.*?)\),(?:None|Some\()", re.DOTALL
)
# The arguments of a command say here whether it overwrites, and which partitions it writes.
_PARTITIONED = {
    "InsertIntoHadoopFsRelationCommand": _HADOOP_WRITE,
    "InsertIntoHiveTable": re.compile(r", \[(?P<partitions>[^\]]*)\], (?P<overwrite>true|false), (?:true|false), "),
    "InsertIntoHiveDirCommand": _STORAGE,
    "LoadDataCommand": re.compile(
        r", (?:true|false), (?P<overwrite>true|false)(?:, Map\((?P<static>.*)\))?\Z", re.DOTALL
    ),
    "TruncateTableCommand": re.compile(r", Map\((?P<static>.*)\)\Z", re.DOTALL),
}
# One static partition of `day=Some(1), hour=None`.
_HIVE_STATIC = re.compile(r"(?:\A|, )(?P<column>[^,=]+)=Some\((?P<value>[^()]*)\)")
# `day#12` and `day=None`.
_COLUMN = re.compile(r"([^,\[\]]+?)(?:#\d+L?|=(?:None|Some\([^()]*\)))(?:, |\]|\Z)")
_HIVE_PATH = re.compile(r"HiveTempPath\((?P<location>[^)]+)\)")
_HIVE_TEMP_PATH = "HiveTempPath"
HIVE_TABLE = re.compile(r"Database: (?P<database>[^,\]]+), TableName: (?P<table>[^,\]]+)")
_OPTION = re.compile(r"(?P<key>[\w.]+)=(?P<value>.*?)(?=, [\w.]+=|\](?:, |\Z)|\Z)", re.DOTALL)
# A path may hold what looks as another option: it ends before one that is known, or with all options.
_SAVED = re.compile(
    r"(?:\[|, )path=(?P<path>(?:(?!, [\w.]+=).)*)(?:, (?:(?:delta|hoodie|spark)\.[\w.-]+|__partition_columns"
    r"|compression|dataChange|(?:merge|overwrite)Schema|partitionOverwriteMode|replaceWhere|txn(?:AppId|Version)"
    r"|userMetadata)=.*)?"
    rf"\], (?:{'|'.join(sorted(_MODES))})\Z",
    re.DOTALL | re.IGNORECASE,
)
_ICEBERG = re.compile(r"Iceberg(?:Batch|Streaming)?Write\(table=(?P<table>[^,)]+)")
# Only the writes of streams to Iceberg name their table.
_ICEBERG_STREAM = "IcebergStreamingWrite("
_STREAM_WRITE = "WriteToDataSourceV2"
_V2_IDENTIFIER = re.compile(r"(?P<catalog>[\w.$]+Catalog@\w+), (?P<table>[^,]+)")
_V2_SCAN = re.compile(r"BatchScan (?P<table>\S+\.\S+)")
_ROW_PLACE = f"{hidden('_pos')}#"
_DELTA_V2 = re.compile(r"DeltaTableV2\([^,]*,(?P<location>[^,]+),")
# Its source is printed as an object without a name.
_CLONE = re.compile(r"CloneTableCommand \S+, (?:`\S+|None|\S+), (?P<location>\S+), (?:Create|Replace)")
TAKEN_OVER = "CALL: the files that a table takes over"
"""What is counted of each table whose files come from elsewhere: ``add_files``, ``snapshot`` and ``migrate``."""
# A call is no SQL execution. Those that it runs (org.apache.iceberg.spark.SparkTableUtil) look for files that the table
# has already, in its metadata table `entries`, and then write manifests; none names the files.
_TAKEN_PARTITIONS = "org.apache.iceberg.spark.SparkTableUtil$SparkPartition"
_ENTRIES = re.compile(r"BatchScan (?P<table>\S+)\.entries\b")
# A call that is an execution (Iceberg for Spark 3.5) and makes another snapshot of a table the current one.
_MOVING = re.compile(
    r"\.(?P<procedure>(?:RollbackTo(?:Snapshot|Timestamp)|SetCurrentSnapshot|CherrypickSnapshot|FastForwardBranch"
    r"|PublishChanges)Procedure)@\w+, \[(?P<table>[^,\]]+)"
)
# Iceberg stages a write under this property: no read sees it before a call publishes it, which not all releases log.
_STAGING = "spark.wap.id"
_DYNAMIC = frozenset({"OverwritePartitionsDynamic", "DeltaDynamicPartitionOverwriteCommand"})
_BY_EXPRESSION = "OverwriteByExpression"
_DELTA_SOURCE = "sql.delta.sources.DeltaDataSource@"
# `day = '2024-01-02'`.
_EQUAL = re.compile(r"\s*`?(?P<column>\w+)`?\s*==?\s*(?P<quote>['\"]?)(?P<value>[\w.:-]+)(?P=quote)\s*")
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
# The command that makes Delta's tables, those that are clones of others among them.
CLONE = "CreateDeltaTableCommand"
# This stands for the target of a command which only the executions inside of it read.
UNNAMED_TARGET = unnamed("target")


@dataclass(frozen=True)
class Command:
    """A command: its class name, empty for a query, its save mode, and what it writes to.

    ``is_partial``: an overwrite replaces some partitions or rows only. ``partition`` is the static partition that it
    writes (``("day=1",)``), ``partitioned_by`` all columns by which it partitions; ``sorted_by`` are their ids, by
    which Spark sorts the rows of a task, which decides on none. ``target`` is None where the plan has none; a JDBC
    table has an empty namespace, since Spark redacts its URL. Where ``has_data`` is false, the data is the query of an
    execution inside of this one.
    """

    name: str = ""
    mode: str = ""
    is_partial: bool = False
    partition: tuple[str, ...] = ()
    sorted_by: frozenset[int] = frozenset()
    partitioned_by: tuple[str, ...] = ()
    target: Observed | None = None
    has_data: bool = True
    is_merge: bool = False


def command_node(plan: Plan) -> Node | None:
    """Return the node of the command at the root, None for a query."""
    node = unwrapped(plan.root)
    name = _class_name(node)
    is_command = node.name.startswith(_EXECUTE) or _V2_WRITES.fullmatch(name) or _V2_CHANGES.fullmatch(name)
    is_of_stream = name == _STREAM_WRITE and _ICEBERG_STREAM in node.fields.get("Arguments", "")
    return node if is_command or is_of_stream else None


def unwrapped(node: Node) -> Node:
    """Return the node below those that stand above a command or query and change nothing about it."""
    while node.name.startswith(_WRAPPERS) and node.children:
        node = node.children[0]
    return node


def several_commands(plan: Plan) -> list[Plan]:
    """Return the commands of a plan that is a union of them: ``FROM t INSERT INTO a … INSERT INTO b …``."""
    node = unwrapped(plan.root)
    commands = [replace(plan, root=child) for child in node.children]
    is_several = node.name.startswith("Union") and all(command_node(command) is not None for command in commands)
    return commands if is_several else []


def described(plan: Plan) -> tuple[str, str]:
    """Return the class name of the command at the root and its arguments; of a query those of its root."""
    node = command_node(plan) or plan.root
    logical = _logical(node)
    return _class_name(node), (logical or node).fields.get("Arguments", "")


def _class_name(node: Node) -> str:
    return node.name.removeprefix(_EXECUTE).split(" ", 1)[0]


def _logical(node: Node) -> Node | None:
    """The logical command, which a command that is run as it is has as its child."""
    return next((child for child in node.children[:1] if child.name == _class_name(node)), None)


def read_command(plan: Plan, tables: Tables, configs: Mapping[str, str]) -> Command | None:
    """Return the command at the root of a plan, None for a query; ``configs`` are what the session has set."""
    node = command_node(plan)
    if node is None:
        return None
    name, text = described(plan)
    logical = _logical(node)
    found = _PARTITIONED[name].search(text) if name in _PARTITIONED else None
    write = {key: value or "" for key, value in found.groupdict().items()} if found else {}
    partitions = write.get("partitions", "").strip(", ")
    options = _options(text)
    if "static" in write:
        partition = _partition(write["static"], write.get("location", ""))
    else:
        partition = _replaced(options["replacewhere"]) if "replacewhere" in options else ()
    partition += tuple(f"{match['column']}={match['value']}" for match in _HIVE_STATIC.finditer(partitions))
    mode = _mode(name, text, write.get("overwrite"))
    is_dynamic = options.get("partitionoverwritemode", configs.get(_OVERWRITE_MODE, "")).lower() == "dynamic"
    # A partition is named, or rows by a condition, which not all plans have, or only the partitions that the data has
    # are replaced.
    is_partial = (
        bool(partition or name in _DYNAMIC or name.startswith(_BY_EXPRESSION) or "replacewhere" in options)
        or (bool(partitions) and ("overwrite" in write or is_dynamic))
        or (is_dynamic and _DELTA_SOURCE in text)
        or (name == HUDI_INSERT and (is_dynamic or bool(HUDI_STATIC.search(text))))
    )
    is_v2 = name == _STREAM_WRITE or _V2_WRITES.fullmatch(name)
    find = _TARGETS.get(name, _v2_target if is_v2 else None)
    return Command(
        name,
        mode,
        is_partial=mode == "Overwrite" and is_partial,
        partition=partition,
        sorted_by=frozenset(attribute.id for attribute in attributes(partitions)),
        partitioned_by=tuple(map(plain, _COLUMN.findall(partitions))),
        target=find(logical or node, text, tables) if find else None,
        has_data=logical is None and bool(node.children),
        is_merge=any(each.name == "MergeRows" for each in plan.walk()),
    )


def taking_over(plan: Plan, tables: Tables) -> Command | None:
    """Return the call of which a plan writes the manifests, None for other plans.

    Its target is the table whose entries were looked through before, which not every call does.
    """
    if not any(_TAKEN_PARTITIONS in node.fields.get("Arguments", "") for node in plan.walk()):
        return None
    entries = next((match for node in plan.walk() if (match := _ENTRIES.match(node.name))), None)
    if entries is not None:
        tables.looked_through = tables.named(entries["table"])
        return None
    table, tables.looked_through = tables.looked_through, None
    return Command("Call", "Append", target=table)


def moved(plan: Plan, tables: Tables) -> tuple[Observed, str] | None:
    """Return the table of which a CALL makes another snapshot the current one, and what is counted of it."""
    call = _MOVING.search(plan.root.fields.get("Arguments", ""))
    table = tables.foreign(call["table"]) if call else None
    return (table, f"{call['procedure']}: the state of {call['table']}") if call and table else None


def staged(command: Command, configs: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is counted of a write to Iceberg that the session may have staged."""
    is_staged = bool(configs.get(_STAGING)) and _V2_WRITES.fullmatch(command.name)
    return (f"{command.name}: whether it is staged",) if is_staged else ()


def _mode(name: str, text: str, hive_overwrites: str | None) -> str:
    if "Overwrite" in name or hive_overwrites == "true":
        return "Overwrite"
    if name == HUDI_INSERT:
        return "Overwrite" if arguments(text)[-1] == "true" else "Append"
    if hive_overwrites or name.startswith("AppendData"):
        return "Append"
    return next((part for part in arguments(text) if part in _MODES), "")


def _partition(static: str, location: str) -> tuple[str, ...]:
    """Return the static partition of a table, or the one that a path lies in."""
    if static:
        return tuple(part.strip().replace(" -> ", "=") for part in static.strip("[], ").split(","))
    folders = location.rstrip("/").split("/")
    return tuple(unquote(folder) for folder in takewhile(_IS_PARTITION, reversed(folders)))[::-1]


def _replaced(condition: str) -> tuple[str, ...]:
    """Return the partition that ``replaceWhere`` of Delta is, empty where it is another condition."""
    conjuncts = [_EQUAL.fullmatch(each) for each in re.split(r"(?i)\sAND\s", condition)]
    return tuple(f"{each['column']}={each['value']}" for each in conjuncts if each) if all(conjuncts) else ()


def _options(text: str) -> dict[str, str]:
    return {match["key"].lower(): match["value"] for match in _OPTION.finditer(text)}


def _at(place: re.Match[str] | None, table: str, tables: Tables, *, is_own: bool = True) -> Observed | None:
    """Return the dataset at a place, or else the one that a table is."""
    if place is not None:
        return tables.at(place["location"], table)
    return tables.named(table, is_own=is_own) if table else None


def _stored(place: re.Match[str] | None, table: str, tables: Tables) -> Observed | None:
    """Return the dataset at the place of a ``CatalogStorageFormat``, which Spark 3 prints as a URI."""
    if place is None:
        return None
    return tables.at(unquote(place["location"]) if tables.has_encoded_places else place["location"], table)


def _hadoop_target(_node: Node, text: str, tables: Tables) -> Observed | None:
    place = _HADOOP_WRITE.match(text)
    return _at(place, next(filter(IDENTIFIER.fullmatch, arguments(text)), ""), tables) if place else None


def _table_target(_node: Node, text: str, tables: Tables) -> Observed | None:
    """``InsertIntoHiveTable`` names the place that it writes to from Spark 4 on, else the table, which may be external.

    Hive's ``CREATE TABLE … AS SELECT`` names its table.
    """
    created, table = HIVE_TABLE.search(text), IDENTIFIER.search(text)
    name = f"{created['database']}.{created['table']}" if created else table[0] if table else ""
    return _at(_HIVE_PATH.search(text), name, tables, is_own=_HIVE_TEMP_PATH not in text)


def _delta_target(node: Node, text: str, tables: Tables) -> Observed | None:
    """UPDATE, DELETE, MERGE, OPTIMIZE: ``Delta[version=1, file:/data/t]``, or the table that the command lies over."""
    aliases = (each.fields.get("Arguments", "") for each in node.walk() if each.name == "SubqueryAlias")
    named = (*filter(IDENTIFIER.fullmatch, arguments(text)), *(alias for alias in aliases if "." in alias))
    table = next(iter(named), "")
    delta = DELTA.search(text)
    is_path = delta is not None and "`" in table and "/" in table
    # Delta 3.3 prints no place of a DELETE: it is known by the files that it reads.
    return _at(delta, "" if is_path else table, tables) if delta or table else Observed(UNNAMED_TARGET)


def _delta_v2_target(_node: Node, text: str, tables: Tables) -> Observed | None:
    """RESTORE: ``DeltaTableV2(SparkSession@1,/data/t,…)``."""
    return _at(_DELTA_V2.search(text), "", tables)


def _save_target(_node: Node, text: str, tables: Tables) -> Observed | None:
    """``SaveIntoDataSourceCommand``: a provider, its options (secrets redacted by Spark), and the mode."""
    options = _options(text)
    # A table of Spark's catalog that stands for one of a database has a path as well, in which nothing is.
    if (table := options.get("dbtable")) and "url" in options and REDACTED not in table:
        return Observed(DatasetName("", table))
    if "path" in options:
        saved = _SAVED.search(text)
        return tables.at(saved["path"]) if saved else None
    if (topic := options.get("topic")) and (servers := options.get("kafka.bootstrap.servers")):
        return Observed(DatasetName(f"kafka://{servers}", topic))
    # The rows themselves say which topics they go to.
    return Observed(UNNAMED_SINK) if is_written(text) else None


def _v2_target(node: Node, text: str, tables: Tables) -> Observed | None:
    if location := _CATALOG_TABLE.search(text):
        name = _CATALOG_NAME.search(text)
        table = ".".join(filter(None, name.groups())) if name else ""
        return _stored(location, table, tables)
    if iceberg := _ICEBERG.search(text):
        # A table that a command makes has no catalog here: it is the listener's output.
        return tables.foreign(iceberg["table"]) or Observed(unnamed(iceberg["table"]))
    if identifier := _V2_IDENTIFIER.search(text):
        table = identifier["table"].strip()
        if not is_session_catalog(identifier["catalog"]):
            return tables.foreign(table)
        return _at(_SPEC_LOCATION.search(text), table, tables)
    # A merge-on-read names no table: it is the one whose rows are read with their places in files.
    changed = (_V2_SCAN.match(leaf.name) for leaf in node.walk() if _ROW_PLACE in leaf.fields.get("Output", ""))
    return next((tables.named(match["table"]) for match in changed if match), None)


def _cloned_target(_node: Node, text: str, tables: Tables) -> Observed | None:
    """``t, ErrorIfExists, CloneTableCommand …CloneDeltaSource@1f, t, file:/data/t, Create, …``: a clone, its place."""
    clone = _CLONE.search(text)
    return tables.at(clone["location"], arguments(text)[0]) if clone else None


def _created_target(_node: Node, text: str, tables: Tables) -> Observed | None:
    """``org.apache.iceberg.spark.SparkCatalog@1f, db.t, …``; the place of a table of Spark's own is in no text."""
    catalog, table, *_ = arguments(text)
    return None if is_session_catalog(catalog) else tables.foreign(table)


def _hudi_changed_target(node: Node, _text: str, tables: Tables) -> Observed | None:
    """UPDATE and DELETE of Hudi: what the rows are read from that they are given."""
    given = {attribute.id for attribute in attributes(node.fields.get("Input", ""))}
    leaves = (leaf for leaf in node.walk() if not leaf.children)
    read = (leaf for leaf in leaves if any(each.id in given for each in attributes(leaf.fields.get("Output", ""))))
    return next((observed for leaf in read for observed in scanned(leaf, tables)), None)


_Target = Callable[[Node, str, Tables], Observed | None]
_BY_TARGET: tuple[tuple[_Target, str], ...] = (
    (_hadoop_target, "InsertIntoHadoopFsRelationCommand"),
    (_table_target, "InsertIntoHiveTable CreateHiveTableAsSelectCommand OptimizedCreateHiveTableAsSelectCommand"),
    (_table_target, "CreateDataSourceTableAsSelectCommand CreateHoodieTableCommand CreateHoodieTableAsSelectCommand"),
    (lambda _node, text, tables: _stored(_STORAGE.search(text), "", tables), "InsertIntoHiveDirCommand"),
    # A table of Hive's own formats may be external.
    (lambda _node, text, tables: tables.named(IDENTIFIER.findall(text)[0], is_own=False), "LoadDataCommand"),
    (_save_target, "SaveIntoDataSourceCommand"),
    (_delta_target, "UpdateCommand DeleteCommand MergeIntoCommand"),
    (_delta_v2_target, "RestoreTableCommand"),
    (_created_target, "CreateTable"),
    (_v2_target, "ReplaceTable AtomicReplaceTable"),
    (_cloned_target, CLONE),
    # A DELETE of whole files: `ice.db.t, [at < 1], …`.
    (lambda _node, text, tables: tables.foreign(arguments(text)[0]), "DeleteFromTable"),
    # An overwrite of the partitions that the data has; a table of a path has no `CatalogTable`.
    (lambda *plan: _v2_target(*plan) or _delta_v2_target(*plan), "DeltaDynamicPartitionOverwriteCommand"),
    # `Relation spark_catalog.db.t[id#1,v#2] …Relation@1f, [day=Some(1)], false`; the last is OVERWRITE or not.
    (lambda _node, text, tables: (match := HUDI_RELATION.match(text)) and tables.named(match["table"]), HUDI_INSERT),
    (_hudi_changed_target, f"{HUDI_UPDATE} {HUDI_DELETE}"),
)
_TARGETS = {name: target for target, names in _BY_TARGET for name in names.split()}
