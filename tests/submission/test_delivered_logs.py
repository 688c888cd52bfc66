"""Event logs that Databricks delivers: of clusters since the launch, also when their parts are archived meanwhile."""

from __future__ import annotations

import gzip
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from spark_lineage.plans.event_log_files import GrowingEventLog
from spark_lineage.submission import delivered_logs
from spark_lineage.submission.copies import Copies, Wanted
from spark_lineage.submission.delivered_logs import DeliveredLogs

STREAM = Path(__file__).parents[1] / "fixtures" / "event_logs" / "stream"
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
# 2024-12-31 23:59:00 UTC.
BEGAN = 1735689540.0
LINES = STREAM.read_bytes().splitlines(keepends=True)
PROPERTIES = f'"Spark Properties":{{"spark.openlineage.applicationRunId":"{RUN_ID}"}}'.encode()
END = b'{"Event":"SparkListenerApplicationEnd","Timestamp":1735689700000}\n'
OURS = [LINES[0].replace(b'"Spark Properties":{}', PROPERTIES), *LINES[1:], END]
FILES = fsspec.filesystem("memory")
CLUSTER = "0101-000301-abc123"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a destination."""
    monkeypatch.setattr(delivered_logs, "_LOOK_SECONDS", 0.0)
    url = f"memory://{uuid.uuid4().hex}"
    FILES.makedirs(url)
    yield url
    FILES.rm(url, recursive=True)


def put(store: str, cluster: str, lines: list[bytes], name: str = "eventlog") -> None:
    content = b"".join(lines)
    path = f"{store}/{cluster}/eventlog/{cluster}_10_0_0_1/71045/{name}"
    FILES.pipe_file(path, gzip.compress(content) if name.endswith(".gz") else content)


def copied(folder: Path) -> dict[str, bytes]:
    logs = {log.name: GrowingEventLog(log) for log in (folder / "event-log" / "tRuE").glob("*")}
    return {name: b"\n".join(line for _, line in log.finish() if isinstance(line, bytes)) for name, log in logs.items()}


def test_log_is_copied_through_its_archived_parts(store: str, tmp_path: Path) -> None:
    names: set[str] = set()
    wanted = Wanted(RUN_ID, BEGAN, set)
    logs = DeliveredLogs(f"{store}/*/eventlog", copies=Copies(tmp_path, names, lambda: False), wanted=wanted)
    assert logs.pull(is_last=False) is None
    half = len(OURS) // 2
    # Another run, one of long ago, and a cluster of the night before.
    put(store, "0101-000102-other", LINES)
    put(store, "1231-120000-before", OURS)
    FILES.makedirs(f"{store}/0101-000201-nothing/driver")
    put(store, CLUSTER, OURS[:half])
    assert logs.pull(is_last=False) is False
    put(store, CLUSTER, OURS[: half + 1], "eventlog-2025-01-01--00-15.gz")
    put(store, CLUSTER, OURS[half + 1 :])
    assert logs.pull(is_last=True) is True
    assert logs.pull(is_last=True) is True
    assert names == {f"eventlog_v2_{CLUSTER}_71045"}
    assert copied(tmp_path) == {f"eventlog_v2_{CLUSTER}_71045": b"".join(OURS).rstrip(b"\n")}


def test_log_that_was_looked_at_while_the_job_ran_is_looked_at_soon_after_its_end(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivered_logs, "_LOOK_SECONDS", 0.2)
    copies = Copies(tmp_path, set(), lambda: False)
    logs = DeliveredLogs(f"{store}/*/eventlog", copies=copies, wanted=Wanted(RUN_ID, BEGAN, set))
    put(store, CLUSTER, OURS[:-1])
    assert logs.pull(is_last=False) is False
    put(store, CLUSTER, OURS)
    assert logs.pull(is_last=False) is False
    time.sleep(0.3)
    assert logs.pull(is_last=True) is True
