"""Runs a job's program in a Spark application, traced as the operator would have it, and merges its files."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from spark_lineage.cli import main
from spark_lineage.inject.installation import find_installation
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.inject.preparation import Submitter, prepare, prepare_unlistened
from spark_lineage.inject.properties import LineageProperties, SubmitArguments
from spark_lineage.inject.task_injection import inject_event_log
from spark_lineage.launch.directory import EVENTS_FILE
from spark_lineage.plans.event_log import read_event_log
from spark_lineage.settings import Settings
from spark_lineage.settings.places import jar_cache

if TYPE_CHECKING:
    from truth_file import Truth

LIMIT_SECONDS = 600
SNAPSHOTS_FILE = "snapshots.json"
# One broker at a time: a topic's name has its port.
KAFKA_PORT = 29092
_KAFKA = Lock()
MASTER = "local[2]"
# Small data: to start takes longer than the work. This halves it, in spark-submit's own two JVMs too.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
CONF = {
    "spark.driver.memory": "1g",
    # A JVM that lives for seconds is not worth optimizing for.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": "{dir}/warehouse",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={dir}/metastore;create=true",
}
# Read once: pytest removes a variable after each test, and a thread that reads all of them then raises KeyError.
_OWN_ENV = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "SPARK", "PYSPARK"))}


@dataclass(frozen=True)
class Application:
    """What a run left in ``home``: lineage files, event log and the driver's output; ``work`` is where it ran."""

    home: Path
    work: Path
    exit_code: int
    seconds: float

    @property
    def snapshots(self) -> dict[str, list[str]]:
        """The ids of all snapshots of Iceberg's tables, in order, by the tables' places below ``work``."""
        path = self.home / SNAPSHOTS_FILE
        snapshots: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
        return snapshots

    def unread(self) -> list[float]:
        """When the executions started, in epoch seconds, of whose plans something was not understood."""
        return [one.started for one in read_event_log(self.home / "eventlog", None) if one.unread]

    def merged(self, *options: str, evidence: str = "all") -> dict[str, Any]:
        """The event that the command makes of the files; ``evidence`` may be ``listener`` or ``event_log`` alone."""
        merged = self.home / "merged.json"
        command = ["merge", "--exit-code", str(self.exit_code)]
        command += [] if evidence == "event_log" else [str(self.home / "lineage" / EVENTS_FILE)]
        command += [] if evidence == "listener" else ["--event-log", str(self.home / "eventlog")]
        command += ["--output", str(merged), *options]
        if exit_code := main(command):
            message = f"spark-lineage {' '.join(command)} ended with {exit_code}"
            raise RuntimeError(message)
        event: dict[str, Any] = json.loads(merged.read_text())
        return event


def run_job(truth: Truth, version: str, home: Path, *, has_listener: bool = True) -> Application:
    """Run the program of a job on a Spark release; what an earlier run left in ``home`` is removed.

    :raises JarNotFoundError: when a jar that it needs cannot be had
    :raises RuntimeError: when it ends otherwise than it should
    """
    home = home.resolve()
    shutil.rmtree(home, ignore_errors=True)
    for name in ("work", "lineage", "eventlog"):
        (home / name).mkdir(parents=True)
    jars = [_jar(coordinate) for coordinate in truth.jars(version)]
    # Delta's jar holds its Python as well.
    env = _env(environment(version)) | {"PYTHONPATH": os.pathsep.join(jars)}
    command = _command(truth, home, jars, env, has_listener=has_listener)
    with _broker(truth), (home / "driver.log").open("w") as log:
        _lay_out(truth, home / "work", jars, env)
        if "--driver-class-path" in command:
            # The listener is on it: other Java options suit this one than suit a driver without.
            env["SPARK_SUBMIT_OPTS"] = os.environ.get("SPARK_LINEAGE_TRUTH_LISTENER_OPTS", "")
        started = time.monotonic()
        exit_code = subprocess.run(
            [*command, str(truth.program), str(home / "work")],
            cwd=home / "work", env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            timeout=LIMIT_SECONDS, check=False,
        ).returncode  # fmt: skip
    # A shell says 128 + n for what Python says -n: it ended by signal n.
    exit_code = exit_code if exit_code >= 0 else 128 - exit_code
    if exit_code != truth.exit_code:
        tail = (home / "driver.log").read_text(errors="replace")[-6000:]
        message = f"{truth.job} ended with {exit_code}, not {truth.exit_code}:\n{tail}"
        raise RuntimeError(message)
    application = Application(home, home / "work", exit_code, round(time.monotonic() - started, 1))
    (home / "run.json").write_text(json.dumps(asdict(application), default=str))
    if snapshots := iceberg_snapshots(application.work):
        (home / SNAPSHOTS_FILE).write_text(json.dumps(snapshots))
    return application


def lay_out(truth: Truth, version: str, home: Path) -> Path:
    """Put what a program reads into ``home/work``, and return a script that runs it with any listener.

    Arguments of the script are options of ``spark-submit``, but for ``--jars``, which the program may need itself.
    """
    work = home.resolve() / "work"
    work.mkdir(parents=True)
    jars = [_jar(coordinate) for coordinate in truth.jars(version)]
    env = _env(environment(version)) | {"PYTHONPATH": os.pathsep.join(jars)}
    _lay_out(truth, work, jars, env)
    options = [part for key, value in _conf(truth, work).items() for part in ("--conf", f"{key}={value}")]
    options += ["--jars", ",".join(jars)] if jars else []
    run = shlex.join(["spark-submit", "--master", MASTER, *options])
    script = home / "run.sh"
    script.write_text(
        f"#!/bin/bash\ncd {shlex.quote(str(work))} || exit\n"
        f"export PYTHONPATH={shlex.quote(env['PYTHONPATH'])} PATH={shlex.quote(env['PATH'])}\n"
        f'exec {run} "$@" {shlex.join([str(truth.program), str(work)])}\n'
    )
    return script


