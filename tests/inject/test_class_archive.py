"""The archive of a driver's classes: which one a driver is given, and that of real ones it takes only what fits."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_lineage.cli.warm import make_archive
from spark_lineage.inject.class_archive import OPTIONS, archives, environment, keep, key_of
from spark_lineage.inject.installation import SparkInstallation
from spark_lineage.inject.preparation import Submitter
from spark_lineage.settings import Settings

if TYPE_CHECKING:
    from real_spark import RealSpark

KEY = "0123456789abcdef"
PROGRAM = """
import os, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(3).write.parquet(sys.argv[1])
with open(f"/proc/{os.getppid()}/maps") as maps:
    print("uses", sorted({line.split("/")[-1].strip() for line in maps if "/classes-" in line}))
spark.stop()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of this user's own."""
    folder = tmp_path / "it's a folder"
    folder.mkdir(mode=0o700)
    return folder


def kept(folder: Path, content: str = "classes") -> Path:
    """Make an archive of these bytes."""
    partial = folder / f"{KEY}.1.part"
    partial.write_text(content)
    partial.chmod(0o444)
    return keep(partial, KEY)


def test_a_driver_gets_the_archive_of_its_key_and_its_own_options_last(folder: Path) -> None:
    assert environment(folder, KEY, {}, {}) == {}
    archive = kept(folder)
    options = environment(folder, KEY, {OPTIONS: "-Dmine=1"}, {"spark.app.name": "load"})[OPTIONS]
    assert options.endswith(" -Dmine=1")
    assert "-Xshare:auto" in options
    assert f"-XX:SharedArchiveFile={archive}" in shlex.split(options)
    assert environment(folder, KEY[::-1], {}, {}) == {}


def test_the_next_archive_of_a_key_replaces_the_one_before(folder: Path) -> None:
    kept(folder)
    later = kept(folder, "more classes")
    (folder / "classes-of-others-1.jsa").touch()
    assert archives(folder) == {later: len("more classes")}
    assert [path.name for path in sorted(folder.glob("*.part"))] == []


@pytest.mark.parametrize(
    ("env", "properties"),
    [
        ({OPTIONS: "-Xshare:off"}, {}),
        ({"JAVA_TOOL_OPTIONS": "-XX:SharedArchiveFile=/mine.jsa"}, {}),
        ({"JDK_JAVA_OPTIONS": "-XX:ArchiveClassesAtExit=/mine.jsa"}, {}),
        ({}, {"spark.driver.extraJavaOptions": "-Da=b -Xshare:dump"}),
        ({}, {"spark.driver.defaultJavaOptions": "-XX:SharedArchiveFile=/mine.jsa"}),
    ],
)
def test_who_has_options_of_archives_gets_no_other(
    folder: Path, env: dict[str, str], properties: dict[str, str]
) -> None:
    kept(folder)
    assert environment(folder, KEY, env, properties) == {}


def cut_off(archive: Path) -> None:
    archive.chmod(0o600)
    os.truncate(archive, 3)


@pytest.mark.parametrize(
    "spoil", [cut_off, lambda archive: archive.chmod(0o464), lambda archive: archive.parent.chmod(0o770)]
)
def test_what_is_not_whole_or_may_be_of_others_is_not_used(folder: Path, spoil: Callable[[Path], None]) -> None:
    archive = kept(folder)
    assert environment(folder, KEY, {}, {})
    spoil(archive)
    assert environment(folder, KEY, {}, {}) == {}


def test_the_key_is_that_of_java_spark_and_the_listener(tmp_path: Path) -> None:
    for name in ("jdk/lib/modules", "jdk/bin/java", "spark/jars/spark-core_2.13-4.0.0.jar", "listener.jar"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    spark = SparkInstallation(tmp_path / "spark", "4.0.0", "2.13")
    jar, env = tmp_path / "listener.jar", {"JAVA_HOME": str(tmp_path / "jdk")}
    seen = [key_of(str(jar), spark, env)]
    (tmp_path / "jdk/bin/java").chmod(0o755)
    assert key_of(str(jar), spark, {"PATH": str(tmp_path / "jdk/bin")}) == seen[0]
    assert key_of(str(jar), spark, {"PATH": str(tmp_path)}) is None
    for changed in (jar, tmp_path / "jdk/lib/modules", tmp_path / "spark/jars/another.jar"):
        changed.write_text("another")
        seen.append(key_of(str(jar), spark, env))
    assert len(set(seen)) == len(seen)


@pytest.mark.truth
@pytest.mark.spark
def test_a_real_driver_takes_it_if_it_fits_and_else_starts_as_ever(real_spark: RealSpark, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(real_spark.fast.jar_cache, cache)
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    env = {**os.environ, "PATH": real_spark.path, "SPARK_LOCAL_IP": "127.0.0.1", OPTIONS: options}
    submitter = Submitter("yarn", "spark-submit", env, None, (), lambda _: "cluster")
    archive = make_archive(submitter, Settings(jar_cache_dir=str(cache)))
    program = real_spark.bench.root / "job.py"
    program.write_text(PROGRAM)
    real_spark.bench.env |= {OPTIONS: options, "AIRFLOW__SPARK_LINEAGE__JAR_CACHE_DIR": str(cache)}
    other = {"driver_class_path": str(tmp_path)}
    tried = {}
    for name, arguments in {"fits": {}, "other class path": other, "cut off": {}}.items():
        if name == "cut off":
            archive.chmod(0o600)
            os.truncate(archive, 100_000_000)
        outcome = real_spark.run(program, real_spark.bench.root / name, **arguments)
        assert outcome.error is None, outcome.printed
        assert outcome.names("outputs") == [str(real_spark.bench.root / name)]
        assert "[cds" not in outcome.printed
        tried[name] = f"uses ['{archive.name}']" in outcome.printed
        assert tried[name] or "uses []" in outcome.printed
    assert tried == {"fits": True, "other class path": False, "cut off": False}
