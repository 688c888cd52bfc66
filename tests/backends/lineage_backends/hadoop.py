"""A YARN and an HDFS of one's own on the loopback, out of Maven Central's Hadoop: four small JVMs, one node.

Containers are processes of the user who runs it (``DefaultContainerExecutor``); their memory and disks are not checked.
There is room for one small application at a time: the next one waits.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import psutil
import requests

from lineage_backends.maven import jars, java
from lineage_backends.processes import HOST, Server, free_ports, run

VERSION = "3.4.2"
# Without the timeline service the ResourceManager does not start.
MODULES = (
    "hadoop-common",
    "hadoop-hdfs",
    "hadoop-hdfs-client",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    "hadoop-yarn-server-timelineservice",
)
START_SECONDS = 120
OPENED = tuple(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "lang.reflect"))
JVM = ("-Xmx256m", "-Xss256k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", *OPENED)
NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
STATE_STORE = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
LOG = """log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1} %m%n
"""
# An application of 512 MB drivers and executors takes 1.8 GB. One may begin at a time: two would wait for each other.
MEMORY_MB = 4096
SHARE_OF_DRIVERS = 0.25


@dataclass(frozen=True)
class Hadoop:
    """Its addresses, and what an environment needs to submit to it; ``containers`` holds their logs."""

    conf_dir: Path
    resource_manager_url: str
    node_manager_url: str
    hdfs: str
    webhdfs_url: str
    containers: Path
    restart_manager: Callable[[], None]
    """Kills the ResourceManager and starts it again; it knows its applications, which go on meanwhile."""
    user: str = field(default_factory=getpass.getuser)

    @property
    def env(self) -> dict[str, str]:
        """For ``spark-submit``."""
        return {"HADOOP_CONF_DIR": str(self.conf_dir)}

    def application(self, application_id: str) -> dict[str, Any]:
        """What the ResourceManager says of an application."""
        answer = requests.get(f"{self.resource_manager_url}/ws/v1/cluster/apps/{application_id}", timeout=20)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()["app"]
        return found

    def running(self) -> list[str]:
        """The ids of the applications that run, or wait for a container."""
        answer = requests.get(f"{self.resource_manager_url}/ws/v1/cluster/apps?states=ACCEPTED,RUNNING", timeout=20)
        return [one["id"] for one in (answer.json()["apps"] or {}).get("app", ())]

    def kill(self, application_id: str) -> None:
        """Kill an application, as the page and the command of YARN do."""
        url = f"{self.resource_manager_url}/ws/v1/cluster/apps/{application_id}/state"
        requests.put(url, json={"state": "KILLED"}, timeout=20).raise_for_status()

    def logs(self, application_id: str) -> str:
        """What all containers of an application have printed."""
        files = sorted(self.containers.glob(f"{application_id}/*/std*"))
        return "".join(f"==> {one.parent.name}/{one.name}\n{one.read_text(errors='replace')}" for one in files)


def spark_properties(python: str | Path) -> dict[str, str]:
    """Properties of a small application that uploads neither Spark nor Python, and whose processes start soon."""
    import pyspark

    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    env = {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": HOST}
    return {
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.driver.memory": "512m",
        "spark.yarn.am.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.instances": "1",
        "spark.yarn.maxAppAttempts": "1",
        "spark.driver.extraJavaOptions": options,
        "spark.yarn.am.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
        **{f"spark.yarn.appMasterEnv.{key}": value for key, value in env.items()},
        **{f"spark.executorEnv.{key}": value for key, value in env.items()},
    }


def hadoop_jars() -> Path:
    """The folder in the cache with the jars of all four servers (150 MB)."""
    return jars("hadoop", [f"org.apache.hadoop:{name}:{VERSION}" for name in MODULES])


def write_site(folder: Path, name: str, properties: Mapping[str, object]) -> None:
    """Write one of Hadoop's files of properties."""
    lines = "".join(
        f"<property><name>{key}</name><value>{escape(str(value))}</value></property>\n"
        for key, value in properties.items()
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.xml").write_text(f"<configuration>\n{lines}</configuration>\n")


@contextmanager
def hadoop(*, has_log_aggregation: bool = False) -> Iterator[Hadoop]:
    """Run all four; their data is gone afterwards.

    :param has_log_aggregation: whether the logs of an application that has ended are moved to HDFS
    """
    classes = hadoop_jars()
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="spark-lineage-hadoop-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        stack.callback(_end_containers, home)

        def restart_manager() -> None:
            nonlocal manager
            manager.stop(signal.SIGKILL)
            manager = start(RESOURCE_MANAGER)
            manager.wait_until(has_node, START_SECONDS)

        running = _configure(home, restart_manager, has_log_aggregation=has_log_aggregation)
        command = [java(), *JVM, "-cp", os.pathsep.join([str(running.conf_dir), f"{classes}/*"])]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("HADOOP", "YARN", "SPARK"))}
        # Containers look for java there.
        env = {**kept, "JAVA_HOME": str(Path(shutil.which(java()) or java()).resolve().parents[1])}

        def start(main_class: str) -> Server:
            name = main_class.rpartition(".")[2]
            server = Server.start(name, [*command, main_class], home / f"{name}.log", env=env)
            # Their data is gone anyway; asked to end, the NodeManager takes its time.
            stack.callback(server.stop, signal.SIGKILL)
            return server

        manager, node = start(RESOURCE_MANAGER), start(NODE_MANAGER)
        run("the format of HDFS", [*command, NAMENODE, "-format", "-nonInteractive"], env=env)
        names, data = start(NAMENODE), start(DATANODE)
        state = f"{running.webhdfs_url}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        metrics = f"{running.resource_manager_url}/ws/v1/cluster/metrics"
        names.wait_until(_answers(state), START_SECONDS)
        data.wait_until(_answers(state, lambda told: told["beans"][0]["NumLiveDataNodes"] == 1), START_SECONDS)
        manager.wait_until(_answers(metrics), START_SECONDS)
        has_node = _answers(metrics, lambda told: told["clusterMetrics"]["activeNodes"] == 1)
        node.wait_until(has_node, START_SECONDS)
        yield running


