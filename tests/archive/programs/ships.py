"""A driver: calls ``merges.merge`` on executors that were given the package, that were not, and that have one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext, cloudpickle

from spark_lineage.archive import on_executor
from spark_lineage.archive.on_executor import OnExecutor, ship

merges, lines, installed, answer = sys.argv[1:]
told: dict[str, Any] = {}


@contextmanager
def application(**conf: str) -> Iterator[SparkContext]:
    """A Spark application."""
    context = SparkContext(conf=SparkConf().setAll(list(conf.items())))
    context.addPyFile(merges)
    try:
        yield context
    finally:
        context.stop()


def has_package(_: Any) -> list[bool]:
    """Say what this Python can import by itself."""
    from importlib.util import find_spec

    return [find_spec("spark_lineage") is not None, find_spec("msgspec") is not None]


def called(context: SparkContext, *, is_installed: bool = True) -> Any:
    """Return what the call gives, or the text of its error."""
    call = OnExecutor("merges:merge", {"job_name": "dag.task"})
    if not is_installed:
        call._version = None
    try:
        return context.textFile(lines, 1).mapPartitions(call).collect()
    except Exception as error:
        return str(error)


with application() as context:
    told["bare has"] = context.parallelize([0], 1).mapPartitions(has_package).collect()
    # As ship does, which would ship, too.
    cloudpickle.register_pickle_by_value(on_executor)
    told["not shipped"] = called(context)
    ship(context)
    ship(context)
    told["shipped"] = called(context)
    told["archives"] = sorted(context.listArchives)
# Each call in a Python that has not imported anything yet, and that only a property names.
conf = {
    "spark.executorEnv.PYTHONPATH": installed,
    "spark.pyspark.python": os.environ["PYSPARK_PYTHON"],
    "spark.python.worker.reuse": "false",
}
os.environ["PYSPARK_PYTHON"] = "/nowhere/python"
with application(**conf) as context:
    ship(context)
    told["installed has"] = context.parallelize([0], 1).mapPartitions(has_package).collect()
    told["the same version"] = called(context)
    told["another version"] = called(context, is_installed=False)
Path(answer).write_text(json.dumps(told))
