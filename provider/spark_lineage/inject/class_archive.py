"""An archive of the classes that a driver with the listener loads, from which it starts faster (JEP 350, Java 13).

The JVM takes it only if the same JVM has made it, with the class path that it has itself; else it goes on without.
``spark-lineage warm`` makes it, never a task.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from spark_lineage.inject.installation import SparkInstallation

OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable whose options spark-submit gives the JVM that it becomes, the driver in client mode."""

_VARIABLES = (OPTIONS, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_PROPERTIES = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
# Whoever names one of them has an archive of their own, or wants none.
_USERS = re.compile(r"-Xshare|SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile")
# An archive that does not fit is no reason to say anything.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
_WRITABLE_BY_OTHERS = 0o022
_NAME = re.compile(r"classes-[0-9a-f]+-(?P<size>\d+)\.jsa")


def key_of(jar: str, spark: SparkInstallation, env: Mapping[str, str]) -> str | None:
    """Return what the archives of this JVM, Spark and listener are named by; None without a JVM.

    :param jar: path of the listener
    :param env: of spark-submit
    :raises OSError: for jars that cannot be found
    """
    home = env.get("JAVA_HOME")
    # As Spark's own bin/spark-class.
    java = f"{home}/bin/java" if home else shutil.which("java", path=env.get("PATH"))
    if java is None:
        return None
    # All classes of the JVM itself (JEP 220): every build has another.
    parts = [Path(java).resolve().parent.parent / "lib" / "modules", Path(jar), *sorted(spark.jars.glob("*.jar"))]
    stats = [(str(part), part.stat().st_size, part.stat().st_mtime_ns) for part in parts]
    return hashlib.sha256(repr(stats).encode()).hexdigest()[:16]


def archives(folder: Path, key: str = "*") -> dict[Path, int]:
    """Return the archives in a folder, and the size that each had when it was made."""
    found = {path: _NAME.fullmatch(path.name) for path in folder.glob(f"classes-{key}-*.jsa")}
    return {path: int(name["size"]) for path, name in found.items() if name}


def keep(partial: Path, key: str) -> Path:
    """Make a file the archive of a key, instead of the one before."""
    old = archives(partial.parent, key)
    archive = partial.replace(partial.with_name(f"classes-{key}-{partial.stat().st_size}.jsa"))
    for path in old.keys() - {archive}:
        # A JVM that uses it keeps it until it ends.
        path.unlink(missing_ok=True)
    return archive


def environment(folder: Path, key: str, env: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that has the driver's JVM use the archive of a key; nothing where it must not.

    :param env: of spark-submit; its own options come last, and so win
    :param properties: of Spark, as the user has set them
    """
    options = [env.get(name, "") for name in _VARIABLES] + [properties.get(name, "") for name in _PROPERTIES]
    # A JVM crashes on an archive that was cut off (measured, Java 17).
    whole = [path for path, size in archives(folder, key).items() if path.stat().st_size == size]
    if not whole or _USERS.search(" ".join(options)) or not all(map(_is_safe, (whole[0], folder))):
        return {}
    ours = f"{_QUIET} -XX:SharedArchiveFile={shlex.quote(str(whole[0]))}"
    return {OPTIONS: f"{ours} {env.get(OPTIONS, '')}".strip()}


def _is_safe(path: Path) -> bool:
    """Whether nobody else can write it, who could put code into the driver."""
    status = path.stat()
    return status.st_uid in {0, os.geteuid()} and not status.st_mode & _WRITABLE_BY_OTHERS
