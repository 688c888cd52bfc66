"""A driver on a real standalone cluster that shares no directory with the worker sends its events over HTTP."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fast_spark import JAVA_ENV
from standalone_cluster import SMALL, compiled, standalone_cluster

if TYPE_CHECKING:
    from real_spark import RealSpark

PROGRAM = Path(__file__).parent / "programs" / "SlowCopy.java"

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java compiler is installed (javac is not on the PATH)")
@pytest.mark.skipif(not Path("/usr/bin/curl").exists(), reason="the Spark provider asks for the state by /usr/bin/curl")
def test_the_lineage_of_a_cluster_comes_to_the_task(real_spark: RealSpark, tmp_path: Path) -> None:
    orders, copy, released = (tmp_path / name for name in ("orders.csv", "copy", "released"))
    orders.write_text("order_id,amount\n1,10\n")
    released.touch()
    folder = tmp_path / "cluster"
    folder.mkdir()
    env = {**JAVA_ENV, "PATH": real_spark.path, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}
    listener = next(real_spark.fast.jar_cache.rglob("openlineage-spark_2.13-*.jar"))
    with standalone_cluster(folder, env, cores=2, memory="2g") as cluster:
        extra = {"deploy-mode": "cluster", "rest-port": cluster.rest_port, "receiver_host": "127.0.0.1"}
        real_spark.bench.connection = {"conn_type": "spark", "host": cluster.url, "extra": extra}
        outcome = real_spark.run(
            compiled(PROGRAM, tmp_path),
            orders,
            copy,
            released,
            java_class="SlowCopy",
            driver_memory="512m",
            conf=SMALL,
            openlineage_jar=str(listener),
            evidence="listener",
            collect="receiver",
            status_poll_interval=1,
            lineage_required=True,
        )
    assert outcome.error is None, outcome.printed
    assert (outcome.names("inputs"), outcome.names("outputs")) == ([str(orders)], [str(copy)])
    collection = outcome.lineage["run_facets"]["sparkLineage_collection"]
    assert (collection["collectedFrom"], collection["setAside"]) == (["receiver"], {})
