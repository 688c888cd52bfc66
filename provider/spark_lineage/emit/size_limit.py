"""Keeps an event under a size limit: a fixed ladder of details to leave out, and never a dataset (M12).

An event that may be too big is measured: each facet is encoded once, and no event is made to measure it. A rung of
``LADDER`` takes its facets, or a part of them, from one dataset after the other, the largest first, until the rest
fits. So a lower limit never keeps more.

Redundant detail goes first: texts, where a table is stored, columns that were only read. Then go the edges between
columns, columns, the edges between datasets, and last where datasets are. Names, lifecycle, and what was counted of
outputs are never left out. An input keeps the columns that an edge refers to, as Marquez shows no other edges. Only one
output loses its edges column by column, because a part looks like the whole.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import attr
import msgspec

from spark_lineage.emit.run_event import (
    CATALOG_CHANGES_KEY,
    HIERARCHY_KEY,
    LINEAGE_KEY,
    REDUCED_KEY,
    VERSIONS_KEY,
    facet,
    run_event,
    to_json,
    to_text,
    value_of,
)
from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.merge.event import READ

if TYPE_CHECKING:
    from spark_lineage.merge.lineage import ParentRun, TaskLineage

DEFAULT_LIMIT_BYTES = 1_000_000
"""Below the 1 MiB that a Kafka broker takes by default (``message.max.bytes``)."""

AIRFLOW_BYTES = 32_768
"""What the Airflow provider adds at most: some 5 KB of names and facets, documentation, a failure's stack trace."""

_NAMED = 10
_COLUMN_EDGES = "columnEdges"
_OTHERS = "others"
# Keys and punctuation of an event, and of each dataset, without what stands under the keys.
_BARE_BYTES, _BARE_DATASET_BYTES = 256, 64
_OWN = READ | {LINEAGE_KEY}

Name = tuple[str, str]
"""Namespace and name of a dataset; the run and the job have two empty ones."""
Columns = frozenset[str]
Change = Callable[[Any, Columns], Any]
"""From a facet, and the columns of its dataset that edges name, to what is left of the facet; None for nothing."""


class Rung(NamedTuple):
    """A detail, and what is left of the facets that have it; None for nothing.

    ``mark`` is a text that is in the JSON of a facet with the detail.
    """

    detail: str
    changes: Mapping[str, Change | None]
    mark: str = ""
    is_for_inputs_only: bool = False


@dataclass(slots=True)
class _Entry:
    """A facet of the run, the job or a dataset: where it stands, and its bytes where they are known."""

    side: str
    name: Name
    place: int
    facets: dict[str, Any]
    key: str
    size: int = 0
    marks: Sequence[str] = ("",)

    @property
    def kind(self) -> str:
        """Its key, or ``_OTHERS`` for JSON that passes through."""
        is_own = self.key in _OWN or self.key.startswith("sparkLineage_")
        return self.key if is_own or not isinstance(self.facets[self.key], dict) else _OTHERS

    def measure(self) -> int:
        text = to_text(self.facets[self.key])
        self.size, self.marks = _entry_bytes(self.key, text), [mark for mark in _MARKS if mark in text]
        return self.size

    def replace(self, left: Any, size: int) -> None:
        self.size = size
        if left is None:
            del self.facets[self.key]
        else:
            self.facets[self.key] = left


def cut(event: Any, limit_bytes: int, *, reserved_bytes: int = 0, deadline: Deadline | None = None) -> Any:
    """Cut an event in place to ``limit_bytes``; return the facet that it got, None where the whole event fits.

    Where all that may be left out is not enough, the event stays over the limit, and the facet says so. When the time
    is over, an event that is known to be too big loses all details at once.

    :param event: a ``RunEvent``, its JSON, or an ``OperatorLineage``
    :param limit_bytes: of what ``Serde.to_json`` makes, which has a few bytes less than what is measured
    :param reserved_bytes: for what is added to the event later
    """
    parts = [value_of(event, key) for key in ("run", "job", "run_facets", "job_facets")]
    parts += [*(value_of(event, "inputs") or ()), *(value_of(event, "outputs") or ())]
    # An event that fits twice is not measured, which finds a little more than its JSON has.
    most = (limit_bytes - reserved_bytes) / 2 - _BARE_BYTES
    if (deadline := deadline or Deadline()).seconds_left and all(
        size <= most for size in accumulate(len(to_text(part)) for part in parts)
    ):
        return None
    ladder = _Ladder(event, limit_bytes, reserved_bytes, deadline)
    return ladder.descend() if ladder.excess > 0 else None


