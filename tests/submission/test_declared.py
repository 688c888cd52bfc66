"""What the DAG declares of a task, beside what Spark was seen to do."""

from __future__ import annotations

import os
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attr
import pytest
from openlineage.client.event_v2 import Dataset, InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    schema_dataset,
)
from openlineage.client.generated.base import DatasetFacet

from spark_lineage.launch.directory import DECLARE_ARCHIVE, create_private, launch_directory
from spark_lineage.launch.line import Line, LineDecoder
from spark_lineage.launch.retention import clean_up
from spark_lineage.merge.lineage import Attempt, SchemaField, Statistics, TaskLineage
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.submission.declared import declared_events, declared_span

START = datetime(2024, 1, 31, 12, tzinfo=UTC)
END = START + timedelta(minutes=5)
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"


@pytest.fixture(scope="module", autouse=True)
def _airflow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # Airflow warns of its own code when it is imported.
        warnings.simplefilter("ignore")
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        import airflow.providers.openlineage.extractors.manager  # noqa: F401

        yield


@attr.define
class Contract(DatasetFacet):
    """A facet of a user's own."""

    owner: str = ""


def declared(inlets: Any = (), outlets: Any = ()) -> list[Line]:
    return declared_events(
        inlets, outlets, run_id=RUN_ID, job_namespace="ns", job_name="dag.task", started=START, ended=END
    )


def lineage(
    inlets: Any = (), outlets: Any = (), state: Any = "COMPLETE", observed: tuple[bytes, ...] = ()
) -> TaskLineage:
    folded = LineageState()
    decoder = LineDecoder()
    for line in observed:
        folded.add(*decoder.decode(line))
    for event in declared(inlets, outlets):
        folded.add(*event)
    return task_lineage(folded, state)


def names(datasets: Any) -> list[tuple[str, str]]:
    return [(one.dataset.namespace, one.dataset.name) for one in datasets]


def test_assets_datasets_files_and_uris_are_named_as_spark_names_them() -> None:
    from airflow.providers.common.compat.assets import Asset
    from airflow.providers.common.compat.lineage.entities import File, Table

    inlets = [
        Asset("file:///data/orders"),
        Asset("s3://bucket/orders/"),
        Asset("postgres://host:5432/shop/public/orders"),
        "s3a://bucket/rates/",
        Dataset(namespace="hive://metastore:9083", name="db.orders"),
        InputDataset(namespace="kafka://h:9092", name="orders"),
        File(url="/data/file.csv"),
        Table(database="db", cluster="hive://other", name="t"),
    ]
    assert names(lineage(inlets).inputs) == [
        ("file", "/data/file.csv"),
        ("file", "/data/orders"),
        ("hive://metastore:9083", "db.orders"),
        ("hive://other", "db.t"),
        ("kafka://h:9092", "orders"),
        ("postgres://host:5432", "shop.public.orders"),
        ("s3://bucket", "orders"),
        ("s3://bucket", "rates"),
    ]


def test_login_query_and_fragment_of_a_uri_are_no_part_of_the_name() -> None:
    from airflow.providers.common.compat.assets import Asset

    uri = "s3://u:hunter2@landing/orders?sig=hunter2#x"
    for inlet in (uri, Asset("s3://landing/orders?sig=hunter2")):
        assert names(lineage([inlet]).inputs) == [("s3://landing", "orders")]


def test_what_names_no_dataset_is_left_out_and_costs_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    from airflow.sdk import Asset, AssetAlias

    caplog.set_level("DEBUG", "spark_lineage.submission.declared")
    inlets = [AssetAlias("later"), Asset("just_a_name"), 7, "jdbc:postgresql://h/db?password=hunter2", "/kept"]
    assert names(lineage(inlets).inputs) == [("file", "/kept")]
    told = [one.getMessage() for one in caplog.records]
    assert [one.levelname for one in caplog.records] == ["DEBUG"] * 4
    assert "AssetAlias" in told[0]
    assert "hunter2" not in "".join(told)


def test_a_task_that_declares_nothing_has_no_such_run() -> None:
    assert declared() == []
    assert declared(["not a dataset"], [7]) == []


def test_outlets_are_outputs_of_a_task_that_succeeds_and_attempted_by_one_that_fails() -> None:
    succeeded, failed = (lineage(["/in"], ["/out"], state) for state in ("COMPLETE", "FAIL"))
    assert names(succeeded.inputs) == names(failed.inputs) == [("file", "/in")]
    assert names(succeeded.outputs) == [("file", "/out")]
    assert (succeeded.attempted, failed.outputs) == ((), ())
    assert failed.attempted == (Attempt(DatasetName("file", "/out"), "unfinished"),)


def test_the_facets_of_openlineage_datasets_are_kept() -> None:
    columns = column_lineage_dataset
    fields = {"id": columns.Fields([columns.InputField("file", "/in", "id", [columns.Transformation("DIRECT")])])}
    outlet = OutputDataset(
        namespace="file",
        name="/out",
        facets={
            "schema": schema_dataset.SchemaDatasetFacet([schema_dataset.SchemaDatasetFacetFields("id", "int")]),
            "columnLineage": columns.ColumnLineageDatasetFacet(fields=fields),
        },
        outputFacets={
            "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=3)
        },
    )
    (output,) = lineage(["/in"], [outlet]).outputs
    assert output.schema == (SchemaField("id", "int"),)
    assert output.statistics == Statistics(3)
    assert output.column_lineage is not None
    assert [name for name, _ in output.column_lineage.fields] == ["id"]
    assert output.fed_by == (DatasetName("file", "/in"),)


