"""Dataset identity: the one spelling of a name that the merge compares by."""

from __future__ import annotations

from collections.abc import Iterator

from spark_lineage.naming.dataset_name import DatasetName
from spark_lineage.naming.options import DEFAULT_NAMING
from spark_lineage.naming.storage_types import is_path_namespace

__all__ = ["DatasetName", "canonical_name", "directories_above", "is_path_namespace"]

canonical_name = DEFAULT_NAMING.name
"""The identity of a dataset, as the default naming has it: ``canonical_name(namespace, name) -> DatasetName``."""


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
