"""What tests of the archive's tables work with: merged events of the corpus, and documents made of them."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openlineage.client.serde import Serde

from spark_lineage.archive.rows import rows
from spark_lineage.emit.run_event import run_event
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

CORPUS = sorted((Path(__file__).parents[1] / "fixtures" / "events").glob("*.ndjson"))


@cache
def _merged(path: Path) -> dict[str, Any]:
    collector = Collector()
    with path.open("rb") as stream:
        collector.read(stream, source=path.name)
    lineage = task_lineage(collector.state, "COMPLETE")
    run_id = lineage.applications[0].run_id
    event: dict[str, Any] = Serde.to_dict(
        run_event(lineage, None, job_namespace="lab", job_name=path.stem, run_id=run_id)
    )
    return event


def merged_event(
    name: str, *, run_id: str | None = None, day: str | None = None, job: str | None = None
) -> dict[str, Any]:
    """Return the event of a file of the corpus, as that of another run, day or job where that is asked for."""
    event = deepcopy(_merged(next(path for path in CORPUS if path.stem == name)))
    event["run"]["runId"] = run_id or event["run"]["runId"]
    event["job"]["name"] = job or event["job"]["name"]
    if day is not None:
        event["eventTime"] = day + event["eventTime"][10:]
    return event


def corpus_events() -> list[dict[str, Any]]:
    """Return the event of each file of the corpus."""
    return [merged_event(path.stem) for path in CORPUS]


def document(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is staged for an event."""
    return {
        "run_id": event["run"]["runId"],
        "day": event["eventTime"][:10],
        "event": json.dumps(event, sort_keys=True),
        **rows(event),
    }


def documents(spark: SparkSession, events: Iterable[Mapping[str, Any]], file: Path) -> DataFrame:
    """Return the documents of events, as the job reads them, by way of a file."""
    from spark_lineage.archive.rows import DOCUMENT

    file.write_text("\n".join(json.dumps(document(event)) for event in events))
    return spark.read.schema(DOCUMENT).option("mode", "FAILFAST").json(str(file))
