"""Fixture: a real server of Apache Livy, whose batches run on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from fast_spark import LIMIT_SECONDS
from lineage_backends.maven import jars
from lineage_backends.processes import BackendError

_LIVY = ("org.apache.livy:livy-server:0.7.1-incubating",)
# It takes tickets from internal classes of Java.
_OPENED = ("java.security.jgss/sun.security.krb5", "java.base/java.lang")


@contextmanager
def livy_server(env: Mapping[str, str], home: Path) -> Iterator[int]:
    """Start a server with ``home`` for its files; the value is its port on loopback.

    :param env: what Spark needs in its environment, with SPARK_HOME
    """
    try:
        folder = jars("livy", _LIVY)
    except BackendError as error:
        pytest.skip(f"Livy is not to be had: {error}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (home / "conf").mkdir(parents=True)
    settings = {
        "livy.server.host": "127.0.0.1",
        "livy.server.port": port,
        "livy.spark.master": "local[2]",
        "livy.spark.deploy-mode": "client",
        "livy.file.local-dir-whitelist": "/",
        "livy.server.session.state-retain.sec": "600s",
    }
    (home / "conf" / "livy.conf").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    opened = [part for place in _OPENED for part in ("--add-opens", f"{place}=ALL-UNNAMED")]
    exported = [part for place in _OPENED[:1] for part in ("--add-exports", f"{place}=ALL-UNNAMED")]
    command = ["java", *opened, *exported, "-cp", f"{home / 'conf'}:{folder}/*", "org.apache.livy.server.LivyServer"]
    environment = {**os.environ, **env, "LIVY_CONF_DIR": str(home / "conf"), "LIVY_LOG_DIR": str(home)}
    log = home / "livy.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment, cwd=home)
    try:
        until = time.monotonic() + LIMIT_SECONDS
        while not _answers(port):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.3)
        yield port
    finally:
        server.terminate()
        server.wait(30)


def _answers(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/batches", timeout=5).ok
    except requests.ConnectionError:
        return False
