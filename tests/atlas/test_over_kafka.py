"""Notifications: their envelope, and their parts where they are large."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from spark_lineage.atlas.over_kafka import MAX_BYTES, parts_of


def _creation(entities: list[Any], user: str) -> dict[str, Any]:
    return {"type": "ENTITY_CREATE_V2", "user": user, "entities": {"entities": entities}}


def test_a_small_one_is_whole() -> None:
    (message,) = parts_of(_creation([{"typeName": "fs_path", "guid": "-1", "attributes": {"name": "ü"}}], "me"))
    read = json.loads(message)
    assert read["version"] == {"version": "1.0.0", "versionParts": [1]}
    assert (read["msgSplitIdx"], read["msgSplitCount"], read["msgCompressionKind"]) == (1, 1, "NONE")
    assert read["message"]["type"] == "ENTITY_CREATE_V2"
    assert read["message"]["entities"]["entities"][0]["attributes"] == {"name": "ü"}


def test_a_large_one_is_compressed() -> None:
    notification = _creation([{"attributes": {"name": "x" * 3 * MAX_BYTES}}], "me")
    (message,) = parts_of(notification)
    read = json.loads(message)
    assert (read["msgSplitIdx"], read["msgSplitCount"], read["msgCompressionKind"]) == (1, 1, "GZIP")
    assert json.loads(gzip.decompress(base64.b64decode(read["message"])))["message"] == notification


def test_one_that_is_large_in_spite_of_that_is_split() -> None:
    import random

    name = random.Random(7).randbytes(MAX_BYTES).hex()  # noqa: S311 - nothing that gzip makes smaller than half
    notification = _creation([{"attributes": {"name": name}}], "me")
    messages = list(parts_of(notification))
    read = [json.loads(message) for message in messages]
    assert len(read) > 1
    assert max(map(len, messages)) < 1_000_000
    assert [(each["msgSplitIdx"], each["msgSplitCount"]) for each in read] == [(n, len(read)) for n in range(len(read))]
    assert len({each["msgId"] for each in read}) == 1
    text = "".join(each["message"] for each in read)
    assert json.loads(gzip.decompress(base64.b64decode(text)))["message"] == notification
