"""The event of a task that is merged from files, as bytes that fit, and as the document that it was before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from spark_lineage.emit.facets import REDUCED_KEY
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.emit.size_limit import limited

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent

    from spark_lineage.merge.lineage import ParentRun, TaskLineage


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
    if len(content) * 4 <= limit_bytes:
        return MergedEvent(content, document, None)
    kept, reduced = limited(lineage, limit_bytes, as_event)
    if reduced is None:
        return MergedEvent(content, document, None)
    event = as_event(kept)
    event.run.facets = {**(event.run.facets or {}), REDUCED_KEY: reduced}
    return MergedEvent(to_json(event), document, reduced)
