"""What becomes of tables in Atlas: dropped, renamed, changed; each test holds for the Atlas of ``ATLAS_URL``, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from atlas_events import Atlas, changes, dataset, event, made_from, related, send, shown

from spark_lineage.atlas.rest import AtlasRefusal, AtlasRest
from spark_lineage.atlas.sender import AtlasSender
from spark_lineage.atlas.types import DAG, TASK
from spark_lineage.deliver.sender import Later, Refused

pytestmark = [pytest.mark.shares("kafka"), pytest.mark.truth]

Sender = Callable[..., AtlasSender]


def hive(job: str, name: str, *columns: str, **facets: Any) -> dict[str, Any]:
    return dataset(f"{job.partition('.')[0]}.{name}", *columns, namespace="hive://ms:9083", **facets)


def test_tables_are_dropped_and_renamed(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    outputs = [hive(job, "old", "x"), hive(job, "gone", "x")]
    send(one, event(job, "COMPLETE", outputs=outputs))
    table, column = (
        atlas.there(kind, f"{database}.old{end}@primary") for kind, end in (("hive_table", ""), ("hive_column", ".x"))
    )
    dropped = atlas.there("hive_table", f"{database}.gone@primary")["guid"]
    where = {"namespace": "hive://ms:9083"}
    rename = {"change": "RENAME", "objectName": f"{database}.new", "previousObjectName": f"{database}.old"}
    drop = {"change": "DROP", "objectName": f"{database}.gone", "name": f"{database}.gone", **where}
    done = changes({**rename, "name": f"{database}.new", **where}, drop)
    send(one, event(job, "COMPLETE", outputs=[hive(job, "new", "x")], facets=done))
    renamed = atlas.there("hive_table", f"{database}.new@primary")
    assert (renamed["guid"], renamed["attributes"]["name"]) == (table["guid"], "new")
    assert atlas.there("hive_column", f"{database}.new.x@primary")["guid"] == column["guid"]
    assert atlas.entity("hive_table", f"{database}.old@primary") is None
    assert atlas.status(dropped) == "DELETED"
    # Again: there is nothing left to do.
    send(one, event(job, "COMPLETE", outputs=[hive(job, "new", "x")], facets=done))
    assert atlas.there("hive_table", f"{database}.new@primary")["guid"] == table["guid"]


def test_a_table_that_is_dropped_and_made_anew_stays(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    name = {"objectName": f"{database}.t", "namespace": "hive://ms:9083", "name": f"{database}.t"}
    both = changes({"change": "DROP", **name}, {"change": "CREATE", **name})
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t")], facets=both))
    assert atlas.there("hive_table", f"{database}.t@primary")["status"] == "ACTIVE"


def test_a_table_of_sparks_own_catalog_is_not_hives(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    send(one, event(f"{job}2", "COMPLETE", outputs=[hive(job, "t", "x")]))
    path = {"namespace": "file", "name": f"/wh/{database}.db/t", "objectName": f"{database}.t"}
    send(one, event(job, "COMPLETE", outputs=[dataset(path["name"], "x")]))
    guid = atlas.there("fs_path", f"{path['name']}@primary")["guid"]
    send(one, event(job, "COMPLETE", outputs=[dataset("/other")], facets=changes({"change": "DROP", **path})))
    assert atlas.there("hive_table", f"{database}.t@primary")["status"] == "ACTIVE"
    assert atlas.status(guid) == "DELETED"


def test_a_table_of_sparks_own_catalog_is_renamed(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    old, new = (f"/wh/{database}.db/{name}" for name in ("old", "new"))
    columns = made_from(("x", "/in", "y"))
    send(one, event(job, "COMPLETE", outputs=[dataset(old, "x", columnLineage=columns)]))
    guids = [atlas.there("fs_path", f"{old}@primary")["guid"]]
    guids.append(atlas.there("spark_dataset_column", f"{old}.x@primary")["guid"])
    previous = {"lifecycleStateChange": "RENAME", "previousIdentifier": {"namespace": "file", "name": old}}
    renamed = {"change": "RENAME", "objectName": f"{database}.new", "previousObjectName": f"{database}.old"}
    done = changes({**renamed, "namespace": "file", "name": new})
    output = dataset(new, "x", columnLineage=columns, lifecycleStateChange=previous)
    send(one, event(job, "COMPLETE", outputs=[output], facets=done))
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
    column = {"qualifiedName": f"{database}.t.x@primary", "name": "x", "type": "varchar(20)", "comment": "of Hive"}
    refer = {"typeName": "hive_table", "guid": "-2"}
    atlas.put(
        {"typeName": "hive_db", "guid": "-1", "attributes": above},
        {**refer, "attributes": {**table, "db": {"typeName": "hive_db", "guid": "-1"}}},
        {"typeName": "hive_column", "guid": "-3", "attributes": {**column, "table": refer}},
    )
    output = hive(job, "t")
    nested = {"name": "y", "type": "struct", "fields": [{"name": "long", "type": "long"}]}
    output["facets"]["schema"] = {"fields": [{"name": "x", "type": "string"}, nested]}
    send(sender(), event(job, "COMPLETE", outputs=[output]))
    there = atlas.there("hive_table", f"{database}.t@primary")
    assert {key: there["attributes"][key] for key in table} == table
    # The task has not changed the table.
    assert related(there, "columns") == {"x"}
    there = atlas.there("hive_column", f"{database}.t.x@primary")
    assert {key: there["attributes"][key] for key in column} == column
    there = atlas.there("hive_db", f"{database}@primary")
    assert {key: there["attributes"][key] for key in above} == above
    where = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
    altered = changes({"change": "ALTER", **where, "columns": [{"new": nested}]})
    send(sender(), event(job, "COMPLETE", outputs=[output], facets=altered))
    assert related(atlas.there("hive_table", f"{database}.t@primary"), "columns") == {"x", "y"}
    assert atlas.there("hive_column", f"{database}.t.y@primary")["attributes"]["type"] == "struct<long:bigint>"


def hives_hook(atlas: Atlas, database: str, name: str = "t", **attributes: Any) -> dict[str, str]:
    """Describe a table with a column and a partition key as Hive's hook does; return the GUIDs of both."""

    def refer(number: int, kind: str, role: str) -> dict[str, Any]:
        return {"typeName": kind, "guid": f"-{number}", "relationshipType": f"hive_table_{role}"}

    above = {"qualifiedName": f"{database}@primary", "name": database, "clusterName": "primary"}
    roles = {"x": "columns", "d": "partitionkeys"}
    columns = [
        {
            "typeName": "hive_column",
            "guid": f"-{number}",
            "attributes": {"qualifiedName": f"{database}.{name}.{each}@primary", "name": each, "type": "string"},
            "relationshipAttributes": {"table": refer(2, "hive_table", role)},
        }
        for number, (each, role) in enumerate(roles.items(), 3)
    ]
    related = {"columns": [refer(3, "hive_column", "columns")]}
    related |= {"partitionKeys": [refer(4, "hive_column", "partitionkeys")]}
    described = {"qualifiedName": f"{database}.{name}@primary", "name": name, "comment": "of Hive", "createTime": 7_000}
    table = described | attributes
    atlas.put(
        {"typeName": "hive_db", "guid": "-1", "attributes": above},
        {
            "typeName": "hive_table",
            "guid": "-2",
            "attributes": table,
            "relationshipAttributes": {"db": refer(1, "hive_db", "db"), **related},
        },
        *columns,
    )
    return {each: atlas.there("hive_column", f"{database}.{name}.{each}@primary")["guid"] for each in "xd"}


