"""Earlier tries that the next one finds open, where a server keeps it waiting for longer than the task waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pytest
from airflow.sdk.execution_time.comms import SetTaskStateStore
from http_server import Handler, serving
from msgspec import structs

from spark_lineage.launch.directory import create_private, launch_directory
from spark_lineage.launch.launch import STORE_KEY, Launch, store_launch
from spark_lineage.launch.stores import claim
from spark_lineage.recover import closing

TASK = {"dag_id": "shop", "run_id": "r1", "task_id": "load", "map_index": -1}


class Accessor:
    """``context["task_state_store"]``, as Airflow's."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.asked = 0

    def get(self, key: str) -> Any:
        self.asked += 1
        return self.values.get(key)

    def set(self, key: str, value: Any) -> None:
        # Airflow's own message to the supervisor, which refuses what JSON has not.
        self.values[key] = SetTaskStateStore(ti_id=UUID(int=0), key=key, value=value, expires_at=None).value


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A History Server that answers when it is told to."""
    is_answering, asked = threading.Event(), threading.Event()

    class Slow(Handler):
        def do_GET(self) -> None:
            asked.set()
            is_answering.wait(30)
            self.answer(status=404)

    monkeypatch.setattr(closing, "_WAIT_SECONDS", 0.5)
    with serving(Slow) as url:
        spark = {"conn_type": "spark", "host": "local", "extra": {"history_server_url": url}}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_SLOW", json.dumps(spark))
        try:
            yield is_answering
            assert asked.is_set()
        finally:
            is_answering.set()


def launch_of_first_try(root: Path, store: Accessor, *, is_shared: bool = True) -> Launch:
    directory = launch_directory(root, **TASK, try_number=1, application_run_id="application")
    if is_shared:
        create_private(directory)
    launch = Launch(
        str(directory),
        "application",
        conn_id="spark_slow",
        master="local[2]",
        try_number=1,
        run_id="run",
        host="worker-7",
        application_id="local-1",
    )
    store_launch(store, launch)
    return launch


def begin_second_try(store: Accessor) -> threading.Thread:
    """Have the next try close the first, and give what still does."""
    context = dict.fromkeys(("dag_run", "dag", "task")) | {"task_state_store": store}
    closing.close_earlier(SimpleNamespace(**TASK, try_number=2, get_template_context=lambda: context))
    (thread,) = [one for one in threading.enumerate() if one.name == "spark-lineage-earlier-try"]
    return thread


def test_what_the_task_does_not_wait_for_is_left_to_others_as_long_as_nothing_is_sent(
    tmp_path: Path, slow: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    launch = launch_of_first_try(tmp_path, store := Accessor())
    caplog.set_level("INFO")
    thread = begin_second_try(store)
    assert claim(launch, None), "a server may tell the end, if this process is over before it could"
    slow.set()
    thread.join(30)
    assert not thread.is_alive()
    assert "Another process sends the end" in caplog.text


def test_the_place_of_the_next_launch_is_not_touched_once_the_task_goes_on(
    tmp_path: Path, slow: threading.Event
) -> None:
    launch = launch_of_first_try(tmp_path, store := Accessor(), is_shared=False)
    thread = begin_second_try(store)
    asked = store.asked
    slow.set()
    thread.join(30)
    assert not thread.is_alive()
    assert store.asked == asked
    assert msgspec.convert(store.values[STORE_KEY], Launch) == launch


def test_a_try_that_was_sent_to_connections_is_closed(tmp_path: Path) -> None:
    store = Accessor()
    launch = launch_of_first_try(tmp_path, store, is_shared=False)
    store_launch(store, structs.replace(launch, event_conn_ids=("marquez", "data_rentgen")))

    context = {"task_state_store": store}
    closing.close_own(SimpleNamespace(**TASK, try_number=1, get_template_context=lambda: context))

    assert store.values[STORE_KEY]["is_closed"] is True
    assert store.values[STORE_KEY]["event_conn_ids"] == ["marquez", "data_rentgen"]
