"""What the test sends to executors: the same merge, and where it was imported from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import spark_lineage.emit.run_event
import spark_lineage.merge.task
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.merge.conclusion import EndFacts, conclude
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector

RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"


def merge(lines: Iterable[str], *, job_name: str) -> Iterator[tuple[str, str]]:
    """Return the event of all lines, and the files of the package that made it."""
    collector = Collector()
    collector.add((line.encode() for line in lines), source="the archive")
    lineage = task_lineage(collector.state, conclude(EndFacts(exit_code=0)))
    event = run_event(lineage, None, job_namespace="airflow", job_name=job_name, run_id=RUN_ID)
    yield to_json(event).decode(), f"{spark_lineage.merge.task.__file__} {spark_lineage.emit.run_event.__file__}"
