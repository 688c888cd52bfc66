"""A real standalone cluster of one master and one worker, whose master can be killed and started again."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fast_spark import JAVA_OPTIONS
from lineage_backends.processes import HOST, Server, listens

START_SECONDS = 60
DEPLOY = "org.apache.spark.deploy"
# Properties of an application that is to have one executor, which starts soon.
SMALL = {
    "spark.executor.memory": "512m",
    "spark.cores.max": "1",
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
}


@dataclass
class StandaloneCluster:
    """Its addresses are those of the first master, which one that is started again takes over.

    ``url`` is the master's, ``rest_port`` and ``ui_port`` those of its REST server and of its page.
    """

    folder: Path
    env: Mapping[str, str]
    url: str = ""
    rest_port: str = "0"
    ui_port: str = "0"
    master: Server | None = None
    worker: Server | None = None

    @property
    def ui_url(self) -> str:
        return f"http://{HOST}:{self.ui_port}"

    def start_master(self, *options: str) -> None:
        """Start a master, and wait until it is in charge.

        :param options: properties (``spark.deploy.recoveryMode=FILESYSTEM``)
        """
        port = self.url.rpartition(":")[2] or "0"
        rest = ["spark.master.rest.enabled=true", f"spark.master.rest.port={self.rest_port}"]
        env = {**self.env, "SPARK_MASTER_OPTS": " ".join(f"-D{option}" for option in [*rest, *options])}
        arguments = ["--host", HOST, "--port", port, "--webui-port", self.ui_port]
        command = [*self._spark_class(), f"{DEPLOY}.master.Master", *arguments]
        # Each has a log of its own: in that of an earlier one stands that it was in charge.
        log = self.folder / f"master-{len(list(self.folder.glob('master-*.log')))}.log"
        self.master = Server.start("the master", command, log, env=env)
        _, self.url, self.rest_port, self.ui_port = self._wait(
            self.master,
            "I have been elected leader",
            r"Starting Spark master at (spark://\S+)",
            r"Started REST server for submitting applications on \S+ with port (\d+)",
            r"Successfully started service '?MasterUI'? on port (\d+)",
        )

    def kill_master(self) -> None:
        """Kill the master by its process id; nobody listens on its ports then."""
        assert self.master is not None
        self.master.stop(signal.SIGKILL)
        assert not listens(int(self.ui_port))

    def wait_for_worker(self) -> None:
        """Wait until the worker has looked for the master in vain; it looks again half a minute later.

        A worker that comes by itself while a master recovers makes Spark 4.2 give up the drivers on it (``ERROR``): the
        recovery then counts as complete before the worker was asked what it runs.
        """
        assert self.worker is not None
        self._wait(self.worker, r"Retrying connection to master \(attempt # 1\)")

    def start_worker(self, cores: int, memory: str) -> None:
        arguments = ["--host", HOST, "--webui-port", "0", "--cores", str(cores), "--memory", memory]
        arguments += ["--work-dir", str(self.folder / "work"), self.url]
        command = [*self._spark_class(), f"{DEPLOY}.worker.Worker", *arguments]
        env = {**self.env, "SPARK_WORKER_OPTS": "-Dspark.worker.initialRegistrationRetries=1"}
        self.worker = Server.start("the worker", command, self.folder / "worker.log", env=env)
        self._wait(self.worker, "Successfully registered with master")

    def stop(self) -> None:
        for server in (self.worker, self.master):
            if server is not None:
                server.stop()

    @staticmethod
    def _wait(server: Server, *patterns: str) -> list[str]:
        """Wait until a server has logged something of each pattern, and give that."""

        def found() -> list[str]:
            text = server.log.read_text(errors="replace")
            matches = [re.search(pattern, text) for pattern in patterns]
            return [match[match.re.groups] for match in matches if match]

        server.wait_until(lambda: len(found()) == len(patterns), START_SECONDS)
        return found()

    def _spark_class(self) -> list[str]:
        return [shutil.which("spark-class", path=self.env["PATH"]) or "spark-class"]

    def page(self) -> dict[str, Any]:
        """Return what the master's page shows.

        :raises OSError: while there is no master
        """
        return _json(f"{self.ui_url}/json/")

    def submit(self, jar: Path, main_class: str, *arguments: str) -> str:
        """Submit a program of the JVM in cluster mode, and give the driver's id."""
        import pyspark

        request = {
            "action": "CreateSubmissionRequest",
            "appResource": jar.as_uri(),
            "appArgs": arguments,
            "clientSparkVersion": pyspark.__version__,
            "environmentVariables": {},
            "mainClass": main_class,
            "sparkProperties": {
                "spark.app.name": main_class,
                "spark.master": self.url,
                "spark.jars": jar.as_uri(),
                "spark.driver.memory": "512m",
                "spark.driver.extraJavaOptions": JAVA_OPTIONS,
                **SMALL,
            },
        }
        return str(_json(f"http://{HOST}:{self.rest_port}/v1/submissions/create", request)["submissionId"])


@contextlib.contextmanager
def standalone_cluster(
    folder: Path, env: Mapping[str, str], *options: str, cores: int = 2, memory: str = "2g"
) -> Iterator[StandaloneCluster]:
    """Start a cluster, whose logs are in ``folder``, and end it.

    :param env: of Spark's own commands
    :param options: properties of the master
    """
    cluster = StandaloneCluster(folder, env)
    try:
        cluster.start_master(*options)
        cluster.start_worker(cores, memory)
        yield cluster
    finally:
        cluster.stop()


def compiled(source: Path, folder: Path) -> Path:
    """Return the jar of one Java program for Spark; a standalone cluster runs no Python in cluster mode."""
    import pyspark

    classes = folder / "classes"
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = ["javac", "--release", "17", "-proc:none", "-nowarn", "-cp", str(jars), "-d", str(classes), str(source)]
    subprocess.run(command, check=True, timeout=120)
    jar = folder / f"{source.stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in classes.iterdir():
            archive.write(file, file.name)
    return jar


def _json(url: str, content: Any = None) -> dict[str, Any]:
    data = None if content is None else json.dumps(content).encode()
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 - the loopback
    with urllib.request.urlopen(asked, timeout=10) as reply:  # noqa: S310 - the loopback
        answer: dict[str, Any] = json.load(reply)
    return answer
