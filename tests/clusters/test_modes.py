"""One program in every deploy mode, with each way of collecting: its event is the same."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from fast_spark import JAVA_ENV
from lineage_backends.hadoop import spark_properties
from lineage_backends.history_server import history_server
from receiver_service import receiver_service
from standalone_cluster import SMALL, StandaloneCluster, compiled, standalone_cluster

if TYPE_CHECKING:
    from lineage_backends.hadoop import Hadoop
    from lineage_backends.kubernetes import Kubernetes
    from real_spark import RealSpark

PROGRAM = Path(__file__).parent / "programs" / "Counts.java"
MODES = [f"{master} client" for master in ("local", "standalone", "yarn", "kubernetes")]
MODES += [f"{master} cluster" for master in ("standalone", "yarn", "kubernetes")]
# By what the event says that it was collected from.
WAYS = {
    "directory": {"event_log_from": "directory", "evidence": "listener"},
    "event_log": {"event_log_from": "event_log", "evidence": "event_log"},
    "history": {"event_log_from": "history", "evidence": "event_log"},
    "receiver": {"evidence": "listener", "lineage_dir": None},
    "driver_log": {"evidence": "listener", "lineage_dir": None},
}
# Each deploy mode and each way once, but for Kubernetes, which takes minutes to build, and for what a task is collected
# by elsewhere: a directory and an event log. All the others are for the night.
IN_TRUTH = {
    ("standalone cluster", "driver_log"),
    ("yarn client", "directory"),
    ("yarn cluster", "history"),
    ("yarn cluster", "receiver"),
}
WAYS_OF_MODES = [
    pytest.param(mode, way, marks=pytest.mark.truth if (mode, way) in IN_TRUTH else pytest.mark.nightly)
    for mode in MODES
    for way in WAYS
    # In client mode the driver writes its events on the worker.
    if way not in {"receiver", "driver_log"} or "cluster" in mode
]

pytestmark = [pytest.mark.spark, pytest.mark.shares("hadoop")]


class Clusters:
    """A YARN with HDFS, where input and event logs are, a standalone cluster, and a History Server."""

    def __init__(self, hadoop: Hadoop, standalone: StandaloneCluster, history_url: str) -> None:
        self.hadoop = hadoop
        self._standalone = standalone
        self._history_url = history_url

    def connection(self, mode: str) -> dict[str, Any]:
        """Return the connection of a mode."""
        master, deploy_mode = mode.split()
        hosts = {"local": "local[1]", "yarn": "yarn", "standalone": self._standalone.url, "kubernetes": ""}
        extra = {
            "deploy-mode": deploy_mode,
            "history_server_url": self._history_url,
            "webhdfs_url": self.hadoop.webhdfs_url,
            "rest-port": self._standalone.rest_port,
            "master_ui_url": self._standalone.ui_url,
        }
        return {"conn_type": "spark", "host": hosts[master], "extra": extra}


@pytest.fixture
def pods(request: pytest.FixtureRequest, clusters: Clusters, real_spark: RealSpark, mode: str) -> Kubernetes | None:
    """Kubernetes, for the modes that run there; its pods find HDFS."""
    if not mode.startswith("kubernetes"):
        return None
    cluster: Kubernetes = request.getfixturevalue("kubernetes")
    spark = {"PATH": real_spark.path, "SPARK_HOME": str(real_spark.installation().home)}
    cluster.image({**os.environ, **JAVA_ENV, **clusters.hadoop.env, **spark})
    return cluster


def make(hadoop: Hadoop, path: str, operation: str, content: str | None = None) -> None:
    """Make a file or a directory on HDFS."""
    url = f"{hadoop.webhdfs_url}/webhdfs/v1{path}?op={operation}&user.name={hadoop.user}"
    requests.put(url, data=content, timeout=20).raise_for_status()


@pytest.fixture(scope="module")
def clusters(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    for path in ("/modes/logs", "/modes/out"):
        make(hadoop, path, "MKDIRS")
    make(hadoop, "/modes/orders.csv", "CREATE", "customer,amount\na,1\nb,2\na,3\n")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    local = {"PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}
    env = {**os.environ, **JAVA_ENV, **hadoop.env, **local}
    folder = tmp_path_factory.mktemp("clusters")
    with standalone_cluster(folder, env) as standalone, history_server(f"{hadoop.hdfs}/modes/logs", env, folder) as url:
        yield Clusters(hadoop, standalone, url)


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The connection of a receiver."""
    secret = "planted-secret-of-the-receiver-38"  # noqa: S105
    with receiver_service(tmp_path_factory.mktemp("kept"), secret.encode()) as port:
        yield json.dumps({"conn_type": "http", "host": "127.0.0.1", "port": port, "password": secret})


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler is installed (javac is not on the PATH)")
    return compiled(PROGRAM, tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def first() -> dict[str, Any]:
    """What the first of the runs has told, which the others are compared with."""
    return {}


def known_to_all(dataset: dict[str, Any]) -> dict[str, Any]:
    """Return what the listener and the event log both know of a dataset."""
    facets = {**dataset["facets"], **dataset.get("outputFacets", {})}
    same = {name: facets[name] for name in ("columnLineage", "outputStatistics") if name in facets}
    return {"namespace": dataset["namespace"], "name": dataset["name"], **same}


@pytest.mark.parametrize(("mode", "way"), WAYS_OF_MODES)
def test_the_event_is_the_same(
    real_spark: RealSpark,
    clusters: Clusters,
    program: Path,
    first: dict[str, Any],
    pods: Kubernetes | None,
    receiver: str,
    mode: str,
    way: str,
) -> None:
    hdfs, out = clusters.hadoop.hdfs, f"/modes/out/{mode.replace(' ', '-')}-{way}"
    connection = clusters.connection(mode)
    connection["extra"] |= {"receiver_conn_id": "receiver"} if way == "receiver" else {}
    env = {**clusters.hadoop.env, "AIRFLOW_CONN_RECEIVER": receiver}
    # As a path: a standalone cluster's driver is handed none of the worker's own cache.
    jar = next(real_spark.fast.jar_cache.rglob("openlineage-spark_2.13-*.jar"))
    files = {"application": program, "openlineage_jar": jar}
    conf = {
        **spark_properties(real_spark.binaries / "python"),
        **SMALL,
        "spark.sql.shuffle.partitions": "1",
        "spark.yarn.stagingDir": f"{hdfs}/modes/staging",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"{hdfs}/modes/logs",
    }
    if pods is not None:
        connection = pods.connection(mode.split()[1], **connection["extra"])
        env = {**env, **pods.env}
        conf |= pods.properties(mode.split()[1])
    real_spark.bench.connection, real_spark.bench.env = connection, env
    outcome = real_spark.run(
        program,
        f"{hdfs}/modes/orders.csv",
        f"{hdfs}{out}",
        java_class="Counts",
        conf=conf,
        status_poll_interval=1,
        lineage_required=True,
        **{key: f"{'local://' if pods else ''}{path}" for key, path in files.items()},
        **WAYS[way],
    )
    assert outcome.error is None, outcome.printed
    facets = outcome.lineage["run_facets"]
    assert facets["sparkLineage_status"]["state"] == "COMPLETE"
    collection = facets["sparkLineage_collection"]
    assert (collection["collectedFrom"], collection["setAside"]) == ([way], {}), outcome.printed
    datasets = json.loads(
        json.dumps([outcome.lineage["inputs"], outcome.lineage["outputs"]]).replace(out, "/modes/out/counts")
    )
    assert [[one["name"] for one in some] for some in datasets] == [["/modes/orders.csv"], ["/modes/out/counts"]]
    assert set(known_to_all(datasets[1][0])) == {"namespace", "name", "columnLineage", "outputStatistics"}
    known = {
        kind: [known_to_all(one) for one in some] for kind, some in zip(("inputs", "outputs"), datasets, strict=True)
    }
    assert known == first.setdefault("known to all", known)
    # An event log has no types of columns, no columns that are not read, and no sizes of inputs.
    assert datasets == first.setdefault(WAYS[way]["evidence"], datasets)
