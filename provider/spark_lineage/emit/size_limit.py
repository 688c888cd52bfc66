"""Keeps an event under the size limit by dropping detail in a fixed order; no dataset is ever lost (M12).

The lineage is made smaller, not the event, so that the limit holds for every event made of it: the Airflow provider's
and ours. The smaller lineages form one chain that does not depend on the limit: each step of ``ORDER`` takes its
datasets by what they save, the biggest first. The first lineage that fits is the result, so a lower limit never
keeps more. What a step saves is the difference in size of the facets of each dataset that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from json.encoder import encode_basestring_ascii as quoted
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import structs

from spark_lineage.emit.facets import (
    REDUCED_KEY,
    facet,
    facets_of_input,
    facets_of_output,
    input_facets,
    known,
    named,
    output_facets,
    transformations_of,
)
from spark_lineage.emit.run_event import json_bytes, run_event, to_json
from spark_lineage.emit.size_reduction import ORDER, DatasetStep, TaskStep, references, without_columns
from spark_lineage.merge.lineage import ColumnLineage, DatasetLineage, InputField, ParentRun, TaskLineage
from spark_lineage.naming.identity import DatasetName

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent

DEFAULT_LIMIT_BYTES = 1_000_000
"""Below the 1 MiB that a Kafka broker takes by default (``message.max.bytes``)."""

AIRFLOW_BYTES = 32_768
"""Room for what the Airflow provider adds: some 5 KB of names and facets, documentation, a failure's stack trace."""

_NAMED_DATASETS = 10
_MANY_COLUMNS = 5_000


def limited(
    lineage: TaskLineage, limit_bytes: int, as_event: Callable[[TaskLineage], RunEvent], *, reserved_bytes: int = 0
) -> tuple[TaskLineage, Any]:
    """Return the lineage whose event has at most ``limit_bytes``, and the run facet that says what was left out.

    ``as_event`` is a pure function and gives the event without that facet, ``reserved_bytes`` is room for what others
    will add to it. Bytes are those of ``Serde.to_json``. The facet is ``None`` where the whole lineage fits. Where all
    that may be left out is not enough, the event stays over the limit, and the facet says so.
    """
    # Where there is more, it is faster to measure the parts of an event than to make it.
    is_narrow = sum(len(each.schema) for each in (*lineage.inputs, *lineage.outputs)) < _MANY_COLUMNS
    if is_narrow and json_bytes(as_event(lineage)) + reserved_bytes <= limit_bytes:
        return lineage, None
    reduction = _Reduction(lineage, as_event, limit_bytes, reserved_bytes)
    return (lineage, None) if reduction.full_bytes <= limit_bytes else reduction.result()


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

    def as_event(lineage: TaskLineage) -> RunEvent:
        return run_event(lineage, None, job_namespace=task.job_namespace, job_name=task.job_name, run_id=task.run_id)

    content = to_json(as_event(lineage))
    document = msgspec.json.decode(content)
    # The way of writing of `limited` takes at most three times the bytes, and a space for each separator.
    is_small = len(content) * 4 <= limit_bytes
    kept, reduced = (lineage, None) if is_small else limited(lineage, limit_bytes, as_event)
    if reduced is None:
        return MergedEvent(content, document, None)
    event = as_event(kept)
    event.run.facets = {**(event.run.facets or {}), REDUCED_KEY: reduced}
    return MergedEvent(to_json(event), document, reduced)


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


