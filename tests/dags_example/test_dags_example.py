"""The example is parsed by Airflow as it is, and its task carries what the example says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "dags_example"
PARSE = """
import json, runpy, sys
dag = runpy.run_path(sys.argv[1])["dag"]
task = dag.get_task("build_gold")
found = [dag.dag_id, dag.params["lake"], type(task).__name__, task.application, task.application_args]
print("parsed", json.dumps(found))
"""


def test_example_is_parsed(tmp_path: Path) -> None:
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "SPARK_LINEAGE_EXAMPLE_LAKE": "s3a://bucket/lake"}
    command = [sys.executable, "-c", PARSE, str(EXAMPLES / "orders_medallion.py")]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    printed = next(line for line in done.stdout.splitlines() if line.startswith("parsed "))
    dag_id, lake, operator, application, (*sources, rendered) = json.loads(printed.removeprefix("parsed "))
    assert (dag_id, operator) == ("orders_medallion", "LineageSparkSubmitOperator")
    assert lake == "s3a://bucket/lake"
    assert rendered == "{{ params.lake }}"
    assert all(Path(path).is_file() for path in (application, *sources))
