"""Make an archive of the classes that a driver with the listener loads, so that it starts faster.

Run it where tasks run, as their user, or while their image is built: it takes half a minute and 200 MB. Tasks in
client mode use it as long as Java, Spark and the jar of the listener stay the same.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from spark_lineage.cli.output import InputError, airflow_on_stderr, print_line

if TYPE_CHECKING:
    from spark_lineage.inject.preparation import Submitter
    from spark_lineage.settings import Settings

PROGRAM = Path(__file__).with_name("warm_program.py")
_SECONDS_OF_JOB = 600
_TAIL_LINES = 12


def add(commands: Any) -> None:
    """Add ``warm`` to the command."""
    warm = commands.add_parser("warm", help="make drivers start faster", description=__doc__)
    warm.add_argument("--spark-conn-id", default="spark_default", metavar="ID", help="default: %(default)s")
    warm.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    with airflow_on_stderr():
        # On purpose here: they import Airflow, which takes seconds.
        from spark_lineage.doctor.setup import Setup
        from spark_lineage.inject.class_archive import archives
        from spark_lineage.inject.installation import InstallationNotFoundError, PropertiesFileError
        from spark_lineage.inject.properties import JarNotFoundError

        try:
            setup = Setup.of(arguments.spark_conn_id, [])
        except Exception as error:
            raise InputError(f"the settings cannot be read: {type(error).__name__}: {error}") from error
        try:
            archive = make_archive(setup.submitter, setup.settings)
        except (InstallationNotFoundError, JarNotFoundError, PropertiesFileError) as error:
            raise InputError(str(error)) from error
    sizes = archives(archive.parent)
    print_line(f"{archive}: {sizes.pop(archive) / 1e6:.0f} MB, made in {time.monotonic() - began:.0f} s")
    for other, size in sorted(sizes.items()):
        print_line(f"{other}: {size / 1e6:.0f} MB, of another Java, Spark or listener; remove it if that is gone")
    return 0


def make_archive(submitter: Submitter, settings: Settings, options: str = "") -> Path:
    """Run a job with the listener, whose driver leaves its classes at its end, and return their archive.

    :param options: of the driver's JVM, besides
    :raises InputError: where the JVM leaves none
    :raises InstallationNotFoundError: where there is no Spark
    :raises JarNotFoundError: where the listener's jar cannot be had
    :raises PropertiesFileError: where Spark's properties file cannot be read
    """
    from spark_lineage.inject.class_archive import OPTIONS, keep, key_of
    from spark_lineage.inject.jar import cache_folder
    from spark_lineage.inject.preparation import prepare
    from spark_lineage.inject.properties import LineageProperties, SubmitArguments
    from spark_lineage.launch.directory import create_private
    from spark_lineage.settings.places import jar_cache

    submitter = replace(submitter, master="local[2]", deploy_mode=lambda _: "client")
    with tempfile.TemporaryDirectory(prefix="spark-lineage-warm-") as home:
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": Path(home).as_uri(),
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{home}/warehouse",
        }
        lineage = LineageProperties(f"{home}/events.ndjson", "spark-lineage", "warm", str(uuid4()), {}, {})
        prepared = prepare(SubmitArguments(conf), submitter, replace(settings, evidence="both"), lineage)
        class_path = prepared.arguments.driver_class_path
        if not prepared.jar or not class_path:
            raise InputError("the driver has the listener's jar from elsewhere than its class path: see `doctor`")
        folder = cache_folder(Path(jar_cache(settings, submitter.env)))
        create_private(folder)
        key = key_of(prepared.jar, submitter.installation(), submitter.env)
        if key is None:
            raise InputError("java is not on the PATH: install Java 17, or set JAVA_HOME")
        partial = folder / f"{key}.{os.getpid()}.part"
        making = f"{options} -XX:ArchiveClassesAtExit={shlex.quote(str(partial))}"
        env = {"PYSPARK_PYTHON": sys.executable, **submitter.env}
        env[OPTIONS] = f"{making} {env.get(OPTIONS, '')}".strip()
        pairs = [word for key, value in prepared.arguments.conf.items() for word in ("--conf", f"{key}={value}")]
        command = [submitter.spark_binary, "--master", submitter.master, "--driver-class-path", class_path, *pairs]
        try:
            done = subprocess.run(
                [*command, str(PROGRAM), home], env=env, cwd=home, timeout=_SECONDS_OF_JOB, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
            if done.returncode or not partial.exists():
                tail = "\n".join(done.stdout.splitlines()[-_TAIL_LINES:])
                raise InputError(f"the driver of the job (exit code {done.returncode}) left no archive:\n{tail}")
            return keep(partial, key)
        except subprocess.TimeoutExpired as error:
            raise InputError(f"the job has not ended within {error.timeout:g} s") from error
        finally:
            partial.unlink(missing_ok=True)
