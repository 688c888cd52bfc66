"""What the injection is told about Spark, and which jar it may name."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.inject import preparation
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.inject.preparation import Submitter, prepare
from spark_lineage.inject.properties import JarNotFoundError, LineageProperties, SubmitArguments
from spark_lineage.settings import Settings


@pytest.mark.parametrize(
    ("master", "conf", "jar", "is_told"),
    [
        ("yarn", {}, "coordinate", True),
        ("spark://m:7077", {}, "path", True),
        ("spark://m:7077", {}, "coordinate", False),
        ("spark://m:7077", {}, "local:///opt/openlineage-spark.jar", True),
        ("k8s://https://k:6443", {}, "path", False),
        ("k8s://https://k:6443", {"spark.kubernetes.file.upload.path": "s3a://b/up"}, "coordinate", True),
        ("k8s://https://k:6443", {}, "local:///opt/openlineage-spark.jar", True),
        ("yarn", {}, "local:///opt/openlineage-spark.jar", False),
        ("yarn", {}, "local path", True),
    ],
)
def test_in_cluster_mode_no_jar_is_told_that_the_driver_may_not_find(
    tmp_path: Path, master: str, conf: dict[str, str], jar: str, *, is_told: bool
) -> None:
    """A listener that is named and has no class ends the user's job."""
    file = tmp_path / "openlineage-spark_2.13-1.53.0.jar"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "spark-core_2.13-4.2.0.jar").touch()
    # Of the worker's own Spark, which is not the driver's.
    (home / "jars" / "openlineage-spark_2.13-1.53.0.jar").touch()
    submitter = Submitter(master, "spark-submit", {"SPARK_HOME": str(home)}, None, [], lambda _: "cluster")
    spec = {"path": str(file), "coordinate": "a:b:1", "local path": f"local://{file}"}.get(jar, jar)
    lineage = LineageProperties(str(tmp_path / "events.ndjson"), "ns", "app", "run", {}, {})

    def resolved(spec: str, **_: Any) -> str:
        """The resolution itself is tested with a real server."""
        return str(file) if spec == "a:b:1" else resolve_jar(spec, **_)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "resolve_jar", resolved)
        if is_told:
            arguments = prepare(SubmitArguments(conf), submitter, Settings(openlineage_jar=spec), lineage).arguments
            assert arguments.jars == (spec if "://" in spec else str(file))
        else:
            with pytest.raises(JarNotFoundError, match="in cluster mode on"):
                prepare(SubmitArguments(conf), submitter, Settings(openlineage_jar=spec), lineage)


def test_a_renamed_listener_of_the_users_is_not_doubled(tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.jar"
    with zipfile.ZipFile(renamed, "w") as archive:
        archive.writestr("io/openlineage/spark/agent/OpenLineageSparkListener.class", "")
    submitter = Submitter("local", "spark-submit", {"PATH": str(tmp_path)}, None, [], lambda _: "cluster")
    lineage = LineageProperties(str(tmp_path / "events.ndjson"), "ns", "app", "run", {}, {})
    settings = Settings(openlineage_jar="local:///opt/openlineage-spark.jar")
    arguments = prepare(SubmitArguments({}, jars=str(renamed)), submitter, settings, lineage).arguments
    assert arguments.jars == str(renamed)


@pytest.mark.parametrize(
    ("jars", "is_there"),
    [
        ("hdfs:///jars/openlineage-spark_2.13-1.53.0.jar,hdfs:///jars/spark/*", True),
        ("local:{home}/*", True),
        ("local:{home}/spark-*", False),
        ("hdfs:///jars/*", False),
        ("", False),
    ],
)
def test_listener_among_the_jars_of_yarn_is_not_shipped(tmp_path: Path, jars: str, *, is_there: bool) -> None:
    own, listener = tmp_path / "own", "openlineage-spark_2.13-1.53.0.jar"
    own.mkdir()
    (own / listener).touch()
    (own / "spark-core_2.13-4.2.0.jar").touch()
    shipped = tmp_path / listener
    with zipfile.ZipFile(shipped, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
    submitter = Submitter("yarn", "spark-submit", {"PATH": str(tmp_path)}, None, [], lambda _: "cluster")
    lineage = LineageProperties(str(tmp_path / "events.ndjson"), "ns", "app", "run", {}, {})
    conf = {"spark.yarn.jars": jars.format(home=own)}
    prepared = prepare(SubmitArguments(conf), submitter, Settings(openlineage_jar=str(shipped)), lineage)
    assert prepared.arguments.jars == (None if is_there else str(shipped))
    assert prepared.has_listener
