"""Names the tables and paths that plans read and write as the Spark listener does: by location, tables as symlinks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import structs

from spark_lineage.merge.execution import DECIDES, CatalogStatement, hidden_table, query_dataset, query_of, unnamed
from spark_lineage.merge.lineage import IDENTITY, SchemaField, Symlink
from spark_lineage.merge.observed import Observed, by_name, in_partition
from spark_lineage.merge.partitions import branch, joined
from spark_lineage.naming.identity import PARTITION, DatasetName, Spelling
from spark_lineage.plans.answers import Answers
from spark_lineage.plans.database_query import REDACTED, is_query, statement_of
from spark_lineage.plans.kafka import UNREAD_TOPICS, relation_of, scanned_topics
from spark_lineage.plans.lists import attributes
from spark_lineage.plans.names import Names
from spark_lineage.plans.plan import Node, Plan
from spark_lineage.plans.pushdown import V2_DATABASE_SCAN, joined_tables, named_columns, partition_of, read_pushed
from spark_lineage.plans.scope import NOTHING, Read, Sources, given_out_by

# Catalyst prints a TableIdentifier so.
IDENTIFIER = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
SESSION_CATALOG = "spark_catalog"
_DEFAULT_DATABASE = "default"
_WAREHOUSE = "spark.sql.warehouse.dir"
_CATALOG = re.compile(r"spark\.sql\.catalog\.(?P<catalog>[^.]+)(?:\.(?P<option>warehouse|type|url))?")
_METASTORE = re.compile(r"spark\.(?:hadoop|sql\.hive)\.(?:hive\.)?metastore\.uris")
# Buckets: what follows them is a key, not a path (the listener's ObjectStorageDatasetExtractor).
_OBJECT_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("wasb", "wasbs"), "wasbs"),
    **dict.fromkeys(("abfs", "abfss"), "abfss"),
    "gs": "gs",
}
# Databases that their URLs name whole; what follows the path are properties, and before an @ stands a user.
_DATABASE_URL = re.compile(
    r"jdbc:(?P<namespace>(?:postgresql|mysql|mariadb)://[^/?;@]+/[^/?;]+|(?:h2|sqlite):[^?;]+)(?:[?;].*)?", re.DOTALL
)
_QUOTED_OR_PLAIN = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
# Formats whose tables may be named by their path: delta.`/data/t`.
_PATH_CATALOGS = frozenset({"delta", "parquet", "csv", "json", "orc", "text", "iceberg", "hudi", "avro"})

# Scan parquet spark_catalog.db.t; of a path, the table is missing.
_FILE_SCAN = re.compile(r"(?:File)?Scan (?P<format>[\w.]+)(?: +(?P<table>\S+))?\s*")
_V2_SCAN = re.compile(r"BatchScan (?P<table>\S+)(?P<rest>.*)", re.DOTALL)
_PARTITION_COLUMNS = re.compile(r"Partition Cols: (?P<columns>\[[^\]]*\])")
_HIVE_SCAN = re.compile(r"Scan hive (?P<table>\S+)")
_JDBC_RELATION = re.compile(r"JDBCRelation\((?P<table>[\w.]+)\) \[numPartitions=\d+\], .*`", re.DOTALL)
_JDBC_SCAN = re.compile(r"Scan JDBCRelation\((?P<table>.*)\) \[numPartitions=\d+\]", re.DOTALL)
# Of several paths the text has the first, and the metadata of sparkPlanInfo as many as
# spark.sql.maxMetadataStringLength leaves whole: `InMemoryFileIndex [/a, ... 2 entries]`, `…(3 paths)[/a, /b, ...]`.
_LOCATION = re.compile(
    r"(?P<index>\w+) ?(?:\((?P<count>\d+) paths\))?\[(?P<paths>.*?)(?:, \.\.\. (?P<more>\d+) entries)?\]\s*\Z",
    re.DOTALL,
)
_PATH = re.compile(r"/|[A-Za-z][\w+.-]*:/")
# A command's logical plan reads these by the name of a table; the place of a relation without a name is not known.
_LOGICAL = frozenset({"LogicalRelation", "HiveTableRelation"})
# The change feed of a Delta table names the table's log, and no location of its own.
_CHANGE_FEED = re.compile(r"DeltaCDFRelation\(.*?\bSnapshot\(path=(?P<location>\S+?)/_delta_log\b", re.DOTALL)
# The changelog of an Iceberg table (SparkChangelogScan): the scan is called after a table ``changes`` inside of it.
_CHANGELOG = re.compile(r"(?P<table>\S+) \[fromSnapshotId=\w+, toSnapshotId=\w+, filters=")
# The files of which a stream reads a feed (CDCReader.scanIndex).
_FEED_FILES = re.compile(r"(?:CdcAddFileIndex|TahoeChangeFileIndex|TahoeRemoveFileIndex\w*)\b")
# A table of Iceberg of which a stream reads what is new (SparkBatchQueryScan.description).
_ICEBERG_STREAM = re.compile(r"(?P<table>\S+\.\S+) \(branch=\w+\) \[filters=")
# A table, where the files are, LOCAL, OVERWRITE, and a partition.
_LOADED = re.compile(
    rf"LoadDataCommand {IDENTIFIER.pattern}, (?P<location>.*), (?:true|false), (?:true|false)(?:, Map|\Z)", re.DOTALL
)
_SNAPSHOT = re.compile(r"\bIcebergScan\(table=[^,]*, schemaId=\d+, snapshotId=(?P<id>\d+),")
_BRANCH = re.compile(r"\bIcebergScan\(table=[^,]*, (?:\w+=[^,]*, )*?branch=(?!null,)(?P<name>[^,]+),")
_PARTITIONS = re.compile(rf"(?:/{PARTITION})+\Z")
_METADATA = re.compile(r"_metadata|file_(?:path|name|size|block_start|block_length|modification_time)")
# They read no dataset.
_LOCAL = re.compile(r"LocalTableScan|LocalRelation|Range|EmptyRelation|(?:Scan )?OneRowRelation")
# Delta's own log, which it reads to find its files: itself, and what it keeps of it.
_INTERNAL_INDEX = "DeltaLogFileIndex"
_LOG_STATE = re.compile(r"Scan ExistingRDD Delta .* - .*/_delta_log\Z", re.DOTALL)


def path_name(location: str) -> DatasetName:
    """Return the dataset at a location: ``file:/a/b``, ``hdfs://host/a/b``, ``s3a://bucket/key``, or a bare path."""
    parts = urlsplit(location)
    if not parts.scheme or parts.scheme == "file":
        return DatasetName("file", f"/{location.removeprefix('file:').strip('/')}")
    # Characters after ? and # belong to a path.
    path = location[len(parts.scheme) + 1 :].removeprefix(f"//{parts.netloc}").rstrip("/")
    if parts.scheme in _OBJECT_STORES:
        return DatasetName(f"{_OBJECT_STORES[parts.scheme]}://{parts.netloc}", path.lstrip("/") or "/")
    return DatasetName(f"{parts.scheme}://{parts.netloc}" if parts.netloc else parts.scheme, path or "/")


