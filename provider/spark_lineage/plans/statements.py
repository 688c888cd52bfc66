"""Reads what the command at the root of a plan does to the catalog (``org.apache.spark.sql.execution.command`` and v2).

The listener reports tables as well; the plan has what was conditional, and what the listener does not report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from msgspec import structs

from spark_lineage.merge.execution import CatalogStatement
from spark_lineage.merge.lineage import ChangeType, ColumnChange, ObjectType, PartitionChange, Repair, SchemaField
from spark_lineage.plans.accounting_rules import COMMANDS, UNREPORTED
from spark_lineage.plans.commands import CLONE, HIVE_TABLE, described
from spark_lineage.plans.lists import arguments, columns_in
from spark_lineage.plans.plan import Plan
from spark_lineage.plans.predicates import UnreadableError
from spark_lineage.plans.tables import Tables, table_parts

_PROPERTY = re.compile(r"(?P<key>[^\s=,]+)=(?P<value>.*?)(?:, (?=[^\s=,]+=)|\Z)", re.DOTALL)
_CATALOG = re.compile(r"(?:V2SessionCatalog\((?P<session>\w+)\)|(?P<class>[\w.$]+)@\w+|(?P<name>[^()@]+))")
# Properties, provider, options, location, comment, [collation,] serde, …, as Scala prints them.
_TABLE_SPEC = re.compile(
    r"TableSpec\(Map\((?P<properties>.*?)\),(?:None|Some\([^()]*\)),Map\(.*?\),(?:None|Some\(.*?\)),"
    r"(?:None|Some\((?P<comment>.*)\))(?:,(?:None|Some\(.*?\))){1,2},(?:true|false)",
    re.DOTALL,
)
# Scala prints a map of more than four entries as another class.
_PARTITION = re.compile(r"\(?(?:Hash)?Map\((?P<values>.*?)\)(?:,(?:None|Some\((?P<location>.*)\))\))?", re.DOTALL)
_SPEC_PROPERTY = re.compile(r"(?P<key>[^\s,]+) -> (?P<value>.*?)(?:, (?=[^\s,]+ -> )|\Z)", re.DOTALL)
# ``ExternalCatalogUtils.escapePathName``.
_NOT_IN_PATH = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
# Behind the name, or behind the columns where there is no query.
_TRANSFORMS = r"(?!ColumnImpl)\w+\([^()#]*\)(?:, \w+\([^()#]*\))*"
_PARTITIONED_BY = re.compile(
    rf"^[^,]+, [^,]+, \[(?P<query>{_TRANSFORMS})\], [A-Z]|\[(?P<columns>{_TRANSFORMS})\], TableSpec\("
)
_IDENTITY = re.compile(r"identity\((?P<column>.*)\)")
_CHANGE = re.compile(
    r"(?:ADD COLUMN (?P<added>.+?) (?P<type>[A-Z]\w*(?:\([^()]*\)|<.*?>)?)|DROP COLUMN (?P<dropped>.+?)"
    r"|RENAME COLUMN (?P<old>.+?) TO (?P<new>.+?)"
    r"|ALTER COLUMN (?P<altered>.+?) (?:TYPE (?P<to>.+?)|COMMENT|FIRST|AFTER .+?|(?:SET|DROP) (?:NOT NULL|DEFAULT.*?))"
    r"|SET PROPERTY (?P<key>.+?) = (?P<value>.*?)|REMOVE PROPERTY (?P<unset>.+?))"
    r"(?=\](?:, [^\s\]]++)?\Z|, (?:(?:ADD|DROP|RENAME|ALTER) COLUMN|(?:SET|REMOVE) PROPERTY) )",
    re.DOTALL,
)
# Some catalogs print but the class of a change.
_UNNAMED_CHANGE = re.compile(r"TableChange\$(?:Rename|Delete)Column@")
_QUERY = re.compile(r"\(*\s*(?:select|with|values|from|table|map|reduce)\b", re.IGNORECASE)
_TRUE = "true"
# The end of what a view is made by: behind a query, which may hold anything.
_VIEW = re.compile(
    r"(?P<said>.*), (?P<is_conditional>true|false), (?P<is_replacing>true|false), (?P<kind>\w+View)(?:, .*)?", re.DOTALL
)
_PERSISTED = "PersistedView"
_UNSET_OF_DATABASE = "UnsetNamespacePropertiesCommand"
# Nothing is tried twice: a description may be any text.
_BLANK = r"\s|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
# The SQL of a CREATE TABLE is made of these.
_TEXT = r"""(?P<quote>['"])(?:(?!(?P=quote))[^\\]|\\.?)*+(?:(?P=quote)|\Z)"""
_TOKEN = re.compile(rf"{_BLANK}|(?P<text>{_TEXT})|(?P<name>\w+|`[^`]+`)|(?P<sign>.)", re.DOTALL)
_CREATES = re.compile(
    rf"(?:{_BLANK})*+CREATE\s+(?:OR\s+REPLACE\s+)?(?:EXTERNAL\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?P<name>(?:[\w.]|`[^`]+`)+)(?P<rest>.*)",
    re.DOTALL | re.IGNORECASE,
)
_BEGINS_QUERY = frozenset({"AS", "SELECT", "FROM", "VALUES"})
# Commands that write rows, and whose targets the listener reports.
_REPORTED_BY_LISTENER = frozenset({
    *("AppendDataExecV1", "CreateDeltaTableCommand", "InsertIntoDataSourceCommand", "InsertIntoDataSourceDirCommand"),
    *("InsertIntoHiveDirCommand", "LoadDataCommand", "OverwriteByExpressionExecV1", "RestoreTableCommand"),
})  # fmt: skip
# The accounts name the procedure that is called.
_CALL = "Call"


def is_read(command: str) -> bool:
    """Whether it is known what a command does, by its class name: what the plan says is read, or need not be."""
    name = command.removesuffix("$").removesuffix("Exec")
    is_without_lineage = name in COMMANDS and name not in UNREPORTED
    return is_without_lineage or name == _CALL or name in _READERS or name in _REPORTED_BY_LISTENER


def read_statement(plan: Plan, tables: Tables) -> CatalogStatement | None:
    """Return what the command at the root does to the catalog, None where it does nothing, or nothing that lasts.

    :raises UnreadableError: when the command is printed in a way that is not known, or names the class of its catalog
        alone, which several catalogs have
    """
    name, text = described(plan)
    if name == _UNSET_OF_DATABASE:
        text = f"{plan.arguments_of('ResolvedNamespace')}, {text}"
    parts = arguments(text or plan.arguments_of("ResolvedTable"))
    read = _READERS.get(name.removesuffix("Exec"))
    if read is None:
        return None
    # A plan has the class of a catalog, the configuration its name.
    catalogs = tables.catalogs_of(parts[0].partition("@")[0])
    if len(catalogs) > 1:
        raise UnreadableError(f"{name}: its catalog")
    parts[0] = next(iter(catalogs), parts[0])
    try:
        statement = read(parts)
    except (IndexError, StopIteration, ValueError):
        raise UnreadableError(f"{name}: what it changes") from None
    return _specified(statement, text) if statement is not None and not _is_temporary(statement) else None


def _is_temporary(statement: CatalogStatement) -> bool:
    """Whether a view that is altered or renamed ends with the session: all others have a database there."""
    is_changed = statement.object_type == "VIEW" and statement.change in {"ALTER", "RENAME"}
    return is_changed and statement.name.rpartition(".")[0] in {"", "global_temp"}


def _specified(statement: CatalogStatement, text: str) -> CatalogStatement:
    """Return a CREATE of a v2 table with what it says of the table."""
    spec = _TABLE_SPEC.search(text)
    if spec is None:
        return statement
    comment = () if spec["comment"] is None else (("comment", spec["comment"]),)
    properties = tuple(_SPEC_PROPERTY.findall(spec["properties"]))
    found = _PARTITIONED_BY.search(text)
    partitions = arguments(found["query"] or found["columns"]) if found else ()
    return structs.replace(
        statement,
        properties=comment + properties,
        partitioned_by=tuple(_IDENTITY.sub(r"\g<column>", each) for each in partitions if "cluster_by(" not in each),
        schema=tuple(columns_in(text[: spec.start()])) if "[ColumnImpl(" in text else (),
    )


def with_text(statement: CatalogStatement, sql: str) -> CatalogStatement:
    """Return a CREATE with what its SQL says of the table; the plan of a table of Spark's own catalog has but its name.

    Spark's SQL shell and its Thrift server describe an execution by its SQL. Another text, or of another table, has no
    effect.
    """
    match = _CREATES.match(sql)
    names = [part.casefold() for part in table_parts(match["name"])] if match else []
    if match is None or statement.name.casefold().split(".")[-len(names) :] != names:
        return statement
    comment: tuple[tuple[str, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    tokens = [each for each in _TOKEN.finditer(match["rest"]) if each.lastgroup]
    depth = 0
    for at, token in enumerate(tokens):
        word, before = token[0].upper(), tokens[at - 1][0].upper()
        depth += (word == "(") - (word == ")")
        if depth or token.lastgroup != "name":
            continue
        if word in _BEGINS_QUERY and before != "STORED":
            break
        if word == "COMMENT" and (text := _plain(tokens[at + 1 : at + 2])):
            comment = (("comment", text),)
        elif word == "TBLPROPERTIES":
            pairs = (_pair(element) for element in _elements(tokens[at + 1 :]))
            properties = tuple((key, value) for key, value in pairs if key and value)
        elif (before, word) == ("PARTITIONED", "BY"):
            columns = tuple(_plain(element[:1]) for element in _elements(tokens[at + 1 :]))
    return structs.replace(
        statement,
        properties=statement.properties or comment + properties,
        partitioned_by=statement.partitioned_by or columns,
    )


def _elements(tokens: Sequence[re.Match[str]]) -> list[list[re.Match[str]]]:
    """Return the elements of a list in parentheses."""
    found: list[list[re.Match[str]]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token[0] == "(") - (token[0] == ")")
        if not depth:
            break
        if depth == 1 and token[0] == ",":
            found.append([])
        elif token is not tokens[0]:
            found[-1].append(token)
    return found


def _pair(tokens: Sequence[re.Match[str]]) -> tuple[str, str]:
    """Return key and value of a property; the sign between them may be missing."""
    place = next((at for at, token in enumerate(tokens) if token[0] == "="), len(tokens) - 1)
    return _plain(tokens[:place]), _plain([token for token in tokens[place:] if token[0] != "="])


def _plain(tokens: Sequence[re.Match[str]]) -> str:
    """Return a text or a name without quotes, empty for a text with escapes, whose meaning depends on settings."""
    texts = [token[0][1:-1] if token[0][0] in "'\"`" else token[0] for token in tokens]
    return "" if any("\\" in text for text in texts) else "".join(texts)


def _table(parts: list[str]) -> str:
    return ".".join(table_parts(parts[0]))


def _renamed(name: str, new_name: str) -> str:
    """Return the new name of a table, which stays in its database where the command names none."""
    parts = table_parts(new_name)
    return ".".join(parts if len(parts) > 1 else filter(None, (name.rpartition(".")[0], *parts)))


def _identifier(parts: list[str]) -> str:
    return ".".join(filter(None, (_catalog(parts[0]), *table_parts(parts[1]))))


def _database(parts: list[str]) -> str:
    return ".".join(filter(None, (_catalog(parts[0]), parts[1].strip("[]").replace(", ", "."))))


def _catalog(text: str) -> str:
    """Return the name of a catalog; a class alone has no name."""
    match = _CATALOG.match(text)
    return (match["session"] or match["name"] or "") if match else ""


def _fields(text: str) -> tuple[ColumnChange, ...]:
    return tuple(ColumnChange(None, field) for field in columns_in(text))


def _type(text: str) -> str:
    """Return a type in lower case, but not the names in it (``struct<Zip: INT>``)."""
    kind, sign, inner = text.strip().partition("<")
    return kind.lower() + sign + inner


def _properties(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(_PROPERTY.findall(text.removeprefix("[").removesuffix("]")))


def _partitions(text: str) -> list[tuple[str, str]]:
    """Return each partition of ``[(Map(day -> 1),Some(/data/t)), …]`` or ``[Map(day -> 1), …]``, and its place."""
    found = map(_PARTITION.fullmatch, arguments(text.removeprefix("[").removesuffix("]"), quote=""))
    return [(_partition(each["values"], " -> "), each["location"] or "") for each in found if each is not None]


def _partition(text: str, sign: str) -> str:
    """Return ``day -> 1, region -> eu`` as a path, escaped as Hive does; no column has a comma in its name."""
    parts = re.split(rf"(?:\A|, )((?:(?!{sign})[^,])++){sign}", text)[1:]
    escaped = [_NOT_IN_PATH.sub(lambda match: f"%{ord(match[0]):02X}", part) for part in parts]
    return "/".join(map("=".join, zip(escaped[::2], escaped[1::2], strict=True)))


_Reader = Callable[[list[str]], CatalogStatement | None]


def _reader(
    change: ChangeType,
    object_type: ObjectType,
    name: Callable[[list[str]], str],
    *,
    conditional: int | None = None,
    cascading: int | None = None,
    view: int | None = None,
    new_name: int | None = None,
    columns: int | None = None,
    properties: int | None = None,
    unset: int | None = None,
) -> _Reader:
    """Return what reads a command by the places of its arguments; ``view``: whether a table is a view after all."""

    def is_true(parts: list[str], place: int | None) -> bool:
        return place is not None and parts[place] == _TRUE

    def read(parts: list[str]) -> CatalogStatement:
        return CatalogStatement(
            change,
            "VIEW" if is_true(parts, view) else object_type,
            name(parts),
            new_name="" if new_name is None else _renamed(name(parts), parts[new_name]),
            columns=() if columns is None else _fields(parts[columns]),
            # The last may be missing.
            properties=() if properties is None else _properties("".join(parts[properties : properties + 1])),
            unset_properties=() if unset is None else tuple(parts[unset].strip("[]").split(", ")),
            is_conditional=is_true(parts, conditional),
            is_cascading=is_true(parts, cascading),
        )

    return read


def _create_view(parts: list[str]) -> CatalogStatement | None:
    """``name, [columns], [comment], [properties], sql, IF NOT EXISTS, OR REPLACE, kind, …``; others do not last."""
    view = _VIEW.fullmatch(", ".join(parts))
    if view is None:
        raise ValueError
    if view["kind"] != _PERSISTED:
        return None
    said = [part for part in arguments(view["said"])[1:] if not part.startswith("[(")]
    query = next(place for place, part in enumerate(said) if _QUERY.match(part))
    properties = next((_properties(part) for part in said[:query] if part.startswith("[")), ())
    comment = ", ".join(takewhile(lambda part: not part.startswith("["), said[:query]))
    return CatalogStatement(
        "OVERWRITE" if view["is_replacing"] == _TRUE else "CREATE",
        "VIEW",
        _table(parts),
        properties=((("comment", comment),) if comment else ()) + properties,
        is_conditional=view["is_conditional"] == _TRUE,
    )


def _create_as(parts: list[str]) -> CatalogStatement | None:
    """``name, [serde,] mode, …``; what appends to a table does not make it, and OVERWRITE may have replaced it."""
    if "Append" in parts[1:3]:
        return None
    change: ChangeType = "OVERWRITE" if "Overwrite" in parts[1:3] else "CREATE"
    return CatalogStatement(change, "TABLE", _table(parts), is_conditional="Ignore" in parts[1:3])


def _clone(parts: list[str]) -> CatalogStatement | None:
    """``name, mode, CloneTableCommand …, …``; a table that is no clone is made by the command around it."""
    if not any("CloneTableCommand" in part for part in parts):
        return None
    change: ChangeType = "OVERWRITE" if parts[1] == "Overwrite" else "CREATE"
    # Delta's command is one of Spark's own catalog, which it may not name.
    name = ".".join(["spark_catalog", *table_parts(parts[0])][-3:])
    return CatalogStatement(change, "TABLE", name, is_conditional=parts[1] == "Ignore")


def _create_hive_as(parts: list[str]) -> CatalogStatement:
    """``[Database: db, TableName: t, …], …``."""
    match = HIVE_TABLE.search(parts[0])
    if match is None:
        raise ValueError
    return CatalogStatement("CREATE", "TABLE", f"{match['database']}.{match['table']}")


def _alter_v2(parts: list[str]) -> CatalogStatement:
    """``catalog, table, [ADD COLUMN z STRING, RENAME COLUMN a TO b, SET PROPERTY comment = …], …``."""
    columns: list[ColumnChange] = []
    properties: list[tuple[str, str]] = []
    unset: list[str] = []
    # A bracket in a comment may have cut the list.
    for change in _CHANGE.finditer(", ".join(parts[2:])):
        if change["added"]:
            columns.append(ColumnChange(None, SchemaField(change["added"], _type(change["type"]))))
        elif change["dropped"]:
            columns.append(ColumnChange(SchemaField(change["dropped"]), None))
        elif change["old"]:
            # Spark prints the last part of the new name of a struct's field.
            new = "".join((*change["old"].rpartition(".")[:2], change["new"]))
            columns.append(ColumnChange(SchemaField(change["old"]), SchemaField(new)))
        elif name := change["altered"]:
            columns.append(ColumnChange(SchemaField(name), SchemaField(name, change["to"] and _type(change["to"]))))
        elif change["unset"]:
            unset.append(change["unset"])
        else:
            properties.append((change["key"], change["value"].strip()))
    return CatalogStatement(
        "ALTER",
        "TABLE",
        _identifier(parts),
        columns=tuple(columns),
        properties=tuple(properties),
        unset_properties=tuple(unset),
        has_unnamed_columns=bool(_UNNAMED_CHANGE.search(parts[2])),
    )


def _change_column(parts: list[str]) -> CatalogStatement:
    """``name, a, StructField(a,IntegerType,true)``; a comment is not printed."""
    changes = tuple(ColumnChange(SchemaField(new.name), new) for new in columns_in(", ".join(parts[1:])))
    return CatalogStatement("ALTER", "TABLE", _table(parts), columns=changes)


def _change_partitions(parts: list[str]) -> CatalogStatement:
    """``name, [(Map(day -> 1),None), …], IF NOT EXISTS`` or ``name, [Map(day -> 1), …], IF EXISTS, …`` to drop them."""
    added = parts[1].startswith("[(")
    found = _partitions(parts[1])
    changes = [PartitionChange(None if added else at, at if added else None, place) for at, place in found]
    is_conditional = parts[2:3] == [_TRUE]
    return CatalogStatement("ALTER", "TABLE", _table(parts), partitions=tuple(changes), is_conditional=is_conditional)


def _rename_partition(parts: list[str]) -> CatalogStatement:
    """``name, [day=1], [day=2]``."""
    old, new = (_partition(part.removeprefix("[").removesuffix("]"), "=") for part in parts[1:3])
    return CatalogStatement("ALTER", "TABLE", _table(parts), partitions=(PartitionChange(old, new),))


def _set_location(parts: list[str]) -> CatalogStatement:
    """``name, location``, or ``name, Map(day -> 1), location`` for a partition, which leaves the others."""
    *partition, location = parts[1:]
    changes = tuple(PartitionChange(at, at, location) for text in partition for at, _ in _partitions(text))
    properties = () if partition else (("location", location),)
    return CatalogStatement("ALTER", "TABLE", _table(parts), properties=properties, partitions=changes)


def _repair(parts: list[str]) -> CatalogStatement:
    """``name, ADD, DROP, …``: which partitions the command looks for, both for SYNC."""
    is_adding, is_dropping = (part == _TRUE for part in parts[1:3])
    repair: Repair = "SYNC" if is_adding and is_dropping else "DROP" if is_dropping else "ADD"
    return CatalogStatement("ALTER", "TABLE", _table(parts), repair=repair)


# IF NOT EXISTS comes last.
_CREATE = _reader("CREATE", "TABLE", _table, conditional=-1)
_CREATE_V2 = _reader("CREATE", "TABLE", _identifier, conditional=-1)
# CREATE OR REPLACE comes before the last.
_REPLACE = _reader("OVERWRITE", "TABLE", _identifier, conditional=-2)
_ADD_COLUMNS = _reader("ALTER", "TABLE", _table, columns=1)
_SET_PROPERTIES = _reader("ALTER", "TABLE", _table, properties=1, view=2)
_UNSET_PROPERTIES = _reader("ALTER", "TABLE", _table, unset=1, conditional=2, view=3)
_RENAME = _reader("RENAME", "TABLE", _table, new_name=1, view=2)
_BY_READER: tuple[tuple[_Reader, str], ...] = (
    (_reader("CREATE", "DATABASE", _database, conditional=2, properties=3), "CreateNamespace"),
    (_reader("ALTER", "DATABASE", _database, properties=2), "AlterNamespaceSetProperties"),
    (_reader("ALTER", "DATABASE", _database, unset=2), _UNSET_OF_DATABASE),
    (_reader("DROP", "DATABASE", _database, conditional=2, cascading=3), "DropNamespace"),
    (_CREATE, "CreateDataSourceTableCommand CreateTableCommand CreateTableLikeCommand"),
    (_CREATE, "CreateHoodieTableCommand CreateHoodieTableLikeCommand"),
    (_CREATE_V2, "CreateTable CreateTableAsSelect AtomicCreateTableAsSelect CreateTableLike"),
    (_clone, CLONE),
    (_create_as, "CreateDataSourceTableAsSelectCommand CreateHoodieTableAsSelectCommand"),
    (_create_hive_as, "CreateHiveTableAsSelectCommand OptimizedCreateHiveTableAsSelectCommand"),
    (_REPLACE, "ReplaceTable AtomicReplaceTable ReplaceTableAsSelect AtomicReplaceTableAsSelect"),
    (_reader("TRUNCATE", "TABLE", _table), "TruncateTableCommand TruncateTable TruncateHoodieTableCommand"),
    (_reader("TRUNCATE", "TABLE", _identifier), "TruncateDeltaTableCommand"),
    (_create_view, "CreateViewCommand"),
    (_reader("ALTER", "VIEW", _table), "AlterViewAsCommand AlterViewSchemaBindingCommand"),
    (_reader("DROP", "TABLE", _table, conditional=1, view=2), "DropTableCommand DropHoodieTableCommand"),
    (_reader("DROP", "TABLE", _identifier, conditional=2), "DropTable"),
    (_RENAME, "AlterTableRenameCommand AlterHoodieTableRenameCommand"),
    (_ADD_COLUMNS, "AlterTableAddColumnsCommand AlterHoodieTableAddColumnsCommand"),
    (_reader("RENAME", "TABLE", _identifier, new_name=2), "RenameTable"),
    (_change_column, "AlterTableChangeColumnCommand AlterHoodieTableChangeColumnCommand"),
    (_reader("ALTER", "TABLE", _table), "AlterTableSerDePropertiesCommand"),
    (_change_partitions, "AlterTableAddPartitionCommand AlterTableDropPartitionCommand"),
    (_rename_partition, "AlterTableRenamePartitionCommand"),
    (_repair, "RepairTableCommand"),
    (_set_location, "AlterTableSetLocationCommand"),
    (_UNSET_PROPERTIES, "AlterTableUnsetPropertiesCommand AlterHoodieTableUnsetPropertiesCommand"),
    (_SET_PROPERTIES, "AlterTableSetPropertiesCommand AlterHoodieTableSetPropertiesCommand"),
    (_alter_v2, "AlterTable AddPartitionField DropPartitionField ReplacePartitionField SetIdentifierFields"),
    (_alter_v2, "DropIdentifierFields SetWriteDistributionAndOrdering"),
)
_READERS = {name: reader for reader, names in _BY_READER for name in names.split()}
