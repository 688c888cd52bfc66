"""Runs one operator in the laboratory, and records what it does outside of itself: processes, requests, calls, end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any

from laboratory import _MOMENT, Store, _task_instance

# Whatever is called of these counts, with the order.
WATCHED = ("airflow.providers.apache.spark.", "airflow.sdk.bases.hook", "airflow.sdk.bases.resumablejobmixin")

# In place of the ten or twenty that the Spark provider waits between two polls.
_PAUSE_SECONDS = 0.02


def record(done: dict[str, Any], kill: Callable[[], object] | None) -> None:
    """Have all that follows recorded: in ``processes``, ``requests`` and ``calls``.

    :param kill: called once, when the output of the first process has been read
    """
    kills = [] if kill is None else [kill]
    from urllib3.connectionpool import HTTPConnectionPool

    start, wait, send = subprocess.Popen.__init__, subprocess.Popen.wait, HTTPConnectionPool.urlopen

    def started(self: Any, args: Any, *others: Any, **keywords: Any) -> None:
        env = keywords.get("env") or dict(os.environ)
        done["processes"].append([args, sorted(env.items()), sorted(set(keywords) - {"env"})])
        start(self, args, *others, **keywords)

    def waited(self: Any, *arguments: Any, **keywords: Any) -> int:
        if kills:
            kills.pop()()
        return wait(self, *arguments, **keywords)

    def sent(self: Any, method: str, url: str, body: Any = None, headers: Any = None, **keywords: Any) -> Any:
        told = sorted((key, str(value)) for key, value in dict(headers or {}).items())
        done["requests"].append([method, f"{self.host}:{self.port}{url}", str(body), told, str(keywords["timeout"])])
        return send(self, method, url, body, headers, **keywords)

    def called(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith(WATCHED):
            done["calls"].append(f"{module}.{frame.f_code.co_qualname}")

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    subprocess.Popen.wait = waited  # type: ignore[method-assign]
    HTTPConnectionPool.urlopen = sent  # type: ignore[method-assign]
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(min(seconds, _PAUSE_SECONDS))
    sys.setprofile(called)


def run(scenario: dict[str, Any]) -> dict[str, Any]:
    """Run one task as far as Airflow calls its operator, with what the OpenLineage provider puts into its events.

    :param scenario: ``class`` is the path of the operator, ``arguments`` are its own, ``store`` is what Airflow's task
        state store holds, ``kills`` whether the task is killed while ``spark-submit`` runs
    """
    from airflow.providers.openlineage.extractors import ExtractorManager
    from airflow.sdk import DAG
    from airflow.utils.state import TaskInstanceState

    module, _, name = scenario["class"].rpartition(".")
    dag = DAG("shop", start_date=_MOMENT, schedule=None)
    operator = getattr(import_module(module), name)(task_id="load", dag=dag, **scenario["arguments"])
    if scenario["is_by_policy"]:
        from spark_lineage.policy import task_policy

        task_policy(operator)
    instance = _task_instance(operator, {})
    store = None if scenario["store"] is None else Store(scenario["store"])
    if store is not None:
        store.log = []
    context: Any = {"ti": instance, "dag_run": instance.dag_run, "dag": dag, "task": operator}
    context["task_state_store"] = store
    done: dict[str, Any] = {"processes": [], "requests": [], "calls": [], "end": "", "returned": None}
    managing, events = ExtractorManager(), []

    def emit(state: TaskInstanceState) -> None:
        event = managing.extract_metadata(instance.dag_run, operator, state, instance)
        events.append([[str(one) for one in (*event.inputs, *event.outputs)], sorted(event.run_facets)])

    record(done, operator.on_kill if scenario["kills"] else None)
    operator.render_template_fields(context)
    emit(TaskInstanceState.RUNNING)
    try:
        done["returned"] = operator.execute(context)
        emit(TaskInstanceState.SUCCESS)
    except BaseException as error:
        done["end"] = f"{type(error).__name__}: {error} {error.args!r}"
        emit(TaskInstanceState.FAILED)
    sys.setprofile(None)
    return done | {"store": store, "conf": operator.conf, "events": events}
