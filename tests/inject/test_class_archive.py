"""Which drivers start from an archive of classes, and that those which cannot do not notice."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.cli import main
from spark_lineage.inject.class_archive import NoArchiveError, key_of, make_archive, use_archive
from spark_lineage.inject.installation import find_installation
from spark_lineage.inject.jar import cache_folder
from spark_lineage.inject.preparation import PreparedArguments, Submitter
from spark_lineage.inject.properties import LISTENER, SubmitArguments
from spark_lineage.settings import Settings
from spark_lineage.settings.places import jar_cache

if TYPE_CHECKING:
    from fast_spark import FastSpark
    from laboratory import Bench, Outcome

OPTIONS = "SPARK_SUBMIT_OPTS"
CONTENT = b"classes"
LOG = logging.getLogger(__name__)


@dataclass
class Place:
    """A Java, a Spark, a listener and the cache, with an archive that fits them."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in ("java/bin", "spark/jars"):
            (self.root / folder).mkdir(parents=True)
        self.release.write_text('IMPLEMENTOR="X"\nJAVA_VERSION="17.0.15"\n')
        for file in ("java/bin/java", "spark/jars/spark-core_2.13-4.2.0.jar", "spark/jars/a.jar"):
            (self.root / file).touch()
        with zipfile.ZipFile(self.listener, "w") as jar:
            jar.writestr(f"{LISTENER.replace('.', '/')}.class", b"")
        self.env |= {"JAVA_HOME": str(self.root / "java"), "SPARK_HOME": str(self.root / "spark")}
        self.env["XDG_CACHE_HOME"] = str(self.root / "cache")
        self.folder.mkdir(parents=True, mode=0o700)
        self.archive = self.folder / f"classes-{self.key()}-{len(CONTENT)}.jsa"
        self.archive.write_bytes(CONTENT)
        self.archive.chmod(0o444)

    @property
    def folder(self) -> Path:
        return cache_folder(self.root / "cache" / "airflow-provider-spark-lineage")

    @property
    def release(self) -> Path:
        return self.root / "java" / "release"

    @property
    def listener(self) -> str:
        return str(self.root / "listener.jar")

    @property
    def submitter(self) -> Submitter:
        return Submitter("local[2]", "spark-submit", self.env, None, (), lambda _: "client")

    def key(self) -> str:
        return key_of(self.listener, find_installation("spark-submit", self.env), self.env)

    def use(self, class_path: str | None = None, mode: str = "client", **properties: str) -> str | None:
        """The options of the driver, None where nothing is changed."""
        arguments = SubmitArguments({}, driver_class_path=self.listener if class_path is None else class_path)
        prepared = PreparedArguments(arguments, None, mode, properties, env={"OTHER": "kept"})
        env = use_archive(prepared, self.submitter, LOG).env
        assert env["OTHER"] == "kept"
        return env.get(OPTIONS)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# Which archive is used


def test_the_one_that_fits(place: Place) -> None:
    quiet = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
    assert place.use() == f"{quiet} -XX:SharedArchiveFile={place.archive}"
    place.env[OPTIONS] = "-Dmine=1"
    assert place.use() == f"{quiet} -XX:SharedArchiveFile={place.archive} -Dmine=1"


def test_a_path_is_quoted_for_spark(tmp_path: Path) -> None:
    place = Place(tmp_path / "a b")
    options = place.use()
    assert options is not None
    assert options.endswith(f" '-XX:SharedArchiveFile={place.archive}'")