@pytest.mark.parametrize("kind", ["rest", "kafka"])
@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_a_table_of_hives_hook_keeps_its_columns_and_partition_keys(
    atlas: Atlas, sender: Sender, job: str, side: str, kind: str
) -> None:
    if kind == "kafka" and not atlas.kafka:
        pytest.skip("ATLAS_KAFKA does not say which broker Atlas reads")
    database = job.partition(".")[0]
    sender()._make_types()
    before = hives_hook(atlas, database)
    table, out = hive(job, "t", "x", "d"), dataset(f"/{job}/out", "x", "d")
    out["facets"]["columnLineage"] = {
        "fields": {
            name: {"inputFields": [{**{key: table[key] for key in ("namespace", "name")}, "field": name}]}
            for name in ("x", "d")
        }
    }
    given = {"inputs": [table], "outputs": [out]} if side == "inputs" else {"outputs": [table]}
    send(sender(kind=kind), event(job, "COMPLETE", **given))
    name = f"{job}@prod"
    atlas.wait(lambda: related(atlas.there(TASK, name), side) == {"t"})

    def check() -> None:
        there = atlas.there("hive_table", f"{database}.t@primary")
        assert (related(there, "columns"), related(there, "partitionKeys")) == ({"x"}, {"d"})
        assert {each: atlas.there("hive_column", f"{database}.t.{each}@primary")["guid"] for each in "xd"} == before
        if side == "inputs":
            assert related(atlas.there(TASK, name), "columnLineages") == {f"{shown(job)}: x", f"{shown(job)}: d"}

    check()
    hives_hook(atlas, database)
    check()


def test_columns_that_atlas_does_not_have_of_a_table_that_is_read_are_not_made(
    atlas: Atlas, sender: Sender, job: str
) -> None:
    database = job.partition(".")[0]
    edge = {"namespace": "hive://ms:9083", "name": f"{database}.t", "field": "x"}
    output = dataset(f"/{job}/out", "x", columnLineage={"fields": {"x": {"inputFields": [edge]}}})
    send(sender(), event(job, "COMPLETE", inputs=[hive(job, "t", "x")], outputs=[output]))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {"t"}
    assert related(atlas.there("hive_table", f"{database}.t@primary"), "columns") == set()


