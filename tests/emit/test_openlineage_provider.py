"""What the OpenLineage provider lets leave of a task, also a provider that has no emission policy."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.emit import task_event

pytestmark = pytest.mark.oldest

PROGRAM = """
import json
from types import SimpleNamespace
from airflow.providers.openlineage.utils.selective_enable import enable_lineage
from spark_lineage.emit.task_event import emission, transport_text
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

tasks = [LineageSparkSubmitOperator(task_id=name, application="load.py") for name in ("plain", "enabled")]
enable_lineage(tasks[1])
print(json.dumps([transport_text(), *(emission(task, "orders", task.task_id) for task in tasks)]))
"""
MAPPED = """
import json
from datetime import datetime
from airflow.providers.common.compat.sdk import DAG
try:
    from airflow.serialization.serialized_objects import DagSerialization as Serialization
except ImportError:
    from airflow.serialization.serialized_objects import SerializedDAG as Serialization
from spark_lineage.emit.task_event import AirflowTry, job_texts
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

with DAG("orders", start_date=datetime(2024, 1, 1), schedule=None, doc_md="All orders.") as dag:
    LineageSparkSubmitOperator.partial(task_id="mapped", owner="ann").expand(application=["a.py", "b.py"])
stored = Serialization.from_dict(Serialization.to_dict(dag))
print(json.dumps(job_texts(AirflowTry(None, None, stored, stored.get_task("mapped"))), default=list))
"""
CONSOLE = {"TRANSPORT": '{"type": "console"}'}
CONSOLE_WORDS = "the transport console"
OPERATOR = "spark_lineage.operators.lineage_spark_submit.LineageSparkSubmitOperator"


@pytest.mark.airflow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["", [True, True], [True, True]]),
        (CONSOLE, [CONSOLE_WORDS, [True, True], [True, True]]),
        (CONSOLE | {"DISABLED_FOR_OPERATORS": OPERATOR}, [CONSOLE_WORDS, [False, True], [False, True]]),
        ({"TRANSPORT": '{"conn_id": "marquez"}'}, ["the connection marquez", [True, True], [True, True]]),
        (CONSOLE | {"SELECTIVE_ENABLE": "True"}, [CONSOLE_WORDS, [False, True], [True, True]]),
    ],
)
def test_what_leaves(options: dict[str, str], expected: list[object], tmp_path: Path, warm_python: Any) -> None:
    env = {f"AIRFLOW__OPENLINEAGE__{name}": value for name, value in options.items()}
    assert printed(PROGRAM, env, tmp_path, warm_python) == expected


@pytest.mark.airflow
def test_mapped_task_of_the_database_has_owner_and_documentation(tmp_path: Path, warm_python: Any) -> None:
    texts = printed(MAPPED, {}, tmp_path, warm_python)
    assert texts == {"owners": ["ann"], "tags": [], "description": "All orders."}


def printed(program: str, settings: dict[str, str], home: Path, warm_python: Any) -> Any:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE"))} | settings
    env |= {"AIRFLOW_HOME": str(home), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = warm_python.run("-c", program, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_nothing_is_sent_where_it_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_event, "is_active", lambda: False)
    assert task_event.send(None) is False  # type: ignore[arg-type]