def is_session_catalog(described: str) -> bool:
    """Whether a catalog, of which plans have the class (``org.apache…DeltaCatalog@1f``), is ``spark_catalog``."""
    return SESSION_CATALOG in described or re.search(r"(?:SessionCatalog|DeltaCatalog)\b", described) is not None


def table_parts(identifier: str) -> tuple[str, ...]:
    """Split ``spark_catalog.db.t`` and ``` `spark_catalog`.`db`.`t` ``` into their parts."""
    return tuple((quoted or plain).replace("``", "`") for quoted, plain in _QUOTED_OR_PLAIN.findall(identifier.strip()))


class Tables:
    """What is known of the tables of one application: where warehouses are, and where plans said that a table is.

    ``subqueries`` has, by the id of its expression, the columns that each scalar subquery was made from, ``names`` the
    names of attributes, ``answers`` the scans that are answers of sources, ``looked_through`` the table of Iceberg
    whose files were looked for last. ``has_encoded_places``: the locations of a catalog's tables are printed as URIs.
    """

    def __init__(self) -> None:
        self._warehouses: dict[str, str] = {}
        self._catalogs: dict[str, list[str]] = {}
        self._hadoop_catalogs: set[str] = set()
        self._metastore = ""
        self._working_directory = ""
        self._locations: dict[tuple[str, ...], str] = {}
        self._databases: dict[str, str] = {}
        self.subqueries: dict[int, Sources] = {}
        self.names = Names()
        self.has_encoded_places = False
        self.answers = Answers()
        self.looked_through: Observed | None = None
        self._named: set[tuple[str, ...]] = set()
        self._urls: dict[str, str] = {}

    def configure(self, properties: Mapping[str, str], working_directory: str) -> None:
        """Take in the properties of the application and the directory that its driver ran in."""
        self._working_directory = working_directory
        # Spark hides each value with a word such as "token" in it: that of a path, too.
        properties = {key: "" if REDACTED in value else value for key, value in properties.items()}
        default = f"file:{working_directory}/spark-warehouse" if working_directory else ""
        self._warehouses[SESSION_CATALOG] = properties.get(_WAREHOUSE, default)
        for key, value in properties.items():
            match = _CATALOG.fullmatch(key)
            if match is None:
                self._metastore = value.partition(",")[0] if _METASTORE.fullmatch(key) else self._metastore
            elif match["option"] == "warehouse":
                self._warehouses[match["catalog"]] = value
            elif match["option"] == "url":
                self._urls[match["catalog"]] = value
            elif match["option"] is None:
                self._catalogs.setdefault(value, []).append(match["catalog"])
            elif value == "hadoop":
                # Iceberg's catalog of paths; each other one alone knows where a table is.
                self._hadoop_catalogs.add(match["catalog"])

    def learn(self, statement: CatalogStatement) -> None:
        """Note where a database of Spark's own catalog is, by the command that makes it, and where a table is now.

        A database that may have been there may have any location.
        """
        location = dict(statement.properties).get("location", "")
        catalog, _, database = statement.name.rpartition(".")
        if statement.object_type == "DATABASE" and catalog in {"", SESSION_CATALOG}:
            if _PATH.match(location):
                self._databases[database] = location.rstrip("/")
            elif statement.change == "CREATE" and not statement.is_conditional:
                self._databases[database] = self._folder(database)
        elif statement.change == "ALTER" and _PATH.match(location):
            self._locations[self._full(statement.name)] = location

    def catalogs_of(self, class_name: str) -> list[str]:
        """Return the names that a class of catalogs was configured under."""
        return self._catalogs.get(class_name, [])

    def at(self, location: str, identifier: str = "") -> Observed:
        """Return the dataset at a location, and note that the table it belongs to is there."""
        if identifier and location:
            catalog, *databases, table = full = self._full(identifier)
            self._locations[full] = location
            if catalog == SESSION_CATALOG and databases[0] not in self._databases:
                folder = self._folder(databases[0])
                if path_name(location) == path_name(f"{folder}/{table}"):
                    self._databases[databases[0]] = folder
        return self._at(location, identifier)

    def _at(self, location: str, identifier: str) -> Observed:
        if self._working_directory and not location.startswith("/") and ":" not in location:
            location = f"{self._working_directory}/{location}"
        return Observed(path_name(location), symlinks=self._symlinks(identifier))

    def named(self, identifier: str, *, is_own: bool = True) -> Observed | None:
        """Return the dataset that a table is, by its catalog's name if its place is not known, else None.

        ``is_own``: without another place it is where Spark puts its tables; many of Hive's are external.
        """
        full = self._full(identifier)
        self._named.add(full)
        *_, database, name = full
        if database in _PATH_CATALOGS and ("/" in name or ":" in name):
            return Observed(path_name(name))
        if location := self._locations.get(full) or (is_own and self._default_location(full)):
            return self._at(location, identifier)
        links = self._symlinks(identifier)
        return next((Observed(link.dataset, symlinks=links) for link in links), None)

    def the_only(self, name: str) -> Observed | None:
        """Return the table of a name without its database, if plans named just one such."""
        found = {full for full in self._named.union(self._locations) if full[-1].casefold() == name.casefold()}
        return self.named(".".join(f"`{part}`" for part in found.pop())) if len(found) == 1 else None

    def in_database(self, identifier: str) -> DatasetName:
        """Return what a table of a JDBC catalog is called: by the URL of its database, else unnamed.

        Spark redacts a URL with a password, and not all URLs have the database in their path.
        """
        catalog, _, table = identifier.partition(".")
        url = _DATABASE_URL.fullmatch(self._urls.get(catalog, ""))
        return Spelling().resolve(DatasetName(url["namespace"], table)) if url else unnamed(table)

    def foreign(self, identifier: str) -> Observed | None:
        """Return the dataset that a table of another catalog is, whose name may lack the catalog."""
        parts = table_parts(identifier)
        if parts[0] in self._warehouses and len(parts) > 1:
            return self.named(identifier)
        others = [catalog for catalog in self._warehouses if catalog != SESSION_CATALOG]
        return self.named(".".join((others[0], identifier))) if len(others) == 1 else None

    def _full(self, identifier: str) -> tuple[str, ...]:
        parts = table_parts(identifier)
        if len(parts) == 1:
            parts = (_DEFAULT_DATABASE, *parts)
        return parts if len(parts) > 2 else (SESSION_CATALOG, *parts)  # noqa: PLR2004 - catalog, database, table

    def _default_location(self, full: tuple[str, ...]) -> str:
        catalog, *databases, table = full
        warehouse = self._warehouses.get(catalog, "").rstrip("/")
        if catalog in self._hadoop_catalogs and warehouse:
            return "/".join((warehouse, *databases, table))
        if catalog != SESSION_CATALOG or not warehouse:
            return ""
        if databases == [_DEFAULT_DATABASE]:
            return f"{warehouse}/{table}"
        return f"{self._databases[databases[0]]}/{table}" if databases[0] in self._databases else ""

    def _folder(self, database: str) -> str:
        """Return the directory of a database that was made without another one."""
        warehouse = self._warehouses.get(SESSION_CATALOG, "").rstrip("/")
        return warehouse if database == _DEFAULT_DATABASE else f"{warehouse}/{database}.db"

    def _symlinks(self, identifier: str) -> frozenset[Symlink]:
        if not identifier:
            return frozenset()
        catalog, *names = self._full(identifier)
        namespace = self._warehouses.get(catalog, "").rstrip("/")
        if catalog == SESSION_CATALOG and self._metastore:
            namespace = f"hive://{urlsplit(self._metastore).netloc}"
        elif namespace.startswith(("/", "file:")):
            # The listener writes `file:///a` as `file:/a`.
            namespace = f"file:/{namespace.removeprefix('file:').lstrip('/')}"
        return frozenset((Symlink(namespace, ".".join(names), "TABLE"),)) if namespace else frozenset()


