"""Measures what the policy adds to the parsing of a folder of DAGs; prints one line a figure, as ``pairs.py`` does.

The folder has fifty DAG files with stock operators, subclasses, mapped tasks and task groups. It is parsed in a fresh
process, in an Airflow of its own, with the policy in ``airflow_local_settings.py`` and without it. A DAG processor
parses each file in a fork of its own.

- ``parse_vs_stock``: time of parsing the folder with the policy, divided by that without it (goal: at most 1.1)
- ``per_file_vs_stock``: the same of ten files, each in a fork, which imports the operators itself (goal: at most 1.1)

The time is that of all processes, but for the imports of Airflow itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from pairs import Taken, by_turns, parser

LINE = "from spark_lineage.policy import task_policy\n"
DAG = '''
from datetime import datetime
from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator
from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator
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
    SparkSqlOperator(task_id="sql", sql="SELECT 1", conn_id="spark_sql")
    SparkSqlOperator.partial(task_id="sql_mapped").expand(sql=["SELECT 1", "SELECT 2"])
    Mixed(task_id="mixed", application="a.py")
    Mixed.partial(task_id="mixed_mapped").expand(application=["a.py", "b.py"])
    Refusing(task_id="refusing", application="a.py")
    Deferring(task_id="deferring", application="a.py")
    stock >> own >> own_mapped
'''
PROGRAM = """
import json, os, sys, time
from pathlib import Path
from airflow.dag_processing.dagbag import DagBag
files = sorted(Path(sys.argv[1]).glob("*.py"))[:10] if sys.argv[2] == "per_file" else [sys.argv[1]]
began, cpu = time.perf_counter(), sum(os.times()[:4])
for file in files:
    child = 0 if len(files) == 1 else os.fork()
    if child == 0:
        bag = DagBag(file)
        assert not bag.import_errors, bag.import_errors
        if len(files) > 1:
            os._exit(0)
    else:
        assert os.waitpid(child, 0)[1] == 0
print(json.dumps({"wall": time.perf_counter() - began, "cpu": sum(os.times()[:4]) - cpu}))
"""


def write_dags(folder: Path, count: int) -> None:
    """Write that many DAG files."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"orders_{number}.py").write_text(DAG.format(number=number))


def parsed(home: Path, mode: str) -> Taken:
    """Parse the folder of a home."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")}
    env |= {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    env |= {"AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(home.parent / "dags"), mode]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    taken: Taken = json.loads(done.stdout.splitlines()[-1])
    return taken


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=6)
    asking.add_argument("--dags", type=int, default=50)
    asked = asking.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write_dags(folder / "dags", asked.dags)
        homes = {"stock": folder / "stock", "policy": folder / "policy"}
        for name, home in homes.items():
            (home / "config").mkdir(parents=True)
            (home / "config" / "airflow_local_settings.py").write_text(LINE if name == "policy" else "")
        modes = ("parse", "per_file")
        runs = {f"{mode}_{name}": partial(parsed, home, mode) for mode in modes for name, home in homes.items()}
        found = by_turns(runs, asked)
    for mode in modes:
        found.compare(f"{mode}_vs_stock", f"{mode}_policy", f"{mode}_stock")
    found.show_numbers()


if __name__ == "__main__":
    main()
