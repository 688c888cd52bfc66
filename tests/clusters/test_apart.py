"""Programs on clusters whose hosts share no disk with the worker: each event is whole, or says what is missing.

``SPARK_LINEAGE_CLUSTER_RUNS`` is how often each row runs; each run adds a line to ``SPARK_LINEAGE_CLUSTER_FIGURES``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from fast_spark import JAVA_ENV
from laboratory import Bench, Laboratory
from lineage_backends.fixtures import or_skip
from lineage_backends.hadoop import hadoop as hadoop_with_logs
from lineage_backends.hadoop import spark_properties
from own_disk import elsewhere
from real_spark import RealSpark
from standalone_cluster import SMALL, StandaloneCluster, compiled, standalone_cluster

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from laboratory import Outcome
    from lineage_backends.hadoop import Hadoop
    from lineage_backends.kubernetes import Kubernetes

PROGRAM = Path(__file__).parent / "programs" / "chain.py"
ROWS = 20
ORDERS = "id,amount\n" + "".join(f"{number},{number * 10}\n" for number in range(1, ROWS + 1))
LIMIT_SECONDS = 240
RUNS = range(int(os.environ.get("SPARK_LINEAGE_CLUSTER_RUNS", "1")))
CHAIN = {f"step{number}": ROWS - number for number in range(1, 7)}
TWO = {name: CHAIN[name] for name in ("step1", "step2")}
# The second attempt writes anew what the first has begun.
CHAIN_OF_ATTEMPTS = {"step1": ROWS - 1, "step2": ROWS - 2, **{f"again{step}": ROWS - step for step in range(2, 7)}}
# What each program leaves, and how its task ends.
TRUTH: dict[str, tuple[dict[str, int], str]] = {
    "chain": (CHAIN, "COMPLETE"),
    "fails": (TWO, "FAIL"),
    "killed": (TWO, "FAIL"),
    "declares": ({**CHAIN, "report": 2}, "COMPLETE"),
    "hides": (CHAIN, "COMPLETE"),
    "attempts": ({**CHAIN_OF_ATTEMPTS}, "COMPLETE"),
    "counts": ({"counts": 2}, "COMPLETE"),
    "queries": ({f"query{number}": ROWS - number % 9 for number in range(0, 200, 20)}, "COMPLETE"),
}

COUNTS = {"sparkLineage_unreadPlans", "sparkLineage_unknownDatasets"}

pytestmark = [pytest.mark.spark, pytest.mark.truth, pytest.mark.shares("hadoop")]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """A worker with a disk of its own."""
    if not elsewhere():
        pytest.skip("no namespaces of Linux can be made here")
    laboratory = Laboratory(tmp_path_factory.mktemp("airflow"), disk=tmp_path_factory.mktemp("disk"))
    yield laboratory
    laboratory.close()


class Apart:
    """Runs programs on YARN from a worker that shares no disk with it."""

    def __init__(self, hadoop: Hadoop, spark: RealSpark) -> None:
        self.hadoop, self.spark = hadoop, spark
        self.directory = f"/apart/{spark.bench.root.name}"

    def run(self, program: str, *arguments: str, extra: Any = None, conf: Any = None, **others: Any) -> Outcome:
        """Run one to its end; ``others`` go to the operator."""
        bench, hdfs = self.spark.bench, f"{self.hadoop.hdfs}{self.directory}"
        self.webhdfs("PUT", "orders.csv", data=ORDERS, op="CREATE")
        bench.connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster", **(extra or {})}}
        bench.env = {**self.hadoop.env, **bench.env}
        conf = {
            **spark_properties(self.spark.binaries / "python"),
            "spark.yarn.stagingDir": f"{self.hadoop.hdfs}/staging",
            **(conf or {}),
        }
        killing = threading.Thread(target=self._kill) if program == "killed" else None
        if killing is not None:
            killing.start()
        given = {"lineage_dir": None, **others}
        outcome = self.spark.run(PROGRAM, f"{hdfs}/orders.csv", hdfs, program, *arguments, conf=conf, **given)
        if killing is not None:
            killing.join()
        return outcome

    def webhdfs(self, method: str, name: str, data: str | None = None, **parameters: str) -> requests.Response:
        """Ask HDFS for something in the directory of the test."""
        url = f"{self.hadoop.webhdfs_url}/webhdfs/v1{self.directory}/{name}"
        asked = {"user.name": self.hadoop.user, "overwrite": "true", **parameters}
        return requests.request(method, url, params=asked, data=data, timeout=20)

    def _kill(self) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self.webhdfs("GET", "never/_temporary", op="GETFILESTATUS").ok:
            if time.monotonic() > deadline:
                return
            time.sleep(0.3)
        time.sleep(1)
        for application_id in self.hadoop.running():
            self.hadoop.kill(application_id)


def judged(directory: str, program: str, outcome: Outcome) -> tuple[str, str]:
    """Return whether an event is whole, counts what is missing, or is wrong; and what it says."""
    expected, state = TRUTH[program]
    if outcome.lineage is None:
        return "wrong", "no event"
    facets = outcome.lineage["run_facets"]

    def name(dataset: dict[str, Any]) -> str:
        return str(dataset["name"].removeprefix(f"{directory}/"))

    def rows(dataset: dict[str, Any]) -> Any:
        return dataset.get("outputFacets", {}).get("outputStatistics", {}).get("rowCount")

    inputs = [name(one) for one in outcome.lineage["inputs"]]
    outputs = {name(one): rows(one) for one in outcome.lineage["outputs"]}
    attempted = [name(one) for one in facets.get("sparkLineage_attemptedOutputs", {"outputs": []})["outputs"]]
    collection = facets.get("sparkLineage_collection", {})
    counted = [
        *collection.get("setAside", {}),
        *(facets.keys() & COUNTS),
        *(["none"] if "missing" in collection else []),
    ]
    ended = facets["sparkLineage_status"]["state"]
    seen = (
        f"{ended}: {inputs} -> {outputs}, attempted {attempted}, counted {counted}, {collection.get('collectedFrom')}"
    )
    is_true = outputs.items() <= expected.items() and inputs in ([], ["orders.csv"]) and ended == state
    if not is_true or set(attempted) & set(expected):
        return "wrong", seen
    if outputs == expected and inputs:
        return "whole", seen
    return "counted" if counted else "wrong", seen


@pytest.fixture
def apart(hadoop: Hadoop, worker: Laboratory, fast_spark: FastSpark, tmp_path: Path) -> Apart:
    """One test's place."""
    return Apart(hadoop, RealSpark(Bench(worker, tmp_path), fast_spark))


