"""The Spark actions of a task, one by one, with its datasets under the names that the task's lineage has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from spark_lineage.merge.entity import Entity
from spark_lineage.merge.evidence import Evidence
from spark_lineage.merge.lineage import Action, TaskState
from spark_lineage.merge.outcome import run_outcome
from spark_lineage.merge.state import LineageState, utc
from spark_lineage.naming.identity import DatasetName


def actions(
    evidence: Evidence,
    touched: Mapping[str, tuple[list[Entity], list[Entity]]],
    state: LineageState,
    task_state: TaskState,
    noise: Collection[Entity],
) -> tuple[Action, ...]:
    """Return the runs that touched datasets, in the order of their starts.

    :param noise: what is no input of the task although it was read (M10)
    """
    found = []
    for run_id, (inputs, outputs) in touched.items():
        read = _names(entity.current.last_name for entity in inputs if entity.current not in noise)
        written = _names(entity.current.name for entity in outputs)
        if not (read or written):
            continue
        run = evidence.runs[run_id]
        outcome = run_outcome(run, state)
        # A run whose end nobody saw ended with its task.
        ended: TaskState = task_state if outcome == "open" else "COMPLETE" if outcome == "succeeded" else "FAIL"
        found.append(
            Action(
                run_id=run_id,
                job_namespace=run.content.job_namespace,
                job_name=run.content.job_name,
                state=ended,
                started_at=utc(run.first),
                ended_at=utc(run.last),
                is_streaming=run.content.is_streaming,
                inputs=read,
                outputs=written,
            )
        )
    return tuple(sorted(found, key=lambda action: (action.started_at, action.run_id)))


def _names(names: Iterable[DatasetName]) -> tuple[DatasetName, ...]:
    return tuple(sorted(set(names)))
