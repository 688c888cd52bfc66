"""Whether a task could submit, to which Spark, on which Java, and with which listener jar."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from spark_lineage.doctor.setup import Finding, Setup, make_connection, ok, problem, warning
from spark_lineage.doctor.versions import version_of
from spark_lineage.inject.installation import InstallationNotFoundError, PropertiesFileError, SparkInstallation
from spark_lineage.inject.jar import is_plain, scala_of
from spark_lineage.inject.preparation import NO_PYTHON, UserProperties, prepare
from spark_lineage.inject.properties import (
    LISTENER,
    JarNotFoundError,
    LineageProperties,
    SubmitArguments,
    TransportConflictError,
)
from spark_lineage.launch.directory import without_scheme

_JAVA_VERSION = re.compile(r'version "(?:1\.)?(?P<major>\d+)(?P<rest>[^"]*)"')
_JAVA_SECONDS = 15.0
_INSTALL_JAVA = (
    "install Java 17 (Debian: openjdk-17-jre-headless), then put java on PATH or set JAVA_HOME for the worker"
)
# As "Downloading" in Spark's documentation has them. Hadoop's clients of Spark 4.0 call what Java 24 has taken out.
_OLDEST_FOR_SPARK_4, _OLDEST_FOR_SPARK_3, _NEWEST_BEFORE_SPARK_41 = 17, 8, 23
_OLDEST_TESTED_SPARK = (3, 5)
_DIST_CLASS_PATH = "SPARK_DIST_CLASSPATH"
_LISTENERS = "spark.extraListeners"


def check_java(setup: Setup) -> Iterator[Finding]:
    """Look for ``java`` as ``bin/spark-class`` does, and ask for its version."""
    home = setup.env.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=setup.env.get("PATH"))
    if java is None:
        yield problem("no java on PATH, and JAVA_HOME is not set: spark-submit cannot start", _INSTALL_JAVA)
        return
    command = [java, "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False)
        answer = done.stderr + done.stdout
    except (OSError, subprocess.SubprocessError) as error:
        answer = str(error)
    version = _JAVA_VERSION.search(answer)
    if version is None:
        line = answer.strip().partition("\n")[0]
        yield problem(f"{java} does not run: it says {line!r}", _INSTALL_JAVA)
        return
    found = f"Java {version['major']}{version['rest']} in {java}"
    spark, installed = setup.spark_version, setup.submitter.known_installation
    named = f"Spark {installed.spark_version if installed else 4}"
    oldest = _OLDEST_FOR_SPARK_4 if spark is None or spark >= (4, 0) else _OLDEST_FOR_SPARK_3
    if int(version["major"]) < oldest:
        level = problem if spark else warning
        yield level(f"{found} is too old: {named} needs Java {oldest} or newer", _INSTALL_JAVA)
    elif spark is not None and spark < (4, 1) and int(version["major"]) > _NEWEST_BEFORE_SPARK_41:
        yield warning(f"{found} is newer than {named} supports", "give the worker Java 17")
    else:
        yield ok(found)


def check_spark(setup: Setup) -> Iterator[Finding]:
    """Look where spark-submit looks."""
    if setup.places.has_connection:
        text = f"connection {setup.conn_id}: master {setup.master}, deploy mode {setup.deploy_mode}"
        if setup.master.startswith("spark://") and setup.deploy_mode == "cluster":
            yield warning(f"{text}: {NO_PYTHON[0]}", "set deploy-mode to client for Python programs")
        else:
            yield ok(text)
    else:
        yield warning(
            f"Airflow has no connection {setup.conn_id} here: the Spark provider submits to {setup.master} then",
            f"{make_connection(setup.conn_id)}, or name another one with --spark-conn-id",
        )
    if shutil.which(setup.spark_binary, path=setup.env.get("PATH")) is None:
        yield problem(
            f"there is no {setup.spark_binary} on PATH: tasks cannot submit",
            "install Spark (pip install 'airflow-provider-spark-lineage[spark]'), or put its bin on the worker's PATH",
        )
    try:
        found = setup.submitter.installation()
    except InstallationNotFoundError as error:
        # With a jar given by its path it is not needed, which the check of the jar finds.
        yield warning(str(error), "set SPARK_HOME")
        return
    text = f"Spark {found.spark_version}, Scala {found.scala_version}, in {found.home}"
    if setup.spark_version is not None and setup.spark_version < _OLDEST_TESTED_SPARK:
        yield warning(f"{text}: lineage is tested with Spark 3.5 and newer", "use a newer Spark")
    else:
        yield ok(text)
    full, client = version_of("pyspark"), version_of("pyspark-client")
    if full and client and full != client and found.home.name == "pyspark":
        yield warning(
            f"pyspark {full} and pyspark-client {client} overwrite each other's files, and have different versions",
            "uninstall both, then install both in one version; for Spark 3, which has no client, install pyspark alone "
            "and 'apache-airflow-providers-apache-spark<6'",
        )


def check_spark_properties(setup: Setup) -> Iterator[Finding]:
    """Look whether ``spark-defaults.conf`` or the environment switches the listener off, or stops Spark."""
    try:
        found = setup.user_properties
    except PropertiesFileError as error:
        yield problem(str(error), "correct the file")
        return
    name = "spark.openlineage.disabled"
    switches = {f"{found.file}: {name}": found.of_file.get(name, "")}
    if found.deploy_mode == "client":  # the driver of another host does not get the environment of this one
        switches["the environment variable OPENLINEAGE_DISABLED"] = setup.env.get("OPENLINEAGE_DISABLED", "")
    bad = [name for name, value in switches.items() if value.strip().lower() == "true"]
    missing = list(_missing_listeners(setup, found))
    for name in bad:
        yield problem(f"{name} is true: the listener writes no lineage", "remove it")
    yield from missing
    if found.file is None:
        yield ok("there is no spark-defaults.conf")
    elif not (bad or missing):
        yield ok(f"{found.file}: {len(found.of_file)} properties, and none is in the way")


def _missing_listeners(setup: Setup, found: UserProperties) -> Iterator[Finding]:
    """Find classes of ``spark.extraListeners`` in ``spark-defaults.conf`` that no jar holds: Spark stops there."""
    named = [name.strip() for name in found.of_file.get(_LISTENERS, "").split(",")]
    missing = {name for name in named if name and name != LISTENER}
    if not missing:
        return
    places, unseen = _class_path(setup, found)
    for place in places:
        missing -= _held(place, missing)
    for name in sorted(missing):
        text = f"{found.file}: {_LISTENERS} names {name}, and no jar that the driver has here holds it"
        if unseen:
            yield warning(f"{text}; {unseen} was not checked", "make sure that it is there: jobs fail without it")
        else:
            yield problem(f"{text}: jobs fail", f"add its jar to spark.jars, or take it out of {_LISTENERS}")


def _class_path(setup: Setup, found: UserProperties) -> tuple[list[Path], str]:
    """Return the jars and directories of a driver on this host, and in words where else its classes may come from."""
    jars = [without_scheme(jar) for jar in found.of_file.get("spark.jars", "").split(",")]
    entries = [*jars, *found.of_file.get("spark.driver.extraClassPath", "").split(os.pathsep)]
    entries += setup.env.get(_DIST_CLASS_PATH, "").split(os.pathsep)
    unseen = [jar for jar in jars if ":" in jar]
    if found.of_file.get("spark.jars.packages", "").strip():
        unseen.append("spark.jars.packages")
    if found.deploy_mode == "cluster":
        unseen.append("the host of the driver")
    script = found.file.with_name("spark-env.sh") if found.file is not None else None
    if script is not None and script.is_file() and _DIST_CLASS_PATH in script.read_text(errors="replace"):
        unseen.append("spark-env.sh")
    if (home := setup.submitter.home) is not None:
        entries.append(f"{home}/jars/*")
    else:
        unseen.append("Spark")
    folders = [entry[:-1] for entry in entries if entry.endswith("/*")]
    places = [Path(entry) for entry in entries if entry and not entry.endswith("/*")]
    return [*places, *(jar for folder in folders for jar in Path(folder).glob("*.jar"))], ", ".join(unseen)


def _held(place: Path, classes: set[str]) -> set[str]:
    """Return those of the classes that a jar or a directory holds."""
    files = {f"{name.replace('.', '/')}.class": name for name in classes}
    if place.is_dir():
        return {name for file, name in files.items() if (place / file).is_file()}
    try:
        with zipfile.ZipFile(place) as archive:
            return {files[file] for file in files.keys() & archive.NameToInfo.keys()}
    except (OSError, zipfile.BadZipFile):
        return set()


def check_jar(setup: Setup) -> Iterator[Finding]:
    """Prepare a submission without arguments of its own, into a directory that is removed."""
    evidence, named = setup.settings.evidence, setup.settings.openlineage_jar
    if evidence == "event_log":
        yield ok("evidence is event_log: no listener is used")
        return
    if is_plain(named):
        yield warning("openlineage_jar is downloaded over plain http, into the driver", "use https")
    with tempfile.TemporaryDirectory(prefix="spark-lineage-doctor-") as directory:
        lineage = LineageProperties(f"{directory}/events.ndjson", "", "", "", {}, {})
        try:
            # A jar that is not there yet is downloaded.
            waiting = replace(setup.settings, evidence="both")
            jar = prepare(SubmitArguments({}), setup.submitter, waiting, lineage).jar
        except (JarNotFoundError, TransportConflictError, PropertiesFileError) as error:
            # Their texts say what to do.
            has_log = evidence != "listener" and not isinstance(error, PropertiesFileError)
            bad = warning if has_log and evidence == "auto" and not setup.settings.openlineage_jar else problem
            then = "the event log is the only source of lineage" if has_log else "jobs have no lineage"
            yield bad(str(error), f"until that is mended, {then}")
            return
    spark = setup.submitter.known_installation
    jars = [jar] if jar else sorted(map(str, spark.jars.glob("openlineage-spark*.jar"))) if spark else []
    if not jars:
        yield ok("spark-defaults.conf has a listener of its own, which is used: it is not checked")
    for jar in jars:
        yield _fit(jar, spark)


def _fit(jar: str, spark: SparkInstallation | None) -> Finding:
    if not jar.startswith("/"):
        return ok(f"the listener is {jar}, which Spark fetches by itself: it is not checked")
    if spark is None:
        return ok(f"the listener is {jar}; which Scala its Spark has is not known")
    scala = scala_of(jar)
    if scala is None:
        return warning(
            f"{jar} does not name its Scala version", f"make sure that it is for Scala {spark.scala_version}"
        )
    return ok(f"the listener is {jar}, for Scala {scala} as Spark {spark.spark_version} is")
