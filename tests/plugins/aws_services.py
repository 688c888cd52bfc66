"""Stands in for AWS: moto's server, and a runner that really submits what its EMR and Glue were asked to run.

It is a program, because moto lives in the process that serves. ``aws_services`` starts it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from submitted_program import Driver

_S3A = "org.apache.hadoop:hadoop-aws:3.5.0"
_SDK = tuple(f"software.amazon.awssdk:{name}:2.35.4" for name in ("s3", "s3-transfer-manager", "sts", "apache-client"))
_ANALYTICS = "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1"
_LOOK_SECONDS = 0.2
_REGION = "us-east-1"
# The last line of a traceback, which is the error that the services report.
_EXCEPTION = re.compile(r"^[\w.]+(?:Error|Exception): .*$", re.MULTILINE)
CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": _REGION}


@contextmanager
def aws_services(env: Mapping[str, str], folder: Path, spark_jars: Path, *, glue_seconds: float) -> Iterator[str]:
    """Start it; the value is the URL of all services.

    :param env: what Spark needs in its environment, with SPARK_HOME
    :param folder: for the files of drivers
    :param spark_jars: those that Spark has itself
    :param glue_seconds: how often Glue copies event logs (30 in the service)
    """
    from lineage_backends.maven import download, jars
    from lineage_backends.processes import cache_directory

    # Without what they need, which is a bundle of half a gigabyte.
    alone = {one: cache_directory() / "jars" / f"{one.replace(':', '-')}.jar" for one in (_S3A, _ANALYTICS)}
    own = {jar.name.rpartition("-")[0] for jar in spark_jars.iterdir()}
    found = [jar for jar in jars("awssdk", _SDK).iterdir() if jar.name.rpartition("-")[0] not in own]
    for coordinate, jar in alone.items():
        if not jar.exists():
            download(coordinate, jar)
    settings = {
        "jars": [*map(str, alone.values()), *map(str, found)],
        "folder": str(folder),
        "glue_seconds": glue_seconds,
    }
    log = folder / "services.log"
    with log.open("wb") as stream:
        process = Driver(
            [sys.executable, "-W", "ignore", __file__, json.dumps(settings)],
            env={**os.environ, **env},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=stream,
        )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url, log.read_text()
        yield url
    finally:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


@dataclass
class Runner:
    """Runs jobs; ``properties`` are the service's own."""

    folder: Path
    url: str
    jars: Sequence[str]
    glue_seconds: float

    def run(
        self,
        name: str,
        command: Sequence[str],
        is_over: Callable[[], bool],
        properties: Mapping[str, str] | None = None,
    ) -> tuple[bool, str]:
        """Run a command until it ends, or is over for its service; return whether it succeeded, and its error.

        :param properties: beside those of the service
        """
        home = self.folder / name
        home.mkdir()
        s3 = {
            "endpoint": self.url,
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "access.key": "test",
            "secret.key": "test",
            "endpoint.region": _REGION,
        }
        own = {f"spark.hadoop.fs.s3a.{key}": value for key, value in s3.items()}
        own |= {
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.driver.extraClassPath": os.pathsep.join(self.jars),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.master": "local[2]",
            **(properties or {}),
        }
        (home / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in own.items()))
        (home / "submitted.json").write_text(json.dumps(list(command[1:])))
        env = {**os.environ, "SPARK_CONF_DIR": str(home)}
        with (home / "output.txt").open("wb") as stream:
            driver = Driver(command, cwd=home, env=env, stdout=stream, stderr=stream)
        while driver.poll() is None:
            if is_over():
                driver.kill()
            time.sleep(_LOOK_SECONDS)
        driver.wait()
        output = (home / "output.txt").read_text(errors="replace")
        return driver.returncode == 0, (_EXCEPTION.findall(output) or ["", *output.strip().splitlines()])[-1]


def _options(properties: Mapping[str, str]) -> list[str]:
    return [word for key, value in properties.items() for word in ("--conf", f"{key}={value}")]


def _run_job(job: Any, driver: Mapping[str, Any], success: str, s3: Any, runner: Runner) -> None:
    """Run a job of EMR Serverless, or EMR on EKS."""
    configurations = (job.configuration_overrides or {}).get("applicationConfiguration") or []
    defaults = [one["properties"] for one in configurations if one["classification"] == "spark-defaults"]
    command = ["spark-submit", *_options(defaults[0] if defaults else {})]
    command += shlex.split(driver.get("sparkSubmitParameters") or "")
    command += [driver["entryPoint"], *(driver.get("entryPointArguments") or ())]
    job.state = "RUNNING"
    with _delivering(job, runner, s3) as own:
        is_done, error = runner.run(job.id, command, lambda: job.state != "RUNNING", own)
    if job.state == "RUNNING":
        job.state_details = "" if is_done else f"Job execution failed. ExitCode: 1. Last few exceptions: {error}"
        job.state = success if is_done else "FAILED"


