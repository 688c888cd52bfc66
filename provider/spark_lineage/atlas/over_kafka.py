"""Sends entities as notifications to the topic ``ATLAS_HOOK``, as Atlas's hooks do; in parts above 1 MB.

The envelope is that of ``AtlasNotificationMessage``, the parts that of ``AtlasNotificationStringMessage``.
"""

from __future__ import annotations

import base64
import gzip
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from spark_lineage.atlas.datasets import Thing
from spark_lineage.atlas.entities import ENDS, entities_of, process_of
from spark_lineage.atlas.hook import AtlasHook
from spark_lineage.atlas.task_update import Renaming, TaskUpdate
from spark_lineage.deliver.kafka_sender import KafkaSender

MAX_BYTES = 1_000_000 - 512
"""``atlas.notification.message.max.length.bytes``, without the envelope."""
_VERSION = {"version": {"version": "1.0.0", "versionParts": [1]}}


class OverKafka:
    """Sends entities as notifications: Atlas cannot be queried, and only the broker answers."""

    def __init__(self, hook: AtlasHook) -> None:
        self._options = hook.options
        self._user = hook.fields.login or "spark-lineage"
        self._sender = KafkaSender(hook.kafka_config())

    def take(self, update: TaskUpdate) -> None:
        """Send what an update says; errors as of ``Sender``."""
        for kind, content in self._notifications(update):
            for part in parts_of({"type": kind, "user": self._user, **content}):
                # Of one process in one partition: Atlas takes them in order.
                self._sender.send_message(update.process.qualified_name, part)

    def close(self) -> None:
        """Close the producer."""
        self._sender.close()

    def _notifications(self, update: TaskUpdate) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return the type and the content of each notification."""
        for each, _ in update.changes:
            if isinstance(each, Thing):
                yield "ENTITY_DELETE_V2", {"entities": [_identity(each)]}
            elif isinstance(each, Renaming):
                for column in (one for one in update.schemas if one.within["table"].key == each.new.key):
                    old = each.old.column(column.attributes["name"], "")
                    yield "ENTITY_PARTIAL_UPDATE_V2", _renaming(old, column)
                yield "ENTITY_PARTIAL_UPDATE_V2", _renaming(each.old, each.new)
        # What a job has so far would take the rest of its last run away, and that of one that failed, too.
        entities = process_of(update)
        if update.is_whole or (update.is_streaming and update.event_type != "START"):
            lists = [name for name in ENDS if update.is_whole or getattr(update, name)]
            entities = entities_of(update, self._options, lists=lists, owns=True).found
        yield "ENTITY_CREATE_V2", {"entities": {"entities": entities}}


def _renaming(old: Thing, new: Thing) -> Mapping[str, Any]:
    """Return what gives an entity the name and qualified name of another."""
    names = {key: new.attributes[key] for key in ("qualifiedName", "name")}
    entity = {"entity": {"typeName": old.type, "guid": "-1", "attributes": names}}
    return {"entityId": _identity(old), "entity": entity}


def parts_of(notification: Mapping[str, Any]) -> Iterator[bytes]:
    """Return the messages of a notification: one, or, above 1 MB, its compressed parts, which belong together."""
    envelope = {
        **_VERSION,
        "msgCompressionKind": "NONE",
        "msgSplitIdx": 1,
        "msgSplitCount": 1,
        "msgSourceIP": "",
        "msgCreatedBy": notification["user"],
        "msgCreationTime": round(time.time() * 1000),
        "spooled": False,
        "message": notification,
    }
    whole = _encoded(envelope)
    if len(whole) <= MAX_BYTES:
        yield whole
        return
    text = base64.b64encode(gzip.compress(whole)).decode()
    parts = [text[start : start + MAX_BYTES] for start in range(0, len(text), MAX_BYTES)]
    message_id = f"{uuid.uuid4()}_1"
    for number, part in enumerate(parts):
        yield _encoded(
            {
                **_VERSION,
                "msgId": message_id,
                "msgCompressionKind": "GZIP",
                # Of a message that is not split, Atlas's own senders say 1 of 1; of parts, they count from 0.
                "msgSplitIdx": number if len(parts) > 1 else 1,
                "msgSplitCount": len(parts),
                "message": part,
            }
        )


def _identity(thing: Thing) -> dict[str, Any]:
    return {"typeName": thing.type, "uniqueAttributes": {"qualifiedName": thing.qualified_name}}


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
