"""What the log of the task says at its end: its lineage in short, and what became of the application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_lineage.secrets.redaction import redact, redact_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from spark_lineage.launch.line import LineCounts
    from spark_lineage.launch.log import Log
    from spark_lineage.merge.lineage import TaskLineage
    from spark_lineage.merge.transition import StatusSummary

_NAMED_DATASETS = 20
_SUBJECTS = {"SPARK_JOB": "Spark jobs", "SQL_EXECUTION": "SQL executions", "STREAMING_QUERY": "streaming queries"}


def log_lineage(lineage: TaskLineage, counts: LineCounts, logger: Log) -> None:
    """Log the lineage: one line of numbers, one a dataset."""
    logger.info(
        "Lineage: %s, %d inputs, %d outputs, %d attempted outputs (%d events of %d Spark runs, %d lines set aside)",
        lineage.state,
        len(lineage.inputs),
        len(lineage.outputs),
        len(lineage.attempted),
        counts.read,
        lineage.run_count,
        counts.set_aside_total,
    )
    named = (("Input", lineage.inputs), ("Output", lineage.outputs), ("Attempted", lineage.attempted))
    for kind, datasets in named:
        for one in datasets[:_NAMED_DATASETS]:
            logger.info("%s: %s", kind, redact_dataset(f"{one.dataset.namespace} {one.dataset.name}"))

    several = [one.dataset.namespace for _, datasets in named[:2] for one in datasets if "," in one.dataset.namespace]
    if several:
        logger.info(
            "%s names several hosts; the option hostnamePattern.<cluster> gives their cluster one name, whichever of "
            "them a program was given: see docs/naming.md",
            redact_dataset(several[0]),
        )


def log_status(status: StatusSummary, logger: Log) -> None:
    """Log how applications, drivers and what they ran ended, and where to read on."""
    last = {(one.subject, one.subject_id): one for one in status.transitions if one.subject not in _SUBJECTS}
    for one in last.values():
        detail = f" ({one.detail})" if one.detail else ""
        what = redact(f"{one.subject_id}: {one.new_status}{detail}")
        logger.info("%s %s (source: %s)", one.subject.capitalize(), what, one.source)
    numbers = [f"{count} {_SUBJECTS[subject]} {state}" for subject, state, count in status.counts]
    if numbers:
        logger.info("Of the application: %s", ", ".join(numbers))
    if status.error:
        logger.info("The application failed: %s", redact(status.error))
    if status.history_url:
        logger.info("History: %s", redact(status.history_url))


def nothing_came(directory: Path, counts: LineCounts) -> str:
    """Say that there is no lineage, where it was looked for, and what to check."""
    return (
        f"No lineage came from the driver: no event in {directory}/*.ndjson "
        f"({counts.set_aside_total} lines set aside). The three most likely causes: "
        "(1) the listener jar was not resolved or not loaded: look for 'openlineage' in the driver's log above; "
        "(2) the driver ran on another host, or as another user, and could not write to that directory: in cluster "
        "mode set lineage_dir to a path that worker and driver share; "
        "(3) the listener was switched off: look for spark.openlineage.disabled, spark.extraListeners or "
        "spark.openlineage.transport.* set by the program itself."
    )