def complete_locations(plan: Plan, located: Collection[str]) -> None:
    """Complete the locations of which the text of a plan names the first path alone by those of ``sparkPlanInfo``."""
    for node in plan.walk():
        cut = _LOCATION.match(node.fields.get("Location", ""))
        if cut and cut["more"]:
            begin = f"{cut['index']}({int(cut['more']) + 1} paths)[{cut['paths']}"
            fitting = [each for each in located if each.startswith((f"{begin},", f"{begin}]"))]
            if len(fitting) == 1:
                node.fields["Location"] = fitting[0]


def _paths(location: str) -> tuple[list[str], bool]:
    """Return the paths that a location names, and whether these are all of its paths."""
    found = _LOCATION.match(location)
    if found is None or found["index"] == _INTERNAL_INDEX:
        return [], True
    if int(found["count"] or 1) == 1:
        return [found["paths"]], not found["more"]
    paths = [path for path in found["paths"].split(", ") if path != "..."]
    # A path may hold a comma and a blank itself.
    is_split = all(map(_PATH.match, paths))
    return paths if is_split else [], is_split and len(paths) == int(found["count"])


def is_log_of_table(leaf: Node) -> bool:
    """Whether a leaf reads the log that Delta keeps of a table, for itself."""
    return leaf.fields.get("Location", "").startswith(_INTERNAL_INDEX) or bool(_LOG_STATE.match(leaf.name))


