"""What stands in ``spark-defaults.conf``, with the Spark of this interpreter."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.doctor.directories import check_lineage_directory
from spark_lineage.doctor.spark import check_spark_properties
from spark_lineage.inject.installation import find_installation
from spark_lineage.inject.properties import LISTENER

OF_SPARK = "org.apache.spark.scheduler.StatsReportListener"
NOWHERE = "com.example.Gone"


@pytest.fixture
def examined(setup: Any, tmp_path: Path) -> Any:
    """Return a setup whose Spark is real, and has these lines in its spark-defaults.conf."""

    def make(*lines: str, env: Mapping[str, str] = {}, **others: Any) -> Any:
        (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
        home = str(find_installation("spark-submit", {}).home)
        return setup(env={"SPARK_HOME": home, "SPARK_CONF_DIR": str(tmp_path), **env}, **others)

    return make


def told(findings: Any) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in findings]


def test_nothing_in_the_way(examined: Any, tmp_path: Path) -> None:
    lines = ("spark.openlineage.disabled false", f"spark.extraListeners {OF_SPARK}")
    ((level, text),) = told(check_spark_properties(examined(*lines, env={"OPENLINEAGE_DISABLED": "false"})))
    assert (level, text) == ("ok", f"{tmp_path}/spark-defaults.conf: 2 properties, and none is in the way")


def test_no_file(setup: Any, tmp_path: Path) -> None:
    assert told(check_spark_properties(setup(env={"SPARK_HOME": str(tmp_path)}))) == [
        ("ok", "there is no spark-defaults.conf")
    ]


def test_a_listener_that_is_switched_off(examined: Any, tmp_path: Path) -> None:
    ((level, text),) = told(check_spark_properties(examined("spark.openlineage.disabled  True")))
    assert level == "problem"
    assert text.startswith(f"{tmp_path}/spark-defaults.conf: spark.openlineage.disabled is true")
    ((level, text),) = told(check_spark_properties(examined(env={"OPENLINEAGE_DISABLED": "TRUE"})))
    assert level == "problem"
    assert text.startswith("the environment variable OPENLINEAGE_DISABLED is true")
    # Another host's driver does not get the environment of the worker.
    away = examined("spark.submit.deployMode cluster", env={"OPENLINEAGE_DISABLED": "TRUE"})
    assert [level for level, _ in told(check_spark_properties(away))] == ["ok"]


def test_the_deploy_mode_of_the_file_counts_for_the_lineage_directory(examined: Any) -> None:
    away = examined("spark.submit.deployMode cluster", master="yarn")
    assert [level for level, _ in told(check_lineage_directory(away))] == ["ok", "problem"]


def test_a_listener_class_that_is_nowhere(examined: Any) -> None:
    (found,) = check_spark_properties(examined(f"spark.extraListeners={OF_SPARK}, {NOWHERE}"))
    assert found.level == "problem"
    assert f"spark.extraListeners names {NOWHERE}" in found.text
    assert OF_SPARK not in found.text


def test_the_listener_that_tasks_bring_themselves_is_not_missing(examined: Any) -> None:
    assert [level for level, _ in told(check_spark_properties(examined(f"spark.extraListeners {LISTENER}")))] == ["ok"]


def test_a_listener_class_in_a_jar_or_directory_of_the_user(examined: Any, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    with zipfile.ZipFile(tmp_path / "lib" / "theirs.jar", "w") as archive:
        archive.writestr("com/example/Gone.class", b"")
    (tmp_path / "classes" / "com" / "example").mkdir(parents=True)
    (tmp_path / "classes" / "com" / "example" / "Gone.class").touch()
    named = f"spark.extraListeners {NOWHERE}"
    for place in (
        f"spark.jars file://{tmp_path}/lib/theirs.jar",
        f"spark.driver.extraClassPath /nowhere:{tmp_path}/lib/*",
        f"spark.driver.extraClassPath {tmp_path}/classes",
    ):
        assert [level for level, _ in told(check_spark_properties(examined(named, place)))] == ["ok"], place
    env = {"SPARK_DIST_CLASSPATH": f"{tmp_path}/lib/theirs.jar"}
    assert [level for level, _ in told(check_spark_properties(examined(named, env=env)))] == ["ok"]


def test_a_listener_class_that_may_come_from_where_we_cannot_look(examined: Any) -> None:
    named = f"spark.extraListeners {NOWHERE}"
    for place in (
        "spark.jars.packages com.example:gone:1.0",
        "spark.jars s3a://bucket/gone.jar",
        "spark.submit.deployMode cluster",
    ):
        assert [level for level, _ in told(check_spark_properties(examined(named, place)))] == ["warning"], place
