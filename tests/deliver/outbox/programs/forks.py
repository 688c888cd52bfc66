"""Uses one outbox on both sides of forks, from a thread too, and prints how many events came of it.

``forks.py DIRECTORY CHILDREN EVENTS``.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

from spark_lineage.deliver.outbox.outbox import Outbox

DIRECTORY, CHILDREN, EVENTS = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def put(outbox: Outbox, who: int) -> None:
    for number in range(EVENTS):
        outbox.put(
            "marquez",
            json.dumps(
                {
                    "eventTime": "2024-01-31T12:00:00Z",
                    "eventType": "START",
                    "job": {"name": "dag.task", "namespace": "airflow"},
                    "run": {"runId": f"{who}-{number}"},
                }
            ).encode(),
        )


def main() -> None:
    outbox = Outbox(DIRECTORY)
    put(outbox, 0)
    thread = threading.Thread(target=put, args=(outbox, 1))
    thread.start()
    children = []
    for who in range(CHILDREN):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                put(outbox, 10 + who)
                outbox.close()
                code = 0
            finally:
                os._exit(code)
        children.append(child)
        put(outbox, 100 + who)
    thread.join()
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    runs = [event.head.run_id for event in outbox.events()]
    outbox.close()
    with closing(sqlite3.connect(DIRECTORY / "outbox.db")) as database:
        (sound,) = database.execute("PRAGMA integrity_check").fetchone()
    json.dump({"codes": codes, "events": len(runs), "different": len(set(runs)), "sound": sound}, sys.stdout)


main()
