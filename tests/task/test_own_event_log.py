"""A program that has an event log of its own gets the log that it would get from the stock operator."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zstandard
from real_spark import RELEASES, RealSpark

pytestmark = [pytest.mark.spark, pytest.mark.truth]

# {settings} is Python; argv: where to write, and where a log may go.
PROGRAM = """
import sys
from pyspark import SparkConf
from pyspark.sql import SparkSession
out, logs = sys.argv[1:]
{settings}
spark.range(100).selectExpr("id", "id % 7 AS day").write.mode("overwrite").parquet(out)
spark.stop()
"""
BUILDER = "spark = SparkSession.builder{calls}.getOrCreate()"
ENABLED, DIRECTORY = '.config("spark.eventLog.enabled", True)', '.config("spark.eventLog.dir", logs)'
# Not to be found by who looks through the program.
HIDDEN = 'key = "spark.event" + "Log."\n'
PROGRAMS = {
    "both": BUILDER.format(calls=ENABLED + DIRECTORY),
    "spark_conf": 'spark = SparkSession.builder.config(conf=SparkConf().set("spark.eventLog.enabled", "true")'
    '.set("spark.eventLog.dir", "file://" + logs).set("spark.eventLog.compress", "false")).getOrCreate()',
    "enabled_alone": BUILDER.format(calls=ENABLED),
    "directory_alone": BUILDER.format(calls='.config("spark.eventLog.dir", logs + "/missing")'),
    "turned_off": BUILDER.format(calls='.config("spark.eventLog.enabled", "false")' + DIRECTORY),
    "hidden_both": HIDDEN + BUILDER.format(calls='.config(key + "enabled", "true").config(key + "dir", logs)'),
    "hidden_enabled": HIDDEN + BUILDER.format(calls='.config(key + "enabled", "true")'),
    "in_a_module": "from sessions.local import session\nspark = session(logs)",
}
WHEN = {name: [pytest.mark.nightly] for name in PROGRAMS} | {"both": []}
# Where they lie.
READ = {"both", "spark_conf", "enabled_alone", "hidden_both", "hidden_enabled", "in_a_module"}


def run(spark: RealSpark, name: str, **arguments: Any) -> tuple[Any, Path]:
    """Run one of the programs, and give what came of it, and the directory of the program's logs."""
    kind = "stock" if arguments.get("lineage_enabled") is False else "ours"
    home = spark.bench.root / kind
    (home / "logs").mkdir(parents=True)
    (home / "default").mkdir()
    package = spark.bench.root / "sessions"
    package.mkdir(exist_ok=True)
    (package / "local.py").write_text(
        "from pyspark.sql import SparkSession\n"
        f"def session(logs):\n    {BUILDER.format(calls=ENABLED + DIRECTORY)}\n    return spark\n"
    )
    program = spark.bench.root / "job.py"
    program.write_text(PROGRAM.format(settings=PROGRAMS.get(name, BUILDER.format(calls=""))))
    # Spark's own default is a directory that all share.
    conf = {"spark.eventLog.dir": str(home / "default"), **arguments.pop("conf", {})}
    outcome = spark.run(program, home / "out", home / "logs", conf=conf, **arguments)
    assert outcome.error is None, outcome.printed
    return outcome, home


def logs(home: Path) -> dict[str, Counter[str]]:
    """Directory and name of each file of a log without the application's id, and how many events of which kind."""
    found = {}
    for file in sorted(home.glob("[ld]*/**/*")):
        if file.is_file() and not file.name.endswith(".crc"):
            name = "-".join(part for part in str(file.relative_to(home)).split("-") if not part[:13].isdigit())
            found[name + "".join(file.suffixes)] = kinds(file)
    return found


def kinds(file: Path) -> Counter[str]:
    content = file.read_bytes()
    if file.suffix == ".zstd":
        content = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(content)
    return Counter(json.loads(line)["Event"] for line in content.splitlines())


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks) for name, marks in WHEN.items()])
def test_its_log_is_what_it_would_be_without_us(real_spark: RealSpark, name: str, release: str) -> None:
    real_spark.release = release
    _, stock = run(real_spark, name, lineage_enabled=False)
    outcome, ours = run(real_spark, name)
    if name.startswith("hidden") and release == "3.5":
        # Spark's default since 4.0, which is all that is left of ours.
        assert list(logs(ours).values()) == list(logs(stock).values())
    else:
        assert logs(ours) == logs(stock)
    assert outcome.names("outputs") == [str(ours / "out")]
    assert not list(real_spark.bench.lineage_dir.rglob("event-log"))
    status = json.dumps(outcome.lineage["run_facets"]["sparkLineage_status"])
    assert ("event log" in status) is (name in READ)
    assert ("No event log was found" in outcome.printed) is (name not in READ)


@pytest.mark.nightly
def test_settings_of_the_user_are_overridden_by_the_program_as_without_us(real_spark: RealSpark) -> None:
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.compression.codec": "lz4"}
    _, stock = run(real_spark, "both", lineage_enabled=False, conf=conf)
    _, ours = run(real_spark, "both", conf=conf)
    names = [[file.suffix for file in home.glob("logs/*/events*")] for home in (stock, ours)]
    assert names == [[".lz4"], [".lz4"]]
    assert not list(ours.glob("default/*"))


@pytest.mark.nightly
def test_what_turns_a_log_on_for_java_holds(real_spark: RealSpark) -> None:
    conf = {"spark.driver.extraJavaOptions": "-Dspark.eventLog.enabled=true"}
    _, stock = run(real_spark, "none", lineage_enabled=False, conf=conf)
    outcome, ours = run(real_spark, "none", conf=conf)
    assert logs(ours) == logs(stock) != {}
    assert outcome.names("outputs") == [str(ours / "out")]


def test_a_program_without_one_has_none_and_its_lineage_is_read_from_ours(real_spark: RealSpark) -> None:
    outcome, home = run(real_spark, "none")
    assert logs(home) == {}
    assert outcome.names("outputs") == [str(home / "out")]
    assert not list(real_spark.bench.lineage_dir.rglob("event-log"))
    assert "No event log" not in outcome.printed


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["both", pytest.param("spark_conf", marks=pytest.mark.nightly)])
def test_without_the_listener_the_driver_says_where_its_log_is(real_spark: RealSpark, name: str, release: str) -> None:
    real_spark.release = release
    outcome, home = run(real_spark, name, evidence="event_log")
    assert outcome.names("outputs") == [str(home / "out")]
    assert outcome.lineage["run_facets"]["sparkLineage_collection"]["evidence"] == ["event_log"]
    assert logs(home), "it is the user's own, and stays"