class MergedEvent(NamedTuple):
    """``content`` is the event as canonical JSON, under the limit; ``reduced`` is the facet that says what it lost.

    ``document`` is the event as JSON values, with all that it had.
    """

    content: bytes
    document: dict[str, Any]
    reduced: Any


def merged_event(lineage: TaskLineage, task: ParentRun, limit_bytes: int) -> MergedEvent:
    """Return the terminal event of a task.

    There are no counts of lines in it: a file that is given twice makes the same event, but twice the lines.

    :raises ValueError: where the run id is no UUID
    :raises RecursionError: where a schema is nested too deeply
    """
    UUID(task.run_id)
    # The client would parse the two URLs of each facet, which are constants.
    with attr.validators.disabled():
        event = run_event(lineage, None, job_namespace=task.job_namespace, job_name=task.job_name, run_id=task.run_id)
    content = to_json(event)
    document = msgspec.json.decode(content)
    # `Serde.to_json` makes at most three times the bytes, and a space for each separator.
    reduced = None if len(content) * 4 <= limit_bytes else cut(event, limit_bytes)
    return MergedEvent(content if reduced is None else to_json(event), document, reduced)


def reduction_text(reduced: Any) -> str:
    """Return what the facet says, as a line of the log."""
    left_out = ", ".join(f"{each['detail']} of {each['datasetCount']:,}" for each in reduced.leftOut) or "nothing"
    text = (
        f"The lineage event has {reduced.fullBytes:,} bytes, over the limit of {reduced.limitBytes:,}. "
        f"Left out, of so many datasets: {left_out}."
    )
    if reduced.isOverLimit:
        text += " It is still over the limit, because nothing else may be left out: the backend may refuse it."
    return text


