"""When Airflow calls our listener: an earlier try ends before this one begins; all else comes after others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PRINT_ORDER = """
import json
from airflow.sdk.listener import get_listener_manager

hooks = get_listener_manager().hook
names = ("on_task_instance_running", "on_task_instance_success", "on_task_instance_failed", "on_dag_run_success")
# pluggy calls the last one first.
called = {name: [type(one.plugin).__name__ for one in reversed(getattr(hooks, name).get_hookimpls())] for name in names}
print("called", json.dumps(called))
"""


def test_the_order(tmp_path: Path) -> None:
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__OPENLINEAGE__TRANSPORT": '{"type": "console"}'}
    command = [sys.executable, "-c", PRINT_ORDER]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("called ")] or [done.stderr]
    called = json.loads(line.removeprefix("called "))
    ours, providers = "AirflowListener", "OpenLineageListener"
    assert {name: order.index(ours) < order.index(providers) for name, order in called.items()} == {
        "on_task_instance_running": True,
        "on_task_instance_success": False,
        "on_task_instance_failed": False,
        "on_dag_run_success": False,
    }