@pytest.mark.parametrize("kind", ["rest", "kafka"])
def test_a_table_that_spark_makes_is_described_as_by_hives_hook(
    atlas: Atlas, sender: Sender, job: str, kind: str
) -> None:
    if kind == "kafka" and not atlas.kafka:
        pytest.skip("ATLAS_KAFKA does not say which broker Atlas reads")
    database = job.partition(".")[0]
    sender()._make_types()
    path = {"namespace": "hdfs://nn:8020", "name": f"/warehouse/{database}.db/t"}
    names = {"symlinks": {"identifiers": [{"namespace": "hive://ms:9083", "name": f"{database}.t", "type": "TABLE"}]}}
    fields = [{"name": name, "type": "string", "description": f"the {name}"} for name in ("x", "d", "y")]
    output = {**path, "facets": {**names, "schema": {"fields": fields}}}
    made = {"change": "CREATE", **path, "objectName": f"{database}.t", "time": "2026-05-02T23:01:00+00:00"}
    done = changes({**made, "partitionedBy": ["D"], "properties": {"comment": "of orders"}})
    send(sender(kind=kind), event(job, "COMPLETE", outputs=[output], facets=done))
    atlas.wait(lambda: related(atlas.there(TASK, f"{job}@prod"), "outputs") == {"t"})
    there = atlas.there("hive_table", f"{database}.t@primary")
    assert (related(there, "columns"), related(there, "partitionKeys")) == ({"x", "y"}, {"d"})
    expected = {"comment": "of orders", "createTime": 1_777_762_860_000, "owner": "data-team"}
    attributes = there["attributes"]
    assert {key: attributes[key] for key in expected} == expected
    assert attributes["tableType"] == "MANAGED_TABLE"
    storage = atlas.there("hive_storagedesc", f"{database}.t@primary_storage")
    assert storage["attributes"]["location"] == f"hdfs://nn:8020/warehouse/{database}.db/t"
    assert there["relationshipAttributes"]["sd"]["guid"] == storage["guid"]
    for name, place in (("x", 0), ("y", 1), ("d", 0)):
        column = atlas.there("hive_column", f"{database}.t.{name}@primary")["attributes"]
        assert (column["position"], column["comment"]) == (place, f"the {name}")


@pytest.mark.parametrize("event_type", ["COMPLETE", "FAIL"])
@pytest.mark.parametrize("is_made_now", [False, True])
def test_a_table_takes_the_place_of_one_that_was_dropped(
    atlas: Atlas, sender: Sender, job: str, event_type: str, *, is_made_now: bool
) -> None:
    """One that was there before keeps its GUID; one that was made to take the place gives it up."""
    database, one = job.partition(".")[0], sender()
    before = [hive(job, name, "x", "y") for name in ("t", "new")]
    send(one, event(job, "COMPLETE", outputs=before))
    guids = {name: atlas.there("hive_table", f"{database}.{name}@primary")["guid"] for name in ("t", "new")}
    where = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
    made = {"namespace": "hive://ms:9083", "name": f"{database}.new", "objectName": f"{database}.new"}
    rename = {"change": "RENAME", "previousObjectName": f"{database}.new", **where}
    facets = changes(*([{"change": "CREATE", **made}] if is_made_now else []), {"change": "DROP", **where}, rename)
    end = event(job, event_type, outputs=[hive(job, "t", "x")], facets=facets)
    for _ in range(2):
        send(one, end)
        kept, gone = ("t", "new") if is_made_now else ("new", "t")
        assert atlas.there("hive_table", f"{database}.t@primary")["guid"] == guids[kept]
        assert atlas.status(guids[gone]) == "DELETED"
        # Of one that was made now, those that it was made with.
        columns = {"x"} if is_made_now else {"x", "y"}
        assert related(atlas.there("hive_table", f"{database}.t@primary"), "columns") == columns


def renaming(job: str, old: str, new: str, **more: Any) -> dict[str, Any]:
    database = job.partition(".")[0]
    names = {"objectName": f"{database}.{new}", "previousObjectName": f"{database}.{old}"}
    return {"change": "RENAME", **names, "namespace": "hive://ms:9083", "name": f"{database}.{new}", **more}


@pytest.mark.parametrize("in_hive", [True, False])
def test_tables_are_swapped_once_however_often_the_event_comes(
    atlas: Atlas, sender: Sender, job: str, *, in_hive: bool
) -> None:
    database, one = job.partition(".")[0], sender()

    def table(name: str, *columns: str) -> dict[str, Any]:
        return hive(job, name, *columns) if in_hive else dataset(f"/wh/{database}.db/{name}", *columns)

    def guid(name: str) -> str:
        kind, found = ("hive_table", f"{database}.{name}") if in_hive else ("fs_path", f"/wh/{database}.db/{name}")
        return str(atlas.there(kind, f"{found}@primary")["guid"])

    send(one, event(job, "COMPLETE", outputs=[table("a", "x"), table("b", "y"), table("c", "z")]))
    before = [guid(name) for name in "abc"]
    steps = [("a", "tmp"), ("b", "a"), ("tmp", "b"), ("c", "d")]
    place = [{} if in_hive else {"namespace": "file", "name": f"/wh/{database}.db/{new}"} for _, new in steps]
    facets = changes(*(renaming(job, *step, **where) for step, where in zip(steps, place, strict=True)))
    swapped = event(job, "COMPLETE", outputs=[table("a", "y"), table("b", "x"), table("d", "z")], facets=facets)
    for _ in range(3):
        send(one, swapped)
        assert [guid(name) for name in "bad"] == before
    if in_hive:
        assert related(atlas.there("hive_table", f"{database}.a@primary"), "columns") == {"y"}


