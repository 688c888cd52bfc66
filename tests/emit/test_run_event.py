from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.generated import base
from openlineage.client.serde import Serde

from spark_lineage.emit.run_event import PRODUCER, input_datasets, output_datasets, run_event, run_facets, to_json
from spark_lineage.launch.line import LineCounts
from spark_lineage.merge.lineage import (
    Application,
    Attempt,
    Catalog,
    CatalogChange,
    ColumnLineage,
    DatasetLineage,
    InputField,
    SchemaField,
    Statistics,
    Storage,
    Symlink,
    TaskLineage,
)
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.submission.collector import Collector

EVENTS = Path(__file__).parents[1] / "fixtures" / "events"
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)


def written(lineage: TaskLineage, counts: LineCounts) -> dict[str, Any]:
    event = run_event(lineage, counts, job_namespace="airflow", job_name="dag.task", run_id=RUN_ID)
    document: dict[str, Any] = json.loads(to_json(event))
    return document


def each_value(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, dict):
        for entry in value.values():
            yield from each_value(entry)
    if isinstance(value, list):
        for entry in value:
            yield from each_value(entry)


def all_facets(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for holder in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        for kind in ("facets", "inputFacets", "outputFacets"):
            yield from holder.get(kind, {}).items()


def test_the_json_is_that_of_openlineage_python(lineage: TaskLineage, counts: LineCounts) -> None:
    event = run_event(lineage, counts, job_namespace="airflow", job_name="dag.task", run_id=RUN_ID)
    assert json.loads(to_json(event)) == json.loads(Serde.to_json(event))


@pytest.mark.parametrize("path", sorted(EVENTS.glob("*.ndjson")), ids=lambda path: path.stem)
def test_so_is_that_of_real_lineage(path: Path) -> None:
    collector = Collector()
    with path.open("rb") as stream:
        collector.read(stream, source=str(path))
    event = run_event(
        task_lineage(collector.state, "FAIL"), collector.counts, job_namespace="ns", job_name="job", run_id=RUN_ID
    )
    assert json.loads(to_json(event)) == json.loads(Serde.to_json(event))


def test_the_event_says_what_ran_when_and_how_it_ended(lineage: TaskLineage, counts: LineCounts) -> None:
    event = written(lineage, counts)
    assert event["eventType"] == "COMPLETE"
    assert event["eventTime"] == "2024-01-31T12:01:23.456789Z"
    assert event["producer"] == PRODUCER
    assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert event["run"]["runId"] == RUN_ID
    assert (event["job"]["namespace"], event["job"]["name"]) == ("airflow", "dag.task")
    job_type = event["job"]["facets"]["jobType"]
    assert (job_type["processingType"], job_type["integration"], job_type["jobType"]) == ("BATCH", "SPARK", "TASK")
    assert "parent" not in event["run"]["facets"]


def test_every_facet_names_its_producer_and_schema_and_nothing_is_null(
    lineage: TaskLineage, counts: LineCounts
) -> None:
    event = written(lineage, counts)
    facets = dict(all_facets(event))
    assert len(facets) == 21
    for facet in facets.values():
        assert facet["_producer"] == PRODUCER
        assert facet["_schemaURL"].startswith("https://")
        assert set(facet) > {"_producer", "_schemaURL"}
    assert None not in each_value(event)


def test_no_secret_leaves(lineage: TaskLineage, counts: LineCounts) -> None:
    assert "hunter2" in repr(lineage)
    assert (
        "hunter2"
        not in to_json(run_event(lineage, counts, job_namespace="airflow", job_name="dag.task", run_id=RUN_ID)).decode()
    )


def test_an_input_has_its_facets(lineage: TaskLineage, counts: LineCounts) -> None:
    customers, orders = written(lineage, counts)["inputs"]
    assert (customers["namespace"], customers["name"]) == ("file", "/data/cust.csv")
    assert set(customers["facets"]) == {"dataSource", "schema"}
    assert customers["inputFacets"] == {}
    assert orders["namespace"] == "s3://+2A++2A++2A+@landing-zone-of-the-shop"
    assert set(orders["facets"]) == {"dataSource", "schema", "storage", "catalog", "version"}
    assert orders["facets"]["schema"]["fields"] == [
        {"name": "amount", "type": "double", "description": "token=***"},
        {"name": "customer", "type": "struct", "fields": [{"name": "id", "type": "int"}]},
    ]
    assert orders["facets"]["catalog"]["metadataUri"] == "jdbc:postgresql://h/db?user=u&password=***"
    assert orders["facets"]["version"]["datasetVersion"] == "7"
    statistics = orders["inputFacets"]["inputStatistics"]
    assert (statistics["rowCount"], statistics["size"], "fileCount" in statistics) == (0, 1_234_567, False)


def test_an_output_has_its_column_lineage_and_lifecycle(lineage: TaskLineage, counts: LineCounts) -> None:
    report, sales = written(lineage, counts)["outputs"]
    assert report["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "RENAME"
    assert report["facets"]["lifecycleStateChange"]["previousIdentifier"] == {
        "namespace": "postgres://db:5432",
        "name": "shop.public.tmp",
    }
    assert report["outputFacets"] == {}
    assert sales["facets"]["symlinks"]["identifiers"] == [
        {"namespace": "hive://metastore:9083", "name": "db1.sales_by_country", "type": "TABLE"}
    ]
    statistics = sales["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (1_000, 2_048, 2)
    columns = sales["facets"]["columnLineage"]
    # Column "one" has no sources: Marquez answers 500 to it.
    assert set(columns["fields"]) == {"country", "mail"}
    assert all(column["inputFields"] for column in columns["fields"].values())
    assert columns["fields"]["country"]["inputFields"] == [
        {
            "namespace": "file",
            "name": "/data/cust.csv",
            "field": "country",
            "transformations": [{"type": "DIRECT", "subtype": "IDENTITY", "masking": False}],
        }
    ]
    assert columns["fields"]["mail"]["inputFields"][0]["transformations"][0]["masking"] is True
    assert columns["dataset"][0]["transformations"][0]["subtype"] == "FILTER"


def test_a_name_that_a_backend_cannot_hold_is_written_so_that_it_can_everywhere() -> None:
    topic = DatasetName("kafka://a:9092,b:9092", "orders")
    made = DatasetLineage(
        topic,
        symlinks=(Symlink("kafka://a:9092,b:9092", "orders", "TABLE"),),
        column_lineage=ColumnLineage(fields=(("id", (InputField(topic, "id"),)),)),
        lifecycle="RENAME",
        previous_name=topic,
    )
    change = CatalogChange("DROP", "TABLE", topic, "orders", NOON)
    lineage = TaskLineage(
        state="COMPLETE",
        inputs=(DatasetLineage(topic),),
        outputs=(made,),
        attempted=(Attempt(topic, "failed", "no\x1b answer to token=hunter2"),),
        unconfirmed=(topic,),
        catalog_changes=(change,),
    )
    text = to_json(run_event(lineage, None, job_namespace="n", job_name="j", run_id=RUN_ID)).decode()
    assert "kafka://a:9092,b:9092" not in text
    assert text.count('"namespace":"kafka://a:9092+2C+b:9092"') == 8
    assert '"error":"no' in text
    assert "hunter2" not in text
    assert "\\u001b" not in text


# A namespace of each kind, as it is sent, and the URI that Marquez (0.51.1) was seen to hold for it.
@pytest.mark.parametrize(
    ("namespace", "uri"),
    [
        ("file", "file:///"),
        ("hdfs://nn:8020", "hdfs://nn:8020"),
        ("dbfs", "dbfs:///"),
        ("s3://lake", "s3://lake"),
        ("abfss://c@a.dfs.core.windows.net", "abfss://c@a.dfs.core.windows.net"),
        ("kafka://a:9092,b:9092", "kafka://a:9092+2C+b:9092"),
        ("postgres://db:5432", "postgres://db:5432"),
        ("sqlserver://db/instance", "sqlserver://db/instance"),
        ("bigquery", "bigquery:///"),
        ("arn:aws:glue:eu-west-1:1", "arn:aws:glue:eu-west-1:1"),
        ("h2:mem:x;K=-1", "h2:mem:x+3B+K+3D+-1"),
        ("10.0.0.1:9092", "unknown://10.0.0.1:9092"),
        ("postgres://", "unknown://postgres://"),
        ("file:/warehouse", "file:/warehouse"),
        ("", "unknown://+-+"),
    ],
)
def test_a_dataset_says_where_it_is(namespace: str, uri: str) -> None:
    made = DatasetLineage(DatasetName(namespace, "t"))
    event = written(TaskLineage(state="COMPLETE", inputs=(made,), outputs=(made,)), None)
    for dataset in (*event["inputs"], *event["outputs"]):
        source = dataset["facets"]["dataSource"]
        assert (source["name"], source["uri"]) == (dataset["namespace"], uri)


def test_a_password_is_not_in_where_a_dataset_is() -> None:
    made = DatasetLineage(DatasetName("mongo://me:hunter2@db", "t"))
    assert "hunter2" not in repr(written(TaskLineage(state="COMPLETE", inputs=(made,)), None))


class TestTablesOfSparksOwnCatalog:
    """The listener names the warehouse's directory as their namespace, in which Marquez shows pages without content."""

    LINK = Symlink("file:/wh", "db1.t", "TABLE")

    def facets(self, **about: Any) -> Any:
        made = DatasetLineage(DatasetName("file", "/wh/db1.db/t"), **about)
        (output,) = written(TaskLineage(state="COMPLETE", outputs=(made,)), None)["outputs"]
        return output["facets"]

    def test_have_their_name_in_the_hierarchy(self) -> None:
        facets = self.facets(symlinks=(self.LINK,))
        assert "symlinks" not in facets
        assert facets["hierarchy"]["hierarchy"] == [
            {"type": "DATABASE", "name": "db1"},
            {"type": "TABLE", "name": "t"},
        ]

    def test_may_have_no_database(self) -> None:
        facets = self.facets(symlinks=(Symlink("s3://lake/wh", "t", "TABLE"),))
        assert facets["hierarchy"]["hierarchy"] == [{"type": "TABLE", "name": "t"}]

    @pytest.mark.parametrize(
        "about",
        [
            {"catalog": Catalog("iceberg", "hadoop", "ice")},
            {"storage": Storage("iceberg", "parquet")},
        ],
    )
    def test_a_catalog_of_iceberg_that_is_a_directory_is_one(self, about: Any) -> None:
        facets = self.facets(symlinks=(self.LINK,), **about)
        assert facets["symlinks"]["identifiers"] == [{"namespace": "file:/wh", "name": "db1.t", "type": "TABLE"}]

    def test_that_are_in_another_catalog_too_have_that_name(self) -> None:
        hive = Symlink("hive://m:9083", "db1.t", "TABLE")
        facets = self.facets(symlinks=(self.LINK, hive), catalog=Catalog("hive", "hive", "default"))
        assert [each["namespace"] for each in facets["symlinks"]["identifiers"]] == ["hive://m:9083"]


def test_an_output_says_how_it_was_written(lineage: TaskLineage, counts: LineCounts) -> None:
    report, sales = written(lineage, counts)["outputs"]
    assert "sparkLineage_writes" not in report["outputFacets"]
    assert sales["outputFacets"]["sparkLineage_writes"]["operations"] == [
        {"operation": "INSERT", "isPartial": False, "outputMode": "append"},
        {"operation": "OVERWRITE", "mode": "overwrite", "isPartial": True},
    ]


def test_catalog_changes_are_told_in_order_with_old_and_new(lineage: TaskLineage, counts: LineCounts) -> None:
    rename, alter, drop = written(lineage, counts)["run"]["facets"]["sparkLineage_catalogChanges"]["changes"]
    assert rename == {
        "change": "RENAME",
        "objectType": "TABLE",
        "objectName": "shop.report",
        "previousObjectName": "shop.tmp",
        "database": "shop",
        "namespace": "postgres://db:5432",
        "name": "shop.public.report",
        "time": "2024-01-31T12:00:00.000000Z",
        "isCertain": True,
        "isIgnored": False,
    }
    assert alter["columns"] == [
        {"old": {"name": "n", "type": "int"}, "new": {"name": "n", "type": "bigint"}},
        {"new": {"name": "mail", "type": "string", "description": "the password=***"}},
        {"old": {"name": "old", "type": "int"}},
    ]
    assert alter["schema"] == [{"name": "n", "type": "bigint"}, {"name": "mail", "type": "string"}]
    assert alter["properties"] == {"comment": "sales by country", "s3.secret-key": "***"}
    assert (drop["change"], drop["objectType"], drop["isCertain"]) == ("DROP", "DATABASE", False)
    assert (alter["catalog"], alter["database"], alter["partitionedBy"]) == (
        "spark_catalog",
        "db1",
        ["country", "days(at)"],
    )
    assert drop["database"] == "old"
    unknown = {"columns", "schema", "properties", "previousObjectName", "isIgnored", "catalog", "partitionedBy"}
    assert not unknown & set(drop)


def test_commands_whose_datasets_nobody_told_are_counted(lineage: TaskLineage, counts: LineCounts) -> None:
    facets = written(lineage, counts)["run"]["facets"]
    assert facets["sparkLineage_unreadPlans"]["parts"] == [{"name": "CoolVendorJoinIndex", "count": 1}]
    assert facets["sparkLineage_unknownDatasets"]["commands"] == [{"command": "execute_update_command", "count": 2}]


def test_a_source_column_is_named_as_its_input_is(lineage: TaskLineage, counts: LineCounts) -> None:
    event = written(lineage, counts)
    inputs = {(each["namespace"], each["name"]) for each in event["inputs"]}
    columns = event["outputs"][1]["facets"]["columnLineage"]
    sources = [source for column in columns["fields"].values() for source in column["inputFields"]]
    assert {(source["namespace"], source["name"]) for source in (*sources, *columns["dataset"])} == inputs


def test_run_facets_tell_the_engine_and_the_doubts(lineage: TaskLineage, counts: LineCounts) -> None:
    facets = written(lineage, counts)["run"]["facets"]
    engine = facets["processing_engine"]
    assert (engine["name"], engine["version"], engine["openlineageAdapterVersion"]) == ("spark", "4.0.1", "1.53.0")
    first, second = facets["sparkLineage_application"]["applications"]
    assert first["isEnded"] is False
    assert second["master"] == "spark://***@master:7077"
    assert second["uiUrl"] == "http://driver:4040/?token=***"
    assert facets["sparkLineage_attemptedOutputs"]["outputs"] == [
        {"namespace": "file", "name": "/out/broken", "reason": "failed"}
    ]
    assert facets["sparkLineage_unconfirmedOutputs"]["outputs"] == [
        {"namespace": "postgres://db:5432", "name": "shop.public.report"}
    ]
    collection = facets["sparkLineage_collection"]
    assert (collection["linesRead"], collection["linesSetAside"], collection["runs"]) == (1_042, 3, 7)
    assert collection["setAside"] == {"no JSON": 2, "too long": 1}


@pytest.mark.parametrize("state", ["FAIL", "ABORT"])
def test_an_empty_lineage_has_no_facet_but_the_collection(state: Any) -> None:
    empty = TaskLineage(state=state)
    event = written(empty, LineCounts())
    assert event["eventType"] == state
    assert event["eventTime"] == "1970-01-01T00:00:00.000000Z"
    assert (event["inputs"], event["outputs"]) == ([], [])
    assert set(event["run"]["facets"]) == {"sparkLineage_collection"}


def test_no_engine_where_spark_did_not_say_its_version() -> None:
    lineage = TaskLineage(state="COMPLETE", applications=(Application(RUN_ID, "spark", "app"),))
    assert "processing_engine" not in run_facets(lineage)


def test_facets_without_content_are_left_out() -> None:
    bare = DatasetLineage(
        DatasetName("file", "/a"),
        statistics=Statistics(),
        column_lineage=ColumnLineage(fields=(("a", ()),)),
        lifecycle="MERGE",
    )
    lineage = TaskLineage(state="COMPLETE", inputs=(bare,), outputs=(bare,))
    (read,), (wrote,) = input_datasets(lineage), output_datasets(lineage)
    assert (set(read.facets or ()), read.inputFacets) == ({"dataSource"}, {})
    assert (set(wrote.facets or ()), wrote.outputFacets) == ({"dataSource"}, {})


def test_a_start_in_another_time_zone_is_told_in_utc() -> None:
    started = datetime(2024, 1, 31, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    event = written(TaskLineage(state="FAIL", started_at=started), LineCounts())
    assert event["eventTime"] == "2024-01-31T12:00:00.000000Z"
    assert datetime.fromisoformat(event["eventTime"]).tzinfo == UTC


def test_the_bytes_are_canonical_and_depend_on_nothing_else(
    lineage: TaskLineage, counts: LineCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once() -> bytes:
        return to_json(run_event(lineage, counts, job_namespace="n", job_name="j", run_id=RUN_ID))

    first = once()
    assert first == json.dumps(json.loads(first), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    monkeypatch.setattr(base, "PRODUCER", "somebody else")
    assert once() == first


def test_a_name_that_utf_8_cannot_hold_does_not_cost_the_event() -> None:
    read = DatasetLineage(DatasetName("file", "/a"), schema=(SchemaField("ü\ud800"),))
    lineage = TaskLineage(state="COMPLETE", inputs=(read,))
    event = run_event(lineage, LineCounts(), job_namespace="n", job_name="j", run_id=RUN_ID)
    assert '"ü?"'.encode() in to_json(event)


def test_a_run_id_must_be_a_uuid(lineage: TaskLineage, counts: LineCounts) -> None:
    with pytest.raises(ValueError, match="UUID"):
        run_event(lineage, counts, job_namespace="n", job_name="j", run_id="1")
