"""What the tab "Lineage" of Airflow shows of a task's event: one small JSON object; pure, and a function of JSON alone.

The package holds as well what draws it: a module for the browser, and the app that serves it in the API server.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

Kind = TypeVar("Kind", dict[str, Any], list[Any])
# The key of the XCom that holds it, which `lineage.js` reads.
XCOM_KEY = "spark_lineage"
# An XCom is a row of Airflow's database.
LIMIT_BYTES = 48_000
# The task's links, beside the view.
_LINKS_BYTES = 2_000
# Of each earlier try.
_TRY_BYTES, _TRIES = 8_000, 3
_VERSION = 1
_TEXT_LENGTH, _SHORT_LENGTH = 2000, 200
# Of each list of details, where there is no room for all.
_KEPT = 10
# For what is said of a loss.
_SAID_BYTES = 200
_DETAILS = ("timeline", "changes", "unknown", "unread")
_COLUMNS = {"lineage": "column lineage", "whole": "column lineage", "columns": "columns"}
_DATASETS = ("outputs", "attempted", "inputs")


def of_event(content: bytes, *, why: str = "", number: int = 0, tries: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the XCom of an event, by its JSON.

    :param number: of the try
    :param tries: what ``with_try`` has returned for earlier tries
    """
    view = compact(json.loads(content), LIMIT_BYTES - _LINKS_BYTES - _size(tries), why=why)
    return view | _known({"try": number, "tries": list(tries)})


def with_try(tries: Sequence[Any], content: bytes, number: int) -> list[Any]:
    """Return the last tries with one more, for the XCom of the next: Airflow removes that of a try when it ends."""
    return [*tries, compact(json.loads(content), _TRY_BYTES) | {"try": number}][-_TRIES:]


def links_of(value: Any) -> dict[str, str]:
    """Return the links of a task in its XCom, as it is stored or read; nothing where something else left it."""
    return _part(value, "links", dict)


def tries_of(value: Any) -> list[Any]:
    """Return the earlier tries in an XCom, as ``links_of`` does."""
    return _part(value, "tries", list)


def _part(value: Any, name: str, kind: type[Kind]) -> Kind:
    with suppress(ValueError, AttributeError):
        found = (json.loads(value) if isinstance(value, str) else value).get(name)
        return found if isinstance(found, kind) else kind()
    return kind()


def written_at(value: Any, namespace: str, name: str) -> str:
    """Return when the task with this XCom wrote a dataset; empty where it did not, and for a foreign XCom."""
    # Most XComs have other datasets, and need not be decoded.
    if isinstance(value, str) and name.isascii() and json.dumps(name)[1:-1] not in value:
        return ""
    with suppress(ValueError, AttributeError, LookupError, TypeError):
        view = json.loads(value) if isinstance(value, str) else value
        names = {(view["namespaces"][one["in"]], one["name"]) for one in view.get("outputs", ())}
        return str(view["time"]) if (namespace, name) in names else ""
    return ""


