"""How Livy is asked for the end of a batch; ``tests/operators/test_real_livy.py`` has a real one."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from spark_lineage.adapters import livy
from spark_lineage.launch.launch import Launch


def batch(monkeypatch: pytest.MonkeyPatch, url: str) -> Launch:
    parts = urlsplit(url)
    connection = {"conn_type": "livy", "host": parts.hostname, "port": parts.port}
    monkeypatch.setenv("AIRFLOW_CONN_LIVY", json.dumps(connection))
    return Launch("", "", conn_id="livy", master="livy:", external_id="1")


def test_end_of_a_batch_says_why_it_failed(monkeypatch: pytest.MonkeyPatch, server: Callable[[Any], str]) -> None:
    log = ["Traceback (most recent call last):", '  File "a.py", line 1, in <module>', "ValueError: no more"]
    found = {"id": 1, "state": "dead", "appId": "application_1_0001"}
    answers = {"/batches/1": (200, found), "*": (200, {"log": log})}
    end = livy.LivyAdapter.end_of(batch(monkeypatch, server(answers)))

    assert end is not None
    assert end.status == "FAILED"
    assert "ValueError: no more" in end.detail
    assert end.application_id == "application_1_0001"


def test_batch_that_no_server_takes_has_one_cause(bench: Any) -> None:
    bench.operator, bench.application = "lineage_livy:LineageLivyOperator", {}
    bench.env["AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR"] = str(bench.root)
    outcome = bench.run(file="a.py", livy_conn_id="missing", polling_interval=1)

    assert outcome.error is not None
    assert "missing" in outcome.error
    assert "No lineage came from the driver" not in outcome.printed


@pytest.mark.parametrize("operator", ["OwnLivy", "OwnLineageLivy"])
def test_hook_of_a_subclass_that_makes_one_each_time_is_the_one_that_submits(
    bench: Any, server: Callable[[Any], str], operator: str
) -> None:
    bench.operator, bench.application, bench.is_by_policy = f"own_livy:{operator}", {}, True
    parts = urlsplit(
        server({"/batches": (201, {"id": 1}), "/batches/1": (200, {"id": 1, "state": "running", "appId": None})})
    )
    connection = {"conn_type": "livy", "host": parts.hostname, "port": parts.port}
    bench.env |= {
        "AIRFLOW_CONN_LIVY": json.dumps(connection),
        "AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": str(bench.root),
    }
    outcome = bench.run(file="a.py", livy_conn_id="livy")

    assert outcome.error is None, outcome.printed
    assert "spark.eventLog.enabled" in outcome.printed


def test_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livy, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        launch = batch(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(requests.ReadTimeout):
            livy.LivyAdapter.end_of(launch)
