"""Maps a dataset to Atlas: a table of kinds gives its type, its qualified name, and its required attributes.

A qualified name is ``component@namespace``, as the hooks of Hive, HBase and Kafka write it, so that their entities are
found. The namespace is the cluster of the dataset's host (``hostnamePattern``), else the connection's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from spark_lineage.atlas.types import COLUMN, DATASET
from spark_lineage.launch.log import Log
from spark_lineage.naming.identity import DatasetName, dataset_type
from spark_lineage.naming.options import DEFAULT_NAMING, HostPatterns, Naming

_log = Log(__name__)

DEFAULT_NAMESPACE = "primary"
"""As ``atlas.metadata.namespace`` of Atlas's hooks has it."""
DEFAULT_DATABASE = "default"
# A name that ends like that of a file is one: all others are directories, as Spark writes them.
_FILE = re.compile(r".*[^/]\.[A-Za-z][A-Za-z0-9]{0,7}")
# The type of a table's columns, and their attribute for it.
_COLUMNS_OF = {"hive_table": ("hive_column", "table"), "rdbms_table": ("rdbms_column", "table")}
COLUMNS = frozenset({COLUMN, "hive_column", "rdbms_column"})
LAYERS = frozenset({"iceberg", "delta", "hudi", "paimon"})
_RELATIONAL = frozenset({"postgres", "mysql", "mariadb", "oracle", "sqlserver", "db2", "oceanbase", "teradata",
    "redshift", "crate", "snowflake", "trino", "clickhouse"})  # fmt: skip
# Hive's words for what Spark's schemas call otherwise: its own hook has written them, and they stay.
_HIVE_TYPES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
# A type within a type; what comes before a colon is the name of a field.
_WORD = re.compile(r"(?<![\w`])(?:byte|short|integer|long)(?![\w`]|\s*:)")
# Atlas's index takes no more than 32,766 bytes, and repeats a request that has more. A qualified name has to fit a URL.
_MAX_TEXT = 8_000
_MAX_NAME = 1_200
# The metastore, and HiveServer2.
_HIVE = ("hive://", "hive2://", "jdbc:hive2://")
_ACCOUNT = ".dfs.core.windows.net"


@dataclass(frozen=True)
class Thing:
    """One entity: its type, its attributes, and the entities that it is in.

    ``within`` has, by the name of the relationship's attribute, what has to be there before it. ``column_type`` is the
    type of its columns, and ``column_owner`` their attribute for it.
    """

    type: str
    attributes: Mapping[str, Any]
    within: Mapping[str, Thing] = field(default_factory=dict)
    column_type: str = COLUMN
    column_owner: str = "dataset"

    def __post_init__(self) -> None:
        """Shorten texts that are too long for Atlas; a qualified name stays unique by a hash at its end."""
        texts = {name: value for name, value in self.attributes.items() if isinstance(value, str)}
        short = {name: f"{value[:_MAX_TEXT]}…" for name, value in texts.items() if len(value) > _MAX_TEXT}
        name = self.qualified_name
        if len(name) > _MAX_NAME:
            short["qualifiedName"] = f"{name[: _MAX_NAME - 17]}…{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        if short:
            object.__setattr__(self, "attributes", {**self.attributes, **short})

    @property
    def qualified_name(self) -> str:
        """Its unique attribute."""
        return str(self.attributes["qualifiedName"])

    @property
    def columns_name(self) -> str:
        """The attribute in which it has its columns."""
        return "sparkColumns" if self.column_type == COLUMN else "columns"

    @property
    def key(self) -> tuple[str, str]:
        """What makes it one in Atlas."""
        return self.type, self.qualified_name

    def all(self) -> Iterator[Thing]:
        """Return it and all that it is in."""
        yield self
        for each in self.within.values():
            yield from each.all()

    def column(self, name: str, kind: str) -> Thing:
        """Return one of its columns."""
        component, _, namespace = self.qualified_name.rpartition("@")
        is_hive = self.column_type == "hive_column"
        shown = name.lower() if is_hive else name
        kind = _WORD.sub(lambda word: _HIVE_TYPES[word[0]], kind) if is_hive else kind
        attributes = {"qualifiedName": f"{component}.{shown}@{namespace}", "name": shown}
        if kind:
            attributes["data_type" if self.column_type == "rdbms_column" else "type"] = kind
        return Thing(self.column_type, attributes, {self.column_owner: self})

    def storage(self, **attributes: Any) -> Thing:
        """Return where a table of Hive lies, as Hive's hook calls it."""
        attributes["qualifiedName"] = f"{self.qualified_name}_storage"
        return Thing("hive_storagedesc", attributes, {"table": self})


@dataclass(frozen=True)
class _Place:
    """A dataset under one of its names, and the namespace that it has in Atlas."""

    name: DatasetName
    namespace: str

    @property
    def authority(self) -> str:
        return self.name.namespace.partition("://")[2].partition("/")[0]

    def thing(
        self, kind: str, component: str, shown: str, within: Mapping[str, Thing] | None = None, **attributes: Any
    ) -> Thing:
        qualified = {"qualifiedName": f"{component}@{self.namespace}", "name": shown, **attributes}
        return Thing(kind, qualified, within or {}, *_COLUMNS_OF.get(kind, ()))


