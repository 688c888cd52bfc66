"""``make clusters``: start YARN, HDFS, Kubernetes, a standalone cluster and a History Server; say how to reach them.

Kubernetes is built the first time, for which Go is needed; without it the others start.
"""

# ruff: noqa: T201 (it talks to a person)

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import requests
from fast_spark import JAVA_ENV
from own_disk import elsewhere
from standalone_cluster import StandaloneCluster, standalone_cluster

from lineage_backends.hadoop import Hadoop, hadoop, spark_properties
from lineage_backends.history_server import history_server
from lineage_backends.kubernetes import NAMESPACE, kubernetes
from lineage_backends.kubernetes_binaries import are_built
from lineage_backends.processes import HOST, BackendError, NotInstalledError

EVENTS = "/spark-events"


def main() -> int:
    """Run until Ctrl-C; gives the exit code: 1 when something does not start."""
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    print(
        "Starting YARN, HDFS, Spark's master and its History Server; the first time fetches Hadoop, 90 MB …", flush=True
    )
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-lineage-clusters-")))
            yarn = stack.enter_context(hadoop())
            requests.put(
                f"{yarn.webhdfs_url}/webhdfs/v1{EVENTS}?op=MKDIRS&user.name={yarn.user}", timeout=20
            ).raise_for_status()
            env = _environment(yarn, folder)
            spark = {**os.environ, **JAVA_ENV, **env, "SPARK_DAEMON_MEMORY": "512m"}
            standalone = stack.enter_context(standalone_cluster(folder, spark))
            history = stack.enter_context(history_server(f"{yarn.hdfs}{EVENTS}", spark, folder))
            pods = _kubernetes(stack, spark, history)
            worker = f"\nA worker with a disk of its own: {_worker(folder)} airflow dags test my_dag"
            print(
                "\n".join([*_lines(yarn, standalone, history, env), *pods, worker, "\nCtrl-C stops them all."]),
                flush=True,
            )
            is_over.wait()
            print("Stopping …", flush=True)
    except BackendError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _environment(yarn: Hadoop, folder: Path) -> dict[str, str]:
    """What a worker needs to submit to both clusters; small applications are the default."""
    conf = folder / "conf"
    conf.mkdir()
    properties = {
        **spark_properties(sys.executable),
        "spark.yarn.stagingDir": f"{yarn.hdfs}/staging",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"{yarn.hdfs}{EVENTS}",
    }
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in properties.items()))
    names = {"SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": HOST}
    return {**yarn.env, **names}


def _worker(folder: Path) -> Path:
    """Make a command that runs others as on a host whose disk the clusters do not see."""
    home, disk, command = folder / "airflow", folder / "disk", folder / "worker"
    home.mkdir()
    disk.mkdir()
    variables = {"AIRFLOW_HOME": home, "WORKER_DISK": disk, "WORKER_NAME": "worker"}
    lines = [f"export {name}={shlex.quote(str(value))}" for name, value in variables.items()]
    command.write_text("\n".join(["#!/bin/sh", *lines, f'exec {shlex.join(elsewhere())} "$@"', ""]))
    command.chmod(0o755)
    return command


def _lines(yarn: Hadoop, standalone: StandaloneCluster, history: str, env: Mapping[str, str]) -> Iterator[str]:
    yield f"\nHDFS: {yarn.hdfs}, WebHDFS {yarn.webhdfs_url}"
    yield f"YARN: ResourceManager {yarn.resource_manager_url}, NodeManager {yarn.node_manager_url}"
    yield f"Standalone: {standalone.url}, page {standalone.ui_url}, REST server {HOST}:{standalone.rest_port}"
    yield f"History Server: {history}, of the event logs in {yarn.hdfs}{EVENTS}\n"
    yield from (f"  export {name}={shlex.quote(value)}" for name, value in env.items())
    of_history = {"history_server_url": history}
    # YARN's client finds both in the exported configuration, too; this is what a worker without it needs.
    yield _connection("SPARK_YARN", "yarn", {"deploy-mode": "cluster", "webhdfs_url": yarn.webhdfs_url, **of_history})
    of_master = {"rest-port": int(standalone.rest_port), "master_ui_url": standalone.ui_url}
    yield _connection("SPARK_STANDALONE", standalone.url, {**of_master, **of_history})


def _kubernetes(stack: ExitStack, spark: Mapping[str, str], history: str) -> list[str]:
    """Start Kubernetes where its servers are, or can be built."""
    try:
        if not are_built():
            print("Building kube-apiserver and etcd, which takes 8 minutes on two cores, once …", flush=True)
        cluster = stack.enter_context(kubernetes())
    except NotInstalledError as error:
        return [f"\nKubernetes: none. {error}"]
    import pyspark

    home = str(Path(pyspark.__file__).parent)
    cluster.image({**spark, "SPARK_HOME": home})
    connection = cluster.connection("cluster", history_server_url=history)
    return [
        f"\nKubernetes: {cluster.url}, namespace {NAMESPACE}; its tasks need in their conf",
        *(f"  {key}={value}" for key, value in cluster.properties("cluster").items()),
        *(f"  export {name}={shlex.quote(value)}" for name, value in cluster.env.items()),
        _connection("SPARK_KUBERNETES", connection["host"], connection["extra"]),
    ]


def _connection(name: str, host: str, extra: Mapping[str, Any]) -> str:
    connection = json.dumps({"conn_type": "spark", "host": host, "extra": extra})
    return f"  export AIRFLOW_CONN_{name}={shlex.quote(connection)}"


if __name__ == "__main__":
    sys.exit(main())
