"""OpenLineage's ``lineage`` job facet: for each output of the task the inputs that it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_lineage.emit.facets import PRODUCER
from spark_lineage.emit.openlineage_facets import LineageEntry, LineageInput, LineageJobFacet
from spark_lineage.secrets.spelling import sent_name

if TYPE_CHECKING:
    from spark_lineage.merge.lineage import DatasetLineage, TaskLineage
    from spark_lineage.naming.dataset_name import DatasetName

LINEAGE_KEY = "lineage"


def lineage_job_facet(lineage: TaskLineage) -> LineageJobFacet | None:
    """The exact edges of the task (M8), or nothing where none are known.

    An output that nothing fed has an empty list, by which the spec says that it has no tracked source. Edges are
    between datasets: those between columns are in each output's ``columnLineage``, and to tell them here as well would
    nearly double an event. Spec: ``LineageFacet.json`` 1-0-0, ``LineageJobFacet``.
    """
    if not any(output.fed_by for output in lineage.outputs):
        return None
    return LineageJobFacet(entries=[_entry(output) for output in lineage.outputs], producer=PRODUCER)


def _entry(output: DatasetLineage) -> LineageEntry:
    sent = sent_name(output.dataset)
    return LineageEntry(sent.namespace, sent.name, [_input(source) for source in output.fed_by])


def _input(source: DatasetName) -> LineageInput:
    sent = sent_name(source)
    return LineageInput(sent.namespace, sent.name)
