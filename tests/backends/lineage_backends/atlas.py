"""An Apache Atlas 2.1.0 of one's own on the loopback: BerkeleyDB, a Solr in the same process, hooks from a Kafka."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import requests

from lineage_backends.atlas_models import typedefs
from lineage_backends.debian_java8 import java8
from lineage_backends.kafka import Kafka
from lineage_backends.maven import download
from lineage_backends.processes import HOST, Server, cache_directory, free_ports

VERSION = "2.1.0"
USER = "admin"
PASSWORD = "admin"  # noqa: S105 (of a server that lives as long as the test)
HOOK_TOPIC = "ATLAS_HOOK"
ENTITIES_TOPIC = "ATLAS_ENTITIES"
START_SECONDS = 300
JVM = ("-Xms256m", "-Xmx1g", "-Xss256k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
# What becomes of messages is a line of this log, and nothing else.
LOG = """log4j.rootLogger=ERROR,stdout
log4j.logger.org.apache.atlas=WARN
log4j.logger.FAILED=INFO
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1} %m%n
"""


@dataclass(frozen=True)
class Atlas:
    """Where it is, and its one user, who may do all."""

    url: str
    log: Path
    process_id: int
    user: str = USER
    password: str = PASSWORD


@contextmanager
def atlas(broker: Kafka) -> Iterator[Atlas]:
    """Run one that reads ``ATLAS_HOOK`` of ``broker``, which is new to it; its data is gone afterwards."""
    installed = _installed()
    home = Path(tempfile.mkdtemp(prefix="spark-lineage-atlas-"))
    try:
        (port,) = free_ports(1)
        _configure(home, installed, broker, port)
        # Atlas would make its topics through a ZooKeeper that Kafka no longer has.
        for topic in (HOOK_TOPIC, ENTITIES_TOPIC):
            broker.create_topic(topic)
        webapp = installed / "webapp"
        classpath = f"{home}/conf:{webapp}/WEB-INF/classes:{webapp}/WEB-INF/lib/*"
        properties = {
            "atlas.home": home,
            "atlas.conf": home / "conf",
            "atlas.data": home / "data",
            "atlas.log.dir": home / "logs",
            "embedded.solr.directory": home,
            "java.io.tmpdir": home / "tmp",
            "user.dir": home,
            "log4j.configuration": f"file:{home}/conf/log4j.properties",
            "zookeeper.jmx.log4j.disable": "true",
            "java.awt.headless": "true",
        }
        command = [*java8(), *JVM, *(f"-D{key}={value}" for key, value in properties.items())]
        command += ["-cp", classpath, "org.apache.atlas.Atlas", "-app", str(webapp), "-port", str(port)]
        server = Server.start("Atlas", command, home / "log", env={"PATH": "/usr/bin:/bin"})
        url = f"http://{HOST}:{port}"
        try:
            server.wait_until(lambda: _is_active(url), START_SECONDS)
            yield Atlas(url, server.log, server.process.pid)
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _is_active(url: str) -> bool:
    try:
        answer = requests.get(f"{url}/api/atlas/admin/status", auth=(USER, PASSWORD), timeout=10)
        return answer.ok and bool(answer.json()["Status"] == "ACTIVE")
    except (OSError, ValueError):
        return False


@cache
def models() -> dict[str, list[dict[str, Any]]]:
    """The type definitions that every Atlas has, by their kind (``entityDefs`` and so on)."""
    jar = cache_directory() / f"atlas-repository-{VERSION}-tests.jar"
    if not jar.exists():
        download(f"org.apache.atlas:atlas-repository:{VERSION}", jar, classifier="tests")
    return typedefs(jar)


def _installed() -> Path:
    """The folder in the cache with ``webapp`` and ``solr``."""
    folder = cache_directory() / f"atlas-{VERSION}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            workspace = Path(name)
            made = workspace / "atlas"
            made.mkdir()
            download(f"org.apache.atlas:atlas-webapp:{VERSION}", workspace / "war", "war")
            with zipfile.ZipFile(workspace / "war") as war:
                war.extractall(made / "webapp")
            with zipfile.ZipFile(made / "webapp" / "WEB-INF" / "lib" / f"atlas-testtools-{VERSION}.jar") as jar:
                jar.extractall(made, [each for each in jar.namelist() if each.startswith("solr/")])
            try:
                made.rename(folder)
            except OSError:  # another test run was quicker
                if not folder.is_dir():
                    raise
    return folder


def _configure(home: Path, installed: Path, broker: Kafka, port: int) -> None:
    for directory in ("conf", "data", "logs", "tmp", "models/0000-Area0"):
        (home / directory).mkdir(parents=True)
    shutil.copytree(installed / "solr", home / "solr")
    (home / "models" / "0000-Area0" / "0010-base_model.json").write_text(json.dumps(models()))
    conf = home / "conf"
    (conf / "log4j.properties").write_text(LOG)
    (conf / "users-credentials.properties").write_text(f"{USER}=ADMIN::{sha256(PASSWORD.encode()).hexdigest()}\n")
    values: dict[str, Any] = {
        "atlas.graph.storage.backend": "berkeleyje",
        "atlas.graph.storage.directory": home / "data" / "berkeley",
        "atlas.graph.storage.lock.wait-time": 10000,
        "atlas.graph.index.search.backend": "solr",
        "atlas.graph.index.search.solr.mode": "cloud",
        "atlas.graph.index.search.solr.embedded": "true",
        "atlas.graph.index.search.solr.wait-searcher": "true",
        "atlas.graph.index.search.max-result-set-size": 150,
        "atlas.EntityAuditRepository.impl": "org.apache.atlas.repository.audit.InMemoryEntityAuditRepository",
        "atlas.notification.embedded": "false",
        "atlas.notification.create.topics": "false",
        "atlas.notification.log.failed.messages": "true",
        "atlas.kafka.zookeeper.connect": f"{HOST}:1",  # wanted, and never used
        "atlas.kafka.bootstrap.servers": broker.open_bootstrap,
        "atlas.kafka.hook.group.id": "atlas",
        "atlas.kafka.enable.auto.commit": "false",
        "atlas.kafka.auto.offset.reset": "earliest",
        "atlas.kafka.session.timeout.ms": 30000,
        "atlas.kafka.poll.timeout.ms": 100,
        "atlas.enableTLS": "false",
        "atlas.server.bind.address": HOST,
        "atlas.server.ha.enabled": "false",
        "atlas.rest.address": f"http://{HOST}:{port}",
        "atlas.authentication.method.kerberos": "false",
        "atlas.authentication.method.file": "true",
        "atlas.authentication.method.file.filename": conf / "users-credentials.properties",
        "atlas.authentication.method.ldap.type": "none",
        "atlas.authorizer.impl": "none",
        "atlas.search.gremlin.enable": "false",
        "atlas.rest-csrf.enabled": "true",
        "atlas.rest-csrf.browser-useragents-regex": "^Mozilla.*,^Opera.*,^Chrome.*",
        "atlas.rest-csrf.methods-to-ignore": "GET,OPTIONS,HEAD,TRACE",
        "atlas.rest-csrf.custom-header": "X-XSRF-HEADER",
    }
    lines = "".join(f"{key}={value}\n" for key, value in values.items())
    (conf / "atlas-application.properties").write_text(lines)
