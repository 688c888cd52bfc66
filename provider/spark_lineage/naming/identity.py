"""The name of a dataset, and the one table of what it can be: how each kind of storage is named and called."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct


class DatasetName(Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """The identity of a dataset: OpenLineage's ``namespace`` and ``name``; the rooms compare, sort and write by it."""

    namespace: str
    name: str


class Shape(Enum):
    """What a namespace and a name are made of, after OpenLineage's naming conventions (website/docs/spec/naming.md)."""

    FILES = auto()
    """``scheme://authority`` or ``scheme``, and an absolute path."""
    OBJECTS = auto()
    """``scheme://bucket``, and a key without a slash at its start."""
    HOSTS = auto()
    """``scheme://host:port,host:port``, and a table or topic."""
    PLAIN = auto()
    """A namespace with a grammar of its own, and a table."""


class StorageType(Struct, frozen=True):
    """One row of the table.

    ``port`` is the one that the listener writes where a URL has none (``*JdbcExtractor.java`` of OpenLineage's client).
    ``depth`` is the number of parts of a whole table name (``database.schema.table`` is 3), 0 where a namespace
    cannot hold a database. ``shorter`` gives what to cut from a host, as a regular expression and its replacement.
    """

    scheme: str
    type: str
    shape: Shape
    aliases: tuple[str, ...] = ()
    port: str = ""
    depth: int = 0
    holds: str = "table"
    has_hosts: bool = False
    has_folded_case: bool = False
    has_instance: bool = False
    shorter: tuple[str, str] | None = None


def _database(scheme: str, port: str = "", depth: int = 3, aliases: tuple[str, ...] = ()) -> StorageType:
    return StorageType(scheme, scheme, Shape.HOSTS, aliases, port, depth, has_hosts=True)


STORAGE_TYPES = (
    StorageType("file", "local", Shape.FILES, has_hosts=True, has_folded_case=True),
    # No port is added or taken: without one, the authority may be a name service, which has none.
    StorageType("hdfs", "hdfs", Shape.FILES, has_hosts=True, has_folded_case=True),
    StorageType("viewfs", "hdfs", Shape.FILES),
    StorageType("dbfs", "dbfs", Shape.FILES),
    StorageType("oss", "oss", Shape.FILES),
    StorageType("s3", "s3", Shape.OBJECTS, ("s3a", "s3n")),
    StorageType("gs", "gcs", Shape.OBJECTS),
    StorageType("abfss", "abfs", Shape.OBJECTS, ("abfs",), has_folded_case=True),
    StorageType("wasbs", "wasb", Shape.OBJECTS, ("wasb",), has_folded_case=True),
    StorageType("kafka", "kafka", Shape.HOSTS, holds="topic", has_hosts=True),
    StorageType("hive", "hive", Shape.HOSTS, ("thrift",), depth=2, has_hosts=True),
    _database("postgres", "5432", aliases=("postgresql",)),
    _database("mysql", "3306", 2),
    _database("mariadb", "3306", 2),
    _database("oceanbase", "2881", 2),
    _database("oracle", "1521"),
    StorageType("sqlserver", "sqlserver", Shape.HOSTS, ("mssql",), "1433", 3, has_hosts=True, has_instance=True),
    _database("db2", "6789"),
    _database("teradata", "1025", 2),
    _database("trino", "443"),
    _database("cassandra", "9042", 2),
    _database("clickhouse", "8123", 2, ("ch",)),
    _database("crate", "5432"),
    _database("unitycatalog"),
    # The hosts of ZooKeeper, and ``namespace:table``.
    StorageType("hbase", "hbase", Shape.HOSTS, has_hosts=True),
    StorageType(
        "redshift",
        "redshift",
        Shape.HOSTS,
        port="5439",
        depth=3,
        has_hosts=True,
        shorter=(r"([^.]+)\.[^.]+\.([^.]+)\.redshift(?:-serverless)?\.amazonaws\.com(?:\.cn)?", r"\1.\2"),
    ),
    StorageType(
        "snowflake",
        "snowflake",
        Shape.HOSTS,
        depth=3,
        shorter=(r"(.+?)(?:\.privatelink)?\.snowflakecomputing\.com(?::443)?", r"\1"),
    ),
    StorageType("bigquery", "bigquery", Shape.PLAIN),
    StorageType("awsathena", "athena", Shape.PLAIN),
    StorageType("arn", "glue", Shape.PLAIN),
    StorageType("unity-catalog", "unitycatalog", Shape.PLAIN),
    StorageType("azurecosmos", "cosmosdb", Shape.PLAIN),
    StorageType("azurekusto", "kusto", Shape.PLAIN),
    StorageType("sqlite", "sqlite", Shape.PLAIN),
    StorageType("h2", "h2", Shape.PLAIN),
    # Of a catalog, as Paimon's own lineage has it (``LineageUtils`` of paimon-flink): its warehouse, and a table.
    StorageType("paimon", "paimon", Shape.PLAIN),
)

_BY_SCHEME = {scheme: row for row in STORAGE_TYPES for scheme in (row.scheme, *row.aliases)}
_PATH_SCHEMES = frozenset(s for s, row in _BY_SCHEME.items() if row.shape in {Shape.FILES, Shape.OBJECTS})
# A table format says more than the place that its files are in; as the listener's storage and catalog facets spell it.
_TABLE_FORMATS = frozenset({"hive", "iceberg", "delta", "hudi", "paimon"})


def storage_type(scheme: str) -> StorageType | None:
    """Return the row for a namespace's scheme in lower case, None where it is unknown."""
    return _BY_SCHEME.get(scheme)


def is_path_namespace(namespace: str) -> bool:
    """Whether names in this namespace are paths, so that one can lie inside another."""
    return namespace.partition(":")[0] in _PATH_SCHEMES


def directories_above(name: DatasetName) -> Iterator[DatasetName]:
    """Return the directories that a path lies in, from the nearest on; none where names are no paths."""
    if not is_path_namespace(name.namespace):
        return
    path = name.name
    while (cut := path.rfind("/")) > 0:
        path = path[:cut]
        yield DatasetName(name.namespace, path)
    if path.startswith("/") and path != "/":
        yield DatasetName(name.namespace, "/")


def dataset_type(dataset: DatasetName, storage_layer: str | None = None, file_format: str | None = None) -> str | None:
    """Return what kind of dataset this is: a table format, else the store or the vendor; None where unknown.

    :param storage_layer: from OpenLineage's ``storage`` facet, or the ``framework`` of its ``catalog`` facet
    :param file_format: from the ``storage`` facet
    """
    for hint in (storage_layer, file_format):
        if hint and hint.lower() in _TABLE_FORMATS:
            return hint.lower()
    scheme, _, rest = dataset.namespace.partition(":")
    row = _BY_SCHEME.get(scheme)
    if row is not None and scheme in _PATH_SCHEMES and "/" in rest.removeprefix("//"):
        return "table"  # of a catalog that keeps its tables in this directory
    return row.type if row else None
