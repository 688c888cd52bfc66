"""Puts events until the disk is full; prints what was acknowledged, what the error said, and what came of sending.

``full_disk.py URL DIRECTORY``. The disk is small, so nothing is left free on purpose.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from spark_lineage.deliver import spool as module
from spark_lineage.deliver.courier import drain
from spark_lineage.deliver.outgoing import Outgoing, SpoolError
from spark_lineage.deliver.sender import sender_of
from spark_lineage.deliver.spool import Spool
from spark_lineage.launch.bounded_run import Deadline


def event(number: int) -> Outgoing:
    content = {
        "eventTime": "2024-01-31T12:00:00Z",
        "eventType": "COMPLETE",
        "job": {"name": "dag.task", "namespace": "airflow"},
        "producer": "https://github.com/spark-lineage",
        "run": {"runId": f"0190a5b2-7c1e-7d5f-9d4b-{number:012}", "facets": {"text": {"text": "x" * 20_000}}},
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }
    return Outgoing.of(json.dumps(content).encode())


def main() -> None:
    module.FREE_BYTES = 0
    url, spool = sys.argv[1], Spool(Path(sys.argv[2]))
    acknowledged, errors = 0, []
    while len(errors) < 3:
        try:
            spool.put(event(acknowledged))
        except SpoolError as error:
            errors.append(str(error))
        else:
            acknowledged += 1
    kept = len(spool.waiting())
    is_forgotten = not spool.run(event(acknowledged).run_id).has_ended
    done = drain(spool, sender_of({"type": "http", "url": url, "timeout": 5}), Deadline(60))
    spool.put(event(acknowledged))
    found = {
        "acknowledged": acknowledged,
        "errors": errors,
        "kept": kept,
        "is_forgotten": is_forgotten,
        "sent": done.sent,
        "waiting": len(spool.waiting()),
    }
    json.dump(found, sys.stdout)


main()