def test_what_a_table_was_renamed_onto_is_gone(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "x"), hive(job, "old", "x"), hive(job, "new")]))
    kept, gone, new = (atlas.there("hive_table", f"{database}.{each}@primary")["guid"] for each in ("t", "old", "new"))
    drop = {"change": "DROP", "namespace": "hive://ms:9083", "name": f"{database}.old", "objectName": f"{database}.old"}
    facets = changes(drop, renaming(job, "t", "old"), renaming(job, "new", "t"))
    done = event(job, "COMPLETE", outputs=[hive(job, "t"), hive(job, "old")], facets=facets)
    for _ in range(2):
        send(one, done)
        assert [atlas.there("hive_table", f"{database}.{each}@primary")["guid"] for each in ("old", "t")] == [kept, new]
        assert atlas.status(gone) == "DELETED"


def test_a_table_of_another_catalog_is_not_hives(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t"), hive(job, "u")]))
    drop = {"change": "DROP", "namespace": "s3://ice", "name": f"{database}/t", "objectName": f"{database}.t"}
    other = {"change": "RENAME", "objectName": f"{database}.v", "previousObjectName": f"{database}.u"}
    both = [{**each, "catalog": "ice"} for each in (drop, {**other, "namespace": "s3://ice", "name": f"{database}/v"})]
    send(one, event(job, "COMPLETE", inputs=[hive(job, "in")], outputs=[], facets=changes(*both)))
    assert atlas.there("hive_table", f"{database}.t@primary")
    assert atlas.there("hive_table", f"{database}.u@primary")


def test_a_database_is_dropped_with_its_tables(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    send(one, event(f"{job}2", "COMPLETE", outputs=[hive(job, "t"), hive(job, "u")]))
    guids = [atlas.there("hive_table", f"{database}.{each}@primary")["guid"] for each in "tu"]
    drop = {"change": "DROP", "objectType": "DATABASE", "objectName": database, "name": database}
    facets = changes({**drop, "namespace": "spark_catalog", "catalog": "spark_catalog"})
    end = event(job, "COMPLETE", inputs=[dataset("in", namespace="hive://ms:9083")], facets=facets)
    for _ in range(2):
        send(one, end)
        assert [atlas.status(each) for each in guids] == ["DELETED"] * 2
        assert atlas.entity("hive_db", f"{database}@primary") is None


def test_a_database_that_is_made_anew_has_its_new_tables_alone(atlas: Atlas, sender: Sender, job: str) -> None:
    database = job.partition(".")[0]
    one = sender(**{"hostnamePattern.East": "ms"})
    send(one, event(f"{job}2", "COMPLETE", outputs=[hive(job, "t", "x"), hive(job, "u", "x")]))
    guids = [
        atlas.there(*each)["guid"] for each in (("hive_table", f"{database}.t@East"), ("hive_db", f"{database}@East"))
    ]
    where = {"objectType": "DATABASE", "objectName": database, "name": database, "namespace": "spark_catalog"}
    both = changes({"change": "DROP", **where}, {"change": "CREATE", **where})
    end = event(job, "COMPLETE", inputs=[hive(job, "t", "x")], outputs=[hive(job, "u", "x")], facets=both)
    for _ in range(2):
        send(one, end)
        assert [atlas.status(each) for each in guids] == ["DELETED", "ACTIVE"]
        assert atlas.entity("hive_table", f"{database}.t@East") is None
        assert atlas.there("hive_table", f"{database}.u@East")["status"] == "ACTIVE"


@pytest.mark.parametrize(("namespace", "kind", "base"), [
    ("s3://lake", "aws_s3_v2_directory", "s3a://lake/wh/"),
    ("abfss://c@a.dfs.core.windows.net", "adls_gen2_directory", "abfss://c@a/wh/"),
])  # fmt: skip
def test_a_table_in_a_bucket_is_dropped_and_renamed(
    atlas: Atlas, sender: Sender, job: str, namespace: str, kind: str, base: str
) -> None:
    database, one = job.partition(".")[0], sender()
    end = "/@primary" if kind.startswith("aws") else "@primary"
    send(one, event(job, "COMPLETE", outputs=[dataset(f"wh/{database}.db/{n}", namespace=namespace) for n in "tu"]))
    dropped, renamed = (atlas.there(kind, f"{base}{database}.db/{each}{end}")["guid"] for each in "tu")
    where = {"namespace": namespace, "name": f"wh/{database}.db/t", "objectName": f"{database}.t"}
    to = renaming(job, "u", "v", namespace=namespace, name=f"wh/{database}.db/v")
    send(one, event(job, "COMPLETE", inputs=[dataset("/in")], facets=changes({"change": "DROP", **where}, to)))
    assert atlas.status(dropped) == "DELETED"
    there = atlas.there(kind, f"{base}{database}.db/v{end}")
    assert there["guid"] == renamed
    assert there["attributes"].get("objectPrefix", "/v/").endswith("/v/")


def test_columns_get_the_types_that_a_task_gives_them(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()

    def table(kind: str) -> dict[str, Any]:
        found = hive(job, "t")
        found["facets"]["schema"] = {"fields": [{"name": "x", "type": kind}, {"name": "p", "type": "string"}]}
        return found

    def types() -> list[str]:
        names = (f"{database}.t.{each}@primary" for each in "xp")
        return [atlas.there("hive_column", each)["attributes"]["type"] for each in names]

    where = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
    send(one, event(job, "COMPLETE", outputs=[table("integer")]))
    # What somebody merely writes has the types that the table has.
    send(one, event(job, "COMPLETE", outputs=[table("long")]))
    assert types() == ["int", "string"]
    columns = [{"old": {"name": "x", "type": "int"}, "new": {"name": "x", "type": "bigint"}}, {"old": {"name": "p"}}]
    added = {"change": "ALTER", **where, "columns": [{"new": {"name": "p", "type": "string"}}]}
    altered = changes({"change": "ALTER", **where, "columns": columns}, added)
    send(one, event(job, "COMPLETE", outputs=[table("long")], facets=altered))
    assert types() == ["bigint", "string"]
    send(one, event(job, "COMPLETE", outputs=[table("double")], facets=changes({"change": "OVERWRITE", **where})))
    assert types() == ["double", "string"]


def test_columns_are_dropped_and_renamed(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "a", "b", "c")]))
    guid = atlas.there("hive_column", f"{database}.t.b@primary")["guid"]
    table = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
    columns = [{"old": {"name": "a"}}, {"old": {"name": "b"}, "new": {"name": "d"}}, {"new": {"name": "e"}}]
    altered = changes({"change": "ALTER", **table, "columns": columns})
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t")], facets=altered))
    assert related(atlas.there("hive_table", f"{database}.t@primary"), "columns") == {"c", "d"}
    assert atlas.there("hive_column", f"{database}.t.d@primary")["guid"] == guid


