"""Jars of Maven Central with all that they depend on, by the Ivy that PySpark brings; Maven itself is not needed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from lineage_backends.processes import BackendError, NotInstalledError, cache_directory, run

SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


def java() -> str:
    """The java of ``JAVA_HOME``, else of PATH."""
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if not found:
        raise NotInstalledError("Kafka needs Java 17 or newer, and there is none on PATH.")
    return found


def jars(name: str, coordinates: Sequence[str]) -> Path:
    """A folder in the cache with the jars of all ``coordinates`` (``group:artifact:version``) and what they need."""
    key = sha256(" ".join(coordinates).encode()).hexdigest()[:12]
    folder = cache_directory() / "jars" / f"{name}-{key}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as workspace:
            retrieved = _retrieve(Path(workspace), coordinates)
            try:
                retrieved.rename(folder)
            except OSError:  # another test run was quicker
                if not folder.is_dir():
                    raise
    return folder


def download(coordinate: str, target: Path, kind: str = "jar", classifier: str = "") -> None:
    """Put one file without what it needs at ``target``; ``coordinate`` as above."""
    group, artifact, version = coordinate.split(":")
    extra = f' m:classifier="{classifier}"' if classifier else ""
    module = (
        f'    <dependency org="{group}" name="{artifact}" rev="{version}" transitive="false">\n'
        f'      <artifact name="{artifact}" type="{kind}" ext="{kind}"{extra}/>\n    </dependency>\n'
    )
    with tempfile.TemporaryDirectory(dir=target.parent) as workspace:
        output = _ivy(Path(workspace), module, (kind,))
        found = list((Path(workspace) / "jars").glob("*"))
        if len(found) != 1:
            raise BackendError(f"Ivy did not bring the {kind} {classifier} of {coordinate}:\n{output[-3000:]}")
        found[0].rename(target)


def _retrieve(workspace: Path, coordinates: Sequence[str]) -> Path:
    wanted = []
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        wanted.append(
            f'    <dependency org="{group}" name="{artifact}" rev="{version}" conf="default->default,runtime"/>\n'
        )
    # A bundle is a jar for OSGi.
    output = _ivy(workspace, "".join(wanted), ("jar", "bundle"))
    found = workspace / "jars"
    for coordinate in coordinates:  # Ivy exits with 0 for some failures
        _, artifact, version = coordinate.split(":")
        if not (found / f"{artifact}-{version}.jar").exists():
            raise BackendError(f"Ivy did not bring {coordinate}:\n{output[-3000:]}")
    return found


def _ivy(workspace: Path, dependencies: str, types: Sequence[str]) -> str:
    """Fetch the ``<dependency>`` elements into ``workspace / "jars"``; what Ivy prints."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NotInstalledError("PySpark, whose Ivy fetches the jars, is not installed.")
    (workspace / "ivy.xml").write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '  <info organisation="tests" module="jars"/>\n  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}  </dependencies>\n</ivy-module>\n"
    )
    (workspace / "settings.xml").write_text(SETTINGS)
    command = [java(), "-cp", f"{Path(spec.origin).parent / 'jars'}/*", "org.apache.ivy.Main", "-warn"]
    command += ["-settings", str(workspace / "settings.xml"), "-cache", str(workspace / "cache")]
    command += ["-ivy", str(workspace / "ivy.xml"), "-types", *types, "-confs", "default"]
    command += ["-retrieve", f"{workspace}/jars/[artifact]-[revision](-[classifier]).[ext]"]
    return run("Ivy", command, env=os.environ)