@pytest.mark.parametrize("said", ["-Xshare:off", "-XX:SharedArchiveFile=x", "-XX:ArchiveClassesAtExit=x"])
@pytest.mark.parametrize(
    "where",
    [
        *(OPTIONS, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"),
        *("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"),
    ],
)
def test_the_users_own_word_counts(place: Place, where: str, said: str) -> None:
    options = f"-Dmine=1 {said}"
    if where.startswith("spark."):
        assert place.use(**{where: options}) is None
    else:
        place.env[where] = options
        assert place.use() is None


def test_a_driver_with_another_class_path_has_none(place: Place) -> None:
    own = place.root / "own.jar"
    own.touch()
    for class_path in ("", str(own), f"{own}:{place.listener}", "/nowhere.jar"):
        assert place.use(class_path) is None
    assert place.use(mode="cluster") is None


CHANGES: Mapping[str, Callable[[Place], object]] = {
    "jar of Spark": lambda place: os.utime(place.root / "spark" / "jars" / "a.jar", (0, 0)),
    "another jar of Spark": lambda place: (place.root / "spark" / "jars" / "b.jar").touch(),
    "listener": lambda place: Path(place.listener).write_bytes(b"other"),
    "Java": lambda place: place.release.write_text('JAVA_VERSION="17.0.16"\n'),
    "Java 11": lambda place: place.release.write_text('JAVA_VERSION="11.0.2"\n'),
    "Java 8": lambda place: place.release.write_text('JAVA_VERSION="1.8.0_17"\n'),
    "no release": lambda place: place.release.unlink(),
    "no Java": lambda place: place.env.update(JAVA_HOME="", PATH="/nowhere"),
    "an empty directory": lambda place: (place.root / "spark" / "conf").mkdir(),
    "a directory with something": lambda place: (place.root / "spark" / "conf" / "templates").mkdir(parents=True),
    "cut off": lambda place: os.truncate(place.archive, len(CONTENT) - 1),
    "a folder for others": lambda place: place.folder.chmod(0o770),
    "an archive for others": lambda place: place.archive.chmod(0o466),
    "a folder of others": lambda place: os.chown(place.folder, 4711, -1),
    "an archive of others": lambda place: os.chown(place.archive, 4711, -1),
    "other names": lambda place: place.archive.rename(place.folder / "classes-x.jsa"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_does_not_fit_is_not_used(place: Place, what: str, caplog: pytest.LogCaptureFixture) -> None:
    assert place.use() is not None
    try:
        CHANGES[what](place)
    except PermissionError:
        assert os.geteuid(), "only root gives files to others"
        return
    with caplog.at_level(logging.DEBUG):
        assert place.use() is None
    (line,) = caplog.messages
    assert line.startswith("The driver starts without a class archive: ")


def test_parts_of_a_second_are_nothing_to_the_key(place: Place) -> None:
    jar, before = place.root / "spark" / "jars" / "a.jar", place.key()
    os.utime(jar, ns=(0, int(jar.stat().st_mtime) * 10**9))
    assert place.key() == before


# How it is made


def making(place: Place, script: str) -> Submitter:
    fake = place.root / "submit"
    fake.write_text(f"#!{sys.executable} -IS\nimport os, re, sys\n{script}\n")
    fake.chmod(0o755)
    return replace(place.submitter, spark_binary=str(fake), env={**place.env, "HADOOP_CONF_DIR": "/etc/hadoop"})


LEAVE = f"""
made = re.search("ArchiveClassesAtExit=([^ ']+)", os.environ["{OPTIONS}"])[1]
open(made, "wb").write(b"0123456789"[:SIZE])
assert "HADOOP_CONF_DIR" not in os.environ
"""


def test_the_archive_of_a_key_replaces_the_one_before(place: Place) -> None:
    settings = Settings(openlineage_jar=place.listener)
    other = place.folder / "classes-0123456789abcdef-4.jsa"
    other.touch()
    archive = make_archive(making(place, LEAVE.replace("SIZE", "9")), settings)
    assert archive == place.folder / f"classes-{place.key()}-9.jsa"
    assert make_archive(making(place, LEAVE.replace("SIZE", "9")), settings) == archive
    assert sorted(place.folder.iterdir()) == sorted([archive, other])
    options = place.use()
    assert options is not None
    assert str(archive) in options


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("print('password=hunter2 no memory'); sys.exit(3)", r"exit code 3\) left none:\npassword=.* no memory"),
        ("print('done')", r"exit code 0\) left none:\ndone"),
    ],
)
def test_a_job_that_leaves_none(place: Place, script: str, text: str) -> None:
    before = sorted(place.folder.iterdir())
    with pytest.raises(NoArchiveError, match=text):
        make_archive(making(place, script), Settings(openlineage_jar=place.listener))
    assert sorted(place.folder.iterdir()) == before


def test_the_command_says_why_there_is_none(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise NoArchiveError("password=hunter2 it is so")

    monkeypatch.setattr("spark_lineage.inject.class_archive.make_archive", refuse)
    monkeypatch.setattr("spark_lineage.doctor.setup.Setup.of", lambda *_: Fake(place.submitter))
    assert main(["warm"]) == 2
    printed = capsys.readouterr().err
    assert "no archive can be made: " in printed
    assert "hunter2" not in printed


@dataclass
class Fake:
    """A setup of the doctor."""

    submitter: Submitter
    settings: Settings = field(default_factory=Settings)


# How the driver comes by it


@pytest.mark.parametrize("master", ["local[2]", "yarn"])
@pytest.mark.parametrize("where", ["worker", "env_vars"])
def test_the_users_variables_stay_what_they_are(bench: Bench, where: str, master: str) -> None:
    place = Place(bench.root / "place")
    bench.connection |= {"host": master}
    bench.env |= {"JAVA_HOME": place.env["JAVA_HOME"], "XDG_CACHE_HOME": place.env["XDG_CACHE_HOME"]}
    installation = find_installation("spark-submit", {"SPARK_HOME": str(bench.spark_home)})
    key = key_of(str(bench.jar), installation, bench.env)
    archive = place.archive.rename(place.folder / f"classes-{key}-{len(CONTENT)}.jsa")
    users = {OPTIONS: "-Dmine=1", "GREETING": "hello"}
    arguments: dict[str, Any] = {"env_vars": users} if where == "env_vars" else {}
    if where == "worker":
        bench.env |= users
    outcome, stock = (bench.run(lineage_enabled=enabled, **arguments) for enabled in (True, False))
    got = outcome.command["env"]
    assert got[OPTIONS].endswith(f"-XX:SharedArchiveFile={archive} -Dmine=1")
    assert (got["GREETING"], stock.command["env"][OPTIONS]) == ("hello", "-Dmine=1")
    assert f"The driver starts with the class archive {archive}" in outcome.printed
    of_yarn = [
        {name: value for name, value in one.command["conf"].items() if "appMasterEnv" in name}
        for one in (outcome, stock)
    ]
    assert of_yarn[0] == of_yarn[1]


# In a real driver


STRANGE = re.compile(r"VM warning|\[(?:warning|error) *\]\[|shared archive|A fatal error|Error:", re.IGNORECASE)
PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(9).selectExpr("id", "id * 2 AS twice").write.mode("overwrite").parquet(sys.argv[1])
spark.stop()
"""


@dataclass
class Driver:
    """Runs tasks with a real driver, and counts what it takes from an archive of ours."""

    bench: Bench
    env: Mapping[str, str]

    def run(self, **others: Any) -> tuple[Outcome, int]:
        log, program = self.bench.root / "classes.txt", self.bench.root / "job.py"
        log.unlink(missing_ok=True)
        program.write_text(PROGRAM)
        self.bench.limit_seconds = 600
        extra = others.pop("options", "")
        self.bench.env = {**self.env, OPTIONS: f"-Xlog:class+load:file={log} {extra}", **others.pop("env", {})}
        conf = {"spark.ui.enabled": "false", **others.pop("conf", {})}
        given = {"openlineage_jar": None, "application": str(program), "evidence": "both"}
        given |= {"application_args": [str(self.bench.root / "out")], "conf": conf, **others}
        outcome = self.bench.run(**given)
        assert outcome.error is None, outcome.printed
        assert outcome.names("outputs") == [str(self.bench.root / "out")]
        assert STRANGE.findall(outcome.printed) == []
        is_named = "The driver starts with the class archive" in outcome.printed
        assert is_named != ("-Xshare" in extra)
        return outcome, log.read_text().count("shared objects file (top)")


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("is_thorough", [False, True])
def test_a_driver_starts_from_what_warm_has_kept(
    bench: Bench, fast_spark: FastSpark, tmp_path: Path, *, is_thorough: bool
) -> None:
    folder = cache_folder(jar_cache({"XDG_CACHE_HOME": str(tmp_path)}))
    folder.mkdir(parents=True, mode=0o700)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    spark = find_installation("spark-submit", {"PATH": path})
    # Other tests have it for another Scala, too.
    (cached,) = cache_folder(fast_spark.jar_cache).glob(f"openlineage-spark_{spark.scala_version}-*.jar")
    jar = Path(shutil.copy2(cached, folder))
    env = {
        "PATH": path,
        "SPARK_HOME": str(spark.home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "XDG_CACHE_HOME": str(tmp_path),
    }
    warm = [sys.executable, "-m", "spark_lineage.cli", "warm"]
    own = {**os.environ, **env, "AIRFLOW_HOME": str(tmp_path / "airflow")}
    done = subprocess.run(warm, env=own, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("classes-*.jsa")
    assert done.stdout.startswith(f"{archive}: ")
    driver = Driver(bench, env)
    used, count = driver.run()
    assert count > 5000
    without, count = driver.run(options="-Xshare:auto")
    assert count == 0
    assert lasting(used) == lasting(without)
    if not is_thorough:
        return
    # The archive is of the JVM's defaults; Hadoop's configuration comes after all jars on the class path.
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "hosts.txt").touch()
    other = driver.run(
        options="-XX:+UseParallelGC -XX:TieredStopAtLevel=1", env={"HADOOP_CONF_DIR": str(tmp_path / "conf")}
    )
    assert other[1] > 5000
    # The JVM has no use for it.
    assert driver.run(options="-XX:+UseZGC")[1] == 0
    assert driver.run(conf={"spark.driver.memory": "40g"})[1] == 0
    # A task names neither unless the file changes right after it has looked.
    os.utime(jar, (0, 0))
    key = key_of(str(jar), spark, {**env, "PATH": path})
    stale = archive.rename(folder / re.sub("classes-.*-", f"classes-{key}-", archive.name))
    assert driver.run()[1] == 0
    size = stale.stat().st_size
    stale.unlink()
    stale.write_bytes(b"garbage!" * (size // 8))
    stale.chmod(0o444)
    assert driver.run()[1] == 0


def lasting(outcome: Outcome) -> str:
    """What an event says beside its times and ids."""
    assert outcome.lineage is not None
    text = json.dumps([outcome.lineage["inputs"], outcome.lineage["outputs"]], sort_keys=True)
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z", "…", text)
