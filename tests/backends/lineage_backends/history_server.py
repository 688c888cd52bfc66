"""Spark's History Server on the loopback, out of PySpark."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lineage_backends.processes import HOST, BackendError, Server

START_SECONDS = 120
_PORT = re.compile(r"Successfully started service '?HistoryServerUI'? on port (\d+)")


@contextmanager
def history_server(events: str | Path, env: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Run one that looks for event logs in ``events`` every second; gives its address.

    :param env: of Spark's own commands
    :param folder: for its log
    """
    command = shutil.which("spark-class", path=env["PATH"])
    if command is None:
        raise BackendError("PySpark is not installed (no spark-class on PATH).")
    options = f"-Dspark.history.fs.logDirectory={events} -Dspark.history.ui.port=0"
    options = f"{options} -Dspark.history.fs.update.interval=1s {env.get('SPARK_HISTORY_OPTS', '')}"
    log = folder / "history.log"
    main_class = "org.apache.spark.deploy.history.HistoryServer"
    server = Server.start("the History Server", [command, main_class], log, env={**env, "SPARK_HISTORY_OPTS": options})
    try:
        server.wait_until(lambda: _PORT.search(server.tail()) is not None, START_SECONDS)
        (port,) = _PORT.findall(log.read_text(errors="replace"))
        yield f"http://{HOST}:{port}"
    finally:
        server.stop()