@pytest.mark.parametrize("kind", ["rest", "kafka"])
def test_a_table_that_is_made_anew_has_its_new_columns_alone(atlas: Atlas, sender: Sender, job: str, kind: str) -> None:
    if kind == "kafka" and not atlas.kafka:
        pytest.skip("ATLAS_KAFKA does not say which broker Atlas reads")
    database, one = job.partition(".")[0], sender(kind=kind)
    if kind == "kafka":
        sender()._make_types()
    table = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
    name = f"{database}.t@primary"
    new = changes({"change": "CREATE", **table})
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "a", "b")], facets=new))
    # One that was there already is made by nobody.
    ignored = changes({"change": "CREATE", **table, "isIgnored": True}, {"change": "DROP", **table, "isIgnored": True})
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "a")], facets=ignored, try_number=2))
    # Over Kafka the keys of an overwritten table are not known.
    made = changes({"change": "OVERWRITE" if kind == "rest" else "CREATE", **table})
    has_come = lambda number: atlas.there(TASK, f"{job}@prod")["attributes"]["tryNumber"] == number  # noqa: E731
    atlas.wait(lambda: has_come(2))
    assert related(atlas.there("hive_table", name), "columns") == {"a", "b"}
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "b", "c")], facets=made, try_number=3))
    atlas.wait(lambda: has_come(3))
    assert related(atlas.there("hive_table", name), "columns") == {"b", "c"}


def test_directories_of_one_name_in_two_buckets_are_two(atlas: Atlas, sender: Sender, job: str) -> None:
    name, one = job.partition(".")[0], sender()
    for bucket in ("one", "two"):
        send(one, event(job, "COMPLETE", outputs=[dataset(f"{name}/t", namespace=f"s3://{bucket}")]))
    for bucket in ("one", "two"):
        assert atlas.there("aws_s3_v2_directory", f"s3a://{bucket}/{name}/t/@primary")["attributes"]["name"] == "t"
    # That of another hook keeps the words of that hook.
    bucket = {"typeName": "aws_s3_v2_bucket", "attributes": {"qualifiedName": f"s3a://{name}@primary", "name": name}}
    prefix = {"qualifiedName": f"s3a://{name}/t/@primary", "name": "t", "objectPrefix": f"/{name}/t/"}
    refer = {"typeName": "aws_s3_v2_bucket", "guid": "-1"}
    directory = {"typeName": "aws_s3_v2_directory", "guid": "-2", "attributes": {**prefix, "container": refer}}
    atlas.put({**bucket, "guid": "-1"}, directory)
    send(one, event(job, "COMPLETE", outputs=[dataset("t", namespace=f"s3://{name}")]))
    found = atlas.there("aws_s3_v2_directory", prefix["qualifiedName"])
    assert found["attributes"]["objectPrefix"] == prefix["objectPrefix"]


def test_a_search_finds_what_was_changed(atlas: Atlas, sender: Sender, job: str) -> None:
    """Atlas removes from its index of texts what is changed without its name."""
    database, one = job.partition(".")[0], sender()
    new, column = f"new{database}", f"column{database}"
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", column)]))
    send(one, event(job, "COMPLETE", outputs=[hive(job, new, column)], facets=changes(renaming(job, "t", new))))

    def is_found(kind: str, text: str) -> bool:
        body = {"typeName": kind, "query": text, "excludeDeletedEntities": True}
        return bool(atlas.ask("POST", "/search/basic", json=body).json().get("entities"))

    atlas.wait(lambda: is_found(TASK, database) and is_found("hive_table", new))
    atlas.wait(lambda: is_found("hive_column", column))


def key_of(atlas: Atlas, job: str, table: str) -> tuple[set[str], set[str]]:
    found = atlas.there("hive_table", f"{job.partition('.')[0]}.{table}@primary")
    return related(found, "columns"), related(found, "partitionKeys")


