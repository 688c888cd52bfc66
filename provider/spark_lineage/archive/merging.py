"""Merges the parts of each task into its event and its rows of the tables, on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from spark_lineage.archive.rows import rows
from spark_lineage.emit.size_limit import merged_event
from spark_lineage.merge.state import LineageState, decode_state
from spark_lineage.merge.task import identity_of, kept_lineage
from spark_lineage.naming.options import Naming, naming_from
from spark_lineage.secrets.redaction import use_patterns


def merge_parts(
    parts: Iterable[tuple[str, bytes]], *, naming: Mapping[str, str], max_event_bytes: int, patterns: Sequence[str]
) -> Iterator[str]:
    """Return a document, which is JSON, for each task; its keys are those of ``rows.DOCUMENT``.

    :param parts: run id and state, those of a task one after the other, so that one task at a time is in memory
    :param patterns: of secrets, as ``[spark_lineage] redaction_patterns`` of the driver's machine has them
    """
    use_patterns(patterns)
    names = naming_from(naming)
    for run_id, group in groupby(parts, key=itemgetter(0)):
        states = (decode_state(bytes(content)) for _, content in group)
        state = next(states)
        for one in states:
            state.merge(one)
        if state.runs or state.logged:
            yield msgspec.json.encode(_document(run_id, state, names, max_event_bytes)).decode()


def _document(run_id: str, state: LineageState, naming: Naming, max_event_bytes: int) -> dict[str, Any]:
    try:
        lineage = kept_lineage(state, naming=naming)
        event = merged_event(lineage, identity_of(lineage, state), max_event_bytes)
        day = event.document["eventTime"][:10]
        return {"run_id": run_id, "day": day, "event": event.content.decode(), **rows(event.document)}
    except Exception as error:
        # One task must not cost all the others theirs.
        why = "a schema is nested too deeply" if isinstance(error, RecursionError) else f"{error}"
        return {"run_id": run_id, "problem": f"these events make no RunEvent: {why or type(error).__name__}"}
