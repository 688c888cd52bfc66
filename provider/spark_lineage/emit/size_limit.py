"""Keeps an event under the size limit by giving up detail in a fixed order; no dataset is ever lost (M12).

The lineage is made smaller, not the event, so that the limit holds for every event made of it: the Airflow provider's
and ours. The smaller lineages form one chain that does not depend on the limit: each step of ``ORDER`` takes its
datasets by what they save, the biggest first. The first lineage that fits is the result. Hence a lower limit never
keeps more. What a step saves is measured by encoding the facets of each dataset that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from spark_lineage.emit.dataset_facets import facets_of_input, facets_of_output, input_statistics, output_facets
from spark_lineage.emit.facets import PRODUCER, REDUCED_KEY, LeftOut, ReducedDataset, ReducedRunFacet
from spark_lineage.emit.run_event import json_bytes
from spark_lineage.emit.size_sacrifice import ORDER, DatasetStep, TaskStep, references, without_columns
from spark_lineage.merge.lineage import DatasetLineage, TaskLineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.secrets.spelling import sent_name

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent

DEFAULT_LIMIT_BYTES = 1_000_000
"""Below the 1 MiB that a Kafka broker takes by default (``message.max.bytes``)."""

AIRFLOW_BYTES = 32_768
"""Room for what the Airflow provider adds: some 5 KB of names and facets, documentation, a failure's stack trace."""

_NAMED_DATASETS = 10


def limited(
    lineage: TaskLineage,
    limit_bytes: int,
    as_event: Callable[[TaskLineage], RunEvent],
    *,
    reserved_bytes: int = 0,
) -> tuple[TaskLineage, ReducedRunFacet | None]:
    """Return the lineage whose event has at most ``limit_bytes``, and the run facet that says what was left out.

    ``as_event`` is a pure function and gives the event without that facet, ``reserved_bytes`` is room for what others
    will add to it. Bytes are those of ``Serde.to_json``. The facet is ``None`` where the whole lineage fits. Where all
    that may be left out is not enough, the event stays over the limit, and the facet says so.
    """
    reduction = _Reduction(lineage, as_event, limit_bytes, reserved_bytes)
    return (lineage, None) if reduction.full_bytes <= limit_bytes else reduction.result()


def reduction_text(facet: ReducedRunFacet) -> str:
    """Return what the facet says, as a line of the log."""
    left_out = ", ".join(f"{each.detail} of {each.datasetCount:,}" for each in facet.leftOut) or "nothing"
    text = (
        f"The lineage event has {facet.fullBytes:,} bytes, over the limit of {facet.limitBytes:,}. "
        f"Left out, of so many datasets: {left_out}."
    )
    if facet.isOverLimit:
        text += " It is still over the limit, because nothing else may be left out: the backend may refuse it."
    return text


def facets_bytes(dataset: DatasetLineage, *, is_output: bool) -> int:
    """Return by how many bytes an event grows with the facets of a dataset."""
    if is_output:
        facets = json_bytes(facets_of_output(dataset)) + json_bytes(output_facets(dataset))
    else:
        facets = json_bytes(facets_of_input(dataset)) + json_bytes(input_statistics(dataset.statistics))
    return facets - len("{}{}")


class _Loss(NamedTuple):
    """What one dataset loses in a step, and its place among the inputs or outputs."""

    saved_bytes: int
    is_output: bool
    place: int
    before: DatasetLineage
    after: DatasetLineage