def changing(change: str, job: str, table: str, **more: Any) -> dict[str, Any]:
    whole = f"{job.partition('.')[0]}.{table}"
    return {"change": change, "namespace": "hive://ms:9083", "name": whole, "objectName": whole} | more


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_rename_has_all_that_the_table_has(
    atlas: Atlas, sender: Sender, job: str, monkeypatch: pytest.MonkeyPatch, *, is_interrupted: bool
) -> None:
    database, one = job.partition(".")[0], sender()
    hives_hook(atlas, database)
    files = {"qualifiedName": f"{database}.t@primary_storage", "location": "hdfs://nn/t", "compressed": False}
    refer = {"typeName": "hive_table", "uniqueAttributes": {"qualifiedName": f"{database}.t@primary"}}
    atlas.put({"typeName": "hive_storagedesc", "attributes": {**files, "table": refer}})

    def guids(name: str) -> list[str]:
        ends = (("hive_table", ""), ("hive_column", ".x"), ("hive_column", ".d"))
        found = [atlas.there(kind, f"{database}.{name}{end}@primary")["guid"] for kind, end in ends]
        return [*found, atlas.there("hive_storagedesc", f"{database}.{name}@primary_storage")["guid"]]

    before = guids("t")
    end = event(job, "COMPLETE", outputs=[hive(job, "u", "x", "d")], facets=changes(renaming(job, "t", "u")))
    if is_interrupted:
        change, calls = AtlasRest.change, []

        def once(self: AtlasRest, *arguments: Any) -> None:
            calls.append(arguments)
            if len(calls) == 2:
                raise Later("no answer")
            change(self, *arguments)

        monkeypatch.setattr(AtlasRest, "change", once)
        with pytest.raises(Later):
            send(one, end)
    send(one, end)
    assert guids("u") == before
    assert key_of(atlas, job, "u") == ({"x"}, {"d"})


def test_a_column_whose_case_alone_changes_stays(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "x", "y")]))
    before = atlas.there("hive_column", f"{database}.t.x@primary")["guid"]
    column = changing("ALTER", job, "t", columns=[{"old": {"name": "x"}, "new": {"name": "X", "type": "string"}}])
    table = renaming(job, "t", "T")
    send(one, event(job, "COMPLETE", outputs=[hive(job, "T", "X", "y")], facets=changes(column, table)))
    assert atlas.there("hive_column", f"{database}.t.x@primary")["guid"] == before
    assert key_of(atlas, job, "t") == ({"x", "y"}, set())


@pytest.mark.parametrize("in_files", [False, True])
def test_a_table_is_altered_and_then_renamed(atlas: Atlas, sender: Sender, job: str, *, in_files: bool) -> None:
    database, one = job.partition(".")[0], sender()

    def at(name: str) -> dict[str, str]:
        return {"namespace": "hdfs://nn", "name": f"/wh/{database}.db/{name}"} if in_files else {}

    def table(name: str, *columns: str) -> dict[str, Any]:
        names = [{"namespace": "hive://ms:9083", "name": f"{database}.{name}", "type": "TABLE"}]
        return {**hive(job, name, *columns, **({"symlinks": {"identifiers": names}} if in_files else {})), **at(name)}

    send(one, event(job, "COMPLETE", outputs=[table("t", "x", "y", "z")]))
    guid = atlas.there("hive_column", f"{database}.t.y@primary")["guid"]
    columns = [
        {"old": {"name": "x"}},
        {"old": {"name": "y"}, "new": {"name": "w", "type": "string"}},
        {"old": {"name": "z", "type": "int"}, "new": {"name": "z", "type": "bigint"}},
    ]
    both = changes(changing("ALTER", job, "t", columns=columns, **at("t")), renaming(job, "t", "u", **at("u")))
    send(one, event(job, "COMPLETE", outputs=[table("u", "w", "z")], facets=both))
    assert key_of(atlas, job, "u") == ({"w", "z"}, set())
    assert atlas.there("hive_column", f"{database}.u.w@primary")["guid"] == guid
    assert atlas.there("hive_column", f"{database}.u.z@primary")["attributes"]["type"] == "string"


@pytest.mark.parametrize("columns", [("q",), ("x", "y")])
def test_a_table_that_one_unknown_to_atlas_replaces_is_gone(
    atlas: Atlas, sender: Sender, job: str, columns: tuple[str, ...]
) -> None:
    """One with just the new columns is the new one, which Hive's hook has renamed before."""
    database, one = job.partition(".")[0], sender()
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "x", "y")]))
    guid = atlas.there("hive_table", f"{database}.t@primary")["guid"]
    both = changes(changing("DROP", job, "t"), renaming(job, "new", "t"))
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", *columns)], facets=both))
    assert atlas.status(guid) == ("DELETED" if columns == ("q",) else "ACTIVE")
    assert key_of(atlas, job, "t") == (set(columns), set())


