"""The event logs of recorded applications, as a History Server gives them."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
from pathlib import Path

import pytest
from fast_spark import JAVA_ENV
from lineage_backends.history_server import history_server

from spark_lineage.cli import main
from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.directory import EVENT_LOG_DIRECTORY, OWN_EVENT_LOGS
from spark_lineage.plans.event_log_files import IN_PROGRESS
from spark_lineage.submission.copies import Copies, Wanted
from spark_lineage.submission.history_log import HistoryLog, HistoryLogs
from spark_lineage.watch.endpoints import Endpoints

# Tests are no package: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
recordings = importlib.import_module("truth_recording")

WAIT_SECONDS = 180
# What the recordings leave out and a History Server asks for.
_KEY = b'"System Properties":'
_LEFT_OUT = ("JVM Information", "Hadoop Properties", "Metrics Properties", "Classpath Entries")
COMPLETED = (_KEY, b"".join(f'"{name}":{{}},'.encode() for name in _LEFT_OUT) + _KEY)


def merged(log: Path, event: Path) -> object:
    """Return what the event of a log tells."""
    assert main(["merge", "--exit-code", "0", "--event-log", str(log), "--output", str(event)]) == 0
    made = json.loads(event.read_text())
    return {key: made[key] for key in ("inputs", "outputs")}


@pytest.mark.truth
@pytest.mark.spark
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_event_of_what_a_history_server_gives_is_that_of_the_file(tmp_path: Path, every: int) -> None:
    served = tmp_path / "served"
    served.mkdir()
    files: dict[str, Path] = {}
    for version, job in list(recordings.recordings())[::every]:
        application = recordings.recorded(job, version, tmp_path / "recorded" / version / job)
        for log in (application.home / "eventlog").iterdir():
            log.write_bytes(log.read_bytes().replace(*COMPLETED))
            files[log.name] = log
            (served / log.name).hardlink_to(log)
    with history_server(served, {**os.environ, **JAVA_ENV}, tmp_path) as url:
        api = HistoryLogs(Endpoints("local[1]", "client", {"history_server_url": url}))
        for name, log in files.items():
            application_id, launch = name.removesuffix(IN_PROGRESS), tmp_path / "launch" / name
            wanted = Wanted("", 0.0, lambda application_id=application_id: {application_id})
            history = HistoryLog(api, Copies(launch, set(), is_over=lambda: False), wanted)
            brought = launch / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
            deadline = time.monotonic() + WAIT_SECONDS
            while not (brought / application_id).exists():
                assert time.monotonic() < deadline, f"the History Server does not give {name}"
                with contextlib.suppress(NoAnswerError):
                    # Of one that was killed there is no end to wait for.
                    history.pull(is_last=name != application_id)
            assert (brought / application_id).read_bytes() == log.read_bytes()
            assert merged(brought / application_id, launch / "here.json") == merged(log, launch / "there.json")
