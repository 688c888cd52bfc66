"""The event of a task as the tab shows it: one small JSON object; pure, and a function of JSON alone."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

# The keys of the XCom that holds it, which `lineage.js` reads, and of the link to the job in a backend.
XCOM_KEY = "spark_lineage"
_VERSION = 1
_TEXT_LENGTH = 2000
# Of each list of details, where there is no room for all.
_KEPT = 10
_DETAILS = ("timeline", "changes", "unknown", "unread")
_DATASETS = ("outputs", "attempted", "inputs")


def compact(event: Mapping[str, Any], limit_bytes: int, *, url: str = "", why: str = "") -> dict[str, Any]:
    """Return what the tab shows of a ``RunEvent``, with what is empty or unknown left out.

    Over the limit it loses, until it fits: column lineage and columns, of the widest datasets first; then all but the
    last few details; then datasets. ``left_out`` counts what it has lost, by name.

    :param event: JSON without secrets, as it is sent
    :param limit_bytes: of the JSON as Airflow stores it
    :param url: the page of the job in a backend
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
        "url": url,
        "error": _text(status.get("error") or found.get("errorMessage", {}).get("message")),
        "why": _text(why),
        "spark": found.get("processing_engine", {}).get("version"),
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
    return _within(limit_bytes, {"v": _VERSION, **_known(view), "namespaces": list(namespaces)})


def _dataset(one: Mapping[str, Any], kind: str) -> dict[str, Any]:
    facets = one.get("inputFacets") or one.get("outputFacets") or {}
    columns = [[each["name"], each.get("type")] for each in one.get("facets", {}).get("schema", {}).get("fields", ())]
    numbers = facets.get(kind, {})
    return {
        "rows": numbers.get("rowCount"),
        "bytes": numbers.get("size"),
        "files": numbers.get("fileCount"),
        "columns": columns,
        # What tells two schemas apart even where there is no room for the columns.
        "schema": f"{zlib.crc32(json.dumps(columns).encode()):08x}" if columns else None,
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
        "writes": [" ".join(each[key] for key in ("operation", "mode") if key in each) for each in writes],
    }


def _how(field: Mapping[str, Any]) -> str:
    kinds = [each.get("subtype") or each["type"] for each in field.get("transformations", ())]
    return ", ".join(dict.fromkeys(kinds))


def _change(one: Mapping[str, Any]) -> dict[str, Any]:
    columns = [
        {side: f"{each[side]['name']} {each[side].get('type') or ''}".strip() for side in ("old", "new") if side in each}
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


def _within(limit: int, view: dict[str, Any]) -> dict[str, Any]:
    size = _size(view)
    left_out: dict[str, int] = {}

    def lose(what: str, count: int, cost: int) -> None:
        nonlocal size
        # The first of its name takes some room itself.
        size -= cost - (0 if what in left_out else len(what) + 20)
        left_out[what] = left_out.get(what, 0) + count

    for what, keys in (("column lineage", ("lineage", "whole")), ("columns", ("columns",))):
        parts = [(_size(one[key]) + len(key) + 6, key, one) for one in _all(view) for key in keys if key in one]
        for cost, key, one in sorted(parts, key=lambda part: part[0], reverse=True):
            if size > limit:
                lose(what, len(one.pop(key)), cost)
    for key in _DETAILS:
        if size > limit and len(view.get(key, ())) > _KEPT:
            before = _size(view[key])
            count = len(view[key]) - _KEPT
            view[key] = view[key][-_KEPT:]
            lose(key, count, before - _size(view[key]))
    if size > limit:
        for one in view.get("outputs", ()):
            one.pop("fed_by", None)
        room = limit - _size({**view, "left_out": left_out, **dict.fromkeys(_DATASETS, [])}) - 100
        for key in _DATASETS:
            kept = []
            for one in view.get(key, ()):
                room -= _size(one) + 2
                if room > 0:
                    kept.append(one)
                else:
                    left_out[key] = left_out.get(key, 0) + 1
            if key in view:
                view[key] = kept
    return view | ({"left_out": left_out} if left_out else {})


def _all(view: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in _DATASETS:
        yield from view.get(key, ())


def _key(one: Mapping[str, Any]) -> tuple[str, str]:
    return one["namespace"], one["name"]


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is neither empty nor unknown; a true 0 is a number."""
    return {key: value for key, value in values.items() if value or value == 0 and value is not False}


def _text(text: str | None) -> str:
    return (text or "")[:_TEXT_LENGTH]


def _size(value: Any) -> int:
    """Return the bytes of a value as Airflow stores it: JSON in ASCII."""
    return len(json.dumps(value))