def test_a_resent_dead_letter_drops_once(
    atlas: Atlas, sender: Sender, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, one = job.partition(".")[0], sender()
    send(one, event(f"{job}2", "COMPLETE", outputs=[hive(job, "t", "x")]))
    end = event(job, "COMPLETE", outputs=[hive(job, "o", "x")], facets=changes(changing("DROP", job, "t")))
    put = AtlasRest.put

    def refuse(self: AtlasRest, entities: Any) -> Any:
        if any(each["typeName"] == "hive_table" for each in entities):
            raise AtlasRefusal("wrong", 400)
        return put(self, entities)

    with monkeypatch.context() as patched:
        patched.setattr(AtlasRest, "put", refuse)
        with pytest.raises(Refused):
            send(one, end)
    assert atlas.entity("hive_table", f"{database}.t@primary") is None
    send(one, event(f"{job}2", "COMPLETE", outputs=[hive(job, "t", "x")]))
    send(one, end)
    assert atlas.there("hive_table", f"{database}.t@primary")
    assert atlas.there("hive_table", f"{database}.o@primary")


@pytest.mark.parametrize(("before", "after"), [((), ("d",)), (("d",), ())])
def test_a_table_that_is_made_anew_has_its_new_partition_keys_alone(
    atlas: Atlas, sender: Sender, job: str, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    one = sender()
    for keys in (before, after):
        made = changes(changing("DROP", job, "t"), changing("CREATE", job, "t", partitionedBy=keys))
        send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "x", "d")], facets=made))
        assert key_of(atlas, job, "t") == ({"x", "d"} - {*keys}, {*keys})


@pytest.mark.parametrize("place", ["presales.db/t", "mywarehouse/t", "warehouse/t", "sales.db/t"])
def test_files_of_an_external_table_stay(atlas: Atlas, sender: Sender, job: str, place: str) -> None:
    path, one = f"/{job}/{place}", sender()
    send(one, event(job, "COMPLETE", outputs=[dataset(path)]))
    drop = {"change": "DROP", "objectName": "sales.t", "namespace": "file", "name": path}
    send(one, event(job, "COMPLETE", outputs=[dataset(f"/{job}/out")], facets=changes(drop)))
    assert (atlas.entity("fs_path", f"{path}@primary") is None) == (place == "sales.db/t")


@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_a_column_of_a_database_keeps_the_type_that_a_user_gave(
    atlas: Atlas, sender: Sender, job: str, side: str
) -> None:
    one = sender()
    where = {"namespace": "postgres://db:5432", "name": f"{job}.t"}
    table, out = dataset(where["name"], "x", namespace=where["namespace"]), dataset(f"/{job}/out", "x")
    out["facets"]["columnLineage"] = {"fields": {"x": {"inputFields": [{**where, "field": "x"}]}}}
    end = event(job, "COMPLETE", **{"outputs": [out], side: [table]})
    send(one, end)
    name = f"postgres://db:5432/{job}.t"
    column = {"qualifiedName": f"{name}.x@primary", "name": "x", "data_type": "varchar(20)", "comment": "mine"}
    refer = {"typeName": "rdbms_table", "uniqueAttributes": {"qualifiedName": f"{name}@primary"}}
    atlas.put({"typeName": "rdbms_column", "attributes": {**column, "table": refer}})
    send(one, event(job, "COMPLETE", **{"outputs": [out], side: [table]}))
    there = atlas.there("rdbms_column", column["qualifiedName"])["attributes"]
    assert {key: there[key] for key in column} == column


def test_a_table_that_is_overwritten_keeps_the_partition_keys_that_the_event_does_not_know(
    atlas: Atlas, sender: Sender, job: str
) -> None:
    before = hives_hook(atlas, job.partition(".")[0])
    send(
        sender(),
        event(job, "COMPLETE", outputs=[hive(job, "t", "x", "d")], facets=changes(changing("OVERWRITE", job, "t"))),
    )
    assert key_of(atlas, job, "t") == ({"x"}, {"d"})
    assert atlas.there("hive_column", f"{job.partition('.')[0]}.t.d@primary")["guid"] == before["d"]


@pytest.mark.parametrize("kind", ["rest", "kafka"])
def test_an_overwritten_table_of_hive_keeps_its_partition_keys(
    atlas: Atlas, sender: Sender, job: str, kind: str
) -> None:
    if kind == "kafka" and not atlas.kafka:
        pytest.skip("ATLAS_KAFKA does not say which broker Atlas reads")
    sender()._make_types()
    before = hives_hook(atlas, job.partition(".")[0])
    done = changes(changing("OVERWRITE", job, "t"))
    send(sender(kind=kind), event(job, "COMPLETE", outputs=[hive(job, "t", "x", "d")], facets=done))
    atlas.wait(lambda: related(atlas.there(TASK, f"{job}@prod"), "outputs") == {"t"})
    assert key_of(atlas, job, "t") == ({"x"}, {"d"})
    # The next message of Hive's hook deletes a key that is a column, too.
    assert hives_hook(atlas, job.partition(".")[0]) == before


def test_a_column_of_delta_that_an_overwrite_leaves_out_stays(atlas: Atlas, sender: Sender, job: str) -> None:
    one, storage = sender(), {"storage": {"storageLayer": "delta", "fileFormat": "parquet"}}
    made, done = (changes(changing(each, job, "t")) for each in ("CREATE", "OVERWRITE"))
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "x", "y", **storage)], facets=made))
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "x", "z", **storage)], facets=done))
    assert key_of(atlas, job, "t")[0] == {"x", "y", "z"}


