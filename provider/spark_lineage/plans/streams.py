"""Completes a micro-batch of a streaming query by what the query tells of its sources and its sink.

``StreamingQueryProgress`` describes them: ``FileStreamSource[file:/in]``, ``FileSink[file:/out]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName, directories_above
from spark_lineage.plans.content import PlanContent, joined, with_edges
from spark_lineage.plans.tables import Tables, path_name

# Where a glob begins; what it stands for lies in the directory before it (Hadoop's GlobPattern).
_GLOB = re.compile(r"/[^/]*[*?\[{].*", re.DOTALL)
# Spark 3.5 names a sink as the program did, which may be a relative path.
_PLACE = re.compile(r"(?:FileSink\[(?P<sink>.+)|\w*(?:Source|Sink)\[(?P<place>/.*|[a-z][a-z0-9]*:/.*))\]", re.DOTALL)


def sink_mode(sink: str) -> str:
    """Return the output mode of a sink that has only one: Spark refuses all but ``append`` for files."""
    return "append" if sink.startswith("FileSink[") else ""


def streamed(
    content: PlanContent, sources: Iterable[str], sink: str, tables: Tables
) -> tuple[tuple[Observed, ...], tuple[Observed, ...]]:
    """Return the inputs and outputs of a micro-batch, or of an execution inside of one.

    Its plan names the single files that it reads, the query's source the directory that they are in; and its plan is a
    query, whose columns the sink writes.
    """
    inputs, outputs = content.inputs, content.outputs
    written_to = _described(sink)
    if written_to and content.command is None:
        outputs = (with_edges(tables.at(written_to), content.traced),)
    for source in (path_name(place) for each in sources if (place := _described(_GLOB.sub("]", each)))):
        inputs = joined(structs.replace(one, dataset=_lifted(one.dataset, source)) for one in inputs)
        outputs = tuple(_with_lifted_edges(output, source) for output in outputs)
    return inputs, outputs


def _described(description: str) -> str:
    match = _PLACE.fullmatch(description)
    return match["sink"] or match["place"] if match else ""


def _lifted(name: DatasetName, source: DatasetName) -> DatasetName:
    return source if source in directories_above(name) else name


def _with_lifted_edges(output: Observed, source: DatasetName) -> Observed:
    edges = frozenset((column, _lifted(name, source), field, how) for column, name, field, how in output.edges)
    return structs.replace(output, edges=edges)
