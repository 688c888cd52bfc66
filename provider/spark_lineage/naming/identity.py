"""What a dataset physically is, from any of its spellings, and its one name; one table has each kind of storage.

Last come the ends of paths that are partitions, dates, globs or a user's own, and not part of the dataset's name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any

from msgspec import Struct


class DatasetName(Struct, frozen=True, order=True, cache_hash=True, gc=False, omit_defaults=True):
    """The identity of a dataset: OpenLineage's ``namespace`` and ``name``; all packages compare, sort and write by it.

    ``partition`` is what alone of it is read or written, a path below it (``day=1/region=eu``); no event has it.
    """

    namespace: str
    name: str
    partition: str = ""

    @property
    def whole(self) -> DatasetName:
        """The dataset that a partition is part of."""
        return DatasetName(self.namespace, self.name) if self.partition else self


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


def _hosts(scheme: str, port: str = "", depth: int = 3, **more: Any) -> StorageType:
    return StorageType(scheme, scheme, Shape.HOSTS, port=port, depth=depth, **{"has_hosts": True, **more})


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
    _hosts("kafka", depth=0, holds="topic"),
    _hosts("hive", depth=2, aliases=("thrift",)),
    _hosts("postgres", "5432", aliases=("postgresql",)),
    _hosts("mysql", "3306", 2),
    _hosts("mariadb", "3306", 2),
    _hosts("oceanbase", "2881", 2),
    _hosts("oracle", "1521"),
    _hosts("sqlserver", "1433", aliases=("mssql",), has_instance=True),
    _hosts("db2", "6789"),
    _hosts("teradata", "1025", 2),
    _hosts("trino", "443"),
    _hosts("cassandra", "9042", 2),
    _hosts("clickhouse", "8123", 2, aliases=("ch",)),
    _hosts("crate", "5432"),
    _hosts("unitycatalog"),
    # The hosts of ZooKeeper, and ``namespace:table``.
    _hosts("hbase", depth=0),
    _hosts(
        "redshift",
        "5439",
        shorter=(r"([^.]+)\.[^.]+\.([^.]+)\.redshift(?:-serverless)?\.amazonaws\.com(?:\.cn)?", r"\1.\2"),
    ),
    _hosts("snowflake", has_hosts=False, shorter=(r"(.+?)(?:\.privatelink)?\.snowflakecomputing\.com(?::443)?", r"\1")),
    StorageType("bigquery", "bigquery", Shape.PLAIN),
    StorageType("awsathena", "athena", Shape.PLAIN),
    StorageType("arn", "glue", Shape.PLAIN),
    StorageType("unity-catalog", "unitycatalog", Shape.PLAIN),
    StorageType("azurecosmos", "cosmosdb", Shape.PLAIN),
    StorageType("azurekusto", "kusto", Shape.PLAIN),
    StorageType("sqlite", "sqlite", Shape.PLAIN),
    StorageType("h2", "h2", Shape.PLAIN),
    # Paimon's own lineage has the warehouse of a catalog, and a table (``LineageUtils`` of paimon-flink).
    StorageType("paimon", "paimon", Shape.PLAIN),
)

STORAGE_BY_SCHEME = {scheme: row for row in STORAGE_TYPES for scheme in (row.scheme, *row.aliases)}
_PATH_SCHEMES = frozenset(s for s, row in STORAGE_BY_SCHEME.items() if row.shape in {Shape.FILES, Shape.OBJECTS})
# A table format says more than the place that its files are in; as the listener's storage and catalog facets spell it.
_TABLE_FORMATS = frozenset({"hive", "iceberg", "delta", "hudi", "paimon"})
# A driver of several hosts may be told how to use them: `mysql:replication://a,b`.
_LOCATION = re.compile(r"(?:[a-z-]+:(?=//))?(?://(?P<authority>[^/?;]*))?(?P<path>[^?;]*)(?P<query>\?.*)?", re.DOTALL)
_URI = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<authority>//[^/]*)?(?P<path>/.*)?", re.IGNORECASE | re.DOTALL)
# A part that has a dot of its own stays in its quotes: its whole name would be another table's.
_PART = r"""(?:"[^".]+"|`[^`.]+`|\[[^\].]+\]|[^"`\[\].\s]+)"""
_QUOTED = re.compile(rf"""(?=.*["`\[]){_PART}(?:\.{_PART})*""")
# The long forms of a host, of MySQL's and MariaDB's drivers: `(host=a,port=3307)`, `address=(host=a)(port=3307)`.
_LONG_HOST = re.compile(r"(?:address=)?(?:\([^()]*\))+")
_LONG_PART = re.compile(r"(?P<key>\w+)=(?P<value>[^,()]+)")
_HOST = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]\s]+)(?::(?P<port>\d+))?")


def is_path_namespace(namespace: str) -> bool:
    """Whether names in this namespace are paths, so that one can lie inside another."""
    return namespace.partition(":")[0] in _PATH_SCHEMES


def has_objects(namespace: str) -> bool:
    """Whether names in this namespace are keys of objects, which have no slash at their beginning."""
    row = STORAGE_BY_SCHEME.get(namespace.partition(":")[0])
    return row is not None and row.shape is Shape.OBJECTS


def directories_above(name: DatasetName) -> Iterator[DatasetName]:
    """Return the directories that a path lies in, from the nearest on; none where names are no paths.

    A partition lies in its dataset.
    """
    if name.partition:
        name = name.whole
        yield name
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
    if scheme in _PATH_SCHEMES and "/" in rest.removeprefix("//"):
        return "table"  # of a catalog that keeps its tables in this directory
    row = STORAGE_BY_SCHEME.get(scheme)
    return row.type if row else None


class StorageIdentifier(Struct, frozen=True, order=True):
    """What a dataset physically is; two names of one dataset have equal identifiers.

    ``type`` is ``path`` (properties ``store``, ``path``), ``topic`` (``brokers``, ``system``, ``topic``) or ``table``
    (``hosts``, ``system``, ``table``, and ``instance`` for SQL Server's; or ``catalog``, ``table``).
    """

    type: str
    properties: tuple[tuple[str, str], ...]


def storage_identifier(dataset: DatasetName) -> StorageIdentifier | None:
    """Return what a dataset physically is, whatever the spelling; None where the namespace has no known form."""
    namespace, name = dataset.namespace, dataset.name
    if ":" in name and (uri := _path_uri(namespace, name)):
        namespace, name = uri
    if namespace[:5].lower() == "jdbc:":
        namespace = namespace[5:]
    row = STORAGE_BY_SCHEME.get(namespace.partition(":")[0].lower())
    if row is None or not name:
        return None
    if row.shape in {Shape.PLAIN, Shape.HOSTS}:
        name = _unquoted(name)
    if row.shape is Shape.PLAIN:
        return _identifier("table", catalog=namespace, table=name)
    match = _LOCATION.fullmatch(namespace.partition(":")[2])
    if match is None:
        return None
    authority, path = match["authority"] or "", match["path"] or ""
    if row.shape is Shape.HOSTS:
        return _on_hosts(row, authority, path, name)
    return None if match["query"] or path[:1] not in {"", "/"} else _in_store(row, authority, path, name)


def dataset_name(identifier: StorageIdentifier) -> DatasetName:
    """Return the one name of a dataset, as OpenLineage's naming conventions spell it."""
    has = dict(identifier.properties)
    if identifier.type == "path":
        return DatasetName(has["store"], has["path"])
    if "catalog" in has:
        return DatasetName(has["catalog"], has["table"])
    hosts = has.get("brokers") or has["hosts"]
    instance = f"/{has['instance']}" if "instance" in has else ""
    return DatasetName(f"{has['system']}://{hosts}{instance}", has[identifier.type])


class Spelling:
    """The resolver that gives each dataset the one spelling of its name."""

    def resolve(self, name: DatasetName) -> DatasetName:
        """Return the name by way of the :class:`StorageIdentifier`; one of no known form stays as it is."""
        identifier = storage_identifier(name)
        return dataset_name(identifier) if identifier else name


def _unquoted(name: str) -> str:
    """Return a table's name without the quotes of SQL, where the name is nothing else: ``"Sales".Deals``."""
    if not _QUOTED.fullmatch(name):
        return name
    return ".".join(part[1:-1] if part[0] in '"`[' else part for part in name.split("."))


def _identifier(kind: str, **properties: str) -> StorageIdentifier:
    return StorageIdentifier(kind, tuple(sorted(properties.items())))


def _path_uri(namespace: str, name: str) -> tuple[str, str] | None:
    """Return namespace and path of a name that is a whole URI, such as ``file:/x`` in ``file``."""
    uri = _URI.fullmatch(name)
    row = STORAGE_BY_SCHEME.get(uri["scheme"].lower()) if uri else None
    if uri is None or row is None or row.scheme not in _PATH_SCHEMES:
        return None
    if namespace and STORAGE_BY_SCHEME.get(namespace.partition(":")[0].lower()) is not row:
        return None
    authority = uri["authority"] or ""
    # `s3:/key` names no bucket: it is a key itself. `file:` alone is a file's name.
    if (row.shape is Shape.OBJECTS and authority in {"", "//"}) or not (authority or uri["path"]):
        return None
    return f"{row.scheme}:{authority}", uri["path"] or "/"


def _in_store(row: StorageType, authority: str, directory: str, name: str) -> StorageIdentifier | None:
    # The container stands before the @ of an Azure account; elsewhere it is a user, perhaps with a password.
    authority = authority if row.has_folded_case and row.shape is Shape.OBJECTS else authority.rpartition("@")[2]
    if row.has_folded_case:
        authority = authority.lower()
    if row.scheme == "file" and authority == "localhost":
        authority = ""
    store = f"{row.scheme}://{authority}" if authority else row.scheme
    directory = clean_path(directory)
    if directory != "/":
        # A table of a catalog that lies in this directory: the listener writes `file:/warehouse` and `db.table`.
        catalog = store + directory if authority else f"{row.scheme}:{directory}"
        return _identifier("table", catalog=catalog, table=name.rstrip("/") or "/")
    if row.shape is Shape.OBJECTS:
        return _identifier("path", store=store, path=clean_path("/" + name)[1:] or "/")
    return _identifier("path", store=store, path=clean_path(name) if name.startswith("/") else name.rstrip("/"))


def _on_hosts(row: StorageType, authority: str, path: str, name: str) -> StorageIdentifier | None:
    inside = path.strip("/").replace("/", ".")
    has_port = bool(row.port) and not (row.has_instance and inside)
    if "(" in authority:
        authority = _LONG_HOST.sub(_short_host, authority).strip("[]")
    hosts = [_host(row, host, has_port=has_port) for host in authority.rpartition("@")[2].lower().split(",")]
    if None in hosts or (inside and not (row.depth and path.startswith("/"))):
        return None
    joined = ",".join(sorted({host for host in hosts if host}))
    if row.holds == "topic":
        return _identifier("topic", system=row.scheme, brokers=joined, topic=name)
    if inside and row.has_instance:
        return _identifier("table", system=row.scheme, hosts=joined, instance=path.strip("/"), table=name)
    if inside and inside.count(".") + name.count(".") + 2 <= row.depth:
        name = f"{inside}.{name}"
    return _identifier("table", system=row.scheme, hosts=joined, table=name)


def _short_host(long: re.Match[str]) -> str:
    parts = {part["key"].lower(): part["value"] for part in _LONG_PART.finditer(long[0])}
    return ":".join(parts[key] for key in ("host", "port") if key in parts)


def _host(row: StorageType, text: str, *, has_port: bool) -> str | None:
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    port = match["port"] or (row.port if has_port else "")
    whole = f"{match['host']}:{port}" if port else match["host"]
    pattern, short = row.shorter or (r"\Z", "")
    return re.sub(rf"\A{pattern}(?=\Z|:\d+\Z)", short, whole)


def clean_path(path: str) -> str:
    """Return an absolute path as Hadoop's ``Path`` has it: without ``//``, ``/./``, ``/../`` and a slash at its end."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


# The built-in patterns take the same folders as the listener's trimmers (``KeyValueTrimmer``, ``DateTrimmer``,
# ``MultiDirDateTrimmer``, ``YearMonthTrimmer`` of OpenLineage's Java client), so that paths of other evidence end up as
# the same dataset; but a folder is a partition only if Spark or Hive could have written its name. Data files that an
# engine wrote into such a folder, and globs, go as well.
_YEAR, _MONTH, _DAY = r"(?!0000)\d{4}", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
# The name of a data file as Spark and Hadoop (part-00000-…), Hive (000000_0) and Iceberg (00000-0-…) make it.
_DATA_FILE = r"(?:/(?:part-\d|\d{5,6}[-_]\d)[^/]*)?"
DATA_FILE = re.compile(rf"{_DATA_FILE}\Z")


def _folder(text: str) -> re.Pattern[str]:
    """Match a folder at the end of a path; something must stand above it, so that the whole path never goes."""
    return re.compile(rf"(?<=[^/])/{text}{_DATA_FILE}\Z", re.ASCII)


_DATE = (
    rf"[^/]*(?:{_YEAR}-{_MONTH}-{_DAY}|{_DAY}\.{_MONTH}\.{_YEAR}"
    # Java tries the digits eight by eight: a date that starts elsewhere in a longer number is none.
    rf"|(?<!\d)(?:\d{{8}})*?{_YEAR}{_MONTH}{_DAY})"
)
# From the first folder on that Hadoop would expand; a class of one character is more likely a copy's `[1]`.
_GLOB = re.compile(r"(?:\A|(?<=\A/)|(?<=[^/])/)[^/]*(?:[*?]|\{[^{}/]*,[^{}/]*\}|\[[^\[\]/]{2,}\]).*\Z", re.DOTALL)
# Spark and Hive write all other characters as %HEX (ExternalCatalogUtils.escapePathName).
_ESCAPED = r"(?:[^/=\x00-\x1f\x7f\"#%'*:?\\\[\]^{]|%[0-9A-Fa-f]{2})"
# The folder of a partition as they could have called it: ``column=value``.
PARTITION = rf"{_ESCAPED}+={_ESCAPED}*"
BUILT_IN: Mapping[str, re.Pattern[str]] = {
    "keyvalue": _folder(PARTITION),
    # With a time or not: 2024-01-15, 15.01.2024, 20240115, 2024-01-15T10:30:00Z.
    "date": _folder(rf"(?={_DATE})(?![^/]*T[^/]*T)(?![^/]*Z[^/]*Z)[\d\s:.TZ-]+"),
    "datefolders": _folder(rf"{_YEAR}/{_MONTH}(?:/{_DAY})?"),
    "yearmonth": _folder(rf"{_YEAR}-?{_MONTH}"),
    "glob": _GLOB,
}


class PathPatterns:
    """The resolver that takes from the end of a path what its patterns match, until none matches."""

    def __init__(self, patterns: Mapping[str, re.Pattern[str]] = BUILT_IN) -> None:
        """Take the patterns by their labels; each has to match up to the end of the path."""
        self.patterns = tuple(pattern for _, pattern in sorted(patterns.items()))
        self._by_label = patterns

    @property
    def literal(self) -> PathPatterns:
        """The same for paths that are no globs, whatever they look like."""
        return PathPatterns({label: pattern for label, pattern in self._by_label.items() if pattern is not _GLOB})

    def resolve(self, name: DatasetName) -> DatasetName:
        """Return the dataset that a partition, a dated folder or a glob belongs to; names that are no paths stay."""
        if not is_path_namespace(name.namespace):
            return name
        path = name.name
        while (shorter := self._shorten(name.namespace, path)) != path:
            path = shorter
        return DatasetName(name.namespace, path)

    def _shorten(self, namespace: str, path: str) -> str:
        for pattern in self.patterns:
            left = pattern.sub("", path, count=1)
            # A glob may leave the root or the bucket; a user's pattern that leaves nothing was not meant for this path.
            if left != path and (left.strip("/") or pattern is _GLOB):
                return _spelled(namespace, left)
        return path


def _spelled(namespace: str, path: str) -> str:
    """Return what is left of a path the spelling that it would have had by itself."""
    if path.startswith("/"):
        return clean_path(path)
    return (clean_path("/" + path)[1:] if has_objects(namespace) else path.rstrip("/")) or "/"
