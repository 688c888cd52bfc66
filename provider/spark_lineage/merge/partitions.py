"""The partitions of a dataset that are read and written: which of them may share rows.

A partition is the path below its dataset, ``day=2026-01-02/region=eu`` or ``2026/01``; the empty one is the whole.
A column may be compared in place of a value: ``day=>=1&<3``, and ``day=|1|2`` is one of several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import ge, gt, le, lt
from urllib.parse import quote, unquote

from spark_lineage.naming.identity import DATA_FILE, DatasetName

_BRANCH, _MAIN = "@branch", "main"
_GLOB = re.compile(r"[*?\[{]")
_ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}
_IN = "|"
_COMPARISON = re.compile(r"(?P<how>[<>]=?|\|)(?P<values>.*)")
_NUMBER, _NUMBERS = re.compile(r"-?\d+(?:\.\d+)?"), re.compile(r"-?\d+(?:\.\d+)?(?:, ?-?\d+(?:\.\d+)?)+")


def partition_below(dataset: DatasetName, path: str) -> str:
    """Return the partition of a dataset that a path is; that of a glob or of a file may be any."""
    name = dataset.name.rstrip("/")
    if not path.startswith(f"{name}/") or _GLOB.search(path, len(name)):
        return ""
    return DATA_FILE.sub("", path[len(name) :]).strip("/")


def branch(name: str) -> str:
    """Return what stands for a branch of a table (Iceberg's) as a partition; empty for the one that all tables have."""
    return "" if name == _MAIN else column_value(_BRANCH, name)


def column_value(column: str, value: str) -> str:
    """Return the partition of the rows that have a value in a column; the value may hold a slash."""
    return f"{column}={quote(value, safe='')}"


def column_compared(column: str, comparisons: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return the partition of the rows in which a column is compared: ``("<", ["3"])``, or ``("|", ["1", "2"])``."""
    texts = (how + _IN.join(quote(value, safe="") for value in values) for how, values in comparisons)
    return f"{column}={'&'.join(sorted(texts))}"


def joined(*partitions: str) -> str:
    """Return the partition of the rows that are in several, of which some may be the whole."""
    return "/".join(filter(None, partitions))


@lru_cache(maxsize=1024)
def _values(partition: str) -> Mapping[str, str]:
    """Return the value of each column, quoted, and the name of each folder that has none by its depth.

    What is in a branch is not in another one: a branch counts as a column.
    """
    folders = [folder.partition("=") for folder in partition.split("/") if folder]
    return {_BRANCH: _MAIN} | {
        column.casefold() if is_named else str(depth): _quoted(value if is_named else column)
        for depth, (column, is_named, value) in enumerate(folders)
    }


def _quoted(value: str) -> str:
    return value if _COMPARISON.match(value) else quote(unquote(value), safe="")


def without_branch(partition: str) -> str:
    """Return a partition of any branch."""
    return joined(*(part for part in partition.split("/") if not part.startswith(f"{_BRANCH}=")))


def is_of_branch(partition: str) -> bool:
    """Whether a partition is of a branch, and not of main."""
    return f"/{_BRANCH}=" in f"/{partition}"


def is_whole(partition: str) -> bool:
    """Whether a partition is all rows of a branch."""
    return not without_branch(partition)


def are_apart(left: str, right: str) -> bool:
    """Whether two partitions of one dataset share no row: a column has two values."""
    if left == right:
        return False
    one, other = _values(left), _values(right)
    return one[_BRANCH] != other[_BRANCH] or any(_differ(one[each], other[each]) for each in one.keys() & other.keys())


def _differ(one: str, other: str) -> bool:
    """Whether no row has both values in a column; of two comparisons that is not known."""
    if _COMPARISON.match(one):
        one, other = other, one
    if _COMPARISON.match(one):
        return False
    return not all(_may_hold(one, each) for each in other.split("&"))


def _may_hold(value: str, comparison: str) -> bool:
    """Whether a value may be another, or compared with others as it should; the type of its column is not known."""
    match = _COMPARISON.match(comparison)
    how, operands = (match["how"], match["values"].lstrip(_IN).split(_IN)) if match else (_IN, [comparison])
    return any(_is_possible(unquote(value), how, unquote(operand)) for operand in operands)


def _is_possible(value: str, how: str, operand: str) -> bool:
    if how == _IN and (_NUMBERS.fullmatch(operand) or _NUMBERS.fullmatch(value)):
        # Numbers and the commas between them are a value of text alone.
        return value == operand
    are_numbers = [_NUMBER.fullmatch(each) is not None for each in (value, operand)]
    short, long = sorted((value, operand), key=len)
    if are_numbers[0] != are_numbers[1] or long.startswith((f"{short} ", f"{short}T")):
        # A date may be a number of days, or have a time.
        return True
    if how == _IN:
        return value == operand or (all(are_numbers) and float(value) == float(operand))
    compare = _ORDERS[how]
    return compare(value, operand) or (all(are_numbers) and compare(float(value), float(operand)))


def is_within(partition: str, others: Iterable[str]) -> bool:
    """Whether all rows of a partition are in one of the others."""
    values = _values(partition).items()
    return any(_values(other).items() <= values for other in others)
