"""Fixtures: one stand-in for AWS, which all tests use, and a bucket of each test."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aws_services import CREDENTIALS, aws_services
from fast_spark import JAVA_ENV, LIMIT_SECONDS

from spark_lineage.emit.task_event import AirflowTry
from spark_lineage.inject.installation import find_installation
from spark_lineage.launch.launch import Launch, TaskKey, launches_below
from spark_lineage.recover.closing import end_child
from spark_lineage.recover.search import ChildEnd

if TYPE_CHECKING:
    from laboratory import Bench, Outcome

# Shorter than that of the service (30 s), which is what a test of it waits for.
GLUE_SECONDS = 6.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the clients of clouds warn, which leave sockets open."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of the services, and the folder of what they run."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    home, folder = find_installation("spark-submit", {"PATH": path}).home, tmp_path_factory.mktemp("aws")
    env = {"PATH": path, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with aws_services(JAVA_ENV | env, folder, home / "jars", glue_seconds=GLUE_SECONDS) as url:
        yield url, folder


@dataclass
class Aws:
    """The services, as a test uses them."""

    url: str
    folder: Path
    bucket: str
    events: Path
    bench: Bench
    application: str = ""
    """Of EMR Serverless."""

    def client(self, name: str) -> Any:
        """Return a client of a service."""
        import boto3

        return boto3.client(name, endpoint_url=self.url, **CREDENTIALS)

    @property
    def lake(self) -> str:
        """Where the data is."""
        return f"s3a://{self.bucket}/lake"

    def logs(self) -> list[str]:
        """Return the names of what is in the directory of event logs."""
        found = self.client("s3").list_objects_v2(Bucket=self.bucket, Prefix="eventlogs/").get("Contents", ())
        return [one["Key"].removeprefix("eventlogs/") for one in found if not one["Key"].endswith("/")]

    def submitted(self, job_id: str) -> list[str]:
        """Return what the runner gave to ``spark-submit``."""
        words: list[str] = json.loads((self.folder / job_id / "submitted.json").read_text())
        return words

    def execute(self, operator: str, **arguments: Any) -> Outcome:
        """Run an operator with lineage."""
        self.bench.operator, self.bench.application, self.bench.limit_seconds = operator, {}, LIMIT_SECONDS
        return self.bench.run(openlineage_jar=None, lineage_conn_id="events", **arguments)

    def sent(self, job: str) -> list[dict[str, Any]]:
        """Return the events of a job."""
        lines = self.events.read_text().splitlines() if self.events.exists() else []
        return [event for event in map(json.loads, lines) if event["job"]["name"] == job]

    def stop_glue(self, run_id: str) -> None:
        """Stop a run, which moto cannot be asked for."""
        (self.folder / "stopped").mkdir(exist_ok=True)
        (self.folder / "stopped" / run_id).touch()

    def launch(self) -> Launch:
        """Return the latest launch."""
        return max(launches_below(self.bench.lineage_dir), key=lambda one: one.try_number)

    def end_children(self, launch: Launch | None = None) -> bool:
        """Send the ends of the jobs that went on, as a server does.

        :param launch: the latest one where it is None
        """
        child = ChildEnd(TaskKey("shop", "manual", "load"), launch or self.launch())
        return end_child(child, AirflowTry(None, None), None)

    def wait_for_children(self, launch: Launch | None = None) -> None:
        """Send them when they are due."""
        until = time.monotonic() + 120
        while not self.end_children(launch):
            assert time.monotonic() < until
            time.sleep(2)

    def assert_child(self, outcome: Outcome) -> None:
        """Assert that a task has left a job run, which ends as a job of its own."""
        assert outcome.error is None, outcome.printed
        self.wait_for_children()
        assert [one["eventType"] for one in self.sent("shop.load")] == ["START", "COMPLETE"]
        start, end = self.sent("job_run@shop.load")
        assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
        assert [one["name"] for one in end["outputs"]] == ["lake/doubled"]


@pytest.fixture
def aws(bench: Bench, services: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """A bucket with orders, and a directory for event logs."""
    url, folder = services
    aws = Aws(url, folder, f"b{abs(hash(tmp_path))}", tmp_path / "events.json", bench)
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=aws.bucket)
    s3.put_object(Bucket=aws.bucket, Key="eventlogs/")
    s3.put_object(Bucket=aws.bucket, Key="lake/orders/part.json", Body=b'{"id": 1, "amount": 20}')
    connection = {
        "conn_type": "aws",
        "login": "test",
        "password": "not-a-key-of-anybody",
        "extra": {"region_name": CREDENTIALS["region_name"], "endpoint_url": url},
    }
    transport = {"transport": {"type": "file", "log_file_path": str(aws.events), "append": True}}
    env = {
        "AIRFLOW_CONN_SHOP_AWS": json.dumps(connection),
        "AIRFLOW_CONN_EVENTS": json.dumps({"conn_type": "openlineage", "extra": transport}),
        "AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(tmp_path / "outbox"),
        "AIRFLOW__SPARK_LINEAGE__EVENT_LOG_DIR": f"s3a://shop_aws@{aws.bucket}/eventlogs",
    }
    bench.env |= env
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    return aws