def test_a_users_own_facets_of_inlets_and_outlets_are_kept() -> None:
    own = {"_producer": "https://shop.example", "_schemaURL": "https://shop.example/Contract.json", "owner": "sales"}
    stored = {"namespace": "file", "name": "/stored", "facets": {"shop_contract": own}}
    inlet = InputDataset(namespace="file", name="/in", facets={"shop_contract": Contract("sales")})
    found = lineage(
        [inlet, stored], [OutputDataset(namespace="file", name="/out", facets={"shop_contract": Contract("me")})]
    )
    owners = {one.dataset.name: one.facets["shop_contract"]["owner"] for one in (*found.inputs, *found.outputs)}
    assert owners == {"/in": "sales", "/stored": "sales", "/out": "me"}


def observed(event_type: str, minute: int, output: str, *, more: str = "") -> bytes:
    """A line as the listener writes it."""
    schema = '{"schema":{"fields":[{"name":"id","type":"int"}]}' + more + "}"
    statistics = '{"outputStatistics":{"rowCount":20}}' if event_type == "COMPLETE" else "{}"
    dataset = f'{{"namespace":"file","name":"{output}","facets":{schema},"outputFacets":{statistics}}}'
    return (
        f'{{"eventType":"{event_type}","eventTime":"2024-01-31T12:0{minute}:00Z","run":{{"runId":"r{output}"}},'
        '"job":{"namespace":"spark","name":"app.execute_insert_into_hadoop_fs_relation_command"},'
        f'"inputs":[{{"namespace":"file","name":"/source"}}],"outputs":[{dataset}]}}'
    ).encode()


WRITTEN = (observed("START", 1, "/out"), observed("COMPLETE", 2, "/out"))


@pytest.mark.parametrize("state", ["COMPLETE", "FAIL"])
def test_an_outlet_that_was_seen_to_be_written_changes_nothing(state: Any) -> None:
    outlet = OutputDataset(
        namespace="file",
        name="/out/",
        facets={"schema": schema_dataset.SchemaDatasetFacet([schema_dataset.SchemaDatasetFacetFields("other")])},
    )
    bare = lineage([], [], state, WRITTEN)
    both = lineage(["/inlet"], [outlet], state, WRITTEN)
    assert both.outputs == bare.outputs
    assert both.outputs[0].statistics == Statistics(20)
    assert both.attempted == ()
    assert names(both.inputs) == [("file", "/inlet"), ("file", "/source")]


def test_an_outlet_that_was_seen_to_fail_stays_attempted_even_if_the_task_succeeds() -> None:
    failed = (observed("START", 1, "/out"), observed("FAIL", 2, "/out"))
    both = lineage([], ["/out"], "COMPLETE", failed)
    assert both.outputs == ()
    assert both.attempted == (Attempt(DatasetName("file", "/out"), "failed"),)


def test_an_outlet_that_is_made_is_written_too() -> None:
    made = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(lifecycleStateChange="CREATE")
    outlet = OutputDataset(namespace="file", name="/data/out", facets={"lifecycleStateChange": made})
    (output,) = lineage(outlets=[outlet]).outputs
    assert [write.operation for write in output.writes] == ["INSERT"]


def test_an_inlet_that_the_task_overwrites_is_input_and_output() -> None:
    both = lineage(["/out"], [], "COMPLETE", WRITTEN)
    assert ("file", "/out") in names(both.inputs)
    assert names(both.outputs) == [("file", "/out")]


def test_a_declared_directory_is_no_noise_where_something_inside_it_was_read() -> None:
    assert names(lineage(["/source/", "/"], [], "COMPLETE", WRITTEN).inputs) == [("file", "/"), ("file", "/source")]


def test_the_task_begins_and_ends_around_all_that_its_driver_told() -> None:
    state = LineageState()
    assert declared_span(state, START, END) == (START, END)
    decoder = LineDecoder()
    for line in WRITTEN:
        state.add(*decoder.decode(line))
    # The driver's clock is behind, or ahead.
    assert declared_span(state, START + timedelta(seconds=90), END) == (START + timedelta(minutes=1), END)
    assert declared_span(state, START, START + timedelta(seconds=90)) == (START, START + timedelta(minutes=2))


def test_old_declarations_are_cleaned_up_with_the_other_lineage_of_their_launch(tmp_path: Path) -> None:
    keep, old = (
        launch_directory(
            tmp_path, dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=number, application_run_id=RUN_ID
        )
        for number in (1, 2)
    )
    for directory in (keep, old):
        create_private(directory)
        for name in ("declared-7-0a1b2c3d.ndjson", DECLARE_ARCHIVE):
            (directory / name).write_text("{}")
            os.utime(directory / name, (0, 0))
    assert clean_up(tmp_path, 1, keep=keep) == 2
    assert not old.exists()
    assert len(list(keep.iterdir())) == 2
