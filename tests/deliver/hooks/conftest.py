"""Connections in the environment, and a backend that answers what a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message

import pytest
from http_server import Handler, serving


@dataclass
class Backend:
    """Answers every request alike; ``asked`` are method, path and headers of those that came."""

    url: str
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, Message]] = field(default_factory=list)


@pytest.fixture
def backend() -> Iterator[Backend]:
    class Answers(Handler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            found.asked.append((self.command, self.path, self.headers))
            self.answer(found.body, found.status, found.headers)

        do_POST = do_GET

    with serving(Answers) as url:
        found = Backend(url)
        yield found


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's own proxy is."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def give(conn_id: str, **fields: object) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    return give
