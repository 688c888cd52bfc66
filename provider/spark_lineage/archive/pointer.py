"""The file that says which version of each day is the output: it is replaced at once, and all else follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from spark_lineage.archive.columns import EVENTS

FILE = "_current.json"
FORMAT = 1
TableFormat = Literal["ndjson", "parquet", "delta", "iceberg"]


class DestinationError(ValueError):
    """What cannot be done with an output; the text says what, where, and what to do."""


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """What is the output now.

    :param version: of the run that wrote the pointer; empty where nothing has been committed yet
    :param days: the version of each day's events and tables; a day without a task run is not in it
    :param settings: what the job wants to find again, such as the rules by which it merged
    :param kept: of ``_spark_lineage/parts`` and other rooms of the job the versions that it still reads; only
        ``version``, where a room is not in it
    """

    version: str
    table_format: TableFormat
    days: dict[str, str] = {}
    settings: dict[str, Any] = {}
    kept: dict[str, list[str]] = {}


class _Pointer(Current, frozen=True, kw_only=True):
    """As it is written."""

    format: int = FORMAT


class _Format(msgspec.Struct, frozen=True):
    format: int


def encode(current: Current) -> bytes:
    """Return the content of the file."""
    pointer = _Pointer(**{field: getattr(current, field) for field in Current.__struct_fields__})
    return msgspec.json.format(msgspec.json.encode(pointer, order="deterministic"), indent=2) + b"\n"


def decode(content: bytes, place: str) -> Current:
    """Return what the content of the file says.

    :raises DestinationError: for another content
    """
    try:
        if (found := msgspec.json.decode(content, type=_Format).format) == FORMAT:
            return msgspec.json.decode(content, type=Current)
    except msgspec.DecodeError as error:
        raise DestinationError(f"{place} is no {FILE} of an archive ({error}): is this the right directory?") from error
    raise DestinationError(
        f"{place} has format {found}, and this version knows {FORMAT}: use the version that wrote it"
    )


def event_directories(current: Current, first_day: str = "") -> Iterator[str]:
    """Return the directories of the events from a day on, relative to the output, in the order of their days.

    The last day is always among them: so an output without news can be told from one without events.
    """
    for day in sorted(current.days):
        if day >= min(first_day, max(current.days)):
            yield f"{EVENTS}/day={day}/version={current.days[day]}"
