"""Make a ``RunEvent`` from its kept JSON, for transports that accept only objects."""

from __future__ import annotations

import functools
import json
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import attr
import msgspec
from openlineage.client.event_v2 import (
    DatasetEvent,
    InputDataset,
    Job,
    JobEvent,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    StaticDataset,
)
from openlineage.client.generated import parent_run
from openlineage.client.generated.base import RunFacet

if TYPE_CHECKING:
    from openlineage.client.client import Event

# openlineage-python's serializer takes several Python calls for each level, and Python has a thousand in all.
_MAX_LEVELS = 150
# The keys whose values are objects, or lists of them, with their classes; all others stay as JSON has them.
_PARTS: Mapping[type[Any], Mapping[str, type[Any]]] = {
    RunEvent: {"run": Run, "job": Job, "inputs": InputDataset, "outputs": OutputDataset},
    JobEvent: {"job": Job},
    DatasetEvent: {"dataset": StaticDataset},
    parent_run.ParentRunFacet: {"run": parent_run.Run, "job": parent_run.Job, "root": parent_run.Root},
    parent_run.Root: {"run": parent_run.RootRun, "job": parent_run.RootJob},
}
# ``OpenLineageAdapter.emit`` of the provider reads these facets.
_AIRFLOW_FACETS = ("airflow", "airflowDagRun")
# msgspec quotes a value that does not fit, which may be anything.
_QUOTED = re.compile(r"'.*'", re.DOTALL)
# The types below have the keys that the spec requires; further keys may be there.
_Facets = dict[str, Any] | None


class _Run(TypedDict):
    runId: uuid.UUID
    facets: NotRequired[_Facets]


class _Named(TypedDict):
    namespace: str
    name: str
    facets: NotRequired[_Facets]


class _Input(_Named):
    inputFacets: NotRequired[_Facets]


class _Output(_Named):
    outputFacets: NotRequired[_Facets]


class _Parent(TypedDict):
    run: _Run
    job: _Named
    root: NotRequired[_Parent | None]


class _Event(TypedDict):
    eventTime: str
    run: _Run
    job: _Named
    eventType: NotRequired[RunState | None]
    producer: NotRequired[str | None]
    schemaURL: NotRequired[str | None]
    inputs: NotRequired[list[_Input] | None]
    outputs: NotRequired[list[_Output] | None]  # fmt: skip


def restore(content: bytes) -> RunEvent:
    """Return the ``RunEvent`` of its JSON; a transport that sends it writes the same JSON again.

    Nothing is added, whatever the classes have as defaults, and keys that they do not know are kept on every level. The
    one exception is what openlineage-python never writes: nulls, and empty objects in a list. Facets are plain
    dictionaries, but for those whose attributes are read: ``parent``, of which the Kafka transport makes its message
    key, and those of Airflow, in which its provider looks for the team.

    Spec: OpenLineage 2-0-2, ``RunEvent``; of what it requires, ``producer`` and ``schemaURL`` are left to the backend.

    :raises ValueError: for what is no ``RunEvent``; the text says what is missing or wrong, and where
    """
    try:
        document = _without_nulls(json.loads(content.decode()))
    except UnicodeDecodeError as error:
        raise ValueError(f"this is not a RunEvent: not UTF-8, byte {error.start}: {error.reason}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not a RunEvent: not JSON, byte {error.pos}: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"this RunEvent is nested deeper than {_MAX_LEVELS} levels") from None
    _check(document, _Event, "$")
    event_time(document["eventTime"])
    facets = document["run"].get("facets", {})
    if "parent" in facets:
        _check(facets["parent"], _Parent, "$.run.facets.parent")
        facets["parent"] = _object(parent_run.ParentRunFacet, facets["parent"])
    for name in _AIRFLOW_FACETS:
        if isinstance(facets.get(name), dict):
            facets[name] = build(RunFacet, facets[name])
    if "eventType" in document:
        document["eventType"] = RunState(document["eventType"])
    return _object(RunEvent, document)  # type: ignore[no-any-return]


def restore_any(content: bytes) -> Event:
    """Return a ``RunEvent``, ``JobEvent`` or ``DatasetEvent`` of its JSON.

    :raises ValueError: for what no transport can take
    """
    try:
        event: dict[str, Any] = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if event.get("run") is not None:
        return restore(content)
    kind, key = (JobEvent, "job") if event.get("dataset") is None else (DatasetEvent, "dataset")
    if event.get(key) is None:
        raise ValueError("it has neither run nor job nor dataset")
    return _object(kind, event)  # type: ignore[no-any-return]


def event_time(text: str) -> datetime:
    """Return the ``eventTime`` of a ``RunEvent``; without an offset it is UTC.

    :raises ValueError: for what is no date with a time
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or "T" not in text.upper():
        raise ValueError("this is not a RunEvent: Expected a date and a time - at `$.eventTime`")
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _object(kind: type[Any], values: Mapping[str, Any]) -> Any:
    parts: dict[str, Any] = {}
    for key, part in _PARTS.get(kind, {}).items():
        value = values.get(key)
        if isinstance(value, list):
            parts[key] = [_object(part, item) for item in value]
        elif value is not None:
            parts[key] = _object(part, value)
    return build(kind, {**values, **parts})


def _check(document: Any, kind: Any, where: str) -> None:
    try:
        msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        text = _QUOTED.sub("'…'", str(error)).replace("`$", f"`{where}")
        raise ValueError(f"this is not a RunEvent: {text}" + ("" if "`$" in text else f" - at `{where}`")) from None


def _without_nulls(value: Any, level: int = 0) -> Any:
    if level > _MAX_LEVELS:
        raise RecursionError
    if isinstance(value, dict):
        return {key: _without_nulls(item, level + 1) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item, level + 1) for item in value if item is not None]
    return value


def build(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Return an object of an attrs class that has these values and no others: ``__init__`` would add its own.

    Copies and pickles call it too.
    """
    declared = {field.name for field in attr.fields(kind)}
    kind = _with_fields(kind, tuple(sorted(values.keys() - declared)))  # type: ignore[arg-type]  # a class has a hash
    result = object.__new__(kind)
    for name in (*declared, *values):
        object.__setattr__(result, name, values.get(name))
    return result


@functools.lru_cache(maxsize=256)
def _with_fields(base: type[Any], names: tuple[str, ...]) -> type[Any]:
    """Return a class with more fields, as only fields are written; their names may be anything that JSON allows."""
    if not names:
        return base

    def reduced(instance: Any) -> tuple[Any, ...]:
        values = {field.name: getattr(instance, field.name) for field in attr.fields(type(instance))}
        return build, (base, values)

    if taken := [name for name in names if hasattr(base, name)]:
        raise ValueError(f"this RunEvent cannot be made again: openlineage-python has no place for a key {taken[0]!r}")
    # With no methods made for them, names need not be Python's.
    fields = {name: attr.field(init=False) for name in names}
    extended = attr.make_class(base.__name__, fields, bases=(base,), slots=False, repr=False, eq=False)
    extended.__reduce__ = reduced  # type: ignore[assignment, method-assign]
    return extended
