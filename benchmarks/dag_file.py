"""Measures what a DAG file pays for the import of the operator; prints one line a figure, ``name ratio``.

The DAG processor imports every DAG file over and over, each in a process of its own.

- ``import_vs_stock``: CPU time of importing ``LineageSparkSubmitOperator``, divided by that of the stock
  ``SparkSubmitOperator``, each in a fresh interpreter that has imported ``DAG`` before (goal: at most 1.05)
- ``modules_beyond_stock``: how many modules the first imports that the second does not; no ratio

The two are run in turn, each round beginning with the other one. The ratio is the median of the rounds'; the one of the
minima follows it as ``…_min``. The numbers behind them come in lines that begin with ``#``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from operator import truediv

OPERATORS = {
    "stock": "airflow.providers.apache.spark.operators.spark_submit",
    "ours": "spark_lineage.operators.lineage_spark_submit",
}
PROGRAM = """
import importlib, json, sys, time
from airflow.providers.common.compat.sdk import DAG
began = time.process_time()
importlib.import_module(sys.argv[1])
print(json.dumps([time.process_time() - began, len(sys.modules)]))
"""


def imported(module: str) -> tuple[float, int]:
    """Import a module in a fresh interpreter; give its CPU seconds, and how many modules there are then."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, module], capture_output=True, text=True, check=True)
    seconds, modules = json.loads(done.stdout.splitlines()[-1])
    return seconds, modules


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    print(f"# load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    # The first imports write the compiled modules.
    modules = {name: imported(module)[1] for name, module in OPERATORS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in OPERATORS}
    for number in range(rounds):
        for name in sorted(OPERATORS, reverse=bool(number % 2)):
            seconds[name].append(imported(OPERATORS[name])[0])
    ours, stock = seconds["ours"], seconds["stock"]
    print(f"import_vs_stock {statistics.median(map(truediv, ours, stock)):.3f}")
    print(f"import_vs_stock_min {min(ours) / min(stock):.3f}")
    print(f"modules_beyond_stock {modules['ours'] - modules['stock']}")
    for name, each in seconds.items():
        print(f"# {name}: {statistics.median(each):.3f} s, min {min(each):.3f}, max {max(each):.3f}")


if __name__ == "__main__":
    main()
