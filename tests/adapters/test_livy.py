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
    answers = {"/batches/1/state": (200, {"state": "dead"}), "*": (200, {"log": log})}
    end = livy.LivyAdapter.end_of(batch(monkeypatch, server(answers)))

    assert end is not None
    assert end.status == "FAILED"
    assert "ValueError: no more" in end.detail


def test_batch_that_no_server_takes_has_one_cause(bench: Any) -> None:
    bench.operator, bench.application = "lineage_livy:LineageLivyOperator", {}
    bench.env["AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR"] = str(bench.root)
    outcome = bench.run(file="a.py", livy_conn_id="missing", polling_interval=1)

    assert outcome.error is not None
    assert "missing" in outcome.error
    assert "No lineage came from the driver" not in outcome.printed


def test_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livy, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        launch = batch(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(requests.ReadTimeout):
            livy.LivyAdapter.end_of(launch)
