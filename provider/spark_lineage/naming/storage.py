"""What a dataset physically is, from any of its spellings, and its one name from that."""

from __future__ import annotations

import posixpath
import re

from msgspec import Struct

from spark_lineage.naming.identity import DatasetName, Shape, StorageType, storage_type

_LOCATION = re.compile(r"(?://(?P<authority>[^/?;]*))?(?P<path>[^?;]*)(?P<query>\?.*)?", re.DOTALL)
_URI = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<authority>//[^/]*)?(?P<path>/.*)?", re.IGNORECASE | re.DOTALL)
# A part that has a dot of its own stays in its quotes: its whole name would be another table's.
_QUOTED = re.compile(
    r"""(?=.*["`\[])(?:"[^".]+"|`[^`.]+`|\[[^\].]+\]|[^"`\[\].\s]+)(?:\.(?:"[^".]+"|`[^`.]+`|\[[^\].]+\]|[^"`\[\].\s]+))*"""
)
_PART = re.compile(r"""(?:\A|\.)(?:"([^".]+)"|`([^`.]+)`|\[([^\].]+)\]|([^"`\[\].\s]+))""")
_HOST = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]\s]+)(?::(?P<port>\d+))?")


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
    if uri := _path_uri(namespace, name):
        namespace, name = uri
    if namespace[:5].lower() == "jdbc:":
        namespace = namespace[5:]
    row = storage_type(namespace.partition(":")[0].lower())
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
    if match["query"] or (path and not path.startswith("/")):
        return None
    return _in_store(row, authority, path, name)


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
    """The resolver that gives each dataset the one spelling of its name; what it does not know stays as it is."""

    def resolve(self, name: DatasetName) -> DatasetName:
        """Return the name by way of the :class:`StorageIdentifier`."""
        identifier = storage_identifier(name)
        return dataset_name(identifier) if identifier else name


def _unquoted(name: str) -> str:
    """Return a table's name without the quotes of SQL, where the name is nothing else: ``"Sales".Deals``."""
    if not _QUOTED.fullmatch(name):
        return name
    return ".".join(next(filter(None, parts)) for parts in _PART.findall(name))


def _identifier(kind: str, **properties: str) -> StorageIdentifier:
    return StorageIdentifier(kind, tuple(sorted(properties.items())))


def _path_uri(namespace: str, name: str) -> tuple[str, str] | None:
    """Return namespace and path of a name that is a whole URI, such as ``file:/x`` in ``file``."""
    uri = _URI.fullmatch(name)
    row = storage_type(uri["scheme"].lower()) if uri else None
    if uri is None or row is None or row.shape not in {Shape.FILES, Shape.OBJECTS}:
        return None
    if namespace and storage_type(namespace.partition(":")[0].lower()) is not row:
        return None
    authority = uri["authority"] or ""
    # `s3:/key` names no bucket: it is a key itself. `file:` alone is a file's name.
    if (row.shape is Shape.OBJECTS and authority in {"", "//"}) or not (authority or uri["path"]):
        return None
    return f"{row.scheme}:{authority}", uri["path"] or "/"


def _in_store(row: StorageType, authority: str, directory: str, name: str) -> StorageIdentifier | None:
    # What stands before the @ of an Azure account is the container; elsewhere it is a user, perhaps with a password.
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


def _host(row: StorageType, text: str, *, has_port: bool) -> str | None:
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    host, port = match["host"], match["port"] or (row.port if has_port else "")
    whole = f"{host}:{port}" if port else host
    if row.shorter is None:
        return whole
    pattern, short = row.shorter
    return re.sub(rf"\A{pattern}(?=\Z|:\d+\Z)", short, whole)


def clean_path(path: str) -> str:
    """Return an absolute path as Hadoop's ``Path`` has it: without ``//``, ``/./``, ``/../`` and a slash at its end."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")
