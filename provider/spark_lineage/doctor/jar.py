"""Whether a task would get the listener jar, by doing what a task does, and whether it is one for its Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.inject.class_path import JarNotFoundError, SubmitArguments
from spark_lineage.inject.installation import InstallationNotFoundError, find_installation
from spark_lineage.inject.jar import scala_of
from spark_lineage.inject.preparation import Prepared, prepare
from spark_lineage.inject.properties import LineageProperties
from spark_lineage.inject.properties_file import PropertiesFileError
from spark_lineage.inject.transport import NoRoomError


def check_jar(setup: Setup) -> Iterator[Finding]:
    """Prepare a submission without arguments of its own, into a directory that is thrown away."""
    try:
        prepared = _prepared(setup)
    except (JarNotFoundError, PropertiesFileError) as error:
        # Their texts say what to do.
        yield problem(str(error), "until then jobs run without lineage")
        return
    except NoRoomError as error:
        yield problem(str(error), "until then jobs run without our lineage")
        return
    jar = _jar_of(prepared)
    if jar is not None and not jar.startswith("/"):
        yield ok(f"the listener is {jar}, which Spark fetches by itself: it is not looked into")
        return
    yield from _look_into(setup, Path(jar)) if jar is not None else _look_at_theirs(setup)


def _prepared(setup: Setup) -> Prepared:
    with tempfile.TemporaryDirectory(prefix="spark-lineage-doctor-") as directory:
        lineage = LineageProperties(str(Path(directory) / "events.ndjson"), "", "", "", {}, {})
        return prepare(SubmitArguments({}), setup.submitter, setup.settings, lineage)


def _jar_of(prepared: Prepared) -> str | None:
    """Return the jar that was added, None where the job has a listener anyway."""
    arguments = prepared.arguments
    if arguments.driver_class_path:
        return arguments.driver_class_path.rpartition(os.pathsep)[2]
    jars = arguments.jars or prepared.private_properties.get("spark.jars", "")
    return jars.rpartition(",")[2] or None


def _look_at_theirs(setup: Setup) -> Iterator[Finding]:
    try:
        home = find_installation(setup.spark.spark_binary, setup.env).home
    except InstallationNotFoundError:
        home = None
    installed = sorted((home / "jars").glob("openlineage-spark*.jar")) if home else []
    if not installed:
        yield ok("spark-defaults.conf brings a listener of its own, which is used: it is not looked into")
    for jar in installed:
        yield from _look_into(setup, jar)


def _look_into(setup: Setup, jar: Path) -> Iterator[Finding]:
    try:
        spark = find_installation(setup.spark.spark_binary, setup.env)
    except InstallationNotFoundError:
        yield ok(f"the listener is {jar}; which Scala its Spark has is not known")
        return
    scala = scala_of(str(jar))
    if scala is None:
        yield warning(f"{jar} does not tell its Scala version", f"make sure that it is for Scala {spark.scala_version}")
    else:
        yield ok(f"the listener is {jar}, for Scala {scala} as Spark {spark.spark_version} is")
