"""What the adapter of a pipeline runs beside it, without Spark."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from spark_lineage.adapters import spark_pipelines

if TYPE_CHECKING:
    import pytest


def test_session_that_the_user_names_is_that_of_the_pipeline_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(spark_pipelines.subprocess, "Popen", lambda _, env, **__: asked.append(env["SPARK_REMOTE"]))
    monkeypatch.setattr(spark_pipelines.SparkPipelinesAdapter, "_find_log", lambda *_: None)
    ran: list[Any] = []
    hook: Any = SimpleNamespace(log=logging.getLogger(), _process_spark_submit_log=None, _submit_sp=None)
    hook._env_vars = {"SPARK_REMOTE": "sc://host/;user_id=ada;session_id=1"}
    hook.submit_pipeline = lambda: ran.append(hook._env_vars["SPARK_REMOTE"])
    task: Any = SimpleNamespace(
        before_submit=lambda: None, is_killed=lambda: False, guard=lambda *_, **__: nullcontext()
    )
    spark_pipelines.SparkPipelinesAdapter.of(None, hook, task)
    hook.submit_pipeline()

    assert asked == ["sc://host/;user_id=ada"]
    assert ran == ["sc://host/;user_id=ada;session_id=1"]
