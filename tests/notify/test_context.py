"""What a listener is given: of Airflow's own context, and without secrets."""

from __future__ import annotations

import logging
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from spark_lineage.notify.context import listener_context
from spark_lineage.notify.events import TaskRun

if TYPE_CHECKING:
    import pytest

log = logging.getLogger("task")


def airflow_context(**changes: Any) -> Any:
    ti = SimpleNamespace(dag_id="orders", task_id="load", run_id="manual__1", map_index=None, try_number=2)
    return {"ti": ti, **changes}


def test_it_is_made_from_that_of_airflow() -> None:
    configuration = {"spark.app.name": "orders", "spark.ssl.keyPassword": "hunter2"}
    context = listener_context(airflow_context(), configuration=configuration, options={"a": "b"}, logger=log)
    assert context.task == TaskRun("orders", "load", "manual__1", -1, 2)
    assert context.configuration == {"spark.app.name": "orders", "spark.ssl.keyPassword": "***"}
    assert (context.options, context.logger) == ({"a": "b"}, log)


def test_a_mapped_task_keeps_its_index() -> None:
    context = airflow_context()
    context["ti"].map_index = 0
    assert listener_context(context, configuration={}, options={}, logger=log).task.map_index == 0


class Backend:
    """What Airflow sends its metrics to, with the signatures of its ``StatsLogger``."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def incr(self, stat: str, count: int = 1, rate: float = 1, *, tags: Any = None) -> None:
        self.told.append((stat, count, tags))

    def gauge(self, stat: str, value: float, rate: float = 1, delta: bool = False, *, tags: Any = None) -> None:
        self.told.append((stat, value, tags))

    def timing(self, stat: str, dt: Any, *, tags: Any = None) -> None:
        self.told.append((stat, dt, tags))


def test_metrics_are_those_of_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk._shared.observability.metrics import stats

    backend = Backend()
    monkeypatch.setattr(stats, "_backend", backend)
    metrics = listener_context(airflow_context(), configuration={}, options={}, logger=log).metrics
    metrics.incr("spark_lineage.a")
    metrics.incr("spark_lineage.b", 3, tags={"dag_id": "orders"})
    metrics.gauge("spark_lineage.c", 7)
    metrics.timing("spark_lineage.d", timedelta(seconds=1.5))
    assert backend.told == [
        ("spark_lineage.a", 1, None),
        ("spark_lineage.b", 3, {"dag_id": "orders"}),
        ("spark_lineage.c", 7, None),
        ("spark_lineage.d", timedelta(seconds=1.5), None),
    ]
