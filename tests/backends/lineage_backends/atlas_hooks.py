"""What the Atlas emulator does with messages of hooks, in the envelopes that Atlas takes."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass, field
from typing import Any

from lineage_backends.atlas_graph import Graph
from lineage_backends.atlas_requests import entities
from lineage_backends.atlas_types import AtlasError


@dataclass
class Hooks:
    """Messages, and ``dropped``: those that came to nothing, each with the reason."""

    graph: Graph
    dropped: list[tuple[str, str]] = field(default_factory=list)
    _parts: dict[str, dict[int, str]] = field(default_factory=dict)

    def take(self, text: str) -> None:
        """Deal with one message of the topic of the hooks, as the real one does: what it cannot use is dropped."""
        try:
            message = self._message(json.loads(text))
            if message is not None:
                self._apply(message)
        except AtlasError as error:
            self.dropped.append((text, str(error)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self.dropped.append((text, f"no message: {error!r}"))

    def _message(self, envelope: dict[str, Any]) -> dict[str, Any] | None:
        """The message in an envelope; None while parts of it are missing."""
        version = envelope.get("version", {}).get("version", "1.0.0")
        if not version.startswith("1."):
            raise ValueError(f"the version is {version}")
        if envelope.get("msgSplitCount", 1) > 1:
            parts = self._parts.setdefault(envelope["msgId"], {})
            parts[envelope["msgSplitIdx"]] = envelope["message"]
            if len(parts) < envelope["msgSplitCount"]:
                return None
            del self._parts[envelope["msgId"]]
            envelope = envelope | {"message": "".join(part for _, part in sorted(parts.items()))}
        message = envelope.get("message", envelope)
        if isinstance(message, dict):
            return message
        content = base64.b64decode(message)
        unpacked = gzip.decompress(content) if envelope["msgCompressionKind"] == "GZIP" else content
        return dict(json.loads(unpacked)["message"])

    def _apply(self, message: dict[str, Any]) -> None:
        kind, user = message["type"], message.get("user") or "UNKNOWN"
        if kind in {"ENTITY_CREATE_V2", "ENTITY_FULL_UPDATE_V2"}:
            self.graph.post(entities(message["entities"]), user, with_shells=True)
        elif kind == "ENTITY_PARTIAL_UPDATE_V2":
            wanted = message["entityId"]
            entity = self.graph.named(wanted["typeName"], wanted["uniqueAttributes"])
            self.graph.put(entity, message["entity"]["entity"], user)
        elif kind == "ENTITY_DELETE_V2":
            for each in message["entities"]:
                self.graph.delete(self.graph.find(each["typeName"], each["uniqueAttributes"]), user)
        else:
            raise ValueError(f"the kind is {kind}")
