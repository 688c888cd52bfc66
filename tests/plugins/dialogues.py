"""Holds the dialogues of dialects with real servers, and with answers that are given beforehand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from spark_lineage.http_client import HttpClient, NoAnswerError
from spark_lineage.watch.dialect import converse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_lineage.http_client import Request
    from spark_lineage.merge.transition import StatusReport


def polled(source: Any) -> list[StatusReport]:
    """Return what a dialect reports, with the client of its endpoints."""
    client = source.endpoints.client()
    try:
        return list(converse(source.poll(), client.send))
    finally:
        client.close()


def asked(dialogue: Any) -> Any:
    """Return the result of a dialogue with servers that get no credentials."""
    return converse(dialogue, HttpClient(seconds=1).send)


class Canned:
    """Answers by URL without parameters; a number is the status of a refusal. ``requests`` are those that came."""

    def __init__(self, answers: Mapping[str, bytes | int]) -> None:
        self.answers = dict(answers)
        self.requests: list[Request] = []

    def ask(self, request: Request) -> bytes:
        """Answer a request."""
        self.requests.append(request)
        answer = self.answers.get(request.url.partition("?")[0], 404)
        if isinstance(answer, int):
            raise NoAnswerError(f"{request.url} answered HTTP {answer}", answer)
        return answer


def http_connection(
    login: str | None = None, password: str | None = None, host: str | None = None, **extra: Any
) -> Any:
    """Return a connection as Airflow has those of type ``http``."""
    return SimpleNamespace(conn_id="status_http", host=host, login=login, password=password, extra_dejson=extra)
