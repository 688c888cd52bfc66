"""Facets that the merge does not read: a user's own, reports of a table format, tags, owners, documentation.

They pass through on each level. Of several that events of a task have for one thing, the last counts: the greatest by
time and bytes, so that their order does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from spark_lineage.merge.lineage import Facets
from spark_lineage.naming.identity import DatasetName

if TYPE_CHECKING:
    from msgspec import Raw

    from spark_lineage.naming.options import Naming

Place = Literal["run", "job", "inputs", "outputs", "inputFacets", "outputFacets"]
"""Where a facet stands in an event; ``inputs`` and ``outputs`` are the facets of a dataset that it has in both."""
NO_DATASET = DatasetName("", "")
READ = frozenset({
    "parent", "processing_engine", "spark_applicationDetails", "errorMessage", "nominalTime", "jobType",
    "schema", "symlinks", "columnLineage", "lifecycleStateChange", "storage", "catalog", "version", "dataSource",
    "hierarchy", "inputStatistics", "outputStatistics",
})  # fmt: skip
"""What the merge reads, or makes anew for the task."""
_TECHNICAL = frozenset({
    "debug", "spark.logicalPlan", "spark_unknown", "environment-properties", "spark_properties", "spark_jobDetails",
    "sql", "sourceCode", "subset",
})  # fmt: skip
"""What says how the listener works, or holds of one run alone: a condition on the rows that it read."""
_OURS = "sparkLineage_"


class ForeignFacet(NamedTuple):
    """One facet, as JSON, and where it stands; ``dataset`` is empty on a run and a job."""

    place: Place
    dataset: DatasetName
    name: str
    content: bytes


def foreign(
    place: Place, facets: Mapping[str, Raw] | None, dataset: DatasetName = NO_DATASET
) -> Iterator[ForeignFacet]:
    """Return the facets of one place that the merge does not read, without those that are no objects."""
    for name, content in (facets or {}).items():
        is_read = name in READ or name in _TECHNICAL or name.startswith(_OURS)
        if not is_read and (text := bytes(content)).startswith(b"{"):
            yield ForeignFacet(place, dataset, name, text)


class ForeignFacets:
    """The last of each facet."""

    def __init__(self, last: Iterable[tuple[float, ForeignFacet]] = ()) -> None:
        self._last: dict[tuple[Place, DatasetName], dict[str, tuple[float, bytes]]] = {}
        for time, facet in last:
            self.add(time, (facet,))

    def __iter__(self) -> Iterator[tuple[float, ForeignFacet]]:
        for (place, dataset), found in self._last.items():
            yield from ((time, ForeignFacet(place, dataset, name, text)) for name, (time, text) in found.items())

    def add(self, time: float, facets: Iterable[ForeignFacet]) -> None:
        """Fold those of one event."""
        for place, dataset, name, content in facets:
            known = self._last.setdefault((place, dataset), {})
            known[name] = max(known.get(name, (time, content)), (time, content))

    def named(self, naming: Naming) -> ForeignFacets:
        """Return the same by the names that a naming has for datasets."""
        if not self._last:
            return self
        return ForeignFacets(
            (time, one._replace(dataset=naming.name(one.dataset.namespace, one.dataset.name)))
            if one.dataset != NO_DATASET
            else (time, one)
            for time, one in self
        )

    def of(self, place: Place, names: Iterable[DatasetName] = (NO_DATASET,)) -> Facets:
        """Return the facets of a run, a job or a dataset, which may have several names, by their own names."""
        found: dict[str, tuple[float, bytes]] = {}
        for dataset in names:
            for name, last in self._last.get((place, dataset), {}).items():
                found[name] = max(found.get(name, last), last)
        return tuple((name, content) for name, (_, content) in sorted(found.items()))
