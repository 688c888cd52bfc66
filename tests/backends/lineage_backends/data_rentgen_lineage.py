"""The answer of Data.Rentgen's ``/v1/runs/lineage``, in the words of OpenLineage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RunLineage:
    """What a run read and wrote. A dataset is ``type://location/name``: Data.Rentgen takes namespaces apart."""

    inputs: frozenset[str]
    outputs: frozenset[str]
    columns: dict[tuple[str, str], set[tuple[str, str]]] = field(default_factory=dict)
    """Output dataset and column → input datasets and columns that went into it."""
    filters: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """Output dataset → input datasets and columns that decided about its rows."""
    rows: dict[str, int | None] = field(default_factory=dict)
    """Rows written, by output dataset."""


def read_lineage(answer: Mapping[str, Any]) -> RunLineage:
    """The lineage of the one run that was asked for."""
    names = {key: _name(dataset) for key, dataset in answer["nodes"]["datasets"].items()}
    relations = answer["relations"]
    columns: dict[tuple[str, str], set[tuple[str, str]]] = {}
    filters: dict[str, set[tuple[str, str]]] = {}
    for relation in relations["direct_column_lineage"]:
        source, target = names[relation["from"]["id"]], names[relation["to"]["id"]]
        for column, sources in relation["fields"].items():
            columns.setdefault((target, column), set()).update((source, each["field"]) for each in sources)
    for relation in relations["indirect_column_lineage"]:
        source, target = names[relation["from"]["id"]], names[relation["to"]["id"]]
        filters.setdefault(target, set()).update((source, each["field"]) for each in relation["fields"])
    outputs = [(names[each["to"]["id"]], each["num_rows"]) for each in relations["outputs"]]
    return RunLineage(
        inputs=frozenset(names[each["from"]["id"]] for each in relations["inputs"]),
        outputs=frozenset(name for name, _ in outputs),
        columns=columns,
        filters=filters,
        rows=dict(outputs),
    )


def _name(dataset: Mapping[str, Any]) -> str:
    location = dataset["location"]
    return f"{location['type']}://{location['name']}/{dataset['name'].lstrip('/')}"
