"""Whether each class of ``spark.extraListeners`` is where the driver finds it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from spark_lineage.doctor.finding import Finding, problem, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.inject.preparation import UserProperties
from spark_lineage.inject.properties import LISTENER
from spark_lineage.launch.directory import without_scheme

_DIST_CLASS_PATH = "SPARK_DIST_CLASSPATH"
_LISTENERS = "spark.extraListeners"


def missing_listeners(setup: Setup, found: UserProperties) -> Iterator[Finding]:
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
            yield warning(f"{text}; {unseen} was not looked into", "make sure that it is there: jobs fail without it")
        else:
            yield problem(f"{text}: jobs fail", f"add its jar to spark.jars, or take it out of {_LISTENERS}")


def _class_path(setup: Setup, found: UserProperties) -> tuple[list[Path], str]:
    """Return the jars and directories of a driver on this host, and in words where else its classes may come from."""
    jars = [without_scheme(jar) for jar in found.of_file.get("spark.jars", "").split(",")]
    entries = [*jars, *found.of_file.get("spark.driver.extraClassPath", "").split(os.pathsep)]
    entries += setup.env.get(_DIST_CLASS_PATH, "").split(os.pathsep)
    unseen = [jar for jar in jars if ":" in jar]
    unseen += [key for key in ("spark.jars.packages",) if found.of_file.get(key, "").strip()]
    if found.deploy_mode == "cluster":
        unseen.append("the host of the driver")
    if found.file is not None and _DIST_CLASS_PATH in _text_of(found.file.with_name("spark-env.sh")):
        unseen.append("spark-env.sh")
    if setup.installation is not None:
        entries.append(f"{setup.installation.home}/jars/*")
    else:
        unseen.append("Spark")
    return [place for entry in entries if entry for place in _expanded(entry)], ", ".join(unseen)


def _text_of(file: Path) -> str:
    return file.read_text(errors="replace") if file.is_file() else ""


def _expanded(entry: str) -> Iterable[Path]:
    return Path(entry[:-1]).glob("*.jar") if entry.endswith("/*") else [Path(entry)]


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