@pytest.mark.parametrize("change", ["DROP", "RENAME", "DROP DATABASE"])
def test_a_table_that_hive_has_made_since_survives_a_late_change(
    atlas: Atlas, sender: Sender, job: str, change: str
) -> None:
    """The event waited in the outbox, and the message of Hive's hook did not."""
    database = job.partition(".")[0]
    hives_hook(atlas, database, createTime=1_777_900_000_000)
    guid = atlas.there("hive_table", f"{database}.t@primary")["guid"]
    what = {
        "DROP": changing("DROP", job, "t"),
        "RENAME": renaming(job, "t", "u"),
        "DROP DATABASE": changing("DROP", job, "t") | {"objectType": "DATABASE", "objectName": database},
    }[change]
    done = changes(what | {"time": "2026-05-02T23:01:00+00:00"})
    send(sender(), event(job, "COMPLETE", inputs=[hive(job, "in", "x")], facets=done))
    assert atlas.there("hive_table", f"{database}.t@primary")["guid"] == guid


def test_a_rename_that_the_hook_of_the_metastore_has_applied_is_not_applied_again(
    atlas: Atlas, sender: Sender, job: str
) -> None:
    database, time = job.partition(".")[0], "2026-05-02T23:01:00+00:00"
    renamed = {"aliases": ["t"], "parameters": {"transient_lastDdlTime": "1777762860"}}
    hives_hook(atlas, database, "t_old", **renamed)
    hives_hook(atlas, database, "t", **(renamed | {"aliases": ["t_new"]}))
    guids = [atlas.there("hive_table", f"{database}.{each}@primary")["guid"] for each in ("t_old", "t")]
    steps = changes(*(renaming(job, *each, time=time) for each in (("t", "t_old"), ("t_new", "t"))))
    send(sender(), event(job, "COMPLETE", outputs=[hive(job, "t", "x", "d")], facets=steps))
    assert [atlas.there("hive_table", f"{database}.{each}@primary")["guid"] for each in ("t_old", "t")] == guids
    # An alias of a former rename says nothing of this one.
    late = changes(renaming(job, "t", "t_old", time="2026-05-03T23:01:00+00:00"))
    send(sender(), event(job, "COMPLETE", outputs=[hive(job, "t_old", "x", "d")], facets=late))
    assert atlas.there("hive_table", f"{database}.t_old@primary")["guid"] == guids[1]
    assert atlas.status(guids[0]) == "DELETED"


def test_a_column_whose_name_a_user_has_changed_stays(atlas: Atlas, sender: Sender, job: str) -> None:
    database, one = job.partition(".")[0], sender()
    send(one, event(job, "COMPLETE", outputs=[hive(job, "t", "x")], facets=changes(changing("CREATE", job, "t"))))
    guid = atlas.there("hive_column", f"{database}.t.x@primary")["guid"]
    atlas.change("hive_column", f"{database}.t.x@primary", name="Customer")
    for name, change in (("t", changing("OVERWRITE", job, "t")), ("u", renaming(job, "t", "u"))):
        send(one, event(job, "COMPLETE", outputs=[hive(job, name, "x")], facets=changes(change)))
    found = atlas.there("hive_column", f"{database}.u.x@primary")
    assert (found["guid"], found["attributes"]["name"]) == (guid, "Customer")


def test_what_was_read_of_swapped_tables_is_under_its_new_name(atlas: Atlas, sender: Sender, job: str) -> None:
    send(sender(), event(job, "COMPLETE", outputs=[hive(job, "a", "x"), hive(job, "b", "x")]))
    swap = changes(*(renaming(job, *step) for step in (("a", "tmp"), ("b", "a"), ("tmp", "b"))))
    end = {"inputs": [hive(job, "a", "x")], "outputs": [dataset(f"/{job}/out")]}
    send(sender(), event(job, "COMPLETE", **end, facets=swap))
    assert related(atlas.there(TASK, f"{job}@prod"), "inputs") == {"b"}


def test_a_name_that_is_cut_is_the_same_in_each_event(atlas: Atlas, sender: Sender, job: str) -> None:
    long = f"{job}{'t' * 1500}"
    for _ in range(2):
        send(sender(), event(long, "COMPLETE", outputs=[dataset(f"/{job}")]))
    assert len(atlas.there(DAG, f"{job.partition('.')[0]}@prod")["relationshipAttributes"]["tasks"]) == 1


def test_a_table_in_capitals_is_managed_where_spark_puts_it(atlas: Atlas, sender: Sender, job: str) -> None:
    database = job.partition(".")[0]
    path = {"namespace": "hdfs://nn:8020", "name": f"/warehouse/{database}.db/t"}
    names = {"symlinks": {"identifiers": [{"namespace": "hive://ms:9083", "name": f"{database}.t", "type": "TABLE"}]}}
    output = {**path, "facets": {**names, "schema": {"fields": [{"name": "X", "type": "string"}]}}}
    made = changes({"change": "CREATE", **path, "objectName": f"{database.upper()}.T"})
    send(sender(), event(job, "COMPLETE", outputs=[output], facets=made))
    assert atlas.there("hive_table", f"{database}.t@primary")["attributes"]["tableType"] == "MANAGED_TABLE"
