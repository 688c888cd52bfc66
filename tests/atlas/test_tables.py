"""What becomes of tables in Atlas: dropped, renamed, changed; each test holds for the Atlas of ``ATLAS_URL``, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from atlas_events import Atlas, changes, dataset, event, made_from, related, send

from spark_lineage.atlas.transport import AtlasTransport
from spark_lineage.atlas.types import APPLICATION

Sender = Callable[..., AtlasTransport]


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
    assert related(there, "columns") == {"x", "y"}
    there = atlas.there("hive_column", f"{database}.t.x@primary")
    assert {key: there["attributes"][key] for key in column} == column
    there = atlas.there("hive_db", f"{database}@primary")
    assert {key: there["attributes"][key] for key in above} == above
    assert atlas.there("hive_column", f"{database}.t.y@primary")["attributes"]["type"] == "struct<long:bigint>"


@pytest.mark.parametrize("event_type", ["COMPLETE", "FAIL"])
@pytest.mark.parametrize("is_made_now", [False, True])
def test_a_table_takes_the_place_of_one_that_was_dropped(
    atlas: Atlas, sender: Sender, job: str, event_type: str, *, is_made_now: bool
) -> None:
    """One that was there before keeps its GUID; one that was made to take the place gives it up."""
    database, transport = job.partition(".")[0], sender()
    before = [hive(job, name, "x") for name in ("t", "new")]
    send(transport, event(job, "COMPLETE", outputs=before))
    guids = {name: atlas.there("hive_table", f"{database}.{name}@primary")["guid"] for name in ("t", "new")}
    where = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
    made = {"namespace": "hive://ms:9083", "name": f"{database}.new", "objectName": f"{database}.new"}
    rename = {"change": "RENAME", "previousObjectName": f"{database}.new", **where}
    facets = changes(*([{"change": "CREATE", **made}] if is_made_now else []), {"change": "DROP", **where}, rename)
    for _ in range(2):
        send(transport, event(job, event_type, outputs=[hive(job, "t", "x")], facets=facets))
        kept, gone = ("t", "new") if is_made_now else ("new", "t")
        assert atlas.there("hive_table", f"{database}.t@primary")["guid"] == guids[kept]
        assert atlas.status(guids[gone]) == "DELETED"
        assert related(atlas.there("hive_table", f"{database}.t@primary"), "columns") == {"x"}


def test_columns_are_dropped_and_renamed(atlas: Atlas, sender: Sender, job: str) -> None:
    database, transport = job.partition(".")[0], sender()
    send(transport, event(job, "COMPLETE", outputs=[hive(job, "t", "a", "b", "c")]))
    guid = atlas.there("hive_column", f"{database}.t.b@primary")["guid"]
    table = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
    columns = [{"old": {"name": "a"}}, {"old": {"name": "b"}, "new": {"name": "d"}}, {"new": {"name": "e"}}]
    altered = changes({"change": "ALTER", **table, "columns": columns})
    send(transport, event(job, "COMPLETE", outputs=[hive(job, "t")], facets=altered))
    assert related(atlas.there("hive_table", f"{database}.t@primary"), "columns") == {"c", "d"}
    assert atlas.there("hive_column", f"{database}.t.d@primary")["guid"] == guid


@pytest.mark.parametrize("kind", ["rest", "kafka"])
def test_a_table_that_is_made_anew_has_its_new_columns_alone(atlas: Atlas, sender: Sender, job: str, kind: str) -> None:
    if kind == "kafka" and not atlas.kafka:
        pytest.skip("ATLAS_KAFKA does not say which broker Atlas reads")
    database, transport = job.partition(".")[0], sender(kind=kind)
    if kind == "kafka":
        sender()._types.make()
    table = {"namespace": "hive://ms:9083", "name": f"{database}.t", "objectName": f"{database}.t"}
    name = f"{database}.t@primary"
    send(transport, event(job, "COMPLETE", outputs=[hive(job, "t", "a", "b")]))
    # One that was there already is made by nobody.
    ignored = changes({"change": "CREATE", **table, "isIgnored": True}, {"change": "DROP", **table, "isIgnored": True})
    send(transport, event(job, "COMPLETE", outputs=[hive(job, "t", "a")], facets=ignored, try_number=2))
    made = changes({"change": "OVERWRITE", **table})
    has_come = lambda number: atlas.there(APPLICATION, f"{job}@prod")["attributes"]["tryNumber"] == number  # noqa: E731
    atlas.wait(lambda: has_come(2))
    assert related(atlas.there("hive_table", name), "columns") == {"a", "b"}
    send(transport, event(job, "COMPLETE", outputs=[hive(job, "t", "b", "c")], facets=made, try_number=3))
    atlas.wait(lambda: has_come(3))
    assert related(atlas.there("hive_table", name), "columns") == {"b", "c"}


def test_directories_of_one_name_in_two_buckets_are_two(atlas: Atlas, sender: Sender, job: str) -> None:
    name, transport = job.partition(".")[0], sender()
    for bucket in ("one", "two"):
        send(transport, event(job, "COMPLETE", outputs=[dataset(f"{name}/t", namespace=f"s3://{bucket}")]))
    for bucket in ("one", "two"):
        assert atlas.there("aws_s3_v2_directory", f"s3a://{bucket}/{name}/t/@primary")["attributes"]["name"] == "t"
    # That of another hook keeps the words of that hook.
    bucket = {"typeName": "aws_s3_v2_bucket", "attributes": {"qualifiedName": f"s3a://{name}@primary", "name": name}}
    prefix = {"qualifiedName": f"s3a://{name}/t/@primary", "name": "t", "objectPrefix": f"/{name}/t/"}
    refer = {"typeName": "aws_s3_v2_bucket", "guid": "-1"}
    directory = {"typeName": "aws_s3_v2_directory", "guid": "-2", "attributes": {**prefix, "container": refer}}
    atlas.put({**bucket, "guid": "-1"}, directory)
    send(transport, event(job, "COMPLETE", outputs=[dataset("t", namespace=f"s3://{name}")]))
    found = atlas.there("aws_s3_v2_directory", prefix["qualifiedName"])
    assert found["attributes"]["objectPrefix"] == prefix["objectPrefix"]
