"""Measures what a DAG file pays for the import of the operator; prints one line a figure, as ``pairs.py`` does.

The DAG processor imports every DAG file over and over, each in a process of its own.

- ``import_vs_stock``, ``import_vs_stock_cpu``: time of importing ``LineageSparkSubmitOperator``, divided by that of the
  stock ``SparkSubmitOperator``, each in a fresh interpreter that has imported ``DAG`` before (goal: at most 1.05)
- ``modules_beyond_stock``: how many modules the first imports that the second does not; no ratio
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

from pairs import Taken, by_turns, parser

OPERATORS = {
    "stock": "airflow.providers.apache.spark.operators.spark_submit",
    "ours": "spark_lineage.operators.lineage_spark_submit",
}
PROGRAM = """
import importlib, json, sys, time
from airflow.providers.common.compat.sdk import DAG
began, cpu = time.perf_counter(), time.process_time()
importlib.import_module(sys.argv[1])
took = {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu}
print(json.dumps(took | {"modules": len(sys.modules)}))
"""


def imported(module: str) -> Taken:
    """Import a module in a fresh interpreter; give its seconds, and how many modules there are then."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, module], capture_output=True, text=True, check=True)
    taken: Taken = json.loads(done.stdout.splitlines()[-1])
    return taken


def main() -> None:
    """Print the figures."""
    asked = parser(__doc__, rounds=10).parse_args()
    found = by_turns({name: partial(imported, module) for name, module in OPERATORS.items()}, asked)
    found.compare("import_vs_stock", "ours", "stock")
    print(f"modules_beyond_stock {found.rounds[0]['ours']['modules'] - found.rounds[0]['stock']['modules']:.0f}")
    found.show_numbers()


if __name__ == "__main__":
    main()