def _end_containers(home: Path) -> None:
    """End what runs in a directory of this NodeManager: containers have sessions of their own."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(home):
                process.kill()


def _answers(url: str, is_so: Callable[[Any], bool] = bool) -> Callable[[], bool]:
    def answers() -> bool:
        try:
            return is_so(requests.get(url, timeout=10).json())
        except (OSError, ValueError, LookupError):
            return False

    return answers


def _configure(home: Path, restart_manager: Callable[[], None], *, has_log_aggregation: bool) -> Hadoop:
    """Write the configuration; the processes of Spark read the same."""
    conf, data = home / "conf", home / "data"
    hdfs, namenode, *manager, node = free_ports(8)
    services = ("webapp.address", "address", "scheduler.address", "resource-tracker.address", "admin.address")
    addresses = {f"yarn.resourcemanager.{key}": f"{HOST}:{port}" for key, port in zip(services, manager, strict=True)}
    write_site(
        conf,
        "core-site",
        {
            "fs.defaultFS": f"hdfs://{HOST}:{hdfs}",
            "hadoop.tmp.dir": data,
            # As whom the REST APIs are asked, who may kill their own applications.
            "hadoop.http.staticuser.user": getpass.getuser(),
        },
    )
    write_site(
        conf,
        "hdfs-site",
        {
            "dfs.replication": 1,
            "dfs.namenode.http-address": f"{HOST}:{namenode}",
            "dfs.namenode.safemode.extension": 0,
            "dfs.datanode.hostname": HOST,
            **{f"dfs.datanode.{name}": f"{HOST}:0" for name in ("address", "http.address", "ipc.address")},
        },
    )
    write_site(
        conf,
        "yarn-site",
        {
            **addresses,
            "yarn.resourcemanager.bind-host": HOST,
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 100,
            "yarn.resourcemanager.recovery.enabled": "true",
            "yarn.resourcemanager.store.class": STATE_STORE,
            "yarn.resourcemanager.fs.state-store.uri": (home / "state").as_uri(),
            "yarn.scheduler.minimum-allocation-mb": 128,
            "yarn.nodemanager.hostname": HOST,
            "yarn.nodemanager.address": f"{HOST}:0",
            "yarn.nodemanager.localizer.address": f"{HOST}:0",
            "yarn.nodemanager.webapp.address": f"{HOST}:{node}",
            "yarn.nodemanager.resource.memory-mb": MEMORY_MB,
            "yarn.nodemanager.resource.cpu-vcores": 4,
            "yarn.nodemanager.local-dirs": data / "local",
            "yarn.nodemanager.log-dirs": home / "containers",
            "yarn.log-aggregation-enable": str(has_log_aggregation).lower(),
            "yarn.nodemanager.remote-app-log-dir": "/app-logs",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.enable": "false",
        },
    )
    queue = {
        "root.queues": "default,night",
        "root.default.capacity": 90,
        "root.night.capacity": 10,
        **{f"root.{name}.user-limit-factor": 10 for name in ("default", "night")},
        "maximum-am-resource-percent": SHARE_OF_DRIVERS,
    }
    write_site(conf, "capacity-scheduler", {f"yarn.scheduler.capacity.{key}": value for key, value in queue.items()})
    (conf / "log4j.properties").write_text(LOG)
    # Pages that the jars do not have.
    for name in ("hdfs", "datanode"):
        page = conf / "webapps" / name / "WEB-INF" / "web.xml"
        page.parent.mkdir(parents=True)
        page.write_text("<web-app/>")
    return Hadoop(
        conf,
        resource_manager_url=f"http://{HOST}:{manager[0]}",
        node_manager_url=f"http://{HOST}:{node}",
        hdfs=f"hdfs://{HOST}:{hdfs}",
        webhdfs_url=f"http://{HOST}:{namenode}",
        containers=home / "containers",
        restart_manager=restart_manager,
    )
