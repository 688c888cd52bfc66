"""Puts and sends events in children that are killed at random moments; prints what was acknowledged.

``kill_points.py URL DIRECTORY POINTS SEED``. Each child that is killed is one point. A child acknowledges a put
after it has returned, by a line in a pipe. Some find no outbox yet, so that they are killed while they make it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spark_lineage.deliver.courier import drain
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import sender_of
from spark_lineage.deliver.spool import Spool
from spark_lineage.launch.bounded_run import Deadline

KINDS = ("START", "RUNNING", "COMPLETE")
NEW_DIRECTORY_EACH = 8


def main() -> None:
    url, root, points, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    moments = random.Random(seed)  # noqa: S311 - no secret
    acknowledged: list[list[int]] = []
    directories: list[Path] = []
    for number in range(points // 2):
        if number % NEW_DIRECTORY_EACH == 0:
            directories.append(root / str(number))
        directory = directories[-1]
        reader, writer = os.pipe()

        def put(directory: Path = directory, writer: int = writer, number: int = number) -> None:
            put_events(Spool(directory), writer, number * 10_000)

        children = [fork(put), fork(lambda directory=directory: deliver(Spool(directory), url))]
        os.close(writer)
        time.sleep(moments.uniform(0.001, 0.3))
        for child in moments.sample(children, 2):
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as pipe:
            acknowledged += [list(map(int, line.split())) for line in pipe.read().splitlines()]
    # What was put and not noted by a process that was killed is held so long.
    time.sleep(2.1)
    waiting = 0
    for directory in directories:
        waiting += drain(Spool(directory), sender(url), Deadline(60)).waiting
    json.dump({"acknowledged": acknowledged, "waiting": waiting}, sys.stdout)


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            work()
        os._exit(1)
    return child


def put_events(spool: Spool, acknowledge: int, first_run: int) -> None:
    run = first_run
    while True:
        for second, kind in enumerate(KINDS):
            spool.put(Outgoing.of(event(run, second, kind)))
            os.write(acknowledge, f"{run} {second}\n".encode())
            time.sleep(random.uniform(0, 0.001))  # noqa: S311
        run += 1


def deliver(spool: Spool, url: str) -> None:
    while True:
        drain(spool, sender(url), Deadline(10))
        time.sleep(0.001)


def sender(url: str) -> Any:
    return sender_of({"type": "http", "url": url, "timeout": 5})


def event(run: int, second: int, kind: str) -> bytes:
    return json.dumps(
        {
            "eventTime": f"2024-01-31T12:00:0{second}Z",
            "eventType": kind,
            "job": {"name": f"dag.{'x' * (run % 5000)}", "namespace": "airflow"},
            "producer": "https://github.com/spark-lineage",
            "run": {"runId": f"0190a5b2-7c1e-7d5f-9d4b-{run:012}"},
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        }
    ).encode()


main()
