"""When Airflow calls our listener: an earlier try ends before this one begins; all else comes after others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

PRINT_ORDER = """
import json
from airflow.sdk.listener import get_listener_manager

hooks = get_listener_manager().hook
names = ("on_task_instance_running", "on_task_instance_success", "on_task_instance_failed", "on_dag_run_success")
# pluggy calls the last one first.
called = {name: [type(one.plugin).__name__ for one in reversed(getattr(hooks, name).get_hookimpls())] for name in names}
print("called", json.dumps(called))
"""


def test_the_order(tmp_path: Path, warm_python: Any) -> None:
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__OPENLINEAGE__TRANSPORT": '{"type": "console"}'}
    done = warm_python.run("-c", PRINT_ORDER, env=env, cwd=tmp_path)
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("called ")] or [done.stderr]
    called = json.loads(line.removeprefix("called "))
    ours, providers = "AirflowListener", "OpenLineageListener"
    assert {name: order.index(ours) < order.index(providers) for name, order in called.items()} == {
        "on_task_instance_running": True,
        "on_task_instance_success": False,
        "on_task_instance_failed": False,
        "on_dag_run_success": False,
    }
