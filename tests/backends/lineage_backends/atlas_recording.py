"""Conversations with Atlas, as files: what is asked, and what the real Atlas 2.1.0 answered.

A file is a list of steps. A step has ``ask`` (``POST /v2/entity/bulk``, below ``/api/atlas``) and perhaps ``body``, or
``hook`` with a message or its parts for the topic of the hooks; then ``status`` and ``answer`` as they were recorded.
``RUN`` in a step is new in every conversation, so that many can be held with one server. A GUID is written as
``<qualifiedName>`` of its entity, with a number from the second of that name on. ``show`` keeps of a list what has this
text; ``hide`` leaves out the entities of an operation, which the real Atlas does not answer twice alike. What means
nothing is left out: the order of lists, times, counts, what is empty.
"""

from __future__ import annotations

import json
import re
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PASSING = frozenset({"createTime", "updateTime", "approximateCount"})
# Of an entity that came without one, counted up from the server's start.
_TEMPORARY = re.compile(r"-\d{6,}")
_SECONDS = 30
_SETTLED_SECONDS = 4  # the index of Atlas is up to date then


@dataclass
class Conversation:
    """With the Atlas at ``url``; ``hooks`` is a Kafka that it reads, as ``host:port``."""

    url: str
    login: tuple[str, str]
    hooks: str | None = None
    run: str = field(default_factory=lambda: f"r{uuid.uuid4().hex[:8]}")
    names: dict[str, str] = field(default_factory=dict)
    """What the GUIDs are called."""

    def hold(self, steps: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Take the steps one by one; each with what came of it, ``status`` and ``answer``."""
        for step in steps:
            yield step, self.take(step)

    def take(self, step: dict[str, Any]) -> dict[str, Any]:
        """What comes of one step; what ``eventually`` holds is asked again until it does."""
        if "hook" in step:
            self._send(step["hook"], step.get("raw"))
            return {}
        deadline = time.monotonic() + (_SECONDS if step.get("eventually") else 0)
        if step.get("eventually") and "status" not in step:
            time.sleep(_SETTLED_SECONDS)  # nothing says what to wait for
            deadline = 0
        while True:
            came = self._ask(step)
            if time.monotonic() >= deadline or came == {key: step.get(key) for key in ("status", "answer")}:
                return came
            time.sleep(0.2)

    def _ask(self, step: dict[str, Any]) -> dict[str, Any]:
        method, path = self._concrete(step["ask"]).split(" ", 1)
        body = json.dumps(self._concrete(step["body"])) if "body" in step else step.get("text")
        login = tuple(step["login"]) if "login" in step else self.login
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        answer = requests.request(
            method, f"{self.url}/api/atlas{path}", data=body, auth=login or None, headers=headers, timeout=120
        )
        try:
            told = answer.json() if answer.content else None
        except ValueError:
            told = "not JSON"
        if "show" in step and isinstance(told, list):
            told = [each for each in told if self._concrete(step["show"]) in json.dumps(each)]
        if "hide" in step and isinstance(told, dict):
            told.get("mutatedEntities", {}).pop(step["hide"], None)
        self._learn(told)
        return {"status": answer.status_code, "answer": self._plain(told)}

    def _send(self, message: Any, raw: str | None) -> None:
        """Send it, and wait until Atlas has dealt with it: messages are dealt with one after another."""
        from confluent_kafka import Producer

        marker = f"marker-{uuid.uuid4().hex}@{self.run}"
        after = hook_message("ENTITY_CREATE_V2", {"entities": {"entities": [_process(marker)]}})
        producer = Producer({"bootstrap.servers": self.hooks, "log_level": 0})
        parts = message if isinstance(message, list) else [message]
        messages = [json.dumps(each) for each in self._concrete(parts)] if raw is None else [raw]
        for value in (*messages, json.dumps(after)):
            producer.produce("ATLAS_HOOK", value)
        producer.flush(_SECONDS)
        deadline = time.monotonic() + 2 * _SECONDS
        where = f"{self.url}/api/atlas/v2/entity/uniqueAttribute/type/spark_process"
        while not requests.get(where, params={"attr:qualifiedName": marker}, auth=self.login, timeout=30).ok:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Atlas did not read the topic ATLAS_HOOK of {self.hooks}.")
            time.sleep(0.1)

    def _concrete(self, value: Any) -> Any:
        """The step as it is sent: with this conversation's own names and GUIDs."""
        text = json.dumps(value)
        for guid, name in self.names.items():
            text = text.replace(json.dumps(name)[1:-1], guid)
        return json.loads(text.replace("RUN", self.run))

    def _learn(self, value: Any) -> None:
        if isinstance(value, dict):
            attributes = value.get("attributes")
            name = attributes.get("qualifiedName") if isinstance(attributes, dict) else None
            guid = str(value.get("guid"))
            if name and _GUID.fullmatch(guid) and guid not in self.names:
                name = name.replace(self.run, "RUN")
                again = sum(each.startswith((f"<{name}>", f"<{name} ")) for each in self.names.values())
                self.names[guid] = f"<{name} {again + 1}>" if again else f"<{name}>"
            if "end1" in value and _GUID.fullmatch(guid):
                ends = " ".join(self.names.get(value[end]["guid"], "")[1:-1] for end in ("end1", "end2"))
                again = sum(each.startswith(f"<relationship {ends}") for each in self.names.values())
                self.names.setdefault(guid, f"<relationship {ends}{f' {again + 1}' if again else ''}>")
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._learn(each)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            plain = {}
            for key, each in value.items():
                named = self._plain(each)
                if key not in _PASSING and named not in (None, "", [], {}):
                    plain[f"-{named}" if _TEMPORARY.fullmatch(key) else self._plain(key)] = named
            return plain
        if isinstance(value, list):
            return sorted((self._plain(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
        if isinstance(value, str):
            return _GUID.sub(lambda found: self.names.get(found[0], "<guid>"), value).replace(self.run, "RUN")
        return value


def hook_message(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """A message for ``ATLAS_HOOK`` in the envelope that Atlas's own hooks send."""
    return {
        "version": {"version": "1.0.0", "versionParts": [1]},
        "msgCompressionKind": "NONE",
        "msgSplitIdx": 1,
        "msgSplitCount": 1,
        "msgSourceIP": "127.0.0.1",
        "msgCreatedBy": "",
        "msgCreationTime": int(time.time() * 1000),
        "message": {"type": kind, "user": "hook", **content},
    }


def _process(name: str) -> dict[str, Any]:
    return {"typeName": "spark_process", "attributes": {"qualifiedName": name, "name": name}}


def record(path: Path, conversation: Conversation) -> None:
    """Hold the conversation of a file, and write down what came."""
    steps = []
    asked = [
        {key: value for key, value in step.items() if key not in {"status", "answer"}}
        for step in json.loads(path.read_text())
    ]
    for step, came in conversation.hold(asked):
        steps.append(step | came)
    path.write_text("[\n" + ",\n".join(json.dumps(step, sort_keys=True) for step in steps) + "\n]\n")


if __name__ == "__main__":  # python -m lineage_backends.atlas_recording http://host:port kafka:port FILE…
    for name in sys.argv[3:]:
        record(Path(name), Conversation(sys.argv[1], ("admin", "admin"), sys.argv[2]))
