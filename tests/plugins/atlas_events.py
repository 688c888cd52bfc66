"""Atlas as a user of its REST API sees it, and events of tasks for it."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import requests

from spark_lineage.atlas.sender import AtlasSender
from spark_lineage.deliver.outgoing import Outgoing

Json = Mapping[str, Any]
# Milliseconds: no two events happen at once.
_LATER = itertools.count()


@dataclass
class Atlas:
    """An Atlas as a user of its REST API sees it."""

    url: str
    login: tuple[str, str]
    kafka: str = ""
    """The broker whose topic it reads, ``host:port``."""

    def ask(self, method: str, path: str, **more: Any) -> requests.Response:
        return requests.request(method, f"{self.url}/api/atlas/v2{path}", auth=self.login, timeout=60, **more)

    def entity(self, kind: str, qualified_name: str) -> dict[str, Any] | None:
        params = {"attr:qualifiedName": qualified_name}
        answer = self.ask("GET", f"/entity/uniqueAttribute/type/{kind}", params=params)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()["entity"]
        return found

    def there(self, kind: str, qualified_name: str) -> dict[str, Any]:
        found = self.entity(kind, qualified_name)
        assert found is not None, f"there is no {kind} {qualified_name}"
        return found

    def status(self, guid: str) -> str:
        """Whether an entity is ACTIVE or DELETED; by its name, Atlas shows it no more."""
        status: str = self.ask("GET", f"/entity/guid/{guid}").json()["entity"]["status"]
        return status

    def wait(self, has_come: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until something is there: a notification gets no answer."""
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(AssertionError):
                if has_come():
                    return
            assert time.monotonic() < deadline, "Atlas has not taken the notifications in time"
            time.sleep(0.2)

    def put(self, *entities: Json) -> dict[str, Any]:
        answer = self.ask("POST", "/entity/bulk", json={"entities": entities})
        assert answer.ok, answer.text
        said: dict[str, Any] = answer.json()
        return said

    def change(self, kind: str, qualified_name: str, **attributes: Any) -> None:
        params = {"attr:qualifiedName": qualified_name}
        body = {"entity": {"typeName": kind, "attributes": attributes}}
        self.ask("PUT", f"/entity/uniqueAttribute/type/{kind}", params=params, json=body).raise_for_status()

    def lineage(self, kind: str, qualified_name: str) -> set[tuple[str, str]]:
        """The names of what leads to what, around an entity."""
        params = {"attr:qualifiedName": qualified_name, "depth": "3", "direction": "BOTH"}
        found = self.ask("GET", f"/lineage/uniqueAttribute/type/{kind}", params=params).json()
        names = {guid: each["attributes"]["qualifiedName"] for guid, each in found["guidEntityMap"].items()}
        return {(names[each["fromEntityId"]], names[each["toEntityId"]]) for each in found["relations"]}


def shown(job: str) -> str:
    """The name of a task on a page."""
    dag_id, _, task_id = job.partition(".")
    return f"{task_id} ({dag_id})"


def related(entity: Json, name: str) -> set[str]:
    """What an entity is related to now, by the names that a page shows."""
    return {each["displayText"] for each in entity["relationshipAttributes"][name] if _is_active(each)}


def _is_active(each: Json) -> bool:
    return each["relationshipStatus"] == each["entityStatus"] == "ACTIVE"


def dataset(name: str, *columns: str, namespace: str = "file", **facets: Any) -> dict[str, Any]:
    if columns:
        facets["schema"] = {"fields": [{"name": column, "type": "string"} for column in columns]}
    return {"namespace": namespace, "name": name, "facets": facets}


def made_from(*edges: tuple[str, str, str], kind: str = "DIRECT") -> dict[str, Any]:
    """A columnLineage: of each edge the output's column, the input's path and its column."""
    fields: dict[str, Any] = {}
    for column, source, field in edges:
        found = fields.setdefault(column, {"inputFields": []})["inputFields"]
        transformations = [{"type": kind, "subtype": "IDENTITY"}]
        found.append({"namespace": "file", "name": source, "field": field, "transformations": transformations})
    return {"fields": fields}


def event(job: str, event_type: str, **more: Any) -> dict[str, Any]:
    """An event of a task's run, as it comes out of the outbox."""
    dag_id, _, task_id = job.partition(".")
    inputs, outputs = more.get("inputs", ()), more.get("outputs", ())
    day = more.get("day", "2026-05-02")
    run = {"run_id": f"scheduled__{day}", "run_type": more.get("run_type", "scheduled")}
    dates = {"logical_date": f"{day}T00:00:00+00:00", "data_interval_start": f"{day}T00:00:00+00:00"}
    airflow = {
        "dag": {"dag_id": dag_id},
        "task": {"task_id": task_id},
        "dagRun": {**run, **dates, "data_interval_end": f"{day}T23:00:00+00:00"},
        "taskInstance": {"try_number": more.get("try_number", 1), "start_date": f"{day}T23:00:10+00:00"},
    }
    if event_type in ("COMPLETE", "FAIL", "ABORT"):
        del airflow["taskInstance"]["start_date"]
    entries = more.get("fed_by", {})
    lineage = [
        {"namespace": "file", "name": name, "inputs": [{"namespace": "file", "name": each} for each in sources]}
        for name, sources in entries.items()
    ]
    facets = {
        "jobType": {"jobType": "TASK", "integration": "AIRFLOW", "processingType": more.get("processing", "BATCH")},
        "ownership": {"owners": [{"name": "data-team"}]},
        **({"lineage": {"entries": lineage}} if lineage else {}),
    }
    return {
        "eventType": event_type,
        "eventTime": more.get("time") or _time(day),
        "producer": "https://example.com",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {
            "runId": str(uuid.uuid4()),
            "facets": {"airflow": airflow, **driver_on("primary"), **more.get("facets", {})},
        },
        "job": {"namespace": more.get("namespace", "prod"), "name": job, "facets": facets},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


def driver_on(host: str) -> dict[str, Any]:
    """The facet of an application whose driver is on a host, to which local files belong."""
    return {"sparkLineage_application": {"applications": [{"uiUrl": f"http://{host}:4040"}]}}


def _time(day: str) -> str:
    return (datetime.fromisoformat(f"{day}T23:05:00+00:00") + timedelta(milliseconds=next(_LATER))).isoformat()


def changes(*each: Json) -> dict[str, Any]:
    return {"sparkLineage_catalogChanges": {"changes": [{"objectType": "TABLE", **one} for one in each]}}


def send(one: AtlasSender, *events: Json) -> None:
    for each in events:
        one.send(Outgoing.of(json.dumps(each).encode()))