def run_row(apart: Apart, row: str, program: str, *arguments: str, **others: Any) -> tuple[str, str]:
    """Run a program as a row of the matrix, and return what came of it."""
    return noted(apart.directory, row, program, lambda: apart.run(program, *arguments, **others))


def noted(directory: str, row: str, program: str, run: Callable[[], Outcome]) -> tuple[str, str]:
    """Return what came of a run, which is added to the figures."""
    started = time.monotonic()
    outcome = run()
    verdict = judged(directory, program, outcome)
    if file := os.environ.get("SPARK_LINEAGE_CLUSTER_FIGURES"):
        with Path(file).open("a") as stream:
            stream.write(json.dumps([row, program, round(time.monotonic() - started, 1), *verdict]) + "\n")
    assert verdict[0] != "wrong", f"{verdict}\n{outcome.printed}"
    return verdict


@pytest.mark.parametrize(
    "program", ["fails", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("chain", "killed", "queries"))]
)
@pytest.mark.parametrize("number", RUNS)
def test_yarn_with_the_defaults_gives_the_whole_lineage(apart: Apart, program: str, number: int) -> None:
    verdict = run_row(apart, "defaults", program)
    assert verdict[0] == "whole", f"{number}: {verdict}"


LOGGING = """
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${{sys:spark.yarn.app.container.log.dir}}/spark.log
appender.file.filePattern = ${{sys:spark.yarn.app.container.log.dir}}/spark-%i.log
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 20KB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""


@pytest.mark.nightly
@pytest.mark.parametrize("row", ["setLogLevel", "log4j2 WARN", "rolling log", "declares", "attempts"])
@pytest.mark.parametrize("number", RUNS)
def test_yarn_row_of_the_matrix_is_whole(apart: Apart, tmp_path: Path, row: str, number: int) -> None:
    conf, arguments = {}, ["WARN"] if row == "setLogLevel" else []
    if row in {"log4j2 WARN", "rolling log"}:
        file = tmp_path / "log4j2.properties"
        file.write_text(LOGGING.format(level="warn" if row == "log4j2 WARN" else "info"))
        options = spark_properties("")["spark.driver.extraJavaOptions"]
        conf["spark.driver.extraJavaOptions"] = f"{options} -Dlog4j2.configurationFile={file.as_uri()}"
    if row == "attempts":
        conf["spark.yarn.maxAppAttempts"] = "2"
    program = row if row in {"declares", "attempts"} else "chain"
    verdict = run_row(apart, row, program, *arguments, conf=conf)
    assert verdict[0] == "whole", f"{number}: {verdict}"


@pytest.mark.nightly
@pytest.mark.parametrize("number", RUNS)
def test_yarn_event_log_is_read_where_the_configuration_of_hdfs_says(apart: Apart, number: int) -> None:
    apart.webhdfs("PUT", "logs", op="MKDIRS", permission="1777")
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"{apart.hadoop.hdfs}{apart.directory}/logs"}
    verdict = run_row(apart, "event log on HDFS", "chain", conf=conf, evidence="event_log")
    assert verdict[0] == "whole", f"{number}: {verdict}"


@pytest.mark.nightly
@pytest.mark.parametrize("number", RUNS)
def test_yarn_without_a_readable_log_counts_what_is_missing(apart: Apart, number: int) -> None:
    verdict = run_row(apart, "no readable log", "hides", conf={"spark.log.level": "WARN"})
    assert verdict[0] == "counted", f"{number}: {verdict}"


@pytest.fixture(scope="module")
def aggregating() -> Iterator[Hadoop]:
    """A YARN that moves the logs of an application that has ended to HDFS."""
    with or_skip(hadoop_with_logs(has_log_aggregation=True)) as cluster:
        yield cluster


@pytest.mark.nightly
@pytest.mark.parametrize("number", RUNS)
@pytest.mark.parametrize("program", ["chain", "fails"])
def test_yarn_that_aggregates_logs_gives_or_counts(
    aggregating: Hadoop, worker: Laboratory, fast_spark: FastSpark, tmp_path: Path, program: str, number: int
) -> None:
    apart = Apart(aggregating, RealSpark(Bench(worker, tmp_path), fast_spark))
    run_row(apart, f"log aggregation, {number}".partition(",")[0], program)


@pytest.fixture(scope="module")
def standalone(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A standalone cluster, whose programs find HDFS."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    local = {"PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}
    with standalone_cluster(
        tmp_path_factory.mktemp("standalone"), {**os.environ, **JAVA_ENV, **hadoop.env, **local}
    ) as cluster:
        yield cluster


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["INFO", "WARN"])
@pytest.mark.parametrize("number", RUNS)
def test_standalone_cluster_gives_the_lineage_or_counts_what_its_log_level_hides(
    apart: Apart, standalone: StandaloneCluster, tmp_path: Path, level: str, number: int
) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler is installed (javac is not on the PATH)")
    program = compiled(PROGRAM.with_name("Counts.java"), tmp_path)
    apart.webhdfs("PUT", "orders.csv", data="customer,amount\na,1\nb,2\na,3\n", op="CREATE")
    bench, places = (
        apart.spark.bench,
        [f"{apart.hadoop.hdfs}{apart.directory}/{name}" for name in ("orders.csv", "counts")],
    )
    extra = {"deploy-mode": "cluster", "rest-port": standalone.rest_port, "master_ui_url": standalone.ui_url}
    bench.connection = {"conn_type": "spark", "host": standalone.url, "extra": extra}
    bench.env = apart.hadoop.env
    # As a path: the driver is handed none of the worker's own cache.
    jar = next(apart.spark.fast.jar_cache.rglob("openlineage-spark_2.13-*.jar"))
    given = {"java_class": "Counts", "openlineage_jar": str(jar), "lineage_dir": None, "application": str(program)}
    conf = {**spark_properties(apart.spark.binaries / "python"), **SMALL, "spark.log.level": level}
    verdict, seen = noted(
        apart.directory, f"standalone {level}", "counts", lambda: apart.spark.run(program, *places, conf=conf, **given)
    )
    assert verdict == ("whole" if level == "INFO" else "counted"), f"{number}: {seen}"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("program", "level"), [("chain", "INFO"), ("fails", "INFO"), ("queries", "INFO"), ("chain", "WARN")]
)
@pytest.mark.parametrize("number", RUNS)
def test_kubernetes_gives_the_lineage_or_counts_what_its_log_level_hides(
    kubernetes: Kubernetes,
    worker: Laboratory,
    fast_spark: FastSpark,
    tmp_path: Path,
    program: str,
    level: str,
    number: int,
) -> None:
    spark = RealSpark(Bench(worker, tmp_path), fast_spark)
    bench = spark.bench
    (bench.root / "orders.csv").write_text(ORDERS)
    bench.connection, bench.env = kubernetes.connection("cluster"), {**kubernetes.env, **bench.env}
    image = {"PATH": spark.path, "SPARK_HOME": str(spark.installation().home)}
    kubernetes.image({**os.environ, **fast_spark.env, **image, "PYSPARK_PYTHON": str(spark.binaries / "python")})
    jar = next(fast_spark.jar_cache.rglob("openlineage-spark_2.13-*.jar"))
    given = {"openlineage_jar": f"local://{jar}", "application": f"local://{PROGRAM}", "lineage_dir": None}
    conf = {**kubernetes.properties("cluster"), **SMALL, "spark.log.level": level}
    places = (f"{bench.root}/orders.csv", str(bench.root))
    verdict = noted(
        str(bench.root),
        f"Kubernetes, {level}",
        program,
        lambda: spark.run(PROGRAM, *places, program, conf=conf, **given),
    )
    assert verdict[0] == ("whole" if level == "INFO" else "counted"), f"{number}: {verdict}"