def _file(place: _Place) -> Thing:
    return place.thing("fs_path", place.name.name, place.name.name, path=place.name.name)


def _hdfs(place: _Place) -> Thing:
    # Hive's hook has the path with scheme and name service.
    path = f"{place.name.namespace}{place.name.name}"
    return place.thing("hdfs_path", path, place.name.name, path=path, clusterName=place.namespace)


def _s3(place: _Place) -> Thing:
    # The scheme that Hive has on a Hadoop cluster.
    bucket = f"s3a://{place.authority.lower()}"
    thing = place.thing("aws_s3_v2_bucket", bucket, place.authority)
    above = "/"
    parts = [part for part in place.name.name.split("/") if part]
    for number, part in enumerate(parts, 1):
        is_file = number == len(parts) and _FILE.fullmatch(part)
        above += part if is_file else f"{part}/"
        # Atlas takes two directories of one prefix for one, also in two buckets.
        prefix = {} if is_file else {"objectPrefix": bucket + above}
        kind = "aws_s3_v2_object" if is_file else "aws_s3_v2_directory"
        thing = place.thing(kind, bucket + above, part, {"container": thing}, **prefix)
    return thing


def _adls(place: _Place) -> Thing:
    container, _, host = place.authority.lower().rpartition("@")
    account = host.removesuffix(_ACCOUNT)
    base = f"abfss://{container}@{account}"
    above = place.thing("adls_gen2_account", f"abfss://{account}", account)
    thing = place.thing("adls_gen2_container", base, container, {"account": above})
    # Files, too, as Hive's hook does: a blob needs a type of content, which Atlas takes for unique.
    for part in filter(None, place.name.name.split("/")):
        base += f"/{part}"
        thing = place.thing("adls_gen2_directory", base, part, {"parent": thing})
    return thing


def _kafka(place: _Place) -> Thing:
    topic = place.name.name
    return place.thing("kafka_topic", topic.lower(), topic, topic=topic, uri=topic)


def _hive(place: _Place) -> Thing:
    # HiveServer2 has the database in its URL, or in the name. Of a catalog with a name of its own, the last two parts.
    inside = re.split("[;?#]", place.name.namespace.partition("://")[2].partition("/")[2])[0] or DEFAULT_DATABASE
    *_, database, table = f"{inside}.{place.name.name}".lower().replace("`", "").split(".")
    above = place.thing("hive_db", database, database, clusterName=place.namespace)
    return place.thing("hive_table", f"{database}.{table}", table, {"db": above})


def _hbase(place: _Place) -> Thing:
    space, _, table = place.name.name.rpartition(":")
    space = space.lower() or DEFAULT_DATABASE
    above = place.thing("hbase_namespace", space, space, clusterName=place.namespace)
    # In lower case, as HBase's hook writes it.
    return place.thing("hbase_table", f"{space}:{table}".lower(), table, {"namespace": above}, uri=place.authority)


def _relational(place: _Place) -> Thing:
    # No hook writes these. The hosts are in the name: two databases may have a table of one name.
    system = place.name.namespace.partition("://")[0]
    host, _, port = place.authority.rpartition(":") if place.authority[-1:].isdecimal() else (place.authority, "", "")
    located: dict[str, Any] = {"hostname": host, **({"port": int(port)} if port.isdecimal() else {})}
    instance = place.thing("rdbms_instance", place.name.namespace, place.authority, rdbms_type=system, **located)
    database, _, table = place.name.name.rpartition(".")
    inside = {"instance": instance}
    above = place.thing("rdbms_db", f"{place.name.namespace}/{database}", database or system, inside)
    whole = f"{place.name.namespace}/{place.name.name}"
    return place.thing("rdbms_table", whole, table, {"db": above}, name_path=place.name.name)


_KINDS: Mapping[str, Callable[[_Place], Thing]] = {
    "file": _file,
    "hdfs": _hdfs,
    "viewfs": _hdfs,
    "s3": _s3,
    "abfss": _adls,
    "kafka": _kafka,
    "hive": _hive,
    "hbase": _hbase,
    **dict.fromkeys(_RELATIONAL, _relational),
}


def is_local(namespace: str) -> bool:
    """Whether datasets of a namespace lie on the disks of one host."""
    return namespace.partition(":")[0] == "file"


def layer_of(facets: Mapping[str, Any]) -> str:
    """Return the table format of a dataset, in lower case; empty where its facets name none."""
    storage, catalog = (facets.get(name) or {} for name in ("storage", "catalog"))
    return str(storage.get("storageLayer") or catalog.get("framework") or "").lower()


