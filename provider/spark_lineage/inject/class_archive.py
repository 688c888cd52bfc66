"""An archive of the classes that a driver with the listener loads, from which it starts faster (JEP 350, Java 13).

The JVM takes it only if the same JVM has made it, with the class path that it has itself; else it goes on without, but
first maps all of it, in vain. So a task names only one that fits. ``spark-lineage warm`` makes it, never a task.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from spark_lineage.inject.installation import InstallationNotFoundError, SparkInstallation
from spark_lineage.inject.jar import CLASS_PATH, cache_folder
from spark_lineage.inject.preparation import PreparedArguments, Submitter, prepare
from spark_lineage.inject.properties import LineageProperties, SubmitArguments, effective_paths
from spark_lineage.launch.directory import create_private
from spark_lineage.launch.log import Log
from spark_lineage.settings import Settings
from spark_lineage.settings.places import jar_cache

PROGRAM = Path(__file__).with_name("everyday.py")
# Its options go to the JVM that spark-submit becomes, the driver in client mode.
_OPTIONS = "SPARK_SUBMIT_OPTS"
# An archive that does not fit is no reason to say anything.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
_VARIABLES = (_OPTIONS, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_PROPERTIES = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
# Whoever names one of them has an archive of their own, or wants none.
_USERS = re.compile(r"-Xshare|SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile")
_NAME = re.compile(r"classes-[0-9a-f]+-(?P<size>\d+)\.jsa")
# 13 and newer.
_VERSION = re.compile(r'^JAVA_VERSION="(1[3-9]|[2-9]\d)\b', re.MULTILINE)
# The user's backend, and file systems: Hadoop's folders follow all jars, and are nothing to an archive (measured).
_FOREIGN = ("OPENLINEAGE", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
_JOB_SECONDS, _TAIL_LINES = 600, 12


class NoArchiveError(Exception):
    """No archive can be made or used; the text says why."""


def key_of(class_path: str, spark: SparkInstallation, env: Mapping[str, str]) -> str:
    """Return what the archives of this JVM, Spark and listener are named by.

    :param class_path: what the driver has before Spark's own: the listener's jar
    :param env: of spark-submit
    :raises NoArchiveError: where no archive can fit such a driver
    :raises OSError: for a jar that is not there
    """
    if not class_path or os.pathsep in class_path:
        raise NoArchiveError("it is for drivers with the listener's jar alone on the class path before Spark's own")
    home = env.get("JAVA_HOME")
    # As Spark's own bin/spark-class.
    java = f"{home}/bin/java" if home else shutil.which("java", path=env.get("PATH"))
    if java is None:
        raise NoArchiveError("there is no java on the PATH; install Java 17, or set JAVA_HOME")
    release = Path(java).resolve().parent.parent / "release"
    build = release.read_text(errors="replace") if release.is_file() else ""
    if not _VERSION.search(build):
        raise NoArchiveError(f"{java} is not Java 17, by its {release}; install one, or set JAVA_HOME")
    conf = Path(env.get("SPARK_CONF_DIR") or spark.home / "conf")
    # The JVM refuses it (measured, Java 17); and a spark-env.sh there could choose another JVM.
    if conf.is_dir() and any(conf.iterdir()):
        raise NoArchiveError(
            f"{conf} has files in it, and Java archives no classes of a class path with such a directory; set "
            "SPARK_CONF_DIR to an empty one, for this command and for tasks"
        )
    # In the order of the directory, as the JVM takes `jars/*`, and by seconds: the layers of an image hold no more.
    jars = (Path(class_path), *spark.jars.iterdir())
    parts = [(str(jar), status.st_size, int(status.st_mtime)) for jar in jars for status in [jar.stat()]]
    seen = (str(release), build, str(conf) if conf.is_dir() else "", parts)
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def archives(folder: Path, key: str = "*") -> dict[Path, int]:
    """Return the archives in a folder, and the size that each had when it was made."""
    found = ((path, _NAME.fullmatch(path.name)) for path in folder.glob(f"classes-{key}-*.jsa"))
    return {path: int(name["size"]) for path, name in found if name}


@CLASS_PATH.bounded
def use_archive(prepared: PreparedArguments, submitter: Submitter, log: Log) -> PreparedArguments:
    """Have the driver's JVM use the archive that fits; the user's own options come after it, and so win."""
    try:
        archive = _fitting(prepared, submitter, cache_folder(jar_cache(submitter.env)))
    except (InstallationNotFoundError, NoArchiveError, OSError) as error:
        log.debug("The driver starts without a class archive: %s", error)
        return prepared
    log.debug("The driver starts with the class archive %s", archive)
    options = _options(f"SharedArchiveFile={archive}", submitter.env)
    return replace(prepared, env={**prepared.env, _OPTIONS: options})


def _options(ours: str, env: Mapping[str, str]) -> str:
    return f"{_QUIET} {shlex.quote(f'-XX:{ours}')} {env.get(_OPTIONS, '')}".strip()


def _fitting(prepared: PreparedArguments, submitter: Submitter, folder: Path) -> Path:
    if prepared.deploy_mode != "client":
        raise NoArchiveError("it is for deploy mode client")
    options = [submitter.env.get(name, "") for name in _VARIABLES]
    if _USERS.search(" ".join([*options, *(prepared.conf.get(name, "") for name in _PROPERTIES)])):
        raise NoArchiveError("the job's own Java options say what is shared")
    class_path = effective_paths(prepared.arguments, prepared.properties)[2]
    found = archives(folder, key_of(class_path, submitter.installation(), submitter.env))
    # A JVM crashes on an archive that was cut off (measured, Java 17).
    whole = next((path for path, size in found.items() if path.stat().st_size == size), None)
    if whole is None:
        raise NoArchiveError("none is for this Java, Spark and listener; `spark-lineage warm` makes one")
    for status in (folder.stat(), whole.stat()):
        if status.st_uid not in {0, os.geteuid()} or status.st_mode & 0o022:
            raise NoArchiveError(f"others could put their code into {whole}")
    return whole


def make_archive(submitter: Submitter, settings: Settings) -> Path:
    """Run a job with the listener, whose driver leaves its classes at its end, and return their archive.

    :raises NoArchiveError: where that cannot be done; also what ``prepare`` raises
    """
    folder = cache_folder(jar_cache(submitter.env))
    create_private(folder)
    # In the cache, so that it can be renamed.
    with tempfile.TemporaryDirectory(prefix="warm-", dir=folder) as work:
        # With the scheme: Hadoop's own configuration may be on the class path, and name another file system.
        place, made = Path(work).as_uri(), Path(work, "classes.jsa")
        conf = {
            "spark.submit.deployMode": "client",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": place,
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{place}/warehouse",
        }
        lineage = LineageProperties(f"{work}/events.ndjson", "spark-lineage", "warm", str(uuid4()), {}, {})
        local = replace(submitter, master="local[2]", deploy_mode=lambda _: "client")
        arguments = prepare(SubmitArguments(conf), local, replace(settings, evidence="both"), lineage).arguments
        class_path = arguments.driver_class_path or ""
        key = key_of(class_path, submitter.installation(), submitter.env)
        kept = {name: value for name, value in submitter.env.items() if not name.startswith(_FOREIGN)}
        env = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **kept}
        env[_OPTIONS] = _options(f"ArchiveClassesAtExit={made}", env)
        command = [submitter.spark_binary, "--master", local.master, "--driver-class-path", class_path]
        command += [word for name, value in arguments.conf.items() for word in ("--conf", f"{name}={value}")]
        try:
            done = subprocess.run(
                [*command, str(PROGRAM), place], env=env, cwd=work, timeout=_JOB_SECONDS, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoArchiveError(f"the job could not be run: {error}") from error
        if done.returncode or not made.exists():
            tail = "\n".join(done.stdout.splitlines()[-_TAIL_LINES:])
            raise NoArchiveError(f"the job's driver (exit code {done.returncode}) left none:\n{tail}")
        with made.open("rb") as stream:
            # A machine that stops must not leave an archive with holes.
            os.fsync(stream.fileno())
        old = archives(folder, key)
        archive = made.replace(folder / f"classes-{key}-{made.stat().st_size}.jsa")
    for path in old.keys() - {archive}:
        # A JVM that uses it keeps it until it ends.
        path.unlink(missing_ok=True)
    return archive