class _Ladder:
    """One event on its way down."""

    def __init__(self, event: Any, limit_bytes: int, reserved_bytes: int, deadline: Deadline) -> None:
        self._limit_bytes, self._deadline, self._is_late = limit_bytes, deadline, False
        self._run = _facets_of(event, "run")
        self._left_out: dict[str, dict[str, Any]] = {}
        # By their kinds: a facet that is gone is there no more.
        self._entries: defaultdict[str, list[_Entry]] = defaultdict(list)
        run, job = value_of(event, "run"), value_of(event, "job")
        header = [value_of(event, key) for key in ("eventType", "eventTime", "producer", "schemaURL")]
        names = [value_of(run, "runId"), value_of(job, "namespace"), value_of(job, "name")]
        self._bytes = reserved_bytes + len(to_text([header, names])) + _BARE_BYTES
        for place, (side, name, maps) in enumerate(_parts(event, self._run)):
            self._bytes += len(to_text(name)) + _BARE_DATASET_BYTES
            for entry in (_Entry(side, name, place, facets, key) for facets in maps for key in facets):
                self._entries[entry.kind].append(entry)
                self._bytes += 0 if self._is_late else entry.measure()
            self._is_late = self._is_late or (self._bytes > limit_bytes and not deadline.seconds_left)
        self._full_bytes = self._bytes

    @property
    def excess(self) -> int:
        """The bytes over the limit, those of the facet among them where they decide."""
        excess = self._bytes - self._limit_bytes
        if excess > 0 or not self._left_out:
            return excess
        return excess + _entry_bytes(REDUCED_KEY, to_text(self._facet(is_over_limit=False)))

    def descend(self) -> Any:
        """Leave out details until the event fits; put the facet into it, and return that."""
        for rung in LADDER:
            self._is_late = self._is_late or not self._deadline.seconds_left
            # What leaves a part takes time, and the part goes later.
            if not (self._is_late and any(rung.changes.values())):
                self._take(rung)
            if not self._is_late and self.excess <= 0:
                break
        for entry in chain.from_iterable(self._entries.values()):
            self._bytes += 0 if entry.size else entry.measure()
        made = self._run[REDUCED_KEY] = self._facet(is_over_limit=self.excess > 0)
        return made

    def _take(self, rung: Rung) -> None:
        """Leave out a detail of one dataset after the other, until the event fits."""
        used = self._used_columns() if rung.is_for_inputs_only else {}
        found: defaultdict[int, list[tuple[_Entry, Any, int]]] = defaultdict(list)
        for key, change in rung.changes.items():
            for entry in self._entries[key]:
                if rung.mark in entry.marks and (entry.side == "inputs" or not rung.is_for_inputs_only):
                    before = entry.facets[entry.key]
                    left = change(before, used.get(entry.name, frozenset())) if change else None
                    if left is not before:
                        size = 0 if left is None else _entry_bytes(entry.key, to_text(left))
                        found[entry.place].append((entry, left, size))
        losses = (
            (sum(size - entry.size for entry, _, size in changes), changes[0][0].name, changes[0][0].side, place)
            for place, changes in found.items()
        )
        # The largest comes first; equal losses go by name, so that the order of the datasets does not matter.
        for negative, name, _, place in sorted(losses):
            self._note(rung.detail, name, -negative)
            is_last = not self._is_late and self.excess <= 0
            for entry, left, size in found[place]:
                if is_last and rung.detail == _COLUMN_EDGES:
                    self._keep_columns(entry, self._left_out[rung.detail])
                else:
                    entry.replace(left, size)
            if is_last:
                break
        for key in rung.changes:
            self._entries[key] = [entry for entry in self._entries[key] if entry.key in entry.facets]

    def _keep_columns(self, entry: _Entry, left_out: dict[str, Any]) -> None:
        """Keep the first columns of the column lineage, as many as fit."""
        whole, losers = entry.facets.pop(entry.key), left_out["datasets"]
        columns = value_of(whole, "fields") or {}
        # It must not be taken for whole, so it comes first; and the excess depends on what the facet says of it.
        partly: dict[str, Any] = {**_named(entry.name), "columnCount": len(columns)}
        left_out["datasets"] = [partly, *(each for each in losers if each != _named(entry.name))][:_NAMED]
        free = -self.excess - _entry_bytes(entry.key, to_text(_with(whole, fields={})))
        sizes = accumulate(_entry_bytes(column, to_text(edges)) for column, edges in columns.items())
        if not (count := bisect_right(list(sizes), free)):
            left_out["datasets"] = losers
            return
        partly["columnCount"] -= count
        entry.facets[entry.key] = _with(whole, fields=dict(islice(columns.items(), count)))
        self._bytes += entry.measure()
        left_out["bytes"] -= entry.size

    def _used_columns(self) -> Mapping[Name, Columns]:
        found: defaultdict[Name, set[str]] = defaultdict(set)
        for entry in self._entries["columnLineage"]:
            lineage = entry.facets[entry.key]
            columns = (each["inputFields"] for each in (value_of(lineage, "fields") or {}).values())
            for edge in chain(value_of(lineage, "dataset") or (), *columns):
                # A column below which one is named is used as well.
                found[edge["namespace"], edge["name"]].update(accumulate(edge["field"].split("."), "{}.{}".format))
        return {name: frozenset(fields) for name, fields in found.items()}

    def _note(self, detail: str, name: Name, saved_bytes: int) -> None:
        self._bytes -= saved_bytes
        new: dict[str, Any] = {"detail": detail, "bytes": 0, "datasetCount": 0, "datasets": []}
        entry = self._left_out.setdefault(detail, new)
        entry["bytes"] += saved_bytes
        if any(name):
            entry["datasetCount"] += 1
            if len(entry["datasets"]) < _NAMED:
                entry["datasets"].append(_named(name))

    def _facet(self, *, is_over_limit: bool) -> Any:
        return facet(
            REDUCED_KEY,
            limitBytes=self._limit_bytes,
            fullBytes=self._full_bytes,
            isOverLimit=is_over_limit,
            leftOut=list(self._left_out.values()),
        )


