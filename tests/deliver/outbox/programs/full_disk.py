"""Puts events until the disk is full; prints what was acknowledged, what the error said, and what came of sending.

``full_disk.py URL DIRECTORY BYTES``: where BYTES is above 0, no file of this process may be larger than that.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from spark_lineage.deliver.outbox.outbox import Outbox, OutboxError
from spark_lineage.deliver.transports.opening import make_transport


def event(number: int) -> bytes:
    return json.dumps(
        {
            "eventTime": "2024-01-31T12:00:00Z",
            "eventType": "COMPLETE",
            "job": {"name": "dag.task", "namespace": "airflow"},
            "producer": "https://github.com/spark-lineage",
            "run": {"runId": f"0190a5b2-7c1e-7d5f-9d4b-{number:012}", "facets": {"text": {"text": "x" * 20_000}}},
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        }
    ).encode()


def main() -> None:
    url, directory, limit = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit or hard, hard))
    # What somebody removes later to make room.
    ballast = directory.with_name("ballast")
    ballast.write_bytes(bytes(0 if limit else 4_000_000))
    outbox = Outbox(directory)
    acknowledged, errors = 0, []
    while len(errors) < 3:
        try:
            outbox.put("marquez", event(acknowledged))
        except OutboxError as error:
            errors.append(str(error))
        else:
            acknowledged += 1
    kept = len(outbox.events())

    def deliver() -> list[int]:
        done = outbox.deliver(
            ["marquez"], lambda _: make_transport({"type": "http", "url": url, "timeout": 5}), 60, is_asked_for=True
        )
        return [done.sent, done.waiting]

    while_full = deliver()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    ballast.unlink()
    outbox.put("marquez", event(acknowledged))
    afterwards = deliver()
    outbox.close()
    found = {"acknowledged": acknowledged, "errors": errors, "kept": kept, "full": while_full, "after": afterwards}
    json.dump(found, sys.stdout)


main()
