"""Fixture: a real server of Spark Connect, which keeps an event log, and whose disk is the worker's."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fast_spark import LIMIT_SECONDS


@contextmanager
def connect_server(env: Mapping[str, str], home: Path, **conf: str) -> Iterator[str]:
    """Start a server with ``home`` for its files; the value is its URL. Its event logs are in ``home / "logs"``.

    :param env: what Spark needs in its environment
    """
    (home / "logs").mkdir(parents=True)
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        # Spark takes the next one that is free.
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (home / "logs").as_uri(),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        **conf,
    }
    command = ["spark-submit", "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    log = home / "server.log"
    with log.open("wb") as stream:
        server = subprocess.Popen([*command, "spark-internal"], stdout=stream, stderr=stream, env=env, cwd=home)
    try:
        until = time.monotonic() + LIMIT_SECONDS
        while "Spark Connect server started at" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)
        (port,) = re.findall(r"server started at: 127\.0\.0\.1:(\d+)", log.read_text())
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)