class Sizes:
    """Measures what an event is made of; schemas and column lineage, which steps leave as they are, once.

    A hundred thousand edges are measured without being made: they name the same few datasets and transformations.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, int]] = {}
        self._edge = cache(lambda name, hows: json_bytes({**named(name), "field": "", **transformations_of(hows)}))

    def event(self, lineage: TaskLineage, as_event: Callable[[TaskLineage], RunEvent]) -> int:
        """Return the bytes of the event of a lineage."""
        bare, facets = [], 0
        for is_output, side in enumerate((lineage.inputs, lineage.outputs)):
            bare.append(tuple(DatasetLineage(each.dataset, fed_by=each.fed_by, has_data_source=False) for each in side))
            facets += sum(self.facets(each, is_output=bool(is_output)) for each in side)
        return facets + json_bytes(as_event(structs.replace(lineage, inputs=bare[0], outputs=bare[1])))

    def facets(self, dataset: DatasetLineage, *, is_output: bool) -> int:
        """Return by how many bytes an event grows with the facets of a dataset."""
        small = structs.replace(dataset, schema=(), column_lineage=None)
        facets, others = facets_of_input(small), input_facets(dataset)
        columns = DatasetLineage(dataset.dataset, dataset.schema, has_data_source=False)
        large = self._once(dataset.schema, lambda: json_bytes(facets_of_input(columns)))
        if is_output:
            facets, others = facets_of_output(small), output_facets(dataset)
            large += self._once(dataset.column_lineage, lambda: self._column_lineage(dataset))
        # Braces stand for the comma and the space behind a facet.
        return max(large + (json_bytes(facets) if facets else 0), len("{}")) + json_bytes(others) - len("{}{}")

    def column(self, name: str, edges: Iterable[InputField]) -> int:
        """Return the bytes of a column in the column lineage, with a comma and a space."""
        return len(quoted(name)) + len(': {"inputFields": }, ') + self._edges(edges)

    def _once(self, value: object, measure: Callable[[], int]) -> int:
        if value and id(value) not in self._known:
            # With the value itself, or another could get its place in memory.
            self._known[id(value)] = (value, measure())
        return self._known[id(value)][1] if value else 0

    def _edges(self, edges: Iterable[InputField]) -> int:
        # A comma and a space are as long as the quotes that are counted twice.
        return sum(self._edge(edge.dataset, edge.transformations) + len(quoted(edge.field)) for edge in edges)

    def _column_lineage(self, dataset: DatasetLineage) -> int:
        whole = dataset.column_lineage or ColumnLineage()
        fields = tuple(one for one in whole.fields if one[1])
        first = ColumnLineage(fields[:1], whole.dataset[:1])
        facets = facets_of_output(DatasetLineage(dataset.dataset, column_lineage=first, has_data_source=False))
        rest = sum(self.column(*one) for one in fields[1:]) + self._edges(whole.dataset[1:])
        return json_bytes(facets) + rest if facets else 0


class _Reduction:
    """Walks down the chain until a lineage fits."""

    def __init__(
        self, lineage: TaskLineage, as_event: Callable[[TaskLineage], RunEvent], limit_bytes: int, reserved_bytes: int
    ) -> None:
        self._lineage = lineage
        self._as_event = as_event
        self._limit_bytes = limit_bytes
        self._sizes = Sizes()
        self.full_bytes = self._bytes = self._sizes.event(lineage, as_event) + reserved_bytes
        self._saved_bytes: dict[str, int] = {}
        # The one that lost the most comes first. A number is that of columns, where not all lost the detail.
        self._losers: dict[str, dict[DatasetName, int | None]] = {}

    def result(self) -> tuple[TaskLineage, Any]:
        """The first lineage that fits, else the last."""
        for step in ORDER:
            if isinstance(step, TaskStep):
                self._take_from_task(step)
            else:
                self._take_from_datasets(step)
            if self._excess() <= 0:
                break
        return self._lineage, self._facet(is_over_limit=self._excess() > 0)

    def _take_from_task(self, step: TaskStep) -> None:
        before, self._lineage = self._lineage, step.without(self._lineage)
        if self._lineage != before:
            event = self._sizes.event
            saved = event(before, self._as_event) - event(self._lineage, self._as_event)
            self._note(step.detail, (each.dataset for each in step.about(before)), saved)

    def _take_from_datasets(self, step: DatasetStep) -> None:
        used = references(self._lineage) if step.is_by_reference else {}
        input_count = len(self._lineage.inputs)
        datasets = [*self._lineage.inputs, *self._lineage.outputs]
        losses, size = [], self._sizes.facets
        for place, before in enumerate(datasets[:input_count] if step.is_for_inputs_only else datasets):
            after, is_output = step.without(before, used), place >= input_count
            if after != before:
                saved = size(before, is_output=is_output) - size(after, is_output=is_output)
                # A column without edges, for one, is not in the event to begin with.
                if saved > 0:
                    losses.append((-saved, is_output, after.dataset, place, after))
        # Equal losses go by name, so that the order of the datasets does not matter.
        for negative, _, name, place, after in sorted(losses, key=itemgetter(0, 1, 2)):
            self._note(step.detail, (name,), -negative)
            saved, is_enough = -negative, self._excess() <= 0
            if is_enough and step.is_by_column:
                saved, after = self._by_column(step.detail, saved, datasets[place])  # noqa: PLW2901
            datasets[place] = after
            if is_enough:
                break
        self._lineage = structs.replace(
            self._lineage, inputs=tuple(datasets[:input_count]), outputs=tuple(datasets[input_count:])
        )

    def _by_column(self, detail: str, saved_bytes: int, before: DatasetLineage) -> tuple[int, DatasetLineage]:
        """Take no more columns of the column lineage than needed, where all of them are more than enough."""
        columns = before.column_lineage or ColumnLineage()
        sizes = {name: self._sizes.column(name, edges) for name, edges in columns.fields if edges}
        # Noted before the excess is asked for, because the facet grows by it, and at most by so much.
        self._losers[detail][before.dataset] = len(sizes)
        needed, saved, dropped = saved_bytes + self._excess(), 0, set[str]()
        for name in sorted(sizes, key=lambda each: (-sizes[each], each)):
            if saved >= needed:
                break
            saved += sizes[name]
            dropped.add(name)
        if len(dropped) == len(sizes):
            self._losers[detail][before.dataset] = None
            return saved_bytes, structs.replace(before, column_lineage=None)
        self._note(detail, (), saved - saved_bytes)
        self._losers[detail][before.dataset] = len(dropped)
        return saved, without_columns(before, dropped)

    def _note(self, detail: str, datasets: Iterable[DatasetName], saved_bytes: int) -> None:
        self._bytes -= saved_bytes
        self._saved_bytes[detail] = self._saved_bytes.get(detail, 0) + saved_bytes
        self._losers.setdefault(detail, {}).update(dict.fromkeys(datasets))

    def _excess(self) -> int:
        """The bytes over the limit, those of the facet among them where they decide."""
        excess = self._bytes - self._limit_bytes
        own = 0 if excess > 0 else len(f', "{REDUCED_KEY}": ') + json_bytes(self._facet(is_over_limit=False))
        return excess + own

    def _facet(self, *, is_over_limit: bool) -> Any:
        return facet(
            REDUCED_KEY,
            limitBytes=self._limit_bytes,
            fullBytes=self.full_bytes,
            isOverLimit=is_over_limit,
            leftOut=[_left_out(detail, saved, self._losers[detail]) for detail, saved in self._saved_bytes.items()],
        )


def _left_out(detail: str, saved_bytes: int, losers: dict[DatasetName, int | None]) -> dict[str, Any]:
    # The one that lost a part only comes first: it must not be taken for whole.
    first = islice(sorted(losers.items(), key=lambda each: each[1] is None), _NAMED_DATASETS)
    datasets = [{**named(each), **known(columnCount=columns)} for each, columns in first]
    return {"detail": detail, "bytes": saved_bytes, "datasetCount": len(losers), "datasets": datasets}