def scanned(node: Node, tables: Tables) -> tuple[Observed, ...]:
    """Return the datasets that a leaf reads: none for what is no dataset, or one that the plan does not name.

    One that it names without its place is ``unnamed``: a JDBC table, whose URL Spark redacts, or a logical relation.
    """
    if answered := tables.answers.of(node):
        return answered.tables
    if (topics := scanned_topics(node)) is not None:
        schema = tuple(SchemaField(attribute.name) for attribute in given_out_by(node))
        return by_name(structs.replace(topic, schema=schema) for topic in topics)
    if database := V2_DATABASE_SCAN.fullmatch(node.name):
        named = joined_tables(node) or ([database["table"]] if database["table"] else [])
        return by_name(Observed(tables.in_database(each)) for each in named) or (_hidden(node),)
    return _described(node, tables)


def _described(node: Node, tables: Tables) -> tuple[Observed, ...]:
    text = f"{node.name} {node.fields.get('Arguments', '')}"
    if place := _CHANGE_FEED.search(text) or _LOADED.match(text):
        return (tables.at(place["location"]),)
    paths, _ = _paths(node.fields.get("Location", ""))
    if paths and (file_scan := _FILE_SCAN.fullmatch(node.name)):
        return _files(node, paths, file_scan["table"] or "", tables)
    if paths and _V2_SCAN.fullmatch(node.name):
        return by_name(tables.at(path) for path in paths)
    is_logical, hive = node.name in _LOGICAL, _HIVE_SCAN.match(node.name)
    if is_logical and (relation := _JDBC_RELATION.match(node.fields.get("Arguments", ""))):
        # A table of Spark's catalog may stand for one of a database.
        return (Observed(unnamed(relation["table"])),)
    if is_logical:
        table = next(filter(IDENTIFIER.fullmatch, node.arguments), "")
    else:
        table = hive["table"] if hive else _v2_table(node)
    if table:
        # A table of files may be external.
        return _table(node, tables.named(table, is_own=not (hive or is_logical)))
    return _relation(node) if is_logical or _JDBC_SCAN.match(node.name) else ()