class _Reduction:
    """Walks down the chain until a lineage fits; measures a dataset anew only when it has changed."""

    def __init__(
        self, lineage: TaskLineage, as_event: Callable[[TaskLineage], RunEvent], limit_bytes: int, reserved_bytes: int
    ) -> None:
        self._lineage = lineage
        self._as_event = as_event
        self._limit_bytes = limit_bytes
        self._facets_bytes = {
            is_output: [facets_bytes(each, is_output=is_output) for each in datasets]
            for is_output, datasets in ((False, lineage.inputs), (True, lineage.outputs))
        }
        self.full_bytes = (
            self._bare_bytes(lineage) + sum(self._facets_bytes[False]) + sum(self._facets_bytes[True]) + reserved_bytes
        )
        self._bytes = self.full_bytes
        self._saved_bytes: dict[str, int] = {}
        # Inner dicts for their order, the most first. A number is that of columns, where not all lost the detail.
        self._losers: dict[str, dict[DatasetName, int | None]] = {}

    def result(self) -> tuple[TaskLineage, ReducedRunFacet]:
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
            saved = self._bare_bytes(before) - self._bare_bytes(self._lineage)
            self._note(step.detail, (each.dataset for each in step.about(before)), saved)

    def _take_from_datasets(self, step: DatasetStep) -> None:
        kept = {False: list(self._lineage.inputs), True: list(self._lineage.outputs)}
        # Equal losses go by name, so that the order of the datasets does not matter.
        for loss in sorted(
            self._losses(step), key=lambda each: (-each.saved_bytes, each.is_output, each.after.dataset)
        ):
            self._note(step.detail, (loss.after.dataset,), loss.saved_bytes)
            is_enough = self._excess() <= 0
            taken = self._by_columns(step.detail, loss) if is_enough and step.is_by_column else loss
            kept[taken.is_output][taken.place] = taken.after
            self._facets_bytes[taken.is_output][taken.place] -= taken.saved_bytes
            if is_enough:
                break
        self._lineage = structs.replace(self._lineage, inputs=tuple(kept[False]), outputs=tuple(kept[True]))

    def _losses(self, step: DatasetStep) -> Iterator[_Loss]:
        named = references(self._lineage) if step.is_by_reference else {}
        for is_output, datasets in ((False, self._lineage.inputs), (True, self._lineage.outputs)):
            if is_output and not step.is_for_outputs:
                continue
            for place, before in enumerate(datasets):
                after = step.without(before, named)
                if after == before:
                    continue
                saved = self._facets_bytes[is_output][place] - facets_bytes(after, is_output=is_output)
                # A column without edges, for one, is not in the event to begin with.
                if saved > 0:
                    yield _Loss(saved, is_output, place, before, after)

    def _by_columns(self, detail: str, loss: _Loss) -> _Loss:
        """Take no more columns of the column lineage than needed, where all of them would be more than enough."""
        facet: Any = facets_of_output(loss.before)["columnLineage"]
        # Braces stand for the comma and the space before a column.
        sizes = {name: json_bytes({name: fields}) for name, fields in facet.fields.items()}
        # Noted before the excess is asked for, because the facet grows by it, and at most by so much.
        self._losers[detail][loss.after.dataset] = len(sizes)
        saved, dropped, needed = 0, set[str](), loss.saved_bytes + self._excess()
        for name in sorted(sizes, key=lambda each: (-sizes[each], each))[:-1]:
            if saved >= needed:
                break
            saved += sizes[name]
            dropped.add(name)
        if saved < needed:
            self._losers[detail][loss.after.dataset] = None
            return loss
        self._note(detail, (), saved - loss.saved_bytes)
        self._losers[detail][loss.after.dataset] = len(dropped)
        return loss._replace(saved_bytes=saved, after=without_columns(loss.before, dropped))

    def _note(self, detail: str, datasets: Iterable[DatasetName], saved_bytes: int) -> None:
        self._bytes -= saved_bytes
        self._saved_bytes[detail] = self._saved_bytes.get(detail, 0) + saved_bytes
        self._losers.setdefault(detail, {}).update(dict.fromkeys(datasets))

    def _excess(self) -> int:
        """The bytes over the limit, those of the facet among them where they decide."""
        excess = self._bytes - self._limit_bytes
        if excess > 0:
            return excess
        return excess + len(f', "{REDUCED_KEY}": ') + json_bytes(self._facet(is_over_limit=False))

    def _facet(self, *, is_over_limit: bool) -> ReducedRunFacet:
        return ReducedRunFacet(
            limitBytes=self._limit_bytes,
            fullBytes=self.full_bytes,
            isOverLimit=is_over_limit,
            leftOut=[_left_out(detail, saved, self._losers[detail]) for detail, saved in self._saved_bytes.items()],
            producer=PRODUCER,
        )

    def _bare_bytes(self, lineage: TaskLineage) -> int:
        """The bytes of the event with no more than the names of its datasets, and what fed them."""
        inputs = tuple(DatasetLineage(each.dataset, has_data_source=False) for each in lineage.inputs)
        outputs = tuple(
            DatasetLineage(each.dataset, fed_by=each.fed_by, has_data_source=False) for each in lineage.outputs
        )
        return json_bytes(self._as_event(structs.replace(lineage, inputs=inputs, outputs=outputs)))


def _left_out(detail: str, saved_bytes: int, losers: dict[DatasetName, int | None]) -> LeftOut:
    # The one that lost a part only comes first: it must not be taken for whole.
    first = islice(sorted(losers.items(), key=lambda each: each[1] is None), _NAMED_DATASETS)
    named = [
        ReducedDataset(sent.namespace, sent.name, columnCount=columns)
        for each, columns in first
        for sent in [sent_name(each)]
    ]
    return LeftOut(detail=detail, bytes=saved_bytes, datasetCount=len(losers), datasets=named)
