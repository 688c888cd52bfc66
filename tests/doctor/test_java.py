"""Java as spark-submit finds it, of programs that answer as Javas do."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.doctor.spark import check_java

VERSION = 'openjdk version "{}" 2024-01-16\nOpenJDK Runtime Environment'


def levels(findings: Any) -> list[str]:
    return [finding.level for finding in findings]


def test_no_java(setup: Any) -> None:
    (found,) = check_java(setup())
    assert found.level == "problem"
    assert found.text == "no java on PATH, and JAVA_HOME is not set: spark-submit cannot start"
    assert "openjdk-17" in found.remedy


@pytest.mark.parametrize(
    ("java", "spark", "level"),
    [
        ("1.8.0_392", "3.5.1", "ok"),
        ("11.0.21", "3.5.1", "ok"),
        ("17.0.15", "3.5.1", "ok"),
        ("25", "3.5.1", "warning"),
        ("25", "4.0.1", "warning"),
        ("25", "4.1.0", "ok"),
        ("1.8.0_392", "4.0.1", "problem"),
        ("11.0.21", "4.2.0", "problem"),
        ("17", "4.2.0", "ok"),
        ("21.0.1", "4.0.1", "ok"),
    ],
)
def test_the_java_of_a_spark(setup: Any, program: Any, spark_home: Any, java: str, spark: str, level: str) -> None:
    program("java", VERSION.format(java))
    (found,) = check_java(setup(env={"SPARK_HOME": str(spark_home(spark))}))
    assert (found.level, found.text.startswith(f"Java {java.removeprefix('1.')} in ")) == (level, True)


def test_java_home_wins_also_where_it_is_wrong(setup: Any, program: Any, tmp_path: Any) -> None:
    program("java", VERSION.format("17"))
    assert levels(check_java(setup(env={"JAVA_HOME": str(tmp_path / "gone")}))) == ["problem"]
    home = program("java", VERSION.format("21"), tmp_path / "jdk" / "bin").parents[1]
    (found,) = check_java(setup(env={"JAVA_HOME": str(home)}))
    assert found.text == f"Java 21 in {home}/bin/java"


def test_what_is_no_java(setup: Any, program: Any) -> None:
    program("java", "The operation couldn't be completed. Unable to locate a Java Runtime.")
    (found,) = check_java(setup())
    assert found.level == "problem"
    assert "it says \"The operation couldn't be completed" in found.text
