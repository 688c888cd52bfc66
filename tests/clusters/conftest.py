"""Tasks that are submitted to a real YARN or Kubernetes as users do: by a connection, and what the worker has of it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from fast_spark import JAVA_OPTIONS
from lineage_backends.hadoop import spark_properties
from lineage_backends.kubernetes import PODS

if TYPE_CHECKING:
    from laboratory import Outcome
    from lineage_backends.hadoop import Hadoop
    from lineage_backends.kubernetes import Kubernetes
    from real_spark import RealSpark

PROGRAM = Path(__file__).parent / "programs" / "counts.py"
LIMIT_SECONDS = 240
SMALL = {"spark.sql.shuffle.partitions": "1", "spark.executor.extraJavaOptions": JAVA_OPTIONS}
URL = "https://127.0.0.1:6443"
# What spark-submit has printed, within what a task has logged; and of that what tells of a pod.
_PRINTED = re.compile(r"\[info +\] (.+?) +\[airflow\.task\.hooks\.")
_IS_OF_SPARK = re.compile(
    r"submission ID|^pod name:|^namespace:|^labels:|[eE]xit code:|^phase:|Container final|State ch"
)
ORDERS = "customer,amount\na,1\nb,2\na,3\n"


@dataclass
class Yarn:
    """Runs the program with the operator; what it reads and writes is on HDFS, in a directory of the test's own."""

    hadoop: Hadoop
    spark: RealSpark
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def directory(self) -> str:
        """Its path on HDFS."""
        return f"/data/{self.spark.bench.root.name}"

    def run(self, deploy_mode: str, end: str, **arguments: Any) -> Outcome:
        """Run it to its end; ``arguments`` go to the operator."""
        bench, hdfs = self.spark.bench, self.hadoop.hdfs
        self._webhdfs("PUT", "orders.csv", data=ORDERS, op="CREATE")
        bench.connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": deploy_mode, **self.extra}}
        bench.env = {**self.hadoop.env, **bench.env}
        conf = {
            **spark_properties(self.spark.binaries / "python"),
            "spark.sql.shuffle.partitions": "1",
            "spark.yarn.stagingDir": f"{hdfs}/staging",
            **arguments.pop("conf", {}),
        }
        places = [f"{hdfs}{self.directory}/{name}" for name in ("orders.csv", "counts")]
        return self.spark.run(PROGRAM, *places, end, conf=conf, **arguments)

    def written(self) -> str:
        """Wait until the program has written, and return the id of its application."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self._webhdfs("GET", "counts/_SUCCESS", op="GETFILESTATUS").ok:
            assert time.monotonic() < deadline, "the program has written nothing"
            time.sleep(0.5)
        (application_id,) = self.hadoop.running()
        return application_id

    def _webhdfs(self, method: str, name: str, data: str | None = None, **parameters: str) -> requests.Response:
        url = f"{self.hadoop.webhdfs_url}/webhdfs/v1{self.directory}/{name}"
        asked = {"user.name": self.hadoop.user, "overwrite": "true", **parameters}
        return requests.request(method, url, params=asked, data=data, timeout=20)


@dataclass
class OnKubernetes:
    """Runs the program with the operator; the pods have the directory of the test as a volume."""

    cluster: Kubernetes
    spark: RealSpark
    name: str
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def directory(self) -> Path:
        """Where the program reads and writes."""
        return self.spark.bench.root

    def run(self, deploy_mode: str, end: str, **arguments: Any) -> Outcome:
        """Run it to its end; ``arguments`` go to the operator."""
        bench, cluster = self.spark.bench, self.cluster
        (self.directory / "orders.csv").write_text(ORDERS)
        bench.connection = cluster.connection(deploy_mode, **self.extra)
        bench.env = {**cluster.env, **bench.env}
        image = {"PATH": self.spark.path, "SPARK_HOME": str(self.spark.installation().home)}
        image["PYSPARK_PYTHON"] = str(self.spark.binaries / "python")
        cluster.image({**os.environ, **self.spark.fast.env, **image})
        jar = next(self.spark.fast.jar_cache.rglob("openlineage-spark_2.13-*.jar"))
        given = {"openlineage_jar": f"local://{jar}", "application": f"local://{PROGRAM}", **arguments}
        given["conf"] = {**cluster.properties(deploy_mode), **SMALL, **arguments.get("conf", {})}
        places = [str(self.directory / name) for name in ("orders.csv", "counts")]
        known = set(cluster.kubelet.seen)
        outcome = self.spark.run(PROGRAM, *places, end, **given)
        if (file := os.environ.get("SPARK_LINEAGE_RECORD")) and deploy_mode == "cluster":
            (driver,) = [name for name in cluster.kubelet.seen.keys() - known if name.endswith("-driver")]
            record(Path(file), self.name, cluster, driver, outcome, {str(self.directory): "/data", cluster.url: URL})
        return outcome

    def kill(self, pod: str) -> None:
        """Kill the driver in a pod."""
        self.cluster.kubelet.kill(pod)

    def evict(self, pod: str) -> None:
        """Kill the driver in a pod, as a kubelet does that runs out of memory."""
        self.cluster.kubelet.kill(pod, reason="Evicted", message="The node was low on resource: memory.")

    def delete(self, pod: str) -> None:
        """Delete a pod, as a user does."""
        self.cluster.delete(pod)

    def has_datasets(self, outcome: Outcome) -> bool:
        """Whether the event names what the program has read and written."""
        assert outcome.lineage is not None, outcome.printed
        names = [[one["name"] for one in outcome.lineage[kind]] for kind in ("inputs", "outputs")]
        return names == [[str(self.directory / name)] for name in ("orders.csv", "counts")]

    def written(self) -> str:
        """Wait until the listener knows what the program has written, and return the name of its pod."""
        deadline, end = time.monotonic() + LIMIT_SECONDS, re.compile(r'"eventType":"COMPLETE".*/counts"')
        while not any(end.search(one.read_text()) for one in self.spark.bench.lineage_dir.rglob("*.ndjson")):
            assert time.monotonic() < deadline, "the program has written nothing"
            time.sleep(0.2)
        (pod,) = [one for one in self.cluster.drivers() if one["status"]["phase"] == "Running"]
        return str(pod["metadata"]["name"])


def brief(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod without what neither the Spark provider nor we read."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "managedFields"}
    containers = [{key: one[key] for key in ("name", "image")} for one in pod["spec"]["containers"]]
    return {**pod, "metadata": metadata, "spec": {"containers": containers}}


def record(
    file: Path, name: str, cluster: Kubernetes, driver: str, outcome: Outcome, others: Mapping[str, str]
) -> None:
    """Add a run to what ``lineage_backends.kubernetes_recorded`` answers with.

    :param others: what stands for words that are another each time
    """
    cluster.kubelet.look()
    pods = [one and brief(one) for one in cluster.kubelet.seen[driver]]
    path = f"{PODS}/{driver}"
    refused = {"401": (path, "wrong"), "403": (path, cluster.stranger_token), "404": (f"{PODS}/another", "")}
    run = {
        "printed": [one for one in _PRINTED.findall(outcome.printed) if _IS_OF_SPARK.search(one)],
        "pods": pods,
        "log": cluster.ask("GET", f"{path}/log?tailLines=100") if pods[-1] else "",
    }
    text = json.dumps({name: run}, indent=1)
    for word, other in others.items():
        text = text.replace(word, other)
    known = json.loads(file.read_text()) if file.exists() else {"refusals": {}, "runs": {}}
    for status, (asked, token) in refused.items():
        with pytest.raises(requests.HTTPError) as refusal:
            cluster.ask("GET", asked, token=token)
        known["refusals"][status] = refusal.value.response.json()
    known["runs"] |= json.loads(text)
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


@pytest.fixture
def on_kubernetes(
    kubernetes: Kubernetes, real_spark: RealSpark, request: pytest.FixtureRequest
) -> Iterator[OnKubernetes]:
    """One test's place on the cluster that all share; what it leaves there is gone afterwards."""
    yield OnKubernetes(kubernetes, real_spark, request.node.name.partition("[")[2].rstrip("]"))
    for pod in kubernetes.drivers():
        kubernetes.delete(pod["metadata"]["name"], seconds=0)


@pytest.fixture(autouse=True)
def nothing_runs_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test that failed leaves on YARN would have the next one wait for a container."""
    yield
    if "hadoop" in request.fixturenames:
        cluster: Hadoop = request.getfixturevalue("hadoop")
        for application_id in cluster.running():
            cluster.kill(application_id)


@pytest.fixture
def yarn(hadoop: Hadoop, real_spark: RealSpark) -> Yarn:
    """One test's place on the cluster that all share."""
    return Yarn(hadoop, real_spark)


@pytest.fixture
def statuses() -> Callable[[Outcome, str], list[tuple[str, str]]]:
    """Gives each status that an outcome tells of a subject, and who said so."""

    def told(outcome: Outcome, subject: str) -> list[tuple[str, str]]:
        assert outcome.lineage is not None, outcome.printed
        status = outcome.lineage["run_facets"]["sparkLineage_status"]
        return [(one["newStatus"], one["source"]) for one in status["transitions"] if one["subject"] == subject]

    return told
