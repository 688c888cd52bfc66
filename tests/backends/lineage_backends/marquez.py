"""Which events Marquez 0.51.1 refuses or is harmed by, and with which status it answers them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_NAMESPACE = re.compile(r"[a-zA-Z:;=/0-9_.@+-]+", re.ASCII)


def refusal(event: Mapping[str, Any]) -> tuple[int, str] | None:
    """The status and the reason, or None for an event that Marquez takes.

    Marquez keeps a row of a dataset with a bad namespace although it answers 400; some pages answer 500 ever after.
    """
    return next(_refusals(event), None)


def _refusals(event: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    if any("\0" in text for text in _texts(event)):
        yield 500, "a text holds a NUL character"
    if not event.get("producer"):
        yield 422, "producer must not be null"
    for place, facet in _facets(event):
        for name in ("_producer", "_schemaURL"):
            if not facet.get(name):
                yield 422, f"{place} has no {name}"
    job_type = event.get("job", {}).get("facets", {}).get("jobType")
    if job_type is not None and not job_type.get("jobType"):
        yield 422, "the facet jobType has no jobType"
    for dataset in [*event.get("inputs", ()), *event.get("outputs", ())]:
        yield from _refusals_of_dataset(dataset)


def _refusals_of_dataset(dataset: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    namespace = dataset.get("namespace", "")
    if not _NAMESPACE.fullmatch(namespace):
        yield 400, f"the namespace {namespace!r} of a dataset has a character that Marquez does not take"
    if "dataSource" not in dataset.get("facets", {}):
        yield 500, "a dataset has no dataSource: it is taken, but /api/v1/sources answers 500 from then on"
    columns = dataset.get("facets", {}).get("columnLineage", {}).get("fields", {})
    for column, lineage in columns.items():
        if "inputFields" not in lineage:
            yield 500, f"the column {column!r} has no inputFields"


def _facets(event: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    holders = [("run", event.get("run", {})), ("job", event.get("job", {}))]
    holders += [(part, dataset) for part in ("inputs", "outputs") for dataset in event.get(part, ())]
    for place, holder in holders:
        for group in ("facets", "inputFacets", "outputFacets"):
            for key, facet in (holder.get(group) or {}).items():
                yield f"the facet {key} of {place}", facet


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
