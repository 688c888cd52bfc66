"""A Data.Rentgen of one's own: its consumer, its REST API and, where it has one, its HTTP to Kafka proxy."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import requests

from lineage_backends.data_rentgen_environment import Environment, environment
from lineage_backends.data_rentgen_lineage import RunLineage, read_lineage
from lineage_backends.kafka import Kafka
from lineage_backends.postgresql import PostgreSql
from lineage_backends.processes import HOST, Server, free_ports, listens, run

TOPIC = "input.runs"
START_SECONDS = 60
_TIMEOUT_SECONDS = 30
_DONE = ("SUCCEEDED", "FAILED", "KILLED")


@dataclass
class DataRentgen:
    """Its addresses, and what its REST API tells."""

    version: str
    url: str
    """Of the REST API."""
    http2kafka_url: str | None
    """For OpenLineage's HTTP transport, with the endpoint ``v1/openlineage``; None: this version reads Kafka only."""
    personal_token: str | None
    """The bearer token that ``http2kafka_url`` wants."""
    kafka: Kafka
    topic: str
    """What it reads; what it cannot read, it puts into ``TOPIC__malformed``."""
    environment: Environment
    env: dict[str, str]
    session: requests.Session

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of ``GET /v1/path``."""
        answer = self.session.get(f"{self.url}/v1/{path}", params=parameters, timeout=_TIMEOUT_SECONDS)
        answer.raise_for_status()
        return answer.json()

    def runs(self, *run_ids: str) -> list[dict[str, Any]]:
        """The runs of these ids that it knows: ``data`` has status, job_id, external_id, start_reason and so on."""
        return list(self.get("runs", run_id=list(run_ids))["items"])

    def ended_run(self, run_id: str, seconds: float = 30) -> dict[str, Any]:
        """The run, once its end has arrived; ``AssertionError`` when it does not within the time."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.runs(run_id)
            if found and found[0]["data"]["status"] in _DONE:
                return dict(found[0]["data"])
            if time.monotonic() > deadline:
                raise AssertionError(f"Data.Rentgen has no end of the run {run_id} after {seconds} s; it has {found}")
            time.sleep(0.2)

    def lineage(self, run_id: str) -> RunLineage:
        """What the run read and wrote, with columns."""
        since = datetime(2000, 1, 1, tzinfo=UTC).isoformat()
        asked = {"start_node_id": run_id, "since": since, "direction": "BOTH", "granularity": "OPERATION", "depth": 1}
        return read_lineage(self.get("runs/lineage", include_column_lineage=True, **asked))

    def is_malformed(self, run_id: str, seconds: float = 10) -> bool:
        """Whether it could not read an event of this run, and has put it aside; waits for it so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            messages = self.kafka.read(_malformed(self.topic), seconds=0.5)
            if any(run_id.encode() in message.value() for message in messages):
                return True
        return False

    def create_partitions(self, since: date, until: date) -> None:
        """Make room for runs of these days (months are whole); the day of a run is the one in its UUIDv7."""
        program = [self.environment.python, "-m", "data_rentgen.db.scripts.create_partitions"]
        days = ["--start", since.isoformat(), "--end", until.isoformat(), "--granularity", "month"]
        run("Making partitions of Data.Rentgen", [*program, *days], env=self.env)


@contextmanager
def data_rentgen(postgresql: PostgreSql, kafka: Kafka, topic: str = TOPIC) -> Iterator[DataRentgen]:
    """Run it on a new database and a new topic, with room for the runs of last month, this one and the next."""
    where = environment()
    home = Path(tempfile.mkdtemp(prefix="spark-lineage-data-rentgen-"))
    database = f"data_rentgen_{secrets.token_hex(4)}"
    env = _env(postgresql.url(database, "postgresql+asyncpg"), kafka, topic)
    python = [where.python, "-m"]
    try:
        postgresql.create_database(database)
        for name in (topic, _malformed(topic)):
            kafka.create_topic(name)
        run("The migrations of Data.Rentgen", [*python, "data_rentgen.db.migrations", "upgrade", "head"], env=env)
        server_port, proxy_port, consumer_port = free_ports(3)
        with ExitStack() as stack:

            def start(name: str, *command: str) -> Server:
                server = Server.start(f"Data.Rentgen's {name}", [*python, *command], home / f"{name}.log", env=env)
                stack.callback(server.stop)
                return server

            # From 0.7 on the consumer answers probes over HTTP.
            probes = ["--host", HOST, "--port", str(consumer_port)] if where.has_http2kafka else []
            consumer = start("consumer", "data_rentgen.consumer", *probes)
            server = start("server", "data_rentgen.server", "--host", HOST, "--port", str(server_port))
            proxy = None
            if where.has_http2kafka:
                proxy = start("http2kafka", "data_rentgen.http2kafka", "--host", HOST, "--port", str(proxy_port))
            url = f"http://{HOST}:{server_port}"
            found = DataRentgen(where.version, url, None, None, kafka, topic, where, env, requests.Session())
            stack.callback(found.session.close)
            today = datetime.now(UTC).date()
            month = today.replace(day=1)
            found.create_partitions(
                (month - timedelta(days=1)).replace(day=1), (month + timedelta(days=62)).replace(day=1)
            )
            server.wait_until(lambda: listens(server_port), START_SECONDS)
            found.session.headers["Authorization"] = f"Bearer {_log_in(found)}"
            if proxy is not None:
                proxy.wait_until(lambda: listens(proxy_port), START_SECONDS)
                found.http2kafka_url = f"http://{HOST}:{proxy_port}"
                found.personal_token = _personal_token(found)
            consumer.wait_until(lambda: _consumes(consumer), START_SECONDS)
            yield found
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _malformed(topic: str) -> str:
    return f"{topic}__malformed"


def _env(database_url: str, kafka: Kafka, topic: str) -> dict[str, str]:
    settings = {
        "DATABASE__URL": database_url,
        "KAFKA__BOOTSTRAP_SERVERS": f'["{kafka.bootstrap}"]',
        "KAFKA__SECURITY__TYPE": "SCRAM-SHA-512",
        "KAFKA__SECURITY__USER": kafka.user,
        "KAFKA__SECURITY__PASSWORD": kafka.password,
        "CONSUMER__AUTO_OFFSET_RESET": "earliest",
        "CONSUMER__FETCH_MAX_WAIT_MS": "200",
        "CONSUMER__TOPICS_LIST": f'["{topic}"]',
        "CONSUMER__GROUP_ID": f"data-rentgen-of-{topic}",
        "PRODUCER__MAIN_TOPIC": topic,
        "PRODUCER__MALFORMED_TOPIC": _malformed(topic),
        "AUTH__ACCESS_TOKEN__SECRET_KEY": secrets.token_hex(32),
        "AUTH__PERSONAL_TOKENS__SECRET_KEY": secrets.token_hex(32),
        "SERVER__SESSION__SECRET_KEY": secrets.token_hex(32),
        "SERVER__STATIC_FILES__ENABLED": "false",
        "LOGGING__PRESET": "plain",
    }
    inherited = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    return inherited | {"PATH": os.defpath} | {f"DATA_RENTGEN__{name}": value for name, value in settings.items()}


def _log_in(rentgen: DataRentgen) -> str:
    """Its dummy provider, the default, lets in whoever comes."""
    form = {"grant_type": "password", "username": "lineage", "password": "any"}
    answer = rentgen.session.post(f"{rentgen.url}/v1/auth/token", data=form, timeout=_TIMEOUT_SECONDS)
    answer.raise_for_status()
    return str(answer.json()["access_token"])


def _personal_token(rentgen: DataRentgen) -> str:
    answer = rentgen.session.post(f"{rentgen.url}/v1/personal-tokens", json={"name": "tests"}, timeout=_TIMEOUT_SECONDS)
    answer.raise_for_status()
    return str(answer.json()["content"])


def _consumes(consumer: Server) -> bool:
    text = consumer.tail()
    return "startup complete" in text or "started successfully" in text
