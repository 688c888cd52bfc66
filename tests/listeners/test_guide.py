"""The listeners that the guide writes do what it says, found by their class paths."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from spark_lineage.listeners.listener import TaskListener
from spark_lineage.merge.lineage import CatalogChange, DatasetLineage, TaskLineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.job_events import JobEvents
from spark_lineage.notify.notifications import Notifications
from spark_lineage.settings import Settings

GUIDE = Path(__file__).parents[2] / "docs" / "listeners.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
log = logging.getLogger("task")
# The constructor needs more than the context, so a function makes it.
DROPS = """
from spark_lineage.listeners.listener import CatalogModificationEvent, Event, ListenerContext, TaskListener


class DropListener(TaskListener):
    def __init__(self, context: ListenerContext, database: str) -> None:
        super().__init__(context)
        self.database = database

    def on_event(self, event: Event) -> None:
        if not isinstance(event, CatalogModificationEvent) or event.is_ignored:
            return
        if (event.change, event.object_type, event.database) == ("DROP", "TABLE", self.database):
            self.context.logger.warning("%s has dropped %s", event.task.task_id, event.name)


def drop_listener(context: ListenerContext) -> DropListener:
    return DropListener(context, database=context.options.get("drop_listener_database", "gold"))
"""


def block(defined: str) -> str:
    (found,) = [text for text in BLOCKS if f"class {defined}(" in text]
    return found


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    package = tmp_path / "our_guide_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "chat.py").write_text(block("ChatListener"))
    (package / "drops.py").write_text(DROPS)
    monkeypatch.syspath_prepend(tmp_path)
    return package.name


@pytest.fixture
def chat() -> Iterator[tuple[str, list[str]]]:
    """A chat, and what was said in it."""
    said: list[str] = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Chat)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", said
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_first_has_twenty_lines() -> None:
    assert len(block("ChatListener").rstrip().splitlines()) <= 20


def test_a_chat_is_told_of_failures(
    package: str, context: ListenerContext, job_events: JobEvents, chat: tuple[str, list[str]]
) -> None:
    url, said = chat
    settings = Settings(lineage_listeners=(f"{package}.chat.ChatListener",), lineage_timeout=720)
    options = {"chat_listener_url": url}
    notifications = Notifications(msgspec.structs.replace(context, options=options), job_events, settings)
    lineage = TaskLineage("FAIL", outputs=(DatasetLineage(DatasetName("file", "/wh/t")),))
    notifications.put(job_events.created({}))
    notifications.put(job_events.ended("FAIL", lineage, exception="no space"))
    notifications.put(job_events.ended("FAIL", None, exception="no Spark"))
    notifications.put(job_events.ended("COMPLETE", lineage))
    (counts,) = notifications.close()
    assert counts.delivered == 4
    assert said == [
        "orders.load failed (no space) and had written: /wh/t",
        "orders.load failed (no Spark) and had written: nothing",
    ]


def test_a_factory_is_found(
    package: str, context: ListenerContext, job_events: JobEvents, logged: pytest.LogCaptureFixture
) -> None:
    changes = tuple(
        CatalogChange("DROP", "TABLE", DatasetName("file", f"/wh/{name}"), name, NOON, is_ignored=is_ignored)
        for name, is_ignored in (("gold.t", False), ("gold.u", True), ("silver.t", False))
    )
    settings = Settings(lineage_listeners=(f"{package}.drops.drop_listener",), lineage_timeout=720)
    notifications = Notifications(context, job_events, settings)
    for event in job_events.catalog(TaskLineage("COMPLETE", catalog_changes=changes)):
        notifications.put(event)
    (counts,) = notifications.close()
    assert counts.delivered == 3
    assert [record.getMessage() for record in logged.records] == ["load has dropped gold.t"]


def test_what_the_guide_leaves_out_is_optional(package: str, context: ListenerContext) -> None:
    drops = import_module(f"{package}.drops")
    assert drops.drop_listener(context).close() is None
    assert issubclass(drops.DropListener, TaskListener)