def kept_application(home: Path) -> Application:
    """Return what an earlier run left, wherever it has been moved to."""
    kept = json.loads((home / "run.json").read_text())
    return Application(home, Path(kept["home"], "work"), kept["exit_code"], kept["seconds"])


def iceberg_snapshots(work: Path) -> dict[str, list[str]]:
    """Return the ids of the snapshots that each Iceberg table below ``work`` ever had, in the order of their commits.

    A snapshot that has expired is in the older metadata files.
    """
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for path in sorted(work.rglob("metadata/*.metadata.json")):
        table = found.setdefault(str(path.parent.parent.relative_to(work)), {})
        for snapshot in json.loads(path.read_text()).get("snapshots", []):
            # A table of format 1 has no sequence numbers.
            order = (snapshot.get("sequence-number", 0), snapshot["timestamp-ms"])
            table[str(snapshot["snapshot-id"])] = order
    return {location: sorted(table, key=lambda each: table[each]) for location, table in found.items()}


def own_version() -> str:
    """The release of the PySpark beside this Python."""
    return ".".join(metadata.version("pyspark").split(".")[:2])


def environment(version: str) -> Path | None:
    """Where a PySpark is: this Python's environment, or the one that an environment variable names, else None."""
    if version == own_version():
        return Path(sys.executable).parent.parent
    given = os.environ.get(f"SPARK_LINEAGE_TRUTH_PYSPARK_{version.replace('.', '_')}")
    return Path(given) if given else None


def _command(truth: Truth, home: Path, jars: list[str], env: Mapping[str, str], *, has_listener: bool) -> list[str]:
    user = SubmitArguments(_conf(truth, home / "work"), jars=",".join(jars) or None)
    submitter = Submitter(MASTER, "spark-submit", env, None, (), lambda _: "client")
    run_id = str(uuid4())
    lineage = LineageProperties(
        events_file=str(home / "lineage" / EVENTS_FILE),
        namespace="truth",
        application_name=f"{truth.job}.spark",
        application_run_id=run_id,
        parent={
            "spark.openlineage.parentJobNamespace": "truth",
            "spark.openlineage.parentJobName": truth.job,
            "spark.openlineage.parentRunId": str(uuid4()),
        },
        tags={},
    )
    if has_listener:
        injected = prepare(user, submitter, Settings(lineage_timeout=LIMIT_SECONDS), lineage).arguments
    else:
        injected = prepare_unlistened(user, submitter, lineage).arguments
    own = {"spark.eventLog.dir": f"file://{home / 'eventlog'}", "spark.eventLog.rolling.enabled": "false"}
    traced = {**inject_event_log(injected.conf, {}, str(home), deploy_mode="client").conf, **own}
    command = ["spark-submit", "--master", MASTER]
    if injected.jars:
        command += ["--jars", injected.jars]
    if injected.driver_class_path:
        command += ["--driver-class-path", injected.driver_class_path]
    return [*command, *(part for key, value in traced.items() for part in ("--conf", f"{key}={value}"))]


def _conf(truth: Truth, work: Path) -> dict[str, str]:
    return {key: value.replace("{dir}", str(work)) for key, value in (CONF | truth.conf).items()}


@contextmanager
def _broker(truth: Truth) -> Iterator[None]:
    """Run a Kafka broker at the place that the programs name, where a program needs one."""
    if "kafka" not in truth.packages:
        yield
        return
    sys.path.append(str(Path(__file__).parents[1] / "backends"))
    from lineage_backends.kafka import kafka

    with _KAFKA, kafka(KAFKA_PORT):
        yield


def _lay_out(truth: Truth, work: Path, jars: list[str], env: Mapping[str, str]) -> None:
    for name, text in truth.files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    if truth.parquet:
        import pyarrow as pa
        import pyarrow.parquet as pq

        for name, rows in truth.parquet.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows), work / name)
    if truth.before:
        options = [part for key, value in _conf(truth, work).items() for part in ("--conf", f"{key}={value}")]
        options += ["--jars", ",".join(jars)] if jars else []
        env = {**env, "PYSPARK_SUBMIT_ARGS": shlex.join(["--master", MASTER, *options, "pyspark-shell"])}
        done = subprocess.run(
            [env["PYSPARK_PYTHON"], str(truth.program.parent / truth.before), str(work)],
            cwd=work, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            message = f"{truth.before} ended with {done.returncode}:\n{done.stderr[-6000:]}"
            raise RuntimeError(message)


def _env(environment: Path | None) -> dict[str, str]:
    binaries = str((environment or Path(sys.executable).parent.parent) / "bin")
    return _OWN_ENV | {
        "PATH": os.pathsep.join([binaries, _OWN_ENV["PATH"]]),
        "PYSPARK_PYTHON": f"{binaries}/python",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # As it is now: a test sets it.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", ""),
        "JAVA_TOOL_OPTIONS": JAVA_OPTIONS,
        "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_LINEAGE_TRUTH_PLAIN_OPTS", ""),
    }


@cache
def _jar(coordinate: str) -> str:
    env = _env(None)
    return resolve_jar(
        coordinate,
        installation=lambda: find_installation("spark-submit", env),
        cache_dir=jar_cache(env),
        timeout_seconds=LIMIT_SECONDS,
    )
