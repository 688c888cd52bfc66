"""Listener jars that are none, are for another Scala, or cannot be reached from where the driver runs."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.doctor.spark import check_jar

CLASS = "io/openlineage/spark/agent/OpenLineageSparkListener.class"


@pytest.fixture
def jar(tmp_path: Path) -> Callable[..., str]:
    def make(name: str, *names: str) -> str:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for each in names:
                archive.writestr(each, b"")
        return str(tmp_path / name)

    return make


def told(findings: Any) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in findings]


def test_a_jar_that_fits(setup: Any, spark_home: Any, jar: Any) -> None:
    file = jar("openlineage-spark_2.12-1.53.0.jar", CLASS)
    found = told(check_jar(setup(env={"SPARK_HOME": str(spark_home())}, openlineage_jar=file)))
    assert found == [("ok", f"the listener is {file}, for Scala 2.12 as Spark 3.5.1 is")]


def test_a_jar_for_another_scala_by_its_name_and_by_what_it_holds(setup: Any, spark_home: Any, jar: Any) -> None:
    env = {"SPARK_HOME": str(spark_home())}
    renamed = jar("listener.jar")
    with zipfile.ZipFile(renamed, "w") as archive:
        archive.writestr(CLASS, b"... scala/collection/Seq ... scala/collection/immutable/Seq ...")
    for file in (jar("openlineage-spark_2.13-1.53.0.jar", CLASS), renamed):
        ((level, text),) = told(check_jar(setup(env=env, openlineage_jar=file)))
        assert level == "problem"
        assert text.startswith(f"{file} is for Scala 2.13, and Spark 3.5.1 has Scala 2.12; write {{scala}}")


def test_a_jar_that_does_not_tell_its_scala(setup: Any, spark_home: Any, jar: Any) -> None:
    env = {"SPARK_HOME": str(spark_home())}
    assert [level for level, _ in told(check_jar(setup(env=env, openlineage_jar=jar("l.jar", CLASS))))] == ["warning"]


def test_what_is_no_listener(setup: Any, spark_home: Any, jar: Any, tmp_path: Path) -> None:
    env = {"SPARK_HOME": str(spark_home())}
    (tmp_path / "page.jar").write_text("<html>404</html>")
    for file, words in (
        (jar("other.jar", "org/example/Other.class"), "it is not a listener jar"),
        (str(tmp_path / "page.jar"), "it is not a complete zip file"),
        (str(tmp_path / "gone.jar"), "No such file"),
        ("listener.jar", "neither an absolute path, nor a URL"),
    ):
        ((level, text),) = told(check_jar(setup(env=env, openlineage_jar=file)))
        assert level == "problem"
        assert words in text


def test_no_spark_to_resolve_a_coordinate_with(setup: Any, tmp_path: Path) -> None:
    env = {"SPARK_HOME": str(tmp_path)}
    ((level, text),) = told(check_jar(setup(env=env)))
    assert level == "warning", "the event log is enough"
    assert text.startswith("Resolving the OpenLineage listener jar needs Spark")
    for evidence in ("both", "listener"):
        ((level, text),) = told(check_jar(setup(env=env, evidence=evidence)))
        assert level == "problem"
        (remedy,) = [one.remedy for one in check_jar(setup(env=env, evidence=evidence))]
        assert ("the event log is the only source of lineage" in remedy) is (evidence == "both")
    assert told(check_jar(setup(env=env, evidence="event_log")))[0][0] == "ok"
    assert text.startswith("Resolving the OpenLineage listener jar needs Spark")


def test_a_listener_that_spark_has_already(setup: Any, spark_home: Any, jar: Any, tmp_path: Path) -> None:
    home = spark_home()
    Path(jar("theirs", CLASS)).rename(home / "jars" / "openlineage-spark_2.13-1.40.0.jar")
    ((level, text),) = told(check_jar(setup(env={"SPARK_HOME": str(home)}, openlineage_jar=str(tmp_path / "gone.jar"))))
    assert level == "problem"
    assert "openlineage-spark_2.13-1.40.0.jar is for Scala 2.13" in text


def test_a_listener_of_the_properties_file(setup: Any, spark_home: Any) -> None:
    home = spark_home()
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text("spark.jars /opt/openlineage-spark_2.12-1.40.0.jar\n")
    ((level, text),) = told(check_jar(setup(env={"SPARK_HOME": str(home)})))
    assert (level, text.startswith("spark-defaults.conf has a listener of its own")) == ("ok", True)


def test_a_transport_that_leaves_no_room(setup: Any, spark_home: Any, jar: Any) -> None:
    home = spark_home()
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text(
        "spark.openlineage.transport.type composite\nspark.openlineage.transport.transports [{type:http}]\n"
    )
    file = jar("openlineage-spark_2.12-1.53.0.jar", CLASS)
    ((level, text),) = told(check_jar(setup(env={"SPARK_HOME": str(home)}, openlineage_jar=file)))
    assert level == "problem"
    assert "a second one cannot be added" in text


def test_a_jar_that_the_driver_cannot_reach(setup: Any, spark_home: Any, jar: Any) -> None:
    spark = {"master": "k8s://https://api:6443", "extra": {"deploy-mode": "cluster"}}
    file = jar("openlineage-spark_2.12-1.53.0.jar", CLASS)
    env = {"SPARK_HOME": str(spark_home())}
    ((level, text),) = told(check_jar(setup(env=env, **spark, openlineage_jar=file)))
    assert level == "problem"
    assert "in cluster mode on k8s://https://api:6443 the driver could not load" in text
    ((level, text),) = told(check_jar(setup(env=env, **spark, openlineage_jar="local:///opt/openlineage.jar")))
    assert (level, "local:///opt/openlineage.jar" in text) == ("ok", True)
