r"""Which ends of a path are partitions, dates, globs or a user's own, and not part of the dataset's name.

The built-in patterns take the same folders as the listener's trimmers (``KeyValueTrimmer``, ``DateTrimmer``,
``MultiDirDateTrimmer``, ``YearMonthTrimmer`` of OpenLineage's Java client), so that paths of other evidence end up as
the same dataset; but a folder is a partition only if Spark or Hive could have written its name. Data files that an
engine wrote into such a folder, and globs, go as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_lineage.naming.identity import DatasetName, Shape, is_path_namespace, storage_type
from spark_lineage.naming.storage import clean_path

_YEAR, _MONTH, _DAY = r"(?!0000)\d{4}", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
# The name of a data file as Spark and Hadoop (part-00000-…), Hive (000000_0) and Iceberg (00000-0-…) make it.
_DATA_FILE = r"(?:/(?:part-\d|\d{5,6}[-_]\d)[^/]*)?"


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
    row = storage_type(namespace.partition(":")[0])
    if row is not None and row.shape is Shape.OBJECTS:
        return clean_path("/" + path)[1:] or "/"
    return path.rstrip("/") or "/"
