"""The plugin, which each process of Airflow imports: it is light, quiet, and never in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys, time, types
import airflow.providers.common.compat.sdk as sdk
sdk.hookimpl, sdk.AirflowPlugin
before, started = set(sys.modules), time.process_time()
from spark_lineage.listeners.plugin import SparkLineagePlugin
seconds, added = time.process_time() - started, sorted(set(sys.modules) - before)

import threading
from airflow.listeners.listener import get_listener_manager
manager = get_listener_manager()
(listener,) = SparkLineagePlugin.listeners
registered = [one for one in manager.pm.get_plugins() if type(one) is type(listener)]

hook = types.SimpleNamespace(**{name: getattr(listener, name) for name in dir(listener) if name.startswith("on_")})
others = types.SimpleNamespace(try_number=2, task=object())
hook.on_task_instance_running(previous_state=None, task_instance=others)
hook.on_task_instance_success(previous_state=None, task_instance=others)
threads_without_work = threading.active_count()
for broken in (object(), None):
    hook.on_task_instance_running(previous_state=None, task_instance=broken)
    hook.on_task_instance_success(previous_state=None, task_instance=broken)
    hook.on_task_instance_failed(previous_state=None, task_instance=broken, error=RuntimeError("x"))
    hook.on_task_instance_skipped(previous_state=None, task_instance=broken)
    hook.on_dag_run_success(dag_run=broken, msg="")
    hook.on_dag_run_failed(dag_run=broken, msg="")
row = types.SimpleNamespace(_sa_instance_state=1, dag_id="d", run_id="r", task_id="t", map_index=None, try_number=1)
begun = time.monotonic()
for _ in range(1000):
    hook.on_task_instance_failed(previous_state=None, task_instance=row, error=None)
threads = sorted(each.name for each in threading.enumerate() if each.daemon)
for _ in range(2):
    hook.on_dag_run_running(dag_run=object(), msg="")
told = {
    "seconds": seconds,
    "added": added,
    "registered": len(registered),
    "threads_without_work": threads_without_work,
    "seconds_of_a_call": (time.monotonic() - begun) / 1000,
    "threads": threads,
    "threads_of_a_scheduler": sorted(each.name for each in threading.enumerate() if each.daemon),
}
print("TOLD" + json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    roots = [str(ROOT / root) for root in ("provider", "operators", "listeners")]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(roots),
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
    }
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("TOLD")]
    seen: dict[str, Any] = json.loads(line.removeprefix("TOLD"))
    return seen


def test_its_import_brings_only_itself(told: dict[str, Any]) -> None:
    assert [name for name in told["added"] if not name.startswith("spark_lineage")] == []
    assert told["seconds"] < 0.1


def test_airflow_finds_it(told: dict[str, Any]) -> None:
    assert told["registered"] == 1


def test_tasks_of_others_are_left_alone(told: dict[str, Any]) -> None:
    assert told["threads_without_work"] == 1


def test_a_hook_takes_no_time(told: dict[str, Any]) -> None:
    assert told["seconds_of_a_call"] < 0.001
    assert told["threads"] == ["spark-lineage-backlog"]


def test_a_scheduler_sweeps(told: dict[str, Any]) -> None:
    assert told["threads_of_a_scheduler"] == ["spark-lineage-backlog", "spark-lineage-sweep"]