def _table(node: Node, found: Observed | None) -> tuple[Observed, ...]:
    """Return a table as a scan reads it: the snapshot, the branch, and the rows of one partition."""
    if found is None:
        return ()
    if snapshot := _SNAPSHOT.search(node.description):
        found = structs.replace(found, versions=frozenset((snapshot["id"],)))
    of_branch = _BRANCH.search(node.description)
    partition = joined(branch(of_branch["name"]) if of_branch else "", partition_of(node))
    partitioned = _PARTITION_COLUMNS.search(node.fields.get("Arguments", ""))
    keys = tuple(each.name for each in attributes(partitioned["columns"])) if partitioned else ()
    return (in_partition(structs.replace(found, partition_keys=keys), partition),)


def _relation(node: Node) -> tuple[Observed, ...]:
    """Return a relation that the plan does not name: by the table or the query of a database, or by its columns."""
    jdbc = _JDBC_SCAN.match(node.name)
    # A relation numbers its columns in their order; a scan gives them out in another.
    columns = [attribute.name for attribute in sorted(given_out_by(node), key=lambda each: each.id)]
    schema = tuple(SchemaField(column) for column in columns)
    name = unnamed(jdbc["table"] if jdbc else "", columns)
    if jdbc and is_query(jdbc["table"]):
        # A scan may not give out the columns that it is filtered by.
        columns += [column for column in named_columns(node, columns) if column not in columns]
        name = query_dataset(statement_of(jdbc["table"], node.fields.get("External engine query", "")), columns)
    return (Observed(name, schema=schema),)


