"""Measures what the policy adds to the parsing of a folder of DAGs; prints one line a figure, ``name ratio``.

The folder has fifty DAG files with stock operators, subclasses, mapped tasks and task groups. It is parsed in a fresh
process, in an Airflow of its own, with the policy in ``airflow_local_settings.py`` and without it. A DAG processor
parses each file in a fork of its own.

- ``parse_vs_stock``: CPU time of parsing the folder with the policy, divided by that without it (goal: at most 1.1)
- ``per_file_vs_stock``: the same of ten files, each in a fork, which imports the operators itself (goal: at most 1.1)

The two are run in turn, each round beginning with the other one. The ratio is the median of the rounds'; the one of the
minima follows it as ``…_min``. The numbers behind them come in lines that begin with ``#``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from operator import truediv
from pathlib import Path

LINE = "from spark_lineage.policy import task_policy\n"
DAG = '''
from datetime import datetime
from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import DAG, TaskGroup


class Own(SparkSubmitOperator):
    """As people have them: an argument, a template field, and a method of their own."""

    template_fields = (*SparkSubmitOperator.template_fields, "table")

    def __init__(self, *, table, **kwargs):
        super().__init__(**kwargs)
        self.table = table

    def execute(self, context):
        super().execute(context)
        return self.table

    def on_kill(self):
        super().on_kill()


class Mixin:
    """Comes first among the bases."""

    def execute(self, context):
        return super().execute(context)


class Mixed(Mixin, SparkSubmitOperator):
    pass


class Refusing(SparkSubmitOperator):
    """Has said no."""

    lineage_enabled = False


class Deferring(SparkSubmitOperator):
    """Has an argument that is called as one of ours."""

    def __init__(self, *, deferrable=False, **kwargs):
        super().__init__(**kwargs)


with DAG(
    "orders_{number}",
    start_date=datetime(2024, 1, 1),
    schedule=None,
    tags=["finance" if {number} % 2 else "sandbox"],
    default_args={{"deferrable": True}},
):
    stock = SparkSubmitOperator(task_id="stock", application="a.py", pool="spark" if {number} % 5 else "default_pool")
    own = Own(task_id="own", application="a.py", table="t", conn_id="spark_{number}")
    own_mapped = Own.partial(task_id="own_mapped", application="a.py", pool="spark").expand(table=["t", "u"])
    SparkSubmitOperator.partial(task_id="mapped", conn_id="spark_mapped").expand(application=["a.py", "b.py"])
    with TaskGroup("group"):
        SparkSubmitOperator(task_id="grouped", application="a.py")
        SparkJDBCOperator(task_id="jdbc", cmd_type="spark_to_jdbc", jdbc_table="t", metastore_table="t")
    Mixed(task_id="mixed", application="a.py")
    Mixed.partial(task_id="mixed_mapped").expand(application=["a.py", "b.py"])
    Refusing(task_id="refusing", application="a.py")
    Deferring(task_id="deferring", application="a.py")
    stock >> own >> own_mapped
'''
PROGRAM = """
import os, sys, time
from pathlib import Path
from airflow.dag_processing.dagbag import DagBag
files = sorted(Path(sys.argv[1]).glob("*.py"))[:10] if sys.argv[2] == "per_file" else [sys.argv[1]]
began = sum(os.times()[:4])
for file in files:
    child = 0 if len(files) == 1 else os.fork()
    if child == 0:
        bag = DagBag(file)
        assert not bag.import_errors, bag.import_errors
        if len(files) > 1:
            os._exit(0)
    else:
        assert os.waitpid(child, 0)[1] == 0
print(sum(os.times()[:4]) - began)
"""


def write_dags(folder: Path, count: int) -> None:
    """Write that many DAG files."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"orders_{number}.py").write_text(DAG.format(number=number))


def parsed(home: Path, mode: str) -> float:
    """Parse the folder of a home; return the CPU seconds of all processes, but for the imports of Airflow itself."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")}
    env |= {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    env |= {"AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(home.parent / "dags"), mode]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dags", type=int, default=50)
    arguments = parser.parse_args()
    print(f"# load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write_dags(folder / "dags", arguments.dags)
        homes = {"stock": folder / "stock", "policy": folder / "policy"}
        for name, home in homes.items():
            (home / "config").mkdir(parents=True)
            (home / "config" / "airflow_local_settings.py").write_text(LINE if name == "policy" else "")
        for mode, figure in (("folder", "parse_vs_stock"), ("per_file", "per_file_vs_stock")):
            seconds: dict[str, list[float]] = {name: [] for name in homes}
            for home in homes.values():
                # The first one writes the compiled modules, and the configuration.
                parsed(home, mode)
            for number in range(arguments.rounds):
                for name in sorted(homes, reverse=bool(number % 2)):
                    seconds[name].append(parsed(homes[name], mode))
            ours, stock = seconds["policy"], seconds["stock"]
            print(f"{figure} {statistics.median(map(truediv, ours, stock)):.3f}")
            print(f"{figure}_min {min(ours) / min(stock):.3f}")
            for name, each in seconds.items():
                print(
                    f"# {name}: {statistics.median(each):.2f} s, min {min(each):.2f}, max {max(each):.2f}", flush=True
                )


if __name__ == "__main__":
    main()
