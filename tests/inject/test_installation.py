"""Which Spark a binary belongs to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_lineage.inject import installation as module
from spark_lineage.inject.installation import InstallationNotFoundError, find_installation


def make_spark(home: Path, *jars: str) -> Path:
    (home / "jars").mkdir(parents=True)
    for jar in jars or ("spark-core_2.13-4.2.0.jar",):
        (home / "jars" / jar).touch()
    return home


def make_binary(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / "spark-submit"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    return binary


@pytest.fixture
def no_pyspark(monkeypatch):
    monkeypatch.setattr(module, "pyspark_of_this_interpreter", lambda: None)


@pytest.mark.parametrize(
    ("jar", "spark", "scala"),
    [
        ("spark-core_2.13-4.2.0.jar", "4.2.0", "2.13"),
        ("spark-core_2.12-3.5.1-amzn-0.jar", "3.5.1-amzn-0", "2.12"),
        ("spark-core_2.12-3.3.2.3.3.7190.0-91.jar", "3.3.2.3.3.7190.0-91", "2.12"),
        ("spark-core_2.13-4.1.0-preview1.jar", "4.1.0-preview1", "2.13"),
    ],
)
def test_versions_come_from_the_core_jar(tmp_path, jar, spark, scala):
    home = make_spark(tmp_path / "spark", "spark-core_2.11-0.0.1-tests.jar", jar, "scala-library-2.10.1.jar")
    found = find_installation("spark-submit", {"SPARK_HOME": str(home)})
    assert (found.home, found.spark_version, found.scala_version) == (home, spark, scala)
    assert found.jars == home / "jars"


def test_spark_home_wins_over_the_binary(tmp_path):
    binary = make_binary(make_spark(tmp_path / "one") / "bin")
    home = make_spark(tmp_path / "two", "spark-core_2.12-3.5.9.jar")
    assert find_installation(str(binary), {"SPARK_HOME": str(home)}).home == home


def test_wrong_spark_home_is_not_papered_over(tmp_path):
    binary = make_binary(make_spark(tmp_path / "one") / "bin")
    with pytest.raises(InstallationNotFoundError, match=r"SPARK_HOME is .*nowhere.*unset"):
        find_installation(str(binary), {"SPARK_HOME": str(tmp_path / "nowhere")})


def test_binary_on_the_path_of_the_env_through_a_symlink(tmp_path):
    home = make_spark(tmp_path / "opt" / "spark")
    link = tmp_path / "local" / "spark-submit"
    link.parent.mkdir()
    link.symlink_to(make_binary(home / "bin"))
    assert find_installation("spark-submit", {"PATH": str(link.parent)}).home == home


@pytest.mark.usefixtures("no_pyspark")
def test_pyspark_beside_the_binary(tmp_path):
    binary = make_binary(tmp_path / "venv" / "bin")
    home = make_spark(tmp_path / "venv" / "lib" / "python3.12" / "site-packages" / "pyspark")
    assert find_installation(str(binary), {}).home == home


@pytest.mark.parametrize("package_is_at", ["link", "target"])
@pytest.mark.usefixtures("no_pyspark")
def test_pyspark_beside_either_end_of_a_symlink(tmp_path, package_is_at):
    link = tmp_path / "link" / "bin" / "spark-submit"
    link.parent.mkdir(parents=True)
    link.symlink_to(make_binary(tmp_path / "target" / "bin"))
    home = make_spark(tmp_path / package_is_at / "lib" / "python3.11" / "site-packages" / "pyspark")
    assert find_installation(str(link), {}).home == home


def test_pyspark_of_this_interpreter_comes_last(tmp_path, monkeypatch):
    home = make_spark(tmp_path / "pyspark")
    monkeypatch.setattr(module, "pyspark_of_this_interpreter", lambda: home)
    assert find_installation("no-such-binary", {"PATH": ""}).home == home


@pytest.mark.usefixtures("no_pyspark")
def test_error_says_where_it_looked(tmp_path):
    binary = make_binary(tmp_path / "some" / "bin")
    with pytest.raises(InstallationNotFoundError) as caught:
        find_installation(str(binary), {})
    for part in (str(binary), str(tmp_path / "some"), "python3*", "running interpreter", "Set SPARK_HOME"):
        assert part in str(caught.value)
    with pytest.raises(InstallationNotFoundError, match=f"missing-submit on PATH {tmp_path}"):
        find_installation("missing-submit", {"PATH": str(tmp_path)})


@pytest.mark.usefixtures("no_pyspark")
def test_error_names_a_package_that_has_no_jars(tmp_path):
    binary = make_binary(tmp_path / "venv" / "bin")
    package = tmp_path / "venv" / "lib" / "python3.12" / "site-packages" / "pyspark"
    package.mkdir(parents=True)
    with pytest.raises(InstallationNotFoundError) as caught:
        find_installation(str(binary), {})
    assert f"looked at: {tmp_path}/venv; {package}; pyspark of the running interpreter (not installed). " in str(
        caught.value
    )


def test_jars_without_spark_are_refused(tmp_path):
    home = make_spark(tmp_path / "spark", "guava.jar")
    with pytest.raises(InstallationNotFoundError, match=r"no spark-core_\*\.jar"):
        find_installation("x", {"SPARK_HOME": str(home)})


def test_looking_for_pyspark_does_not_import_it():
    code = (
        "import sys; from spark_lineage.inject import installation, properties, jar;"
        "installation.pyspark_of_this_interpreter();"
        "assert not {'pyspark', 'airflow'} & set(sys.modules), 'imported'"
    )
    root = Path(module.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={"PYTHONPATH": str(root)})
