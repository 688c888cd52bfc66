"""Of the log of a Spark Connect server, what one session did."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import zstandard

from spark_lineage.launch.line import LineCounts
from spark_lineage.merge.transition import Report, StatusReport
from spark_lineage.plans.event_log import FollowedEventLog
from spark_lineage.plans.session import ConnectSession

LOG = Path(__file__).parents[1] / "fixtures" / "connect" / "two_sessions.zstd"
PIPELINES = LOG.with_name("pipelines.zstd")
FIRST, SECOND = "61c71826-e088-461d-9994-aa73bd3d5043", "2277d2b6-f247-4d7e-b551-6f613eddf4f7"


def read(path: Path, session: ConnectSession | None) -> tuple[list[str], list[Report]]:
    """Return the names of the outputs of a log, in their order, and what it reports."""
    reports: list[Report] = []
    log = FollowedEventLog(path, None, report=reports.append, describe=None, is_over=lambda: False, session=session)
    return [output.dataset.name for one in log.finish() for output in one.outputs], reports


@pytest.mark.parametrize(("session_id", "number"), [(FIRST, 1), (SECOND, 2)])
def test_session_has_its_own_outputs_and_status(session_id: str, number: int) -> None:
    outputs, reports = read(LOG, ConnectSession(session_id))

    assert outputs == [f"/area/out{number}", f"/area/agg{number}"]
    subjects = {one.subject for one in reports if isinstance(one, StatusReport)}
    # Of the server itself nothing is said, and tasks are those of all sessions.
    assert subjects == {"SQL_EXECUTION", "SPARK_JOB"}
    assert all(isinstance(one, StatusReport) for one in reports)


def test_log_without_a_session_has_all_outputs() -> None:
    assert read(LOG, None)[0] == ["/area/out1", "/area/agg1", "/area/out2", "/area/agg2"]


def test_unknown_session_has_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_lineage.plans.event_log._SESSION_SECONDS", 0.2)

    assert read(LOG, ConnectSession("00000000-0000-4000-8000-000000000000")) == ([], [])


def lines() -> list[bytes]:
    return zstandard.ZstdDecompressor().decompressobj().decompress(LOG.read_bytes()).splitlines(keepends=True)


def test_session_whose_id_another_one_quotes_stays_alone(tmp_path: Path) -> None:
    quoting: list[Any] = [json.loads(line) for line in lines()]
    for event in quoting:
        if event["Event"].endswith("SQLExecutionStart") and any(SECOND in tag for tag in event["jobTags"]):
            event["description"] = f"SparkConnect_OperationTag_User__Session_{FIRST}_Operation_x"
    (tmp_path / "log").write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in quoting))

    assert read(tmp_path / "log", ConnectSession(FIRST))[0] == ["/area/out1", "/area/agg1"]


def test_parts_of_a_rolling_log_before_the_session_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_local-1"
    folder.mkdir()
    (folder / "events_1_local-1").write_bytes(b"".join(lines()[:3]))
    (folder / "events_2_local-1").write_bytes(b"no log\n" * 3)
    (folder / "events_3_local-1").write_bytes(b"".join(lines()[3:]))
    for number in (1, 2):
        os.utime(folder / f"events_{number}_local-1", (1000, 1000))

    assert read(folder, ConnectSession(SECOND, since=2000))[0] == ["/area/out2", "/area/agg2"]


@pytest.mark.parametrize(
    ("session_id", "outputs"),
    [
        ("01a22597-1e13-76e6-a763-9bce909c682e", {"l1_a", "l1_b"}),
        ("3f2504e0-4f89-41d3-9a0c-0305e82c3302", {"l2_a"}),
        # This one had not ended when the next one began.
        ("01a22597-943b-7119-a965-d19664b7a9d7", {"l4_a", "l4_b"}),
        ("01a22597-cd21-7d2f-a623-44ddcf1b1ecc", {"l5_mv", "l5_st", "l5_app"}),
    ],
)
def test_flows_with_the_tags_of_an_earlier_pipeline_are_those_of_their_own(session_id: str, outputs: set[str]) -> None:
    names, _ = read(PIPELINES, ConnectSession(session_id))
    assert {Path(name).name for name in names} == outputs


def test_flows_of_pipelines_that_begin_at_once_are_counted_and_not_claimed(tmp_path: Path) -> None:
    starts, others = [], []
    for line in zstandard.ZstdDecompressor().decompressobj().decompress(PIPELINES.read_bytes()).splitlines(True):
        is_start = b"OperationStarted" in line and b"start_run" in line
        (starts if is_start else others).append(line)
    (tmp_path / "log").write_bytes(b"".join([*others[:3], *starts, *others[3:]]))

    counts, session = LineCounts(), ConnectSession("3f2504e0-4f89-41d3-9a0c-0305e82c3302")
    log = FollowedEventLog(tmp_path / "log", counts, report=None, describe=None, is_over=lambda: False, session=session)
    assert [output.dataset.name for one in log.finish() for output in one.outputs] == []
    assert counts.set_aside == {"flows of pipelines at once": 9}
