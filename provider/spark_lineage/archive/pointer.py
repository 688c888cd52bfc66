"""The file that says which version of each day is the output: it is replaced at once, and all else follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

EVENTS = "events"
"""The name of what is beside the tables, as lines of JSON."""
FILE = "_current.json"


class ArchiveError(ValueError):
    """What cannot be read, merged or written; the text says what, where, and what to do."""


class Current(msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag=1):
    """What is the output now.

    :param version: of the run that wrote the pointer; empty where nothing has been committed yet
    :param days: the version of each day's events and tables; a day without a task run is not in it
    :param settings: the rules by which the job merged
    :param parts: the versions of parts that the next run still reads
    """

    version: str
    days: dict[str, str] = {}
    settings: dict[str, Any] = {}
    parts: list[str] = []


def encode(current: Current) -> bytes:
    """Return the content of the file."""
    return msgspec.json.format(msgspec.json.encode(current, order="deterministic"), indent=2) + b"\n"


def decode(content: bytes, place: str) -> Current:
    """Return what the content of the file says.

    :raises ArchiveError: for another content
    """
    try:
        return msgspec.json.decode(content, type=Current)
    except msgspec.DecodeError as error:
        raise ArchiveError(
            f"{place} is no {FILE} of an archive that this version knows ({error}): is this the right directory?"
        ) from error


def event_directories(current: Current, first_day: str = "") -> Iterator[str]:
    """Return the directories of the events from a day on, relative to the output, in the order of their days.

    The last day is always among them: so an output without news differs from one without events.
    """
    for day in sorted(current.days):
        if day >= min(first_day, max(current.days)):
            yield f"{EVENTS}/version={current.days[day]}/day={day}"