class Datasets:
    """Says what datasets are in Atlas.

    :param naming: of the section and the connection: its clusters are the namespaces; a resolver that has
        ``atlas_entity(name, namespace)`` says itself what a dataset is: ``{"typeName": …, "attributes": {…}}`` or None
    :param namespace: of what has no host, or one that no pattern knows
    :param warehouses: directories of Hive's tables: a path that lies in one is the table, as ``db.db/table``; a path in
        the same file system is written with the same host, which an event does not have where its naming has clusters

    ``host`` is that of a job's driver, to which local files belong; empty where it is not known.
    """

    def __init__(self, naming: Naming, namespace: str = DEFAULT_NAMESPACE, warehouses: Sequence[str] = ()) -> None:
        self.host = ""
        self._clusters = [each for each in naming.resolvers if isinstance(each, HostPatterns)]
        resolvers: tuple[Any, ...] = naming.resolvers
        self._analyzers = [each for each in resolvers if callable(getattr(each, "atlas_entity", None))]
        self._namespace = namespace
        self._name = naming.name
        self._warehouses = [naming.name("", each) for each in warehouses]
        spelled = (DEFAULT_NAMING.name("", each).namespace for each in warehouses)
        self._hosts = {each.namespace: host for each, host in zip(self._warehouses, spelled, strict=True)}
        self.has_warehouses = bool(self._warehouses)

    def on(self, host: str) -> Datasets:
        """Return the same for a job whose driver is on a host."""
        found = copy(self)
        found.host = host
        return found

    def thing(self, dataset: Mapping[str, Any]) -> Thing:
        """Return what a dataset of an event is: ``{"namespace": …, "name": …, "facets": {…}}``."""
        facets = dataset.get("facets") or {}
        names = list(self._names(dataset, facets))
        for place in names:
            if (said := self._said(place)) is not None:
                return said
        hive = next((each for each in names if each.name.namespace.startswith(_HIVE)), None)
        if hive is not None:
            return _hive(hive)
        place = names[0]
        layer = layer_of(facets)
        kind = dataset_type(place.name, layer)
        scheme = place.name.namespace.partition(":")[0]
        if layer in LAYERS or kind == "table" or scheme not in _KINDS:
            return self._other(place, layer or kind or "")
        return _KINDS[scheme](place)

    def table(self, name: str, like: DatasetName) -> Thing:
        """Return the table of Hive that a catalog calls ``db.table``; it is where ``like`` is."""
        return _hive(_Place(DatasetName("hive", name), self._cluster(like)))

    def _said(self, place: _Place) -> Thing | None:
        """Return what the first analyzer that knows the dataset says; one that fails is skipped."""
        for analyzer in self._analyzers:
            try:
                said = analyzer.atlas_entity(place.name, place.namespace)
                if said is not None:
                    found = Thing(str(said["typeName"]), {"name": place.name.name, **said["attributes"]})
                    json.dumps(dict(found.attributes), allow_nan=False)
                    return found
            except Exception as error:
                # Its text may hold anything.
                what = f"{type(analyzer).__module__}.{type(analyzer).__qualname__}"
                problem = type(error).__name__
                _log.warning("The analyzer %s failed for %s (%s); it is skipped.", what, place.name, problem)
        return None

    def _names(self, dataset: Mapping[str, Any], facets: Mapping[str, Any]) -> Iterator[_Place]:
        links = (facets.get("symlinks") or {}).get("identifiers") or ()
        for each in (dataset, *links):
            name = DatasetName(str(each["namespace"]), str(each["name"]))
            yield self._place(name)
            if (table := self._in_warehouse(name)) is not None:
                yield _Place(DatasetName("hive://", table), self._cluster(name))

    def _place(self, name: DatasetName) -> _Place:
        name = DatasetName(self._hosts.get(name.namespace, name.namespace), name.name)
        host = name.namespace.partition("://")[2].partition("/")[0] or self.host
        return _Place(name, host if host and is_local(name.namespace) else self._cluster(name))

    def _cluster(self, name: DatasetName) -> str:
        hosts = name.namespace.partition("://")[2].partition("/")[0].rpartition("@")[2]
        found = {
            cluster
            for each in self._clusters
            for host in filter(None, hosts.split(","))
            if (cluster := each.cluster_of(host) or each.default)
        }
        return ",".join(sorted(found)) or self._namespace

    def _in_warehouse(self, name: DatasetName) -> str | None:
        for warehouse in self._warehouses:
            root = warehouse.name.rstrip("/") + "/"
            resolved = self._name(name.namespace, name.name)
            if resolved.namespace == warehouse.namespace and resolved.name.startswith(root):
                match resolved.name.removeprefix(root).split("/"):
                    case [*_, hidden] if hidden.startswith((".", "_")):
                        return None
                    case [table] if not table.endswith(".db"):
                        return f"{DEFAULT_DATABASE}.{table}"
                    case [database, table] if database.endswith(".db"):
                        return f"{database.removesuffix('.db')}.{table}"
        return None

    @staticmethod
    def _other(place: _Place, kind: str) -> Thing:
        name = place.name
        slash = "" if name.name.startswith("/") else "/"
        whole = f"{name.namespace}{slash}{name.name}"
        return place.thing(
            DATASET, whole, name.name, datasetNamespace=name.namespace, datasetName=name.name, format=kind
        )
