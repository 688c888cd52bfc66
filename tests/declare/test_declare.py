"""What a program declares: names, events, and what happens where nothing can be written."""

from __future__ import annotations

import ast
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openlineage.client.serde import Serde
from openlineage.client.uuid import generate_new_uuid

from spark_lineage import declare
from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.merge.lineage import InputField, Statistics, TaskLineage, Transformation
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.submission.collector import DirectoryCollector

SOURCE = Path(declare.__file__)
# Not of this package, so that it is another module: declared reads are of one program.
FRESH = "fresh_declare"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module as a new program imports it, told by the variable to declare into ``tmp_path``."""
    monkeypatch.setenv(declare.DIRECTORY_VARIABLE, str(tmp_path))
    spec = spec_from_file_location(FRESH, SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, FRESH, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def events(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """Return all events that were written, in order."""

    def read() -> list[dict[str, Any]]:
        files = sorted(tmp_path.glob("declared-*.ndjson"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    return read


def merged(directory: Path, state: Any = "COMPLETE") -> TaskLineage:
    collector = DirectoryCollector(directory)
    collector.finish()
    assert collector.counts.set_aside == {}
    return task_lineage(collector.state, state)


@pytest.mark.parametrize(
    ("text", "namespace", "name"),
    [
        # Each as io.openlineage.client.utils.filesystem.FilesystemDatasetUtils 1.53.0 answered.
        ("s3a://b/x/y/", "s3://b", "x/y"),
        ("s3n://b/x", "s3://b", "x"),
        ("S3://b/x", "s3://b", "x"),
        ("s3://b", "s3://b", "/"),
        ("s3://b/", "s3://b", "/"),
        ("gs://b/x/", "gs://b", "x"),
        ("hdfs://nn:8020/a/b/", "hdfs://nn:8020", "/a/b"),
        ("hdfs:///a/b", "hdfs", "/a/b"),
        ("file:///data/x/", "file", "/data/x"),
        ("file:/data/x", "file", "/data/x"),
        ("file://host/x", "file", "/x"),
        ("/data/x/", "file", "/data/x"),
        ("/", "file", "/"),
        ("/data/a?b#c", "file", "/data/a?b#c"),
        ("file:///data/a?b#c", "file", "/data/a?b#c"),
        ("s3://u:pw@landing/orders?sig=x", "s3://landing", "orders"),
        ("s3a://landing/orders/#old", "s3://landing", "orders"),
        ("hdfs://nn:8020/a/b/?user.name=x", "hdfs://nn:8020", "/a/b"),
        ("abfss://c@acc.dfs.core.windows.net/p?sig=x", "abfss://c@acc.dfs.core.windows.net", "p"),
        ("abfss://c@acc.dfs.core.windows.net/p/q", "abfss://c@acc.dfs.core.windows.net", "p/q"),
        ("wasb://c@a/p", "wasbs://c@a", "p"),
        ("dbfs:/mnt/x", "dbfs", "/mnt/x"),
        ("oss://b/x", "oss://b", "/x"),
        ("viewfs://cl/x", "viewfs://cl", "/x"),
        # And as its JdbcDatasetUtils.
        ("postgres://h/db.s.t", "postgres://h:5432", "db.s.t"),
        ("postgresql://h:5433/db/s/t", "postgres://h:5433", "db.s.t"),
        ("mysql://h/db.t", "mysql://h:3306", "db.t"),
        ("sqlserver://h/db.s.t", "sqlserver://h", "db.s.t"),
        ("kafka://h:9092/topic", "kafka://h:9092", "topic"),
        ("https://api.example.com/v1/orders", "https://api.example.com", "/v1/orders"),
    ],
)
def test_a_dataset_is_named_as_the_listener_names_it(text: str, namespace: str, name: str) -> None:
    assert declare.dataset(text) == declare.Dataset(namespace, name)


@pytest.mark.parametrize(
    "text",
    [
        "postgres://me:hunter2@h/db.s.t?password=hunter2",
        "https://hunter2@h/x?token=hunter2#hunter2",
        "s3a://key:hunter2@b/x?sig=hunter2",
        "abfss://c:hunter2@acc/x",
    ],
)
def test_a_secret_in_a_uri_is_no_part_of_the_name(text: str) -> None:
    assert "hunter2" not in str(declare.dataset(text))


def test_a_dataset_may_be_a_pair_or_a_dataset() -> None:
    pair = declare.dataset(("hive://metastore:9083", "db.orders"))
    assert pair == declare.dataset(pair) == declare.Dataset("hive://metastore:9083", "db.orders")


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "db.orders",
        "data/orders",
        "jdbc:postgresql://me:hunter2@h/db",
        "kafka://hunter2:9092",
        "postgres:///hunter2.t",
        "postgres://hunter2@/db.t",
        "s3a:hunter2",
        "https://",
    ],
)
def test_text_that_names_no_dataset_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match=r"a dataset is a URI \(s3a:") as raised:
        declare.dataset(text)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda d: d.read(None), TypeError, "this is of type NoneType"),
        (lambda d: d.read(("a", "b", "c")), TypeError, "this is of type tuple"),
        (lambda d: d.read(("ns", 1)), TypeError, "the name of a dataset is of type int"),
        (lambda d: d.read(("", "x")), ValueError, "the namespace of a dataset is empty"),
        (lambda d: d.read(" "), ValueError, "the name of a dataset is empty"),
        (lambda d: d.read("/a\ud800"), ValueError, "UTF-8"),
        (lambda d: d.read("/a", "id"), TypeError, "columns is of type str; give a list"),
        (lambda d: d.read("/a", [1]), TypeError, "a column is of type int"),
        (lambda d: d.read("/a", 7), TypeError, "columns is of type int"),
        (lambda d: d.read("/a", properties=["owner"]), TypeError, "properties is of type list; give a mapping"),
        (lambda d: d.read("/a", properties={"owner": 1}), TypeError, r"properties\['owner'\] is of type int"),
        (lambda d: d.wrote("/a", properties={"": "x"}), ValueError, "a property is empty"),
        (lambda d: d.wrote("/a", "id"), TypeError, "columns is of type str"),
        (lambda d: d.wrote("/a", {"id": ["orders.amount"]}), TypeError, r"columns\['id'\] holds str; give columns"),
        (lambda d: d.wrote("/a", {"id": "amount"}), TypeError, r"columns\['id'\] is of type str"),
        (lambda d: d.wrote("/a", {1: []}), TypeError, "a column is of type int"),
        (lambda d: d.wrote("/a", {"id": [("/b", 2)]}), TypeError, "the name of a column is of type int"),
        (lambda d: d.wrote("/a", inputs="/b"), TypeError, "inputs is of type str; give a list"),
        (lambda d: d.wrote("/a", inputs=["b"]), ValueError, "a dataset is a URI"),
        (lambda d: d.wrote("/a", mode="replace"), ValueError, "mode is 'replace'; give one of append, overwrite"),
        (lambda d: d.wrote("/a", rows=-1), ValueError, "rows is -1; give 0 or more"),
        (lambda d: d.wrote("/a", rows=1.5), TypeError, "rows is of type float"),
        (lambda d: d.wrote("/a", rows=True), TypeError, "rows is of type bool"),
        (lambda d: d.wrote("/a", whole=[d.column("/b", "x", "IDENTITY")]), ValueError, "is INDIRECT, not IDENTITY"),
        (lambda d: d.column("/a", "x", "COPY"), ValueError, "how is 'COPY'; give one of DIRECT, IDENTITY"),
        (lambda d: d.set_lineage(), ValueError, "names neither inputs nor outputs"),
        (lambda d: d.set_lineage(outputs=["/a", "/b"], columns={"x": []}), ValueError, "columns of 2 outputs"),
        (lambda d: d.set_lineage(inputs=["/a"], columns=["x"]), ValueError, "columns of 0 outputs"),
        (lambda d: d.set_lineage(inputs="/a"), TypeError, "inputs is of type str"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_anything_is_written(
    program: Any, tmp_path: Path, call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(program)
    assert list(tmp_path.iterdir()) == []
    assert program.wrote("/z") == program.Dataset("file", "/z")
    assert merged(tmp_path).inputs == ()


def test_a_write_is_a_run_of_its_own_fed_by_all_reads_so_far(
    program: Any, tmp_path: Path, events: Callable[[], list[dict[str, Any]]]
) -> None:
    program.read("s3a://bucket/orders/", ["id"])
    program.read("kafka://h:9092/rates")
    program.wrote("/out/a/", ["id", "total"], rows=7)
    program.read("/late")
    program.wrote("/out/b", inputs=[])
    told = [(event["eventType"], event["run"]["runId"]) for event in events()]
    assert [kind for kind, _ in told] == ["START", "COMPLETE"] * 5
    assert len({run_id for _, run_id in told}) == 5
    lineage = merged(tmp_path)
    assert [one.dataset.name for one in lineage.inputs] == ["/late", "rates", "orders"]
    first, second = lineage.outputs
    assert (first.dataset, first.statistics) == (DatasetName("file", "/out/a"), Statistics(7))
    assert [field.name for field in first.schema] == ["id", "total"]
    assert first.fed_by == (DatasetName("kafka://h:9092", "rates"), DatasetName("s3://bucket", "orders"))
    assert (second.dataset.name, second.fed_by) == ("/out/b", ())


def test_columns_are_direct_by_default_and_what_decides_about_the_whole_is_indirect(
    program: Any, tmp_path: Path
) -> None:
    orders = program.dataset("s3a://bucket/orders")
    program.wrote(
        "/out/totals",
        {
            "id": orders["id"],
            "total": [
                program.column(orders, "amount", "AGGREGATION", masking=True),
                ("/data/rates", "rate"),
                program.column("/data/rates", "valid", "CONDITIONAL"),
            ],
            "made_at": [],
            "pair": ("/data/rates", "rate"),
        },
        inputs=[],
        whole=[orders["country"], program.column(orders, "id", "GROUP_BY")],
    )
    (output,) = merged(tmp_path).outputs
    assert [field.name for field in output.schema] == ["id", "total", "made_at", "pair"]
    assert output.column_lineage is not None
    bucket, rates = DatasetName("s3://bucket", "orders"), DatasetName("file", "/data/rates")
    assert dict(output.column_lineage.fields) == {
        "id": (InputField(bucket, "id", (Transformation("DIRECT"),)),),
        "pair": (InputField(rates, "rate", (Transformation("DIRECT"),)),),
        "total": (
            InputField(rates, "rate", (Transformation("DIRECT"),)),
            InputField(rates, "valid", (Transformation("INDIRECT", "CONDITIONAL"),)),
            InputField(bucket, "amount", (Transformation("DIRECT", "AGGREGATION", masking=True),)),
        ),
    }
    assert output.column_lineage.dataset == (
        InputField(bucket, "country", (Transformation("INDIRECT"),)),
        InputField(bucket, "id", (Transformation("INDIRECT", "GROUP_BY"),)),
    )
    inputs = {one.dataset: {field.name for field in one.schema} for one in merged(tmp_path).inputs}
    assert inputs == {bucket: {"id", "amount", "country"}, rates: {"rate", "valid"}}


def test_an_overwrite_leaves_nothing_of_what_was_written_before(program: Any, tmp_path: Path) -> None:
    program.wrote("/out", {"a": ("/x", "a")}, inputs=[], rows=5, mode="append")
    program.wrote("/out", {"b": ("/y", "b")}, inputs=[], rows=3, mode="overwrite")
    (output,) = merged(tmp_path).outputs
    assert output.lifecycle == "OVERWRITE"
    assert output.statistics == Statistics(3)
    assert output.column_lineage is not None
    assert [name for name, _ in output.column_lineage.fields] == ["b"]


def test_rows_of_writes_that_append_are_added_up(program: Any, tmp_path: Path) -> None:
    for rows in (0, 4, 5):
        program.wrote("/out", rows=rows)
    (output,) = merged(tmp_path).outputs
    assert output.statistics == Statistics(9)


def test_what_was_declared_as_written_is_no_input_when_it_is_read_afterwards(program: Any, tmp_path: Path) -> None:
    program.read("/bronze")
    program.wrote("/silver")
    program.read("/silver/part-0")
    program.wrote("/gold", inputs=["/silver/"])
    lineage = merged(tmp_path)
    assert [one.dataset.name for one in lineage.inputs] == ["/bronze"]
    assert [one.dataset.name for one in lineage.outputs] == ["/gold", "/silver"]


def test_a_step_is_told_whole(program: Any, tmp_path: Path) -> None:
    program.set_lineage(inputs=["/a", "/b"], outputs=["/c", "/d"])
    program.set_lineage(inputs=["/a"], outputs=["/e"], columns={"x": ("/f", "x")})
    program.set_lineage(inputs=["/g"])
    program.wrote("/h")
    lineage = merged(tmp_path)
    assert [one.dataset.name for one in lineage.inputs] == ["/a", "/b", "/f", "/g"]
    fed = {one.dataset.name: [source.name for source in one.fed_by] for one in lineage.outputs}
    assert fed == {"/c": ["/a", "/b"], "/d": ["/a", "/b"], "/e": ["/a", "/f"], "/h": ["/a", "/b", "/f", "/g"]}


def test_properties_of_a_users_own_go_to_the_lineage(program: Any, tmp_path: Path) -> None:
    program.read("/in", properties={"owner": "sales"})
    program.read("/in", ["id"], properties={"owner": "shop", "api.token": "hunter2"})
    program.wrote("/out", properties={"contract": "v2"})
    lineage = merged(tmp_path)
    (read,), (written,) = lineage.inputs, lineage.outputs
    assert read.properties == {"owner": "shop", "api.token": "hunter2"}
    assert (written.properties, written.facets.keys()) == ({"contract": "v2"}, {"sparkLineage_properties"})
    (redacted,) = redact_lineage(lineage).inputs
    assert redacted.properties == {"owner": "shop", "api.token": "***"}
    event = run_event(lineage, None, job_namespace="ns", job_name="job", run_id=str(generate_new_uuid()))
    (sent,) = json.loads(to_json(event))["outputs"]
    assert sent["facets"]["sparkLineage_properties"]["properties"] == {"contract": "v2"}
    assert "hunter2" not in str(event)


def test_what_was_written_stays_written_when_the_task_fails(program: Any, tmp_path: Path) -> None:
    program.wrote("/out")
    lineage = merged(tmp_path, "FAIL")
    assert [one.dataset.name for one in lineage.outputs] == ["/out"]
    assert lineage.attempted == ()


def test_the_events_are_those_of_the_specification(program: Any, events: Callable[[], list[dict[str, Any]]]) -> None:
    program.wrote("/out", {"a": ("/x", "a")}, whole=[("/x", "b")], rows=1, mode="overwrite")
    start, complete = events()
    assert start["outputs"] == []
    assert start["inputs"] == complete["inputs"]
    assert complete["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert complete["job"]["name"].endswith(".declare.wrote")
    job_type = complete["job"]["facets"]["jobType"]
    assert (job_type["processingType"], job_type["integration"], job_type["jobType"]) == ("BATCH", "SPARK", "DECLARED")
    assert complete["run"]["facets"] == {}
    (output,) = complete["outputs"]
    given = {
        **complete["job"]["facets"],
        **output["facets"],
        **output["outputFacets"],
        **complete["inputs"][0]["facets"],
    }
    assert given.keys() == {"jobType", "schema", "columnLineage", "lifecycleStateChange", "outputStatistics"}
    for name, facet in given.items():
        known = _facet_class(facet["_schemaURL"])
        assert facet["_schemaURL"] == known._get_schema(), name
        content = {key: value for key, value in facet.items() if not key.startswith("_")}
        rebuilt = Serde.to_dict(known(**content))
        assert {key: rebuilt[key] for key in content} == content


def _facet_class(url: str) -> Any:
    import importlib
    import pkgutil

    from openlineage.client import generated

    wanted = url.rpartition("/")[2]
    for module in pkgutil.iter_modules(generated.__path__, "openlineage.client.generated."):
        found = getattr(importlib.import_module(module.name), wanted, None)
        if found is not None:
            return found
    raise AssertionError(f"openlineage-python has no {wanted}")


def test_the_archive_of_the_operator_tells_where_to_write_and_for_which_application(tmp_path: Path) -> None:
    from spark_lineage.inject.task_injection import archive_bytes

    archive = tmp_path / "declare.zip"
    run_id = str(generate_new_uuid())
    conf = {
        "spark.openlineage.namespace": "prod",
        "spark.openlineage.appName": "shop.load",
        "spark.openlineage.applicationRunId": run_id,
    }
    archive.write_bytes(archive_bytes(conf, tmp_path))
    # Beside an installed package, before and behind it.
    installed = str(SOURCE.parents[1])
    for number, path in enumerate(([str(archive)], [str(archive), installed], [installed, str(archive)]), start=1):
        text = f"import sys; sys.path[:0] = {path!r}; from spark_lineage.declare import read; read('/in')"
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([sys.executable, "-IS", "-c", text], check=True, env=env)
        assert len(list(tmp_path.glob("declared-*.ndjson"))) == number
    for file in tmp_path.glob("declared-*.ndjson"):
        assert file.stat().st_mode & 0o777 == 0o600
        event = json.loads(file.read_text().splitlines()[0])
        assert event["job"]["namespace"] == "prod"
        assert event["job"]["name"] == "shop.load.declare.read"
        parent = event["run"]["facets"]["parent"]
        assert parent["run"]["runId"] == run_id
        assert parent["job"] == {"namespace": "prod", "name": "shop.load"}


def test_without_the_operator_nothing_happens_and_that_is_said_once(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(declare.DIRECTORY_VARIABLE)
    caplog.set_level(logging.INFO, "spark_lineage.declare")
    program.read("/a")
    program.wrote("/b")
    assert [(one.levelname, "is left out" in one.getMessage()) for one in caplog.records] == [("INFO", True)]
    assert list(tmp_path.iterdir()) == []


def test_on_an_executor_nothing_happens(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "spark_lineage.declare")
    task = SimpleNamespace(TaskContext=SimpleNamespace(get=object))
    monkeypatch.setitem(sys.modules, "pyspark", task)
    program.read("/a")
    program.read("/b")
    assert [one.levelname for one in caplog.records] == ["INFO"]
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_a_warning_once_and_no_failure(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(declare.DIRECTORY_VARIABLE, str(tmp_path / "nowhere"))
    program.read("/a")
    assert program.wrote("/b", rows=1).name == "/b"
    (warning,) = caplog.records
    assert warning.levelname == "WARNING"
    assert "No such file or directory" in warning.getMessage()


def test_a_full_disk_is_a_warning_and_what_comes_later_stands_in_a_file_of_its_own(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:20]))
        program.read("/lost")
    program.read("/kept")
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    collector = DirectoryCollector(tmp_path)
    collector.finish()
    assert (collector.counts.read, collector.counts.set_aside) == (2, {"not JSON": 1})
    assert [one.dataset.name for one in task_lineage(collector.state, "COMPLETE").inputs] == ["/kept"]


def test_a_fork_writes_a_file_of_its_own(program: Any, tmp_path: Path) -> None:
    program.read("/parent")
    child = os.fork()
    if child == 0:
        program.read("/child")
        os._exit(0)
    os.waitpid(child, 0)
    program.read("/parent2")
    assert sorted(len(file.read_text().splitlines()) for file in tmp_path.iterdir()) == [2, 4]


def test_the_module_is_of_the_standard_library_and_old_pythons() -> None:
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names
    # Annotations are never evaluated, and so nothing but they may say `X | None`.
    assert isinstance(tree.body[1], ast.ImportFrom)
    assert tree.body[1].module == "__future__"
    annotations = {
        id(part)
        for node in ast.walk(tree)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if annotation is not None
        for part in ast.walk(annotation)
    }
    unions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and id(node) not in annotations
    ]
    assert all(isinstance(ast.unparse(node), str) and "None" not in ast.unparse(node) for node in unions)
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.Match, ast.TryStar))]


@pytest.mark.parametrize(("directory", "is_printed"), [("<LOG_DIR>", False), ("", True)])
def test_declared_lineage_of_a_driver_elsewhere_goes_to_its_log(
    tmp_path: Path, directory: str, is_printed: bool
) -> None:
    from spark_lineage.inject.task_injection import archive_bytes
    from spark_lineage.submission.driver_log import events_of

    archive = tmp_path / "declare.zip"
    names = ("namespace", "appName", "applicationRunId")
    archive.write_bytes(archive_bytes({f"spark.openlineage.{name}": name for name in names}, directory))
    text = f"import sys; sys.path.insert(0, {str(archive)!r}); from spark_lineage.declare import read; read('/in')"
    env = {**os.environ, "LOG_DIRS": f"{tmp_path},/gone"}
    done = subprocess.run([sys.executable, "-IS", "-c", text], check=True, env=env, capture_output=True)
    lines = (done.stderr if is_printed else (tmp_path / "declared.ndjson").read_bytes()).splitlines()
    events = [json.loads(event) for line in lines for event in events_of(line)]
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]


def test_declared_lineage_without_a_log_directory_is_said_to_be_lost(tmp_path: Path) -> None:
    from spark_lineage.inject.task_injection import archive_bytes

    archive = tmp_path / "declare.zip"
    names = ("namespace", "appName", "applicationRunId")
    archive.write_bytes(archive_bytes({f"spark.openlineage.{name}": name for name in names}, "<LOG_DIR>"))
    text = f"import sys; sys.path.insert(0, {str(archive)!r}); from spark_lineage.declare import read; read('/in')"
    env = {key: value for key, value in os.environ.items() if key != "LOG_DIRS"}
    done = subprocess.run([sys.executable, "-IS", "-c", text], check=True, env=env, capture_output=True)
    assert b"Declared lineage is lost" in done.stderr
