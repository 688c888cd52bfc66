"""What is in Atlas after the events of a task: each test holds for the emulator, and for the Atlas of ``ATLAS_URL``."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from atlas_events import Atlas, changes, dataset, driver_on, event, made_from, related, send, shown
from lineage_backends.atlas_emulator import atlas_emulator

from spark_lineage.atlas.rest import AtlasRest
from spark_lineage.atlas.sender import AtlasSender
from spark_lineage.atlas.types import DAG, PATH, TASK, VERSION
from spark_lineage.deliver.sender import Later, Refused

pytestmark = [pytest.mark.shares("kafka"), pytest.mark.truth]

Sender = Callable[..., AtlasSender]
# Of the names that something joins.
_HASH = re.compile(r":[0-9a-f]{16}@")


@pytest.fixture
def paths(job: str) -> tuple[str, str, str]:
    """Two inputs and an output that no other test has."""
    return f"/{job}/a.csv", f"/{job}/b.csv", f"/{job}/out"


def ended(job: str, inputs: tuple[str, ...], outputs: tuple[str, ...], **more: Any) -> dict[str, Any]:
    return event(job, "COMPLETE", inputs=map(dataset, inputs), outputs=map(dataset, outputs), **more)


def between(atlas: Atlas, job: str, column: str) -> dict[str, Any]:
    """The lineage of a column that a task makes."""
    links = atlas.there(TASK, f"{job}@prod")["relationshipAttributes"]["columnLineages"]
    names = {each["displayText"]: each["guid"] for each in links if each["entityStatus"] == "ACTIVE"}
    guid = names[f"{shown(job)}: {column}"]
    found: dict[str, Any] = atlas.ask("GET", f"/entity/guid/{guid}").json()["entity"]
    return found


def test_a_task_is_there_from_its_start_and_between_its_datasets_at_its_end(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    one = sender()
    send(one, event(job, "START", inputs=[dataset(a)]))
    process = atlas.there(TASK, f"{job}@prod")
    attributes = process["attributes"]
    assert (attributes["state"], attributes["owner"], attributes["taskId"]) == ("RUNNING", "data-team", "task")
    assert not attributes["endTime"]
    assert related(process, "inputs") == {a}
    send(one, event(job, "RUNNING", inputs=[dataset(b)]))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {a, b}
    send(one, ended(job, (a, b), (out,), time="2026-05-02T23:05:00+00:00"))
    process = atlas.there(TASK, f"{job}@prod")
    assert process["attributes"]["state"] == "COMPLETE"
    assert process["attributes"]["startTime"] == attributes["startTime"]
    assert process["attributes"]["endTime"] - process["attributes"]["startTime"] == 290_000
    assert atlas.lineage("fs_path", f"{out}@primary") == {
        (f"{a}@primary", f"{job}@prod"),
        (f"{b}@primary", f"{job}@prod"),
        (f"{job}@prod", f"{out}@primary"),
    }


def test_a_dag_takes_its_tasks_along(atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]) -> None:
    a, _, out = paths
    dag_id = job.partition(".")[0]
    names = [f"{dag_id}.load", f"{dag_id}.group.fill"]
    output = dataset(out, "x", columnLineage=made_from(("x", a, "y")))
    send(sender(), *(event(name, "COMPLETE", inputs=[dataset(a, "y")], outputs=[output]) for name in names))
    dag = atlas.there(DAG, f"{dag_id}@prod")
    # Of each the last part of its id is a word, which a search finds.
    assert related(dag, "tasks") == {f"load ({dag_id})", f"fill ({dag_id} group)"}
    tasks = [atlas.there(TASK, f"{name}@prod") for name in names]
    columns = [each["guid"] for task in tasks for each in task["relationshipAttributes"]["columnLineages"]]
    assert len(columns) == 2
    atlas.ask("DELETE", f"/entity/guid/{dag['guid']}").raise_for_status()
    assert {atlas.status(guid) for guid in (*columns, *(task["guid"] for task in tasks))} == {"DELETED"}
    assert atlas.there("fs_path", f"{out}@primary")["status"] == "ACTIVE"


def test_local_files_of_two_hosts_are_two(atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]) -> None:
    a, _, out = paths
    # Before the driver is there, its host is not known.
    send(sender(), event(job, "START", inputs=[dataset(a)], facets={"sparkLineage_application": {}}))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == set()
    guids = []
    for host in ("one", "two"):
        send(sender(), ended(job, (a,), (out,), facets=driver_on(host)))
        guids.append(atlas.there("fs_path", f"{a}@{host}")["guid"])
        inputs = atlas.there(TASK, f"{job}@prod")["relationshipAttributes"]["inputs"]
        assert [each["guid"] for each in inputs if each["relationshipStatus"] == "ACTIVE"] == guids[-1:]
    assert guids[0] != guids[1]
    assert atlas.entity("fs_path", f"{a}@primary") is None


def test_a_second_run_makes_nothing_new(atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]) -> None:
    a, _, out = paths
    columns = made_from(("x", a, "y"))
    end = event(job, "COMPLETE", inputs=[dataset(a, "y")], outputs=[dataset(out, "x", columnLineage=columns)])
    keys = [
        (TASK, f"{job}@prod"),
        ("fs_path", f"{a}@primary"),
        ("fs_path", f"{out}@primary"),
        ("spark_dataset_column", f"{a}.y@primary"),
    ]
    guids = []
    for _ in range(2):
        one = sender()
        send(one, event(job, "START"), end)
        guids.append([atlas.there(*key)["guid"] for key in keys] + [between(atlas, job, "x")["guid"]])
    assert guids[0] == guids[1]
    process = atlas.there(TASK, f"{job}@prod")
    assert [len(process["relationshipAttributes"][name]) for name in ("inputs", "outputs", "columnLineages")] == [1] * 3


def test_what_a_task_has_no_more_leaves_it_when_it_succeeds(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    one = sender()
    send(one, ended(job, (a, b), (out,)))
    send(one, event(job, "START", inputs=[dataset(a)]))
    send(one, event(job, "FAIL", inputs=[dataset(a)]))
    process = atlas.there(TASK, f"{job}@prod")
    assert process["attributes"]["state"] == "FAIL"
    assert (related(process, "inputs"), related(process, "outputs")) == ({a, b}, {out})
    # Where nothing was read and nothing is known, nothing is known to be gone.
    send(one, ended(job, (), ()))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {a, b}
    send(one, ended(job, (a,), (out,)))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {a}
    assert atlas.there("fs_path", f"{b}@primary")["status"] == "ACTIVE"
    # And does not come back with a run that fails.
    send(one, event(job, "FAIL", inputs=[dataset(a)]))
    process = atlas.there(TASK, f"{job}@prod")
    assert (related(process, "inputs"), related(process, "outputs")) == ({a}, {out})


@pytest.mark.parametrize("names", [["a"], ["b"], ["a", "b"]])
def test_what_left_a_task_comes_back(atlas: Atlas, sender: Sender, job: str, names: list[str]) -> None:
    def run(inputs: Sequence[str]) -> set[str]:
        send(sender(), ended(job, tuple(f"/{job}/{each}" for each in inputs), (f"/{job}/out",)))
        return related(atlas.there(TASK, f"{job}@prod"), "inputs")

    for _ in range(2):
        assert run("abc") == {f"/{job}/{each}" for each in "abc"}
        left = [each for each in "abc" if each not in names]
        assert run(left) == {f"/{job}/{each}" for each in left}


def test_columns_come_from_those_whose_values_they_have(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    direct = made_from(("x", a, "y"), ("x", b, "z"), ("w", b, "z"))
    direct["fields"]["w"]["inputFields"] += made_from(("w", a, "y"), kind="INDIRECT")["fields"]["w"]["inputFields"]
    end = {"inputs": [dataset(a, "y"), dataset(b, "z")], "outputs": [dataset(out, "x", "w", columnLineage=direct)]}
    send(sender(), event(job, "COMPLETE", **end))
    last = between(atlas, job, "w")
    name = last["attributes"]["qualifiedName"]
    lineage = atlas.lineage("spark_dataset_column", f"{out}.w@primary")
    assert lineage >= {(f"{b}.z@primary", name), (name, f"{out}.w@primary")}
    assert related(last, "inputs") == {"z"}
    assert last["attributes"]["expression"] == "IDENTITY"
    assert related(between(atlas, job, "x"), "inputs") == {"y", "z"}
    # A column that is made no more loses its lineage.
    end["outputs"] = [dataset(out, "x", columnLineage=made_from(("x", a, "y")))]
    send(sender(), event(job, "COMPLETE", **end))
    assert atlas.status(last["guid"]) == "DELETED"
    # One that is made of others, too, has all of them, again and again.
    for sources in [("y",), ("y", "z"), ("y",), ("y", "z")]:
        made = made_from(*(("x", a, each) for each in sources))
        end["outputs"] = [dataset(out, "x", columnLineage=made)]
        send(sender(), event(job, "COMPLETE", **end))
        assert related(between(atlas, job, "x"), "inputs") == set(sources)
    send(sender(columns="none"), event(job, "COMPLETE", **end))
    assert related(atlas.there(TASK, f"{job}@prod"), "columnLineages") == set()


@pytest.mark.parametrize("kind", ["rest", "kafka"])
def test_a_stream_shows_its_sources_and_sinks_while_it_runs(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str], kind: str
) -> None:
    if kind == "kafka" and not atlas.kafka:
        pytest.skip("ATLAS_KAFKA does not say which broker Atlas reads")
    a, _, out = paths
    one = sender(kind=kind)
    streaming: dict[str, Any] = {"processing": "STREAMING"}
    send(one, event(job, "START", **streaming))
    send(one, event(job, "RUNNING", inputs=[dataset(a)], outputs=[dataset(out)], **streaming))
    name = f"{job}@prod"
    atlas.wait(lambda: related(atlas.there(TASK, name), "inputs") == {a})
    process = atlas.there(TASK, name)
    assert process["attributes"]["state"] == "RUNNING"
    assert related(process, "outputs") == {out}


def test_each_output_has_a_process_of_its_own(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    other = f"{out}2"
    fed_by = {out: [a], other: [a, b]}
    for _ in range(2):
        send(sender(granularity="path"), ended(job, (a, b), (out, other), fed_by=fed_by))
    process = atlas.there(TASK, f"{job}@prod")
    assert (related(process, "inputs"), related(process, "outputs")) == (set(), set())
    assert related(process, "lineagePaths") == {f"{shown(job)}: {out}", f"{shown(job)}: {other}"}
    first, second = atlas.lineage("fs_path", f"{out}@primary"), atlas.lineage("fs_path", f"{other}@primary")
    assert len({start for start, end in first if end == f"{out}@primary"}) == 1
    assert len({end for start, end in atlas.lineage("fs_path", f"{a}@primary") if start == f"{a}@primary"}) == 2
    (way,) = {start for start, end in second if end == f"{other}@primary"}
    assert {start for start, end in second if end == way} == {f"{a}@primary", f"{b}@primary"}
    guid = atlas.there(PATH, way)["guid"]
    # Half a way is none.
    send(sender(granularity="path"), event(job, "RUNNING", inputs=[dataset(a)], outputs=[dataset(other)]))
    assert len(atlas.there(TASK, f"{job}@prod")["relationshipAttributes"]["lineagePaths"]) == 2
    send(sender(granularity="path"), ended(job, (a,), (out,), fed_by={out: [a]}))
    assert atlas.status(guid) == "DELETED"
    assert related(atlas.there(TASK, f"{job}@prod"), "lineagePaths") == {f"{shown(job)}: {out}"}


def test_a_run_of_an_earlier_time_changes_nothing(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    one = sender()
    send(one, ended(job, (a,), (out,), day="2026-05-02"))
    backfill: dict[str, Any] = {"day": "2026-04-01", "run_type": "backfill", "time": "2026-05-03T10:00:00+00:00"}
    send(one, event(job, "START", **backfill), ended(job, (b,), (out,), **backfill))
    # Cleared, and run again a month later.
    late = {"day": "2026-04-01", "time": "2026-05-03T10:00:00+00:00"}
    send(one, event(job, "START", **late), ended(job, (b,), (out,), **late))
    # One without an interval.
    manual = ended(job, (b,), (out,), run_type="manual", **late)
    for side in ("start", "end"):
        del manual["run"]["facets"]["airflow"]["dagRun"][f"data_interval_{side}"]
    send(one, manual)
    process = atlas.there(TASK, f"{job}@prod")
    assert process["attributes"]["runId"] == "scheduled__2026-05-02"
    assert related(process, "inputs") == {a}
    send(one, ended(job, (b,), (out,), day="2026-05-03"))
    assert atlas.there(TASK, f"{job}@prod")["attributes"]["runId"] == "scheduled__2026-05-03"


def test_an_event_that_comes_after_a_later_end_changes_nothing(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    one = sender()
    send(one, ended(job, (a,), (out,), day="2026-05-09"))
    dropped = {"change": "DROP", "namespace": "file", "name": f"/{job}/wh/db.db/t", "objectName": "db.t"}
    send(one, ended(f"{job}2", (), (dropped["name"],)))
    # As one of the dead letters that is sent again.
    late = event(job, "START", day="2026-05-02"), ended(job, (b,), (out,), day="2026-05-02", facets=changes(dropped))
    send(one, *late)
    process = atlas.there(TASK, f"{job}@prod")
    assert (process["attributes"]["runId"], related(process, "inputs")) == ("scheduled__2026-05-09", {a})
    assert atlas.there("fs_path", f"{dropped['name']}@primary")["status"] == "ACTIVE"
    # A backfill has dropped it now.
    now = {"run_type": "backfill", "time": "2026-05-10T10:00:00+00:00"}
    send(one, ended(job, (b,), (out,), day="2026-05-02", facets=changes(dropped), **now))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {a}
    assert atlas.entity("fs_path", f"{dropped['name']}@primary") is None


def test_a_backfill_of_a_new_task_makes_it(atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]) -> None:
    a, _, out = paths
    send(sender(), ended(job, (a,), (out,), run_type="backfill"))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {a}


class Wrong:
    """An analyzer that gives a type that Atlas does not know, and fails for what it does not know itself."""

    def resolve(self, name: Any) -> Any:
        return name

    def atlas_entity(self, name: Any, namespace: str) -> Any:
        if name.name.endswith("out"):
            return {"typeName": "fs_path", "attributes": {"qualifiedName": "x", "path": {1.5}}}
        if name.name.endswith("b.csv"):
            return {"typeName": "no_such_type", "attributes": {"qualifiedName": f"{name.name}@{namespace}"}}
        return None


def test_of_a_bulk_with_a_bad_entity_only_that_one_is_lost(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    columns = made_from(("x", a, "y"), ("z", b, "y"))
    outputs = [dataset(out, "x", "z", columnLineage=columns)]
    guids = []
    end = event(job, "COMPLETE", inputs=[dataset(a, "y"), dataset(b, "y")], outputs=outputs)
    for _ in range(2):
        with pytest.raises(Refused) as raised:
            send(sender(resolvers=f"{__name__}:Wrong"), end)
        guids.append(between(atlas, job, "x")["guid"])
    assert guids[0] == guids[1]
    for text in ("no_such_type", f"{b}@primary", "ATLAS-"):
        assert text in str(raised.value)
    process = atlas.there(TASK, f"{job}@prod")
    assert (related(process, "inputs"), related(process, "outputs")) == ({a}, {out})


def test_one_table_in_two_clusters_has_the_lineage_of_both(atlas: Atlas, sender: Sender, job: str) -> None:
    paths = [f"hdfs://{each}:8020" for each in ("nn1", "nn2")]
    outputs = []
    for each in paths:
        edge = {"namespace": each, "name": f"/{job}/in", "field": "y", "transformations": [{"type": "DIRECT"}]}
        lineage = {"fields": {"x": {"inputFields": [edge]}}}
        outputs.append(dataset(f"/{job}/out", "x", namespace=each, columnLineage=lineage))
    extra = {"hostnamePattern.east": "nn1", "hostnamePattern.west": "nn2"}
    send(sender(**extra), event(job, "COMPLETE", outputs=outputs))
    links = atlas.there(TASK, f"{job}@prod")["relationshipAttributes"]["columnLineages"]
    assert len(links) == 2


def test_what_is_too_long_for_atlas_is_cut(atlas: Atlas, sender: Sender, job: str) -> None:
    names = [f"/{job}/{'é' * 40_000}{end}" for end in "ab"]
    send(sender(), ended(job, tuple(names), ()), ended(job, tuple(names), ()))
    links = atlas.there(TASK, f"{job}@prod")["relationshipAttributes"]["inputs"]
    assert len(links) == 2
    assert all(each["displayText"].startswith(names[0][:5_000]) for each in links)


def test_a_start_brings_what_it_names_where_nothing_is_there(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    # The second request of a START was lost.
    send(sender(), event(job, "START"))
    send(sender(), event(job, "START", inputs=[dataset(a)], outputs=[dataset(out)]))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {a}
    send(sender(), event(job, "START", inputs=[dataset(b)]))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {a}


def test_what_others_wrote_stays(atlas: Atlas, sender: Sender, job: str) -> None:
    name = job.partition(".")[0]
    topic = {"qualifiedName": f"{name}@primary", "name": "Orders", "topic": name, "uri": "of Kafka", "owner": "ops"}
    table = {"qualifiedName": f"default:{name}@primary", "name": f"default:{name}", "uri": "of HBase"}
    space = {"typeName": "hbase_namespace", "guid": "-3"}
    atlas.put(
        {"typeName": "kafka_topic", "guid": "-1", "attributes": topic},
        {**space, "attributes": {"qualifiedName": "default@primary", "name": "default", "clusterName": "primary"}},
        {"typeName": "hbase_table", "guid": "-2", "attributes": {**table, "namespace": space}},
    )
    inputs = [dataset(name, namespace="kafka://b:9092"), dataset(name.upper(), namespace="hbase://zk:2181")]
    send(sender(), event(job, "COMPLETE", inputs=inputs))
    for kind, there in (("kafka_topic", topic), ("hbase_table", table)):
        attributes = atlas.there(kind, there["qualifiedName"])["attributes"]
        assert {key: attributes[key] for key in there} == there
    send(sender(), event(job, "START"))
    atlas.change(TASK, f"{job}@prod", description="by a steward")
    send(sender(), event(job, "RUNNING"))
    assert atlas.there(TASK, f"{job}@prod")["attributes"]["description"] == "by a steward"


def test_types_are_made_where_atlas_has_lost_them(sender: Sender, job: str, paths: tuple[str, str, str]) -> None:
    a, _, out = paths
    with atlas_emulator() as found:
        empty = Atlas(found.url, (found.user, found.password))
        one = sender(empty)
        one._stamp.parent.mkdir()
        one._stamp.touch()
        outputs = [dataset(out, "x", columnLineage=made_from(("x", a, "y")))]
        send(one, event(job, "START"), event(job, "COMPLETE", inputs=[dataset(a, "y")], outputs=outputs))
        process = empty.there(TASK, f"{job}@prod")
        assert process["attributes"]["state"] == "COMPLETE"
        assert related(process, "columnLineages") == {f"{shown(job)}: x"}


def test_many_datasets_come_in_some_requests(atlas: Atlas, sender: Sender, job: str) -> None:
    names = [f"/{job}/{number}" for number in range(120)]
    columns = made_from(*((f"x{number}", name, "y") for number, name in enumerate(names[:40])))
    inputs = [dataset(name, "y") for name in names]
    output = dataset(f"/{job}/out", *columns["fields"], columnLineage=columns)
    send(sender(), event(job, "COMPLETE", inputs=inputs, outputs=[output]))
    process = atlas.there(TASK, f"{job}@prod")
    assert related(process, "inputs") == set(names)
    assert related(process, "columnLineages") == {f"{shown(job)}: x{number}" for number in range(40)}
    others = [f"{name}b" for name in names]
    send(sender(), ended(job, tuple(others), (f"/{job}/out",)))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == set(others)


def test_other_jobs_make_nothing(atlas: Atlas, sender: Sender, job: str) -> None:
    child = event(job, "COMPLETE")
    child["job"]["facets"]["jobType"]["jobType"] = "PATH"
    run = event(job, "COMPLETE")
    del run["run"]["facets"]["airflow"]
    send(sender(), child, run)
    assert atlas.entity(TASK, f"{job}@prod") is None


def test_types_are_made_once_by_workers_that_come_together(atlas: Atlas, sender: Sender, tmp_path: Path) -> None:
    sender()
    rests = [AtlasRest(sender()._channel._session, atlas.url) for _ in range(4)]  # type: ignore[union-attr]
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
    found = atlas.ask("GET", f"/types/typedef/name/{TASK}").json()
    assert found["typeVersion"] == VERSION
    # Atlas's own, which its model has.
    names = {each["name"] for each in found["attributeDefs"]}
    assert {"dagId", "state", "endTime"} <= names


def test_what_is_wrong_is_said_without_secrets(
    monkeypatch: pytest.MonkeyPatch, atlas: Atlas, sender: Sender, job: str
) -> None:
    name, _ = atlas.login
    atlas.login = (name, "hunter2-wrong")
    one = sender()
    with pytest.raises(Later, match="401") as raised:
        send(one, event(job, "START"))
    assert "hunter2" not in str(raised.value)


def graph(atlas: Atlas, job: str) -> dict[str, Any]:
    """All entities around a task by their names, without guids; ``job`` is left out of all texts."""
    found: dict[str, Any] = {}
    waiting = [atlas.there(TASK, f"{job}@prod")["guid"]]
    while waiting:
        entity = atlas.ask("GET", f"/entity/guid/{waiting.pop()}").json()["entity"]
        name = _HASH.sub("@", f"{entity['typeName']} {entity['attributes']['qualifiedName']}").replace(job, "JOB")
        if name in found:
            continue
        related = entity["relationshipAttributes"]
        links = {key: each if isinstance(each, list) else [each] for key, each in related.items() if each}
        shown = {
            key: sorted((each["displayText"].replace(job, "JOB"), each["relationshipStatus"]) for each in some)
            for key, some in links.items()
        }
        # Nobody can ask over Kafka what was done.
        own = {*links, "lastEnd"}
        attributes = {key: value for key, value in entity["attributes"].items() if key not in own}
        found[name] = json.loads(_HASH.sub("@", json.dumps([entity["status"], attributes, shown])).replace(job, "JOB"))
        waiting += [each["guid"] for some in links.values() for each in some]
    return found


def test_an_event_that_comes_again_changes_nothing(
    atlas: Atlas, sender: Sender, job: str, paths: tuple[str, str, str]
) -> None:
    a, b, out = paths
    one, database = sender(), job.partition(".")[0]
    tables = {name: dataset(f"{database}.{name}", "x", namespace="hive://ms:9083") for name in ("t", "old", "new", "u")}
    send(one, event(f"{job}2", "COMPLETE", outputs=[tables["t"], tables["old"]]))
    where = {"namespace": "hive://ms:9083"}
    dropped = {"change": "DROP", **where, "name": f"{database}.t", "objectName": f"{database}.t"}
    names = {"objectName": f"{database}.new", "previousObjectName": f"{database}.old"}
    renamed = {"change": "RENAME", **where, "name": f"{database}.new", **names}
    edge = {**where, "name": f"{database}.t", "field": "x", "transformations": [{"type": "DIRECT"}]}
    lineage = {"fields": {"x": {"inputFields": [edge]}}}
    inputs = [dataset(a), tables["t"], tables["old"]]
    outputs = [dataset(out, "x", columnLineage=lineage)]
    done = changes(dropped, renamed)
    events = [
        event(job, "START", inputs=[dataset(b)]),
        event(job, "RUNNING", inputs=inputs, facets={"sparkLineage_status": {"uiUrl": "http://driver:4040"}}),
        event(job, "COMPLETE", inputs=inputs, outputs=outputs, facets=done),
        event(job, "START", day="2026-05-03"),
        event(job, "RUNNING", inputs=[dataset(b)], day="2026-05-03"),
        event(job, "FAIL", inputs=[dataset(b)], outputs=[tables["u"]], day="2026-05-03"),
    ]
    for number, each in enumerate(events, 1):
        send(one, each)
        before = graph(atlas, job)
        send(one, *events[:number])
        assert graph(atlas, job) == before
        is_there = number < 3
        assert (atlas.entity("hive_table", f"{database}.t@primary") is not None) == is_there
        assert (atlas.entity("hive_table", f"{database}.old@primary") is not None) == is_there
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {a, b, "new"}
    assert not atlas.there(TASK, f"{job}@prod")["attributes"]["changesDone"]


def test_notifications_leave_the_same_as_rest(atlas: Atlas, sender: Sender, job: str) -> None:
    graphs = []
    for kind in ("rest", "kafka"):
        # One length and one order of names.
        own = job.replace(".", f"{len(graphs)}.")
        database = own.partition(".")[0]
        a, b, out = (f"/{own}/{name}" for name in ("a.csv", "b.csv", "out"))
        if kind == "kafka" and not atlas.kafka:
            pytest.skip("ATLAS_KAFKA does not say which broker Atlas reads")
        one = sender(kind=kind)
        outputs = [dataset(out, "x", columnLineage=made_from(("x", a, "y")))]
        first, second = (dataset(f"{database}.{name}", "x", namespace="hive://ms:9083") for name in "tu")
        names = {"previousObjectName": f"{database}.t", "objectName": f"{database}.u"}
        renamed = changes({"change": "RENAME", "namespace": "hive://ms:9083", "name": f"{database}.u", **names})
        where = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
        made = changes({"change": "CREATE", **where})
        last: dict[str, Any] = {"facets": renamed, "try_number": 2, "time": "2026-05-02T23:30:00+00:00"}
        send(
            one,
            event(own, "START", inputs=[dataset(a)]),
            event(own, "RUNNING", inputs=[dataset(a), dataset(b)]),
            event(own, "COMPLETE", inputs=[dataset(a, "y"), dataset(b)], outputs=[*outputs, first], facets=made),
            event(own, "START", inputs=[dataset(a), dataset(b)]),
            event(own, "COMPLETE", inputs=[dataset(a, "y")], outputs=[*outputs, second], **last),
        )
        atlas.wait(lambda name=f"{own}@prod": atlas.there(TASK, name)["attributes"]["tryNumber"] == 2)
        graphs.append(json.loads(json.dumps(graph(atlas, own)).replace(database, "DAG")))
    assert graphs[0] == graphs[1]
    assert len(graphs[0]) > 8


def test_a_repeated_start_leaves_what_it_does_not_know(atlas: Atlas, sender: Sender, job: str) -> None:
    one = sender()
    start = event(job, "START", facets={"sparkLineage_application": {}})
    applications = [{"uiUrl": "http://primary:4040", "applicationId": "app_1"}]
    known = {"sparkLineage_application": {"applications": applications}, "sparkLineage_status": {"uiUrl": "http://ui"}}
    send(one, start, event(job, "RUNNING", facets=known), start)
    found = atlas.there(TASK, f"{job}@prod")["attributes"]
    assert (found["applicationId"], found["uiUrl"]) == ("app_1", "http://ui")
    # The next try has another application.
    send(one, event(job, "START", try_number=2, facets={"sparkLineage_application": {}}))
    found = atlas.there(TASK, f"{job}@prod")["attributes"]
    assert (found["applicationId"], found["uiUrl"]) == (None, None)
