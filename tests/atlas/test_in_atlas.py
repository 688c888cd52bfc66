"""What is in Atlas after the events of a task: each test holds for the emulator, and for the Atlas of ``ATLAS_URL``."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from atlas_events import Atlas, changes, dataset, event, made_from, related, send

from spark_lineage.atlas.rest import AtlasRest
from spark_lineage.atlas.transport import AtlasTransport
from spark_lineage.atlas.types import APPLICATION, COLUMN_LINEAGE, PATH, VERSION
from spark_lineage.deliver.transports.errors import NotTakenError, answer_of

Sender = Callable[..., AtlasTransport]


@pytest.fixture
def paths(job: str) -> tuple[str, str, str]:
    """Two inputs and an output that no other test has."""
    return f"/{job}/a.csv", f"/{job}/b.csv", f"/{job}/out"


def ended(job: str, inputs: tuple[str, ...], outputs: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return event(job, "COMPLETE", inputs=map(dataset, inputs), outputs=map(dataset, outputs), **more)


def test_a_task_is_there_from_its_start_and_between_its_datasets_at_its_end(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    transport = sender()
    send(transport, event(job, "START", inputs=[dataset(a)]))
    process = atlas.there(APPLICATION, f"{job}@prod")
    attributes = process["attributes"]
    assert (attributes["state"], attributes["owner"], attributes["taskId"]) == ("RUNNING", "data-team", "task")
    assert not attributes["endTime"]
    assert related(process, "inputs") == {a}
    send(transport, event(job, "RUNNING", inputs=[dataset(b)]))
    assert related(atlas.there(APPLICATION, f"{job}@prod"), "inputs") == {a, b}
    send(transport, ended(job, (a, b), (out,)))
    process = atlas.there(APPLICATION, f"{job}@prod")
    assert process["attributes"]["state"] == "COMPLETE"
    assert process["attributes"]["startTime"] == attributes["startTime"]
    assert process["attributes"]["endTime"] - process["attributes"]["startTime"] == 290_000
    assert atlas.lineage("fs_path", f"{out}@primary") == {
        (f"{a}@primary", f"{job}@prod"),
        (f"{b}@primary", f"{job}@prod"),
        (f"{job}@prod", f"{out}@primary"),
    }


def test_a_second_run_makes_nothing_new(atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]) -> None:
    a, _, out = paths
    columns = made_from(("x", a, "y"))
    end = event(job, "COMPLETE", inputs=[dataset(a, "y")], outputs=[dataset(out, "x", columnLineage=columns)])
    keys = [
        (APPLICATION, f"{job}@prod"),
        ("fs_path", f"{a}@primary"),
        ("fs_path", f"{out}@primary"),
        ("spark_dataset_column", f"{a}.y@primary"),
        (COLUMN_LINEAGE, f"{job}:{out}.x@prod"),
    ]
    guids = []
    for _ in range(2):
        transport = sender()
        send(transport, event(job, "START"), end)
        guids.append([atlas.there(*key)["guid"] for key in keys])
    assert guids[0] == guids[1]
    process = atlas.there(APPLICATION, f"{job}@prod")
    assert [len(process["relationshipAttributes"][name]) for name in ("inputs", "outputs", "columnLineages")] == [1] * 3


def test_what_a_task_has_no_more_leaves_it_when_it_succeeds(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    transport = sender()
    send(transport, ended(job, (a, b), (out,)))
    send(transport, event(job, "START", inputs=[dataset(a)]))
    send(transport, event(job, "FAIL", inputs=[dataset(a)]))
    process = atlas.there(APPLICATION, f"{job}@prod")
    assert process["attributes"]["state"] == "FAIL"
    assert (related(process, "inputs"), related(process, "outputs")) == ({a, b}, {out})
    # Where nothing was read and nothing is known, nothing is known to be gone.
    send(transport, ended(job, (), ()))
    assert related(atlas.there(APPLICATION, f"{job}@prod"), "inputs") == {a, b}
    send(transport, ended(job, (a,), (out,)))
    assert related(atlas.there(APPLICATION, f"{job}@prod"), "inputs") == {a}
    assert atlas.there("fs_path", f"{b}@primary")["status"] == "ACTIVE"
    # And does not come back with a run that fails.
    send(transport, event(job, "FAIL", inputs=[dataset(a)]))
    process = atlas.there(APPLICATION, f"{job}@prod")
    assert (related(process, "inputs"), related(process, "outputs")) == ({a}, {out})


def test_columns_come_from_those_whose_values_they_have(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    direct = made_from(("x", a, "y"), ("x", b, "z"), ("w", b, "z"))
    direct["fields"]["w"]["inputFields"] += made_from(("w", a, "y"), kind="INDIRECT")["fields"]["w"]["inputFields"]
    end = {"inputs": [dataset(a, "y"), dataset(b, "z")], "outputs": [dataset(out, "x", "w", columnLineage=direct)]}
    send(sender(), event(job, "COMPLETE", **end))
    assert atlas.lineage("spark_dataset_column", f"{out}.w@primary") >= {
        (f"{b}.z@primary", f"{job}:{out}.w@prod"),
        (f"{job}:{out}.w@prod", f"{out}.w@primary"),
    }
    between = atlas.there(COLUMN_LINEAGE, f"{job}:{out}.w@prod")
    assert related(between, "inputs") == {"z"}
    assert between["attributes"]["expression"] == "IDENTITY"
    assert related(atlas.there(COLUMN_LINEAGE, f"{job}:{out}.x@prod"), "inputs") == {"y", "z"}
    # A column that is made no more loses its lineage.
    end["outputs"] = [dataset(out, "x", columnLineage=made_from(("x", a, "y")))]
    send(sender(), event(job, "COMPLETE", **end))
    assert atlas.status(between["guid"]) == "DELETED"
    send(sender(columns="none"), event(job + "2", "COMPLETE", **end))
    assert atlas.entity(COLUMN_LINEAGE, f"{job}2:{out}.x@prod") is None


def test_a_stream_shows_its_sources_and_sinks_while_it_runs(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, _, out = paths
    transport = sender()
    streaming: dict[str, Any] = {"processing": "STREAMING"}
    send(transport, event(job, "START", **streaming))
    send(transport, event(job, "RUNNING", inputs=[dataset(a)], outputs=[dataset(out)], **streaming))
    process = atlas.there(APPLICATION, f"{job}@prod")
    assert process["attributes"]["state"] == "RUNNING"
    assert (related(process, "inputs"), related(process, "outputs")) == ({a}, {out})


def test_each_output_has_a_process_of_its_own(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    other = f"{out}2"
    fed_by = {out: [a], other: [a, b]}
    for _ in range(2):
        send(sender(granularity="path"), ended(job, (a, b), (out, other), fed_by=fed_by))
    process = atlas.there(APPLICATION, f"{job}@prod")
    assert (related(process, "inputs"), related(process, "outputs")) == (set(), set())
    assert related(process, "lineagePaths") == {f"{job}: {out}", f"{job}: {other}"}
    first, second = atlas.lineage("fs_path", f"{out}@primary"), atlas.lineage("fs_path", f"{other}@primary")
    assert len({start for start, end in first if end == f"{out}@primary"}) == 1
    assert len({end for start, end in atlas.lineage("fs_path", f"{a}@primary") if start == f"{a}@primary"}) == 2
    (way,) = {start for start, end in second if end == f"{other}@primary"}
    assert {start for start, end in second if end == way} == {f"{a}@primary", f"{b}@primary"}
    guid = atlas.there(PATH, way)["guid"]
    send(sender(granularity="path"), ended(job, (a,), (out,), fed_by={out: [a]}))
    assert atlas.status(guid) == "DELETED"
    assert related(atlas.there(APPLICATION, f"{job}@prod"), "lineagePaths") == {f"{job}: {out}"}


def hive(job: str, name: str, *columns: str, **facets: Any) -> dict[str, Any]:
    return dataset(f"{job.partition('.')[0]}.{name}", *columns, namespace="hive://ms:9083", **facets)


def test_tables_are_dropped_and_renamed(atlas: Atlas, sender: Sender, job: str) -> None:
    database, transport = job.partition(".")[0], sender()
    outputs = [hive(job, "old", "x"), hive(job, "gone", "x")]
    send(transport, event(job, "COMPLETE", outputs=outputs))
    table, column = (
        atlas.there(kind, f"{database}.old{end}@primary") for kind, end in (("hive_table", ""), ("hive_column", ".x"))
    )
    dropped = atlas.there("hive_table", f"{database}.gone@primary")["guid"]
    where = {"namespace": "hive://ms:9083"}
    rename = {"change": "RENAME", "objectName": f"{database}.new", "previousObjectName": f"{database}.old"}
    drop = {"change": "DROP", "objectName": f"{database}.gone", "name": f"{database}.gone", **where}
    done = changes({**rename, "name": f"{database}.new", **where}, drop)
    send(transport, event(job, "COMPLETE", outputs=[hive(job, "new", "x")], facets=done))
    renamed = atlas.there("hive_table", f"{database}.new@primary")
    assert (renamed["guid"], renamed["attributes"]["name"]) == (table["guid"], "new")
    assert atlas.there("hive_column", f"{database}.new.x@primary")["guid"] == column["guid"]
    assert atlas.entity("hive_table", f"{database}.old@primary") is None
    assert atlas.status(dropped) == "DELETED"
    # Again: there is nothing left to do.
    send(transport, event(job, "COMPLETE", outputs=[hive(job, "new", "x")], facets=done))
    assert atlas.there("hive_table", f"{database}.new@primary")["guid"] == table["guid"]


def test_a_table_that_is_dropped_and_made_anew_stays(atlas: Atlas, sender: Sender, job: str) -> None:
    database, transport = job.partition(".")[0], sender()
    name = {"objectName": f"{database}.t", "namespace": "hive://ms:9083", "name": f"{database}.t"}
    both = changes({"change": "DROP", **name}, {"change": "CREATE", **name})
    send(transport, event(job, "COMPLETE", outputs=[hive(job, "t")], facets=both))
    assert atlas.there("hive_table", f"{database}.t@primary")["status"] == "ACTIVE"


def test_a_table_of_sparks_own_catalog_is_not_hives(atlas: Atlas, sender: Sender, job: str) -> None:
    database, transport = job.partition(".")[0], sender()
    send(transport, event(f"{job}2", "COMPLETE", outputs=[hive(job, "t", "x")]))
    path = {"namespace": "file", "name": f"/wh/{database}.db/t", "objectName": f"{database}.t"}
    send(transport, event(job, "COMPLETE", outputs=[dataset(path["name"], "x")]))
    guid = atlas.there("fs_path", f"{path['name']}@primary")["guid"]
    send(transport, event(job, "COMPLETE", outputs=[dataset("/other")], facets=changes({"change": "DROP", **path})))
    assert atlas.there("hive_table", f"{database}.t@primary")["status"] == "ACTIVE"
    assert atlas.status(guid) == "DELETED"


def test_a_table_of_sparks_own_catalog_is_renamed(atlas: Atlas, sender: Sender, job: str) -> None:
    database, transport = job.partition(".")[0], sender()
    old, new = (f"/wh/{database}.db/{name}" for name in ("old", "new"))
    columns = made_from(("x", "/in", "y"))
    send(transport, event(job, "COMPLETE", outputs=[dataset(old, "x", columnLineage=columns)]))
    guids = [atlas.there("fs_path", f"{old}@primary")["guid"]]
    guids.append(atlas.there("spark_dataset_column", f"{old}.x@primary")["guid"])
    previous = {"lifecycleStateChange": "RENAME", "previousIdentifier": {"namespace": "file", "name": old}}
    renamed = {"change": "RENAME", "objectName": f"{database}.new", "previousObjectName": f"{database}.old"}
    done = changes({**renamed, "namespace": "file", "name": new})
    output = dataset(new, "x", columnLineage=columns, lifecycleStateChange=previous)
    send(transport, event(job, "COMPLETE", outputs=[output], facets=done))
    there = atlas.there("fs_path", f"{new}@primary")
    assert [there["guid"], atlas.there("spark_dataset_column", f"{new}.x@primary")["guid"]] == guids
    assert there["attributes"]["path"] == new


def test_what_hives_hook_has_written_stays(atlas: Atlas, sender: Sender, job: str) -> None:
    database = job.partition(".")[0]
    above = {
        "qualifiedName": f"{database}@primary",
        "name": database,
        "clusterName": "primary",
        "description": "of Hive",
    }
    table = {"qualifiedName": f"{database}.t@primary", "name": "t", "comment": "of Hive", "owner": "hive"}
    column = {"qualifiedName": f"{database}.t.x@primary", "name": "x", "type": "bigint", "comment": "of Hive"}
    refer = {"typeName": "hive_table", "guid": "-2"}
    atlas.put(
        {"typeName": "hive_db", "guid": "-1", "attributes": above},
        {**refer, "attributes": {**table, "db": {"typeName": "hive_db", "guid": "-1"}}},
        {"typeName": "hive_column", "guid": "-3", "attributes": {**column, "table": refer}},
    )
    output = hive(job, "t")
    output["facets"]["schema"] = {"fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "string"}]}
    send(sender(), event(job, "COMPLETE", outputs=[output]))
    there = atlas.there("hive_table", f"{database}.t@primary")
    assert {key: there["attributes"][key] for key in table} == table
    assert related(there, "columns") == {"x", "y"}
    there = atlas.there("hive_column", f"{database}.t.x@primary")
    assert {key: there["attributes"][key] for key in column} == column
    there = atlas.there("hive_db", f"{database}@primary")
    assert {key: there["attributes"][key] for key in above} == above


def test_a_run_of_an_earlier_time_changes_nothing(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    transport = sender()
    send(transport, ended(job, (a,), (out,), day="2026-05-02"))
    backfill: dict[str, Any] = {"day": "2026-04-01", "run_type": "backfill", "time": "2026-05-03T10:00:00+00:00"}
    send(transport, event(job, "START", **backfill), ended(job, (b,), (out,), **backfill))
    # Cleared, and run again a month later.
    late = {"day": "2026-04-01", "time": "2026-05-03T10:00:00+00:00"}
    send(transport, event(job, "START", **late), ended(job, (b,), (out,), **late))
    process = atlas.there(APPLICATION, f"{job}@prod")
    assert process["attributes"]["runId"] == "scheduled__2026-05-02"
    assert related(process, "inputs") == {a}
    send(transport, ended(job, (b,), (out,), day="2026-05-03"))
    assert atlas.there(APPLICATION, f"{job}@prod")["attributes"]["runId"] == "scheduled__2026-05-03"


def test_a_backfill_of_a_new_task_makes_it(atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]) -> None:
    a, _, out = paths
    send(sender(), ended(job, (a,), (out,), run_type="backfill"))
    assert related(atlas.there(APPLICATION, f"{job}@prod"), "inputs") == {a}


class Wrong:
    """An analyzer that gives a type that Atlas does not know."""

    def resolve(self, name: Any) -> Any:
        return name

    def atlas_entity(self, name: Any, namespace: str) -> Any:
        if name.name.endswith("b.csv"):
            return {"typeName": "no_such_type", "attributes": {"qualifiedName": f"{name.name}@{namespace}"}}
        return None


def test_of_a_bulk_with_a_bad_entity_only_that_one_is_lost(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    with pytest.raises(NotTakenError) as raised:
        send(sender(resolvers=f"{__name__}:Wrong"), ended(job, (a, b), (out,)))
    answer = answer_of(raised.value)
    assert answer.is_refusal
    assert "no_such_type" in answer.text
    assert f"{b}@primary" in answer.text
    assert "ATLAS-" in answer.text
    process = atlas.there(APPLICATION, f"{job}@prod")
    assert (related(process, "inputs"), related(process, "outputs")) == ({a}, {out})


def test_other_jobs_make_nothing(atlas: Atlas, sender: Sender, job: str) -> None:
    child = event(job, "COMPLETE")
    child["job"]["facets"]["jobType"]["jobType"] = "PATH"
    run = event(job, "COMPLETE")
    del run["run"]["facets"]["airflow"]
    send(sender(), child, run)
    assert atlas.entity(APPLICATION, f"{job}@prod") is None


def test_types_are_made_once_by_workers_that_come_together(atlas: Atlas, sender: Sender, tmp_path: Path) -> None:
    sender()
    rests = [AtlasRest(sender()._way._session, atlas.url) for _ in range(4)]  # type: ignore[union-attr]
    failures: list[BaseException] = []

    def make(rest: AtlasRest) -> None:
        try:
            rest.make_types()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=make, args=(rest,)) for rest in rests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = atlas.ask("GET", f"/types/typedef/name/{APPLICATION}").json()
    assert found["typeVersion"] == VERSION
    # Atlas's own, which its model has.
    names = {each["name"] for each in found["attributeDefs"]}
    assert {"dagId", "state", "endTime"} <= names


def test_what_is_wrong_is_said_without_secrets(
    monkeypatch: pytest.MonkeyPatch, atlas: Atlas, sender: Sender, job: str
) -> None:
    name, _ = atlas.login
    atlas.login = (name, "hunter2-wrong")
    transport = sender()
    with pytest.raises(NotTakenError) as raised:
        send(transport, event(job, "START"))
    answer = answer_of(raised.value)
    assert "401" in answer.text
    assert not answer.is_refusal
    assert "hunter2" not in answer.text


def graph(atlas: Atlas, job: str) -> dict[str, Any]:
    """All entities around a task by their names, without guids; ``job`` is left out of all texts."""
    found: dict[str, Any] = {}
    waiting = [atlas.there(APPLICATION, f"{job}@prod")["guid"]]
    while waiting:
        entity = atlas.ask("GET", f"/entity/guid/{waiting.pop()}").json()["entity"]
        name = f"{entity['typeName']} {entity['attributes']['qualifiedName']}".replace(job, "JOB")
        if name in found:
            continue
        related = entity["relationshipAttributes"]
        links = {key: each if isinstance(each, list) else [each] for key, each in related.items() if each}
        shown = {
            key: sorted((each["displayText"].replace(job, "JOB"), each["relationshipStatus"]) for each in some)
            for key, some in links.items()
        }
        attributes = {key: value for key, value in entity["attributes"].items() if key not in links}
        found[name] = json.loads(json.dumps([entity["status"], attributes, shown]).replace(job, "JOB"))
        waiting += [each["guid"] for some in links.values() for each in some]
    return found


def test_notifications_leave_the_same_as_rest(atlas: Atlas, sender: Sender, job: str) -> None:
    graphs = []
    for kind in ("rest", "kafka"):
        # One length and one order of names.
        own = job.replace(".", f"{len(graphs)}.")
        database = own.partition(".")[0]
        a, b, out = (f"/{own}/{name}" for name in ("a.csv", "b.csv", "out"))
        if kind == "kafka" and not atlas.kafka:
            pytest.skip("ATLAS_KAFKA does not say which broker Atlas reads")
        transport = sender(kind=kind)
        outputs = [dataset(out, "x", columnLineage=made_from(("x", a, "y")))]
        first, second = (dataset(f"{database}.{name}", "x", namespace="hive://ms:9083") for name in "tu")
        names = {"previousObjectName": f"{database}.t", "objectName": f"{database}.u"}
        renamed = changes({"change": "RENAME", "namespace": "hive://ms:9083", "name": f"{database}.u", **names})
        send(
            transport,
            event(own, "START", inputs=[dataset(a)]),
            event(own, "RUNNING", inputs=[dataset(a), dataset(b)]),
            event(own, "COMPLETE", inputs=[dataset(a, "y"), dataset(b)], outputs=[*outputs, first]),
            event(own, "START", inputs=[dataset(a), dataset(b)]),
            event(own, "COMPLETE", inputs=[dataset(a, "y")], outputs=[*outputs, second], facets=renamed, try_number=2),
        )
        atlas.wait(lambda name=f"{own}@prod": atlas.there(APPLICATION, name)["attributes"]["tryNumber"] == 2)
        graphs.append(json.loads(json.dumps(graph(atlas, own)).replace(database, "DAG")))
    assert graphs[0] == graphs[1]
    assert len(graphs[0]) > 8
