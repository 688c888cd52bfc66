"""Resolve a Maven coordinate with the Ivy that every Spark ships, in a process that cannot outlive its time."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.sax.saxutils import quoteattr

from spark_lineage.inject.class_path import JarNotFoundError
from spark_lineage.secrets.redaction import redact

# group:artifact:version
COORDINATE = re.compile(r"[\w.][\w.\-]*:[\w.][\w.\-]*:[\w.][\w.\-+]*", re.ASCII)
_RULE = re.compile(
    r"[\s:]*(?:problems summary|WARNINGS|ERRORS|UNRESOLVED DEPENDENCIES|FAILED DOWNLOADS|USE VERBOSE .*)?[\s:]*"
)
_PLACE = re.compile(r"file:|https?:|/|-- |====")
_CAUSE_CHARACTERS = 1500
_REMEDY = (
    "Make the coordinate reachable (spark.jars.repositories, spark.jars.ivySettings, DEFAULT_ARTIFACT_REPOSITORY), "
    "or set the jar to a local path."
)


@dataclass(frozen=True)
class Ivy:
    """Spark's Ivy, and where it is to look."""

    spark_jars: Path
    """The folder of Spark's jars."""
    settings: str | None
    """The user's ``spark.jars.ivySettings``."""
    repositories: Sequence[str]
    """The user's ``spark.jars.repositories``; they may hold logins."""
    env: Mapping[str, str]

    def resolve(self, coordinate: str, workspace: Path, timeout_seconds: float) -> Path:
        """Return the jar of a coordinate, as a file in ``workspace``. Raises ``JarNotFoundError``."""
        deadline = time.monotonic() + timeout_seconds
        arguments = ["-dependency", *coordinate.split(":"), "-notransitive", "-types", "jar", "-confs", "default"]
        causes = []
        for name, settings in self._attempts(workspace, timeout_seconds).items():
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                causes.append(f"{name}: no time was left")
                break
            folder = Path(tempfile.mkdtemp(dir=workspace))
            command = [*self._java(), "-warn", "-settings", settings, "-cache", str(folder / "cache"), *arguments]
            command += ["-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
            output = self._run(command, folder / "output", seconds)
            # Ivy exits with 0 for some failures: what counts is the file.
            if jars := sorted(folder.glob("*.jar")):
                return jars[0]
            causes.append(f"{name}: {output}")
        raise JarNotFoundError(
            f"Cannot resolve the OpenLineage listener jar {coordinate} by Ivy, {'; '.join(causes)}. {_REMEDY}"
        )

    def _attempts(self, workspace: Path, timeout_seconds: float) -> dict[str, str]:
        attempts = {f"with the settings {self.settings}": self.settings} if self.settings else {}
        if self.repositories or not self.settings:
            file = workspace / "ivysettings.xml"
            file.touch(mode=0o600, exist_ok=False)
            file.write_text(settings_xml(self.repositories, self.env, timeout_seconds), encoding="utf-8")
            attempts["with the settings of Spark"] = str(file)
        return attempts

    def _java(self) -> list[str]:
        home = self.env.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else shutil.which("java", path=self.env.get("PATH", os.defpath))
        if java is None or not os.access(java, os.X_OK):
            where = java or "PATH (JAVA_HOME is not set)"
            raise JarNotFoundError(
                f"Resolving the OpenLineage listener jar needs Java, and there is none at {where}. {_REMEDY}"
            )
        # Proxies and trust stores are given to spark-submit's own JVM, which resolves --packages, in this variable.
        options = shlex.split(self.env.get("SPARK_SUBMIT_OPTS", ""))
        return [java, *options, "-cp", f"{self.spark_jars}/*", "org.apache.ivy.Main"]

    def _run(self, command: list[str], output: Path, timeout_seconds: float) -> str:
        """Run Ivy; give what it said, shortened and without secrets."""
        with output.open("wb") as stream:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=dict(self.env),
                start_new_session=True,
            )
            try:
                process.wait(timeout_seconds)
                ended = ""
            except subprocess.TimeoutExpired:
                ended = "the time limit was over; "
            finally:  # also when the task is killed meanwhile
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return ended + self._shorten(output.read_text(encoding="utf-8", errors="replace"))

    def _shorten(self, text: str) -> str:
        for repository in self.repositories:
            with contextlib.suppress(ValueError):  # no URL; Ivy will say so
                password = urlsplit(repository).password or ""
                for secret in filter(None, {password, unquote(password)}):
                    text = text.replace(secret, "***")
        lines = (" ".join(line.split()) for line in redact(text).splitlines())
        telling = dict.fromkeys(line for line in lines if not _RULE.fullmatch(line))
        # What went wrong first, and where Ivy looked after it: that is long, and may be cut.
        short = " | ".join(sorted(telling, key=lambda line: _PLACE.match(line) is not None))
        return short if len(short) <= _CAUSE_CHARACTERS else f"{short[:_CAUSE_CHARACTERS]} …"


def settings_xml(repositories: Sequence[str], env: Mapping[str, str], timeout_seconds: float) -> str:
    """Ivy settings with the repositories that Spark asks, in its order (``MavenUtils.createRepoResolvers``).

    The local Maven and Ivy repositories, Maven Central or ``DEFAULT_ARTIFACT_REPOSITORY``, then ``repositories``.
    """
    # Without a root, Ivy itself knows where Maven Central is.
    remote = [env.get("DEFAULT_ARTIFACT_REPOSITORY"), *repositories]
    # A network that swallows packets must not eat the time of the repositories after it: two requests are made of each.
    connect_millis = max(1000, int(timeout_seconds * 1000 / (3 * len(remote))))
    maven = "".join(
        f'      <ibiblio name="repository-{number}" m2compatible="true" timeoutConstraint="limit"{_root(root)}/>\n'
        for number, root in enumerate(remote)
    )
    local = "${user.home}/.ivy2/local/[organisation]/[module]/[revision]"
    return f"""<ivysettings>
  <property name="ivy.checksums" value="sha1,md5"/>
  <settings defaultResolver="spark"/>
  <timeout-constraints>
    <timeout-constraint name="limit" connectionTimeout="{connect_millis}" readTimeout="{int(timeout_seconds * 1000)}"/>
  </timeout-constraints>
  <resolvers>
    <chain name="spark">
      <ibiblio name="local-m2" m2compatible="true" root="file:${{user.home}}/.m2/repository/"/>
      <filesystem name="local-ivy">
        <ivy pattern="{local}/ivys/ivy.xml"/>
        <artifact pattern="{local}/[type]s/[artifact].[ext]"/>
      </filesystem>
{maven}    </chain>
  </resolvers>
</ivysettings>
"""


def _root(repository: str | None) -> str:
    return f" root={quoteattr(repository.rstrip('/') + '/')}" if repository else ""