def compact(event: Mapping[str, Any], limit_bytes: int, *, why: str = "") -> dict[str, Any]:
    """Return what the tab shows of a ``RunEvent``, with what is empty or unknown left out.

    Over the limit it loses, until it fits: columns and where they come from, of the widest datasets first; then all but
    the last few details; then datasets. ``left_out`` counts what it has lost, by name.

    :param event: JSON without secrets, as it is sent
    :param limit_bytes: of the JSON as Airflow stores it
    :param why: why there is no lineage
    """
    facets = event["run"].get("facets", {})
    found = {key.removeprefix("sparkLineage_"): facet for key, facet in facets.items()}
    collection, status = found.get("collection", {}), found.get("status", {})
    namespaces: dict[str, int] = {}
    inputs = {_key(one): at for at, one in enumerate(event.get("inputs", ()))}
    fed_by = {
        _key(one): sorted({inputs[_key(each)] for each in one["inputs"] if _key(each) in inputs})
        for one in event["job"].get("facets", {}).get("lineage", {}).get("entries", ())
    }
    unconfirmed = {_key(one) for one in found.get("unconfirmedOutputs", {}).get("outputs", ())}

    def named(one: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        return {"in": namespaces.setdefault(one["namespace"], len(namespaces)), "name": one["name"], **_known(more)}

    view = {
        "state": event["eventType"],
        "time": event["eventTime"],
        "run_id": event["run"]["runId"],
        "job": event["job"]["name"],
        "error": _text(status.get("error") or found.get("errorMessage", {}).get("message")),
        "why": _text(why),
        # The provider's own `processing_engine` is Airflow.
        "spark": next((one.get("sparkVersion") for one in found.get("application", {}).get("applications", ())), None),
        "evidence": collection.get("evidence"),
        "lines": collection.get("linesRead"),
        "set_aside": collection.get("linesSetAside"),
        "reduced": bool(found.get("reduced")),
        "inputs": [named(one, **_dataset(one, "inputStatistics")) for one in event.get("inputs", ())],
        "outputs": [
            named(
                one,
                **_dataset(one, "outputStatistics"),
                **_lineage(one, inputs),
                fed_by=fed_by.get(_key(one)),
                unconfirmed=_key(one) in unconfirmed,
                change=one.get("facets", {}).get("lifecycleStateChange", {}).get("lifecycleStateChange"),
            )
            for one in event.get("outputs", ())
        ],
        "attempted": [named(one, reason=one["reason"]) for one in found.get("attemptedOutputs", {}).get("outputs", ())],
        "changes": [_change(one) for one in found.get("catalogChanges", {}).get("changes", ())],
        "timeline": [_transition(one) for one in status.get("transitions", ())],
        "unknown": [[one["command"], one["count"]] for one in found.get("unknownDatasets", {}).get("commands", ())],
        "unread": [[one["name"], one["count"]] for one in found.get("unreadPlans", {}).get("parts", ())],
    }
    view = {"v": _VERSION, **_known(view), "namespaces": list(namespaces)}
    return view if _size(view) <= limit_bytes else _shortened(view, limit_bytes)


def _dataset(one: Mapping[str, Any], kind: str) -> dict[str, Any]:
    facets = one.get("inputFacets") or one.get("outputFacets") or {}
    columns = [[each["name"], each.get("type")] for each in one.get("facets", {}).get("schema", {}).get("fields", ())]
    numbers = facets.get(kind, {})
    return {
        "rows": numbers.get("rowCount"),
        "bytes": numbers.get("size"),
        "files": numbers.get("fileCount"),
        "columns": columns,
        # What tells two schemas of an output apart even where there is no room for the columns.
        "schema": f"{zlib.crc32(json.dumps(columns).encode()):08x}" if columns and "outputFacets" in one else None,
    }


def _lineage(one: Mapping[str, Any], inputs: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Where the columns of an output come from: ``[index of the input, column, how]``; and the whole of it."""
    facets = one.get("facets", {})
    facet = facets.get("columnLineage", {})

    def sources(fields: Any) -> list[list[Any]]:
        return [[inputs[_key(each)], each["field"], _how(each)] for each in fields or () if _key(each) in inputs]

    by_column = {name: sources(each["inputFields"]) for name, each in facet.get("fields", {}).items()}
    writes = one.get("outputFacets", {}).get("sparkLineage_writes", {}).get("operations", ())
    return {
        "lineage": _known(by_column),
        "whole": sources(facet.get("dataset")),
        "writes": [_write(each["operation"], each.get("mode", "")) for each in writes],
    }


def _write(operation: str, mode: str) -> str:
    return operation if mode.upper() in ("", operation.upper()) else f"{operation} {mode}"


def _how(field: Mapping[str, Any]) -> str:
    kinds = [each.get("subtype") or each["type"] for each in field.get("transformations", ())]
    return ", ".join(dict.fromkeys(kinds))


def _change(one: Mapping[str, Any]) -> dict[str, Any]:
    columns = [
        {
            side: f"{each[side]['name']} {each[side].get('type') or ''}".strip()
            for side in ("old", "new")
            if side in each
        }
        for each in one.get("columns", ())
    ]
    kept = {key: one[key] for key in ("change", "objectType", "objectName", "previousObjectName", "time") if key in one}
    return kept | _known(
        {"columns": columns, "is_uncertain": not one.get("isCertain", True), "is_ignored": one.get("isIgnored")}
    )


def _transition(one: Mapping[str, Any]) -> dict[str, Any]:
    text = _text(one.get("exception") or one.get("detail"))
    kept = {"time": one["time"], "subject": one["subject"], "id": one["id"], "status": one["newStatus"]}
    return kept | _known({"text": text, "source": one.get("source")})


def _shortened(view: dict[str, Any], limit: int) -> dict[str, Any]:
    left_out: dict[str, int] = {}
    for lose in (_lose_columns, _lose_details, _lose_datasets):
        if (over := _size(view) - limit + _SAID_BYTES) > 0:
            left_out |= lose(view, over)
    return {**view, "left_out": left_out}


def _lose_columns(view: dict[str, Any], over: int) -> dict[str, int]:
    """Take columns and where they come from out of datasets, the largest first, until so many bytes are gone."""
    datasets = [one for kind in _DATASETS for one in view.get(kind, ())]
    parts = [(_size(one[key]), key, one) for one in datasets for key in _COLUMNS if key in one]
    lost: dict[str, int] = {}
    for cost, key, one in sorted(parts, key=lambda part: part[0], reverse=True):
        if over <= 0:
            break
        lost[_COLUMNS[key]] = lost.get(_COLUMNS[key], 0) + len(one.pop(key))
        over -= cost
    return lost


def _lose_details(view: dict[str, Any], _over: int) -> dict[str, int]:
    lost = {key: len(view[key]) - _KEPT for key in _DETAILS if len(view.get(key, ())) > _KEPT}
    view.update({key: view[key][-_KEPT:] for key in lost})
    for one in view.get("timeline", ()):
        one |= {key: one[key][:_SHORT_LENGTH] for key in ("text",) if key in one}
    if columns := sum(len(one.pop("columns", ())) for one in view.get("changes", ())):
        lost["columns of changes"] = columns
    return lost


def _lose_datasets(view: dict[str, Any], over: int) -> dict[str, int]:
    """Take out the last inputs, then what was attempted, then outputs."""
    lost: dict[str, int] = {}
    for kind in reversed(_DATASETS):
        while over > 0 and view.get(kind):
            over -= _size(view[kind].pop()) + 2
            lost[kind] = lost.get(kind, 0) + 1
    if "inputs" in lost:
        for one in view.get("outputs", ()):
            one.pop("fed_by", None)
    return lost


def _key(one: Mapping[str, Any]) -> tuple[str, str]:
    return one["namespace"], one["name"]


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is neither empty nor unknown; a true 0 is a number."""
    return {key: value for key, value in values.items() if value or (value == 0 and value is not False)}


def _text(text: str | None) -> str:
    return (text or "")[:_TEXT_LENGTH]


def _size(value: Any) -> int:
    """Return the bytes of a value as Airflow stores it: JSON in ASCII."""
    return len(json.dumps(value))
