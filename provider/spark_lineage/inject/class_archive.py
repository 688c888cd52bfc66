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
from collections.abc import Iterable, Mapping
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


def archive_in(folder: Path, jar: str, spark: SparkInstallation, env: Mapping[str, str]) -> Path | None:
    """Return where the archive for this JVM, Spark and listener is, or would be; None without a JVM.

    :param folder: of the cache of jars
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
    return folder / f"classes-{hashlib.sha256(repr(stats).encode()).hexdigest()[:16]}.jsa"


def environment(archive: Path, env: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that has the driver's JVM use an archive; nothing where it is none of ours to use.

    :param env: of spark-submit; its own options come last, and so win
    :param properties: of Spark, as the user has set them
    """
    options = [env.get(name, "") for name in _VARIABLES] + [properties.get(name, "") for name in _PROPERTIES]
    if _USERS.search(" ".join(options)) or not _is_safe((archive, archive.parent)):
        return {}
    ours = f"{_QUIET} -XX:SharedArchiveFile={shlex.quote(str(archive))}"
    return {OPTIONS: f"{ours} {env.get(OPTIONS, '')}".strip()}


def _is_safe(paths: Iterable[Path]) -> bool:
    """Whether all are there, and nobody else can write them, who could put code into the driver."""
    try:
        stats = [path.stat() for path in paths]
    except OSError:
        return False
    return all(one.st_uid in {0, os.geteuid()} and not one.st_mode & _WRITABLE_BY_OTHERS for one in stats)
