"""Leaves out the names that the listener gives to tables of Derby: those of all databases are in one namespace."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import structs

from spark_lineage.merge.observed import Observed, keep_edges
from spark_lineage.merge.state import RunContent, RunState, with_contents

# The place of the metastore below the working directory, whatever the URL of the database
# (io.openlineage.client.utils.jdbc.DerbyJdbcExtractor).
_NAMESPACE = re.compile(r"file:.*/metastore_db", re.DOTALL)


def without_derby(runs: Mapping[str, RunState]) -> tuple[Mapping[str, RunState], list[str]]:
    """Return runs without tables of Derby, and for each run the parts that are unread in their place."""
    # Many runs share their content.
    contents = {id(run.content): run.content for run in runs.values()}
    tables = {key: names for key, content in contents.items() if (names := _tables(content))}
    unread = [f"{name}: its database" for run in runs.values() for name in tables.get(id(run.content), ())]
    return (with_contents(runs, _without) if unread else runs), unread


def _tables(content: RunContent) -> list[str]:
    return sorted({one.dataset.name for one in (*content.inputs, *content.outputs) if _is_of_derby(one)})


def _is_of_derby(one: Observed) -> bool:
    return _NAMESPACE.fullmatch(one.dataset.namespace) is not None


def _without(content: RunContent) -> RunContent:
    outputs = (
        keep_edges(one, lambda edge: not _NAMESPACE.fullmatch(edge[1].namespace))
        for one in content.outputs
        if not _is_of_derby(one)
    )
    inputs = tuple(one for one in content.inputs if not _is_of_derby(one))
    return structs.replace(content, inputs=inputs, outputs=tuple(outputs))