def _facets_of(event: Any, kind: str) -> dict[str, Any]:
    owner = value_of(event, kind)
    if isinstance(owner, dict):
        owner.setdefault("facets", {})
    facets: dict[str, Any] = value_of(event, f"{kind}_facets") if owner is None else value_of(owner, "facets")
    return facets


def _parts(event: Any, run: dict[str, Any]) -> Iterator[tuple[str, Name, list[dict[str, Any]]]]:
    """Return the run, the job and each dataset: what it is, its name, and its maps of facets."""
    yield from (("run", ("", ""), [run]), ("job", ("", ""), [_facets_of(event, "job")]))
    for side, facets_of_use in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        for each in value_of(event, side) or ():
            name = value_of(each, "namespace"), value_of(each, "name")
            yield side, name, [value_of(each, key) or {} for key in ("facets", facets_of_use)]


def _named(name: Name) -> dict[str, str]:
    return {"namespace": name[0], "name": name[1]}


def _entry_bytes(key: str, text: str) -> int:
    """Return the bytes of an entry of a JSON object, with a comma and a space."""
    return len(to_text(key)) + len(text) + len(": , ")


def _with(whole: Any, **values: Any) -> Any:
    """Return a facet with other values: JSON, or an object; the facet itself where they are no others."""
    if all(value_of(whole, key) == value for key, value in values.items()):
        return whole
    if isinstance(whole, dict):
        return {**whole, **values}
    changed = copy.copy(whole)
    for key, value in values.items():
        setattr(changed, key, value)
    return changed


def _undescribed(value: Any) -> Any:
    # A column that is called "description" has an object there.
    if isinstance(value, dict):
        return {
            key: _undescribed(each) for key, each in value.items() if key != "description" or isinstance(each, dict)
        }
    return list(map(_undescribed, value)) if isinstance(value, list) else value


def _without_descriptions(whole: Any, _: Columns) -> Any:
    found = {key: value_of(whole, key) for key in ("fields", "dataset")}
    return _with(whole, **{key: _undescribed(value) for key, value in found.items() if value})


def _without_unused_columns(whole: Any, used: Columns) -> Any:
    fields = [each for each in value_of(whole, "fields") if each["name"] in used]
    return _with(whole, fields=fields) if fields else None


def _without_indirect_edges(whole: Any, _: Columns) -> Any:
    columns = {}
    for name, each in value_of(whole, "fields").items():
        if edges := [edge for edge in each["inputFields"] if not _is_indirect(edge)]:
            columns[name] = {**each, "inputFields": edges}
    return _with(whole, fields=columns) if columns or value_of(whole, "dataset") else None


def _is_indirect(edge: Any) -> bool:
    hows = edge.get("transformations")
    return bool(hows) and all(each["type"] == "INDIRECT" for each in hows)


def _without_catalog_schemas(whole: Any, _: Columns) -> Any:
    changes = value_of(whole, "changes")
    left = [{key: each[key] for key in each if key not in ("schema", "properties")} for each in changes]
    return _with(whole, changes=left)


LADDER = (
    Rung("descriptions", dict.fromkeys(("schema", "columnLineage"), _without_descriptions), mark='"description": '),
    Rung("catalogSchemas", {CATALOG_CHANGES_KEY: _without_catalog_schemas}),
    Rung("otherFacets", {_OTHERS: None}),
    Rung("storage", dict.fromkeys(("storage", "catalog", "version", VERSIONS_KEY))),
    Rung("unusedColumns", {"schema": _without_unused_columns}, is_for_inputs_only=True),
    Rung("indirectColumnEdges", {"columnLineage": _without_indirect_edges}, mark='"INDIRECT"'),
    Rung(_COLUMN_EDGES, {"columnLineage": None}),
    Rung("schemas", {"schema": None}),
    Rung("exactEdges", {LINEAGE_KEY: None}),
    Rung("symlinks", dict.fromkeys(("symlinks", HIERARCHY_KEY))),
    Rung("inputStatistics", {"inputStatistics": None}),
    Rung("dataSources", {"dataSource": None}),
)
_MARKS = sorted({rung.mark for rung in LADDER})