@contextmanager
def _delivering(job: Any, runner: Runner, s3: Any) -> Iterator[Mapping[str, str]]:
    """Deliver the event log as EMR Serverless does: the status file first, then what was added, a file each time.

    The path and the names are those of its samples of a History Server, ``aws-samples/aws-emr-utilities``. The value
    has the properties of the service.
    """
    monitoring = (job.configuration_overrides or {}).get("monitoringConfiguration") or {}
    uri = (monitoring.get("s3MonitoringConfiguration") or {}).get("logUri")
    if not uri or not hasattr(job, "application_id"):
        yield {}
        return
    bucket, _, prefix = uri.partition("://")[2].strip("/").partition("/")
    place = f"{prefix}/applications/{job.application_id}/jobs/{job.id}/sparklogs/eventlog_v2_{job.id}".lstrip("/")
    logs, is_over = runner.folder / f"log-{job.id}", threading.Event()
    logs.mkdir()
    s3.put_object(Bucket=bucket, Key=f"{place}/appstatus_{job.id}", Body=b" \n")

    def deliver() -> None:
        sent = number = 0
        is_last = False
        while not is_last:
            is_last = is_over.wait(runner.glue_seconds)
            content = b"".join(each.read_bytes() for each in logs.iterdir() if not each.name.startswith("."))
            added = content[sent : content.rfind(b"\n") + 1]
            if added:
                s3.put_object(Bucket=bucket, Key=f"{place}/events_{number}_{job.id}", Body=added)
                sent, number = sent + len(added), number + 1

    delivering = threading.Thread(target=deliver, daemon=True)
    delivering.start()
    yield {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    is_over.set()


def _run_steps(cluster: Any, runner: Runner) -> None:
    """Run the steps of a cluster, one after the other; each cluster logs by itself, to its HDFS."""
    logs = runner.folder / cluster.id
    logs.mkdir(exist_ok=True)
    own = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": logs.as_uri()}
    is_cancelled = False
    for step in cluster.steps:
        if step.state not in {"PENDING", "RUNNING"} or getattr(step, "has_begun", False):
            continue
        step.has_begun, step.state = True, "CANCELLED" if is_cancelled else "RUNNING"
        if is_cancelled:
            continue
        is_done, _ = runner.run(step.id, step.args, lambda: False, own)
        step.state = "COMPLETED" if is_done else "FAILED"
        is_cancelled = not is_done and step.action_on_failure == "CANCEL_AND_WAIT"


def _run_glue(run: Any, script: str, s3: Any, runner: Runner) -> None:
    """Run a Glue job: its log is copied every few seconds, also once after its end."""
    arguments, logs = run.arguments or {}, runner.folder / f"log-{run.job_run_id}"
    place = arguments.get("--spark-event-logs-path", "").removeprefix("s3://").removeprefix("s3a://")
    logs.mkdir()
    conf = [pair for pair in arguments.get("--conf", "").split(" --conf ") if pair]
    own = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": logs.as_uri()}
    # One file, unless the job wants several.
    own |= {"spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false"}
    if arguments.get("--enable-spark-ui-legacy-path") != "true":
        place = ""
    command = ["spark-submit", *(word for pair in conf for word in ("--conf", pair))]
    command += [script, *(arguments.get(f"--{name}", "") for name in ("lake", "how", "flag"))]
    run.status = "RUNNING"
    is_copying = threading.Event()

    def copy() -> None:
        is_last = False
        while place and not is_last:
            is_last = is_copying.wait(runner.glue_seconds)
            if is_last:
                time.sleep(runner.glue_seconds)
            bucket, _, prefix = place.strip("/").partition("/")
            for file in (each for each in logs.rglob("*") if each.is_file()):
                if not file.name.startswith("."):
                    s3.put_object(Bucket=bucket, Key=f"{prefix}/{file.relative_to(logs)}", Body=file.read_bytes())

    copying = threading.Thread(target=copy, daemon=True)
    copying.start()
    stopped = runner.folder / "stopped" / run.job_run_id
    is_done, error = runner.run(run.job_run_id, command, stopped.exists, own)
    if run.status == "RUNNING":
        run.error_message = "" if is_done else error
        run.status = "STOPPED" if stopped.exists() else "SUCCEEDED" if is_done else "FAILED"
    is_copying.set()


def main() -> None:
    """Serve, and run what comes; the URL is on standard output."""
    import boto3
    import moto.emrcontainers.models as containers
    import moto.emrserverless.models as serverless
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.emr.models import emr_backends
    from moto.glue.models import glue_backends
    from moto.moto_api import state_manager
    from moto.server import ThreadedMotoServer

    settings = json.loads(sys.argv[1])
    serverless.JOB_STATUS, containers.JOB_STATUS = "SUBMITTED", "PENDING"
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 10_000_000})
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    url = "http://127.0.0.1:{1}".format(*server.get_host_and_port())
    runner = Runner(Path(settings["folder"]), url, settings["jars"], settings["glue_seconds"])
    s3 = boto3.client("s3", endpoint_url=url, **CREDENTIALS)
    print(url, flush=True)  # noqa: T201
    backends = (serverless.emrserverless_backends, containers.emrcontainers_backends, emr_backends, glue_backends)
    of = [backend[DEFAULT_ACCOUNT_ID][_REGION] for backend in backends]
    seen: set[str] = set()
    while True:
        for name, run, *arguments in _found(*of, s3):
            if name not in seen:
                seen.add(name)
                threading.Thread(target=run, args=(*arguments, runner), daemon=True).start()
        time.sleep(_LOOK_SECONDS)


def _found(serverless: Any, containers: Any, emr: Any, glue: Any, s3: Any) -> Iterator[tuple[Any, ...]]:
    """Return all that was ever submitted, each by a name of its own, with what runs it."""
    for jobs in list(serverless.job_runs.values()):
        for job in list(jobs):
            yield job.id, _run_job, job, job.job_driver["sparkSubmit"], "SUCCESS", s3
    for job in list(containers.job_runs.values()):
        yield job.id, _run_job, job, job.job_driver["sparkSubmitJobDriver"], "COMPLETED", s3
    for cluster in list(emr.clusters.values()):
        if cluster.steps:
            yield f"{cluster.id} {len(cluster.steps)}", _run_steps, cluster
    for definition in list(glue.jobs.values()):
        for run in list(definition.job_runs):
            yield run.job_run_id, _run_glue, run, definition.command["ScriptLocation"], s3


if __name__ == "__main__":
    main()
