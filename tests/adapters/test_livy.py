"""How Livy is asked for the end of a batch; ``tests/operators/test_real_livy.py`` has a real one."""

from __future__ import annotations

import json
import socket

import pytest
import requests

from spark_lineage.adapters import livy
from spark_lineage.launch.launch import Launch


def test_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livy, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = {"conn_type": "livy", "host": "127.0.0.1", "port": silent.getsockname()[1]}
        monkeypatch.setenv("AIRFLOW_CONN_LIVY", json.dumps(connection))
        with pytest.raises(requests.ReadTimeout):
            livy.LivyAdapter.end_of(Launch("", "", conn_id="livy", master="livy:", external_id="1"))
