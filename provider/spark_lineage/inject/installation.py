"""Find the Spark installation that a ``spark-submit`` binary belongs to, and its versions, without starting a JVM."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_CORE_JAR = re.compile(r"spark-core_(?P<scala>\d+(?:\.\d+)?)-(?P<spark>\d.*)(?<!-tests)(?<!-sources)(?<!-javadoc)\.jar")
_REMEDY = "Set SPARK_HOME for the task, or set the listener jar to a path or URL."


class InstallationNotFoundError(Exception):
    """No Spark installation belongs to the ``spark-submit`` binary; the text says where it was looked for."""


@dataclass(frozen=True)
class SparkInstallation:
    """A ``SPARK_HOME``, its Spark version (``3.5.1-amzn-0``) and its Scala binary version (``2.13``)."""

    home: Path
    spark_version: str
    scala_version: str

    @property
    def jars(self) -> Path:
        """Where Spark's own jars are; Ivy is one of them."""
        return self.home / "jars"


def find_installation(spark_binary: str, env: Mapping[str, str]) -> SparkInstallation:
    """Look where Spark's own ``bin/find-spark-home`` looks, in its order.

    ``env`` is the environment that ``spark-submit`` will get. Raises ``InstallationNotFoundError``.
    """
    if spark_home := env.get("SPARK_HOME"):
        # spark-submit obeys SPARK_HOME whatever else there is: to look further would describe another Spark.
        home = Path(spark_home)
        if not (home / "jars").is_dir():
            raise InstallationNotFoundError(
                f"SPARK_HOME is {home}, which has no folder 'jars'. Correct it, or unset it."
            )
        return _describe(home)
    looked: list[str] = []
    for place in _places(spark_binary, env):
        if isinstance(place, Path) and (place / "jars").is_dir():
            return _describe(place)
        looked.append(str(place))
    raise InstallationNotFoundError(
        f"No Spark installation found for {spark_binary!r}. SPARK_HOME is not set; looked at: {'; '.join(looked)}. "
        f"{_REMEDY}"
    )


def _places(spark_binary: str, env: Mapping[str, str]) -> Iterator[Path | str]:
    """Return the directories to look into, and, for errors, what is not there."""
    search_path = env.get("PATH", os.defpath)
    found = shutil.which(spark_binary, path=search_path)
    if found is None:
        yield f"{spark_binary} on PATH {search_path} (not there)"
    else:
        # A virtual environment may be reached through a symlink, or hold one: the package may be beside either end.
        binary = Path(os.path.abspath(found))  # noqa: PTH100  (Path.resolve would follow the symlink)
        resolved = binary.resolve()
        yield resolved.parent.parent
        for prefix in dict.fromkeys((binary.parent.parent, resolved.parent.parent)):
            packages: list[Path | str] = [*sorted(prefix.glob("lib/python3*/*-packages/pyspark"))]
            yield from packages or [f"{prefix}/lib/python3*/*-packages/pyspark (not there)"]
    yield _pyspark_of_this_interpreter() or "pyspark of the running interpreter (not installed)"


def _pyspark_of_this_interpreter() -> Path | None:
    try:
        spec = importlib.util.find_spec("pyspark")
    except ValueError:  # a module that something put into sys.modules without a spec
        return None
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations))) if locations else None


def _describe(home: Path) -> SparkInstallation:
    for jar in (home / "jars").iterdir():
        if core := _CORE_JAR.fullmatch(jar.name):
            return SparkInstallation(home, core["spark"], core["scala"])
    raise InstallationNotFoundError(f"{home / 'jars'} holds no spark-core_*.jar, so it is no Spark. {_REMEDY}")
