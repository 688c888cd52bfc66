"""Asks several servers of which one is in charge: masters, ResourceManagers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from spark_lineage.watch.rest import NoAnswerError

Answer = TypeVar("Answer")


def first_answer(urls: Iterable[str], ask: Callable[[str], Answer]) -> Answer:
    """Return the first answer that can be used; the others stand by, or are gone.

    :param ask: asks one server, and raises ``NoAnswerError`` for an answer of one that is not in charge
    :raises NoAnswerError: when no server has such an answer; the text says what each of them did
    """
    words: list[str] = []
    for url in urls:
        try:
            return ask(url)
        except NoAnswerError as error:
            words.append(str(error))
    raise NoAnswerError("; ".join(words) or "there is no address to ask")
