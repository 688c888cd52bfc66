"""Dataset identity: the one spelling of a name that the merge compares by."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

# Spark's file scanners that say where a table or path is; only there do slashes mean folders.
_PATH_SCHEMES = ("file", "hdfs", "s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "dbfs", "oss", "viewfs")


class DatasetName(Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """The identity of a dataset: OpenLineage's ``namespace`` and ``name``."""

    namespace: str
    name: str


def canonical_name(namespace: str, name: str) -> DatasetName:
    """Give the identity of a dataset as the listener names it; a trailing slash makes no other dataset."""
    if len(name) > 1 and name.endswith("/") and is_path_namespace(namespace):
        name = name.rstrip("/") or "/"
    return DatasetName(namespace, name)


def is_path_namespace(namespace: str) -> bool:
    """Whether names in this namespace are paths, so that one can lie inside another."""
    return namespace.partition(":")[0] in _PATH_SCHEMES


def directories_above(name: DatasetName) -> Iterator[DatasetName]:
    """Give the directories that a path lies in, from the nearest on; none where names are no paths."""
    if not is_path_namespace(name.namespace):
        return
    path = name.name
    while (cut := path.rfind("/")) > 0:
        path = path[:cut]
        yield DatasetName(name.namespace, path)
    if path.startswith("/") and path != "/":
        yield DatasetName(name.namespace, "/")
