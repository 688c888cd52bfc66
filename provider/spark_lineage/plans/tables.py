"""Names the tables and paths of plans as the Spark listener does: by location, with the table as a symlink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from spark_lineage.merge.lineage import Symlink, Transformation
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName

# As catalyst prints a TableIdentifier.
IDENTIFIER = re.compile(r"`(?:[^`]|``)+`(?:\.`(?:[^`]|``)+`)*")
SESSION_CATALOG = "spark_catalog"
_DEFAULT_DATABASE = "default"
_WAREHOUSE = "spark.sql.warehouse.dir"
_CATALOG_WAREHOUSE = re.compile(r"spark\.sql\.catalog\.(?P<catalog>[^.]+)\.warehouse")
_CATALOG_CLASS = re.compile(r"spark\.sql\.catalog\.(?P<catalog>[^.]+)")
_METASTORE = re.compile(r"spark\.(?:hadoop|sql\.hive)\.(?:hive\.)?metastore\.uris")
# Buckets: what follows them is a key, not a path (the listener's ObjectStorageDatasetExtractor).
_OBJECT_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("wasb", "wasbs"), "wasbs"),
    **dict.fromkeys(("abfs", "abfss"), "abfss"),
    "gs": "gs",
}
_QUOTED_OR_PLAIN = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
# Formats whose tables may be named by their path: delta.`/data/t`.
_PATH_CATALOGS = frozenset({"delta", "parquet", "csv", "json", "orc", "text", "iceberg", "hudi", "avro"})


def path_name(location: str) -> DatasetName:
    """Return the dataset at a location: ``file:/a/b``, ``hdfs://host/a/b``, ``s3a://bucket/key``, or a bare path."""
    parts = urlsplit(location)
    if not parts.scheme or parts.scheme == "file":
        return DatasetName("file", f"/{location.removeprefix('file:').strip('/')}")
    # What a path holds after ? and # belongs to it.
    path = location[len(parts.scheme) + 1 :].removeprefix(f"//{parts.netloc}").rstrip("/")
    if parts.scheme in _OBJECT_STORES:
        return DatasetName(f"{_OBJECT_STORES[parts.scheme]}://{parts.netloc}", path.lstrip("/") or "/")
    return DatasetName(f"{parts.scheme}://{parts.netloc}" if parts.netloc else parts.scheme, path or "/")


def is_session_catalog(described: str) -> bool:
    """Whether a catalog, which plans tell the class of (``org.apache…DeltaCatalog@1f``), is ``spark_catalog``."""
    return SESSION_CATALOG in described or re.search(r"(?:SessionCatalog|DeltaCatalog)\b", described) is not None


def table_parts(identifier: str) -> tuple[str, ...]:
    """Split ``spark_catalog.db.t`` and ``` `spark_catalog`.`db`.`t` ``` into their parts."""
    return tuple((quoted or plain).replace("``", "`") for quoted, plain in _QUOTED_OR_PLAIN.findall(identifier.strip()))


class Tables:
    """What is known of the tables of one application: where warehouses are, and where plans said that a table is.

    ``subqueries`` has, by the id of its expression, the columns that each scalar subquery was made from.
    """

    def __init__(self) -> None:
        self._warehouses: dict[str, str] = {}
        self._catalogs: dict[str, list[str]] = {}
        self._metastore = ""
        self._working_directory = ""
        self._locations: dict[tuple[str, ...], str] = {}
        self.subqueries: dict[int, frozenset[tuple[DatasetName, str, Transformation]]] = {}
        self._named: set[tuple[str, ...]] = set()

    def configure(self, properties: Mapping[str, str], working_directory: str) -> None:
        """Take in the properties of the application and the directory that its driver ran in."""
        self._working_directory = working_directory
        default = f"file:{working_directory}/spark-warehouse" if working_directory else ""
        self._warehouses[SESSION_CATALOG] = properties.get(_WAREHOUSE, default)
        for key, value in properties.items():
            if match := _CATALOG_WAREHOUSE.fullmatch(key):
                self._warehouses[match["catalog"]] = value
            elif match := _CATALOG_CLASS.fullmatch(key):
                self._catalogs.setdefault(value, []).append(match["catalog"])
            elif _METASTORE.fullmatch(key):
                self._metastore = value.partition(",")[0]

    def catalog(self, class_name: str) -> str:
        """Return the name that a class of catalogs was configured under, empty where it has none or several."""
        names = self._catalogs.get(class_name, [])
        return names[0] if len(names) == 1 else ""

    def learn(self, identifier: str, location: str) -> None:
        """Note where a plan says that a table is."""
        if identifier and location:
            self._locations[self._full(identifier)] = location

    def at(self, location: str, identifier: str = "") -> Observed:
        """Return the dataset at a location that is known, and of the table that it belongs to."""
        if self._working_directory and not location.startswith("/") and ":" not in location:
            location = f"{self._working_directory}/{location}"
        return Observed(path_name(location), symlinks=self._symlinks(identifier))

    def named(self, identifier: str) -> Observed | None:
        """Return the dataset that a table is, or None where nothing tells where it is."""
        full = self._full(identifier)
        self._named.add(full)
        *_, database, name = full
        if database in _PATH_CATALOGS and ("/" in name or ":" in name):
            return Observed(path_name(name))
        location = self._locations.get(full) or self._default_location(full)
        return self.at(location, identifier) if location else None

    def the_only(self, name: str) -> Observed | None:
        """Return the table of a name that is told without its database, where plans named just one such."""
        found = {full for full in self._named.union(self._locations) if full[-1].casefold() == name.casefold()}
        return self.named(".".join(f"`{part}`" for part in found.pop())) if len(found) == 1 else None

    def foreign(self, identifier: str) -> Observed | None:
        """Return the dataset that a table of another catalog is, which may be told without its catalog."""
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
        if not warehouse:
            return ""
        if catalog != SESSION_CATALOG:
            return "/".join((warehouse, *databases, table))
        return f"{warehouse}/{table}" if databases == [_DEFAULT_DATABASE] else f"{warehouse}/{databases[0]}.db/{table}"

    def _symlinks(self, identifier: str) -> frozenset[Symlink]:
        if not identifier:
            return frozenset()
        catalog, *names = self._full(identifier)
        namespace = self._warehouses.get(catalog, "").rstrip("/")
        if catalog == SESSION_CATALOG and self._metastore:
            namespace = f"hive://{urlsplit(self._metastore).netloc}"
        elif namespace.startswith("/"):
            namespace = f"file:{namespace}"
        return frozenset((Symlink(_short(namespace), ".".join(names), "TABLE"),)) if namespace else frozenset()


def _short(namespace: str) -> str:
    """``file:///a`` as ``file:/a``, as the listener writes it."""
    return f"file:/{namespace[5:].lstrip('/')}" if namespace.startswith("file:") else namespace