def _v2_table(node: Node) -> str:
    """Return the table that a scan of a v2 source reads, empty where it names none."""
    if node.name.startswith("MicroBatchScan"):
        stream = _ICEBERG_STREAM.match(node.description.strip())
        return stream["table"] if stream else ""
    v2_scan = _V2_SCAN.fullmatch(node.name)
    changelog = _CHANGELOG.search(node.description) if v2_scan else None
    if changelog:
        return changelog["table"]
    return v2_scan["table"] if v2_scan and "." in v2_scan["table"] else ""


def _files(node: Node, paths: Sequence[str], table: str, tables: Tables) -> tuple[Observed, ...]:
    """Return the files that a scan reads, of a table the partitions: by their directories, or by its filters."""
    if not table or "PartitionFilters" not in node.fields:
        placed = ((tables.at(path, table), _PARTITIONS.search(path)) for path in paths)
        return by_name(one if is_named else in_partition(one, partition_of(node)) for one, is_named in placed)
    _, is_all = _paths(node.fields["Location"])
    cut = [_PARTITIONS.search(path) for path in paths]
    below = [match[0].strip("/") if match and is_all else "" for match in cut]
    places = [path[: match.start()] if match else path for path, match in zip(paths, cut, strict=True)]
    if not all(below):
        below = [partition_of(node)] * len(places)
    return by_name(
        in_partition(tables.at(place, table), partition) for place, partition in zip(places, below, strict=True)
    )


def _hidden(node: Node) -> Observed:
    columns = named_columns(node, [attribute.name for attribute in given_out_by(node)])
    return Observed(hidden_table(columns), schema=tuple(map(SchemaField, columns)))


def change_feeds(plan: Plan, tables: Tables) -> frozenset[DatasetName]:
    """Return the tables of which a plan reads the changes: Delta's change feed, Iceberg's changelog."""
    leaves = [node for node in plan.walk() if not node.children]
    texts = (f"{node.name} {node.fields.get('Arguments', '')}" for node in leaves)
    feeds = frozenset(tables.at(feed["location"]).dataset for text in texts if (feed := _CHANGE_FEED.search(text)))
    # A stream reads the files of the feed of a Delta table.
    reading = (
        node
        for node in leaves
        if _FEED_FILES.match(node.fields.get("Location", "")) or _CHANGELOG.search(node.description)
    )
    return feeds.union(one.dataset.whole for node in reading for one in scanned(node, tables))


def read_by(plan: Plan, tables: Tables) -> tuple[Observed, ...]:
    """Return all datasets that a plan reads."""
    return tuple(observed for node in plan.walk() if not node.children for observed in scanned(node, tables))


def read_leaf(node: Node, tables: Tables) -> Read:
    """Return the columns that the attributes of a leaf are, of each dataset that the plan names."""
    if found := tables.answers.of(node):
        return Read(found.columns, is_whole=not found.unread, unread=found.unread)
    datasets = [observed.dataset for observed in scanned(node, tables)]
    if not datasets:
        unread = (UNREAD_TOPICS,) if relation_of(node) else ()
        return Read([], is_whole=bool(_LOCAL.match(node.name)), unread=unread)
    schema, location = node.fields.get("ReadSchema", ""), node.fields.get("Location", "")
    columns = [
        # The place that a row came from is no column of its file.
        NOTHING
        if _METADATA.fullmatch(attribute.name) and f"{attribute.name}:" not in schema
        else frozenset((dataset, attribute.name, IDENTITY) for dataset in datasets)
        for attribute in given_out_by(node)
    ]
    read = read_pushed(node, datasets, columns)
    of_queries = frozenset((dataset, "", DECIDES) for dataset in datasets if query_of(dataset))
    _, is_whole = _paths(location)
    return read._replace(is_whole=read.is_whole and is_whole, deciding=read.deciding | of_queries)
