"""Several jobs that go on when their task has ended: each has an end of its own, sent when all are over."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import Launch, Part, TaskKey
from spark_lineage.recover import closing
from spark_lineage.recover.search import ChildEnd

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.airflow
LOG = Path(__file__).parents[1] / "fixtures" / "event_logs" / "written.zstd"
RECORDED = b"01890a5d-ac96-7dde-8a63-0123456789cd"
PARTS = (
    Part("first", "01890a5d-ac96-7dde-8a63-000000000001", "s-1"),
    Part("second", "01890a5d-ac96-7dde-8a63-000000000002", "s-2"),
)
PARENT = {"parentRunId": "01890a5d-ac96-7dde-8a63-00000000000a", "parentJobNamespace": "ns", "parentJobName": "d.t"}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The events that were sent."""
    sent: list[Any] = []
    monkeypatch.setattr(closing, "_delivered", lambda event, *_: sent.append(event) or True)
    monkeypatch.setattr(closing, "emission", lambda *_: SimpleNamespace(is_sent=True))
    monkeypatch.setattr(closing, "job_texts", lambda *_: {})
    return sent


@pytest.fixture
def end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """End the jobs of a launch, of which the service says how they ended."""
    logs = tmp_path / "logs"
    logs.mkdir()
    with zstandard.ZstdDecompressor().stream_reader(LOG.read_bytes(), read_across_frames=True) as stream:
        content = stream.read()
    for number, part in enumerate(PARTS):
        (logs / f"application_1_000{number}").write_bytes(content.replace(RECORDED, part.application_run_id.encode()))
    directory = tmp_path / "lineage" / "d" / "r" / "t" / "-1" / "1-x"
    directory.mkdir(parents=True)
    parent = tuple((f"spark.openlineage.{key}", value) for key, value in PARENT.items())
    launch = Launch(
        str(directory),
        "01890a5d-ac96-7dde-8a63-000000000000",
        external_id="s-1,s-2",
        deploy_mode="cluster",
        event_logs=(str(logs),),
        service="emr_steps.EmrStepsAdapter",
        child="step",
        parts=PARTS,
        parent=parent,
        run_id=PARENT["parentRunId"],
    )

    def end(**ends: DriverEnd | None) -> bool:
        monkeypatch.setattr(closing, "service_end", lambda one: ends[str(one.external_id).replace("-", "_")])
        airflow: Any = SimpleNamespace(task=None)
        return closing.end_child(ChildEnd(TaskKey("d", "r", "t"), launch, 0.0), airflow, None)

    return end


def test_each_job_has_its_own_lineage_and_end(end: Callable[..., bool], sent: list[Any]) -> None:
    assert end(s_1=DriverEnd("FINISHED", "EMR"), s_2=DriverEnd("FAILED", "EMR", "exit code 1"))
    assert [(str(one.job.name), one.eventType.value) for one in sent] == [
        ("first@d.t", "COMPLETE"),
        ("second@d.t", "FAIL"),
    ]
    assert [one.run.runId for one in sent] == [part.application_run_id for part in PARTS]
    assert all(one.outputs for one in sent)
    assert "exit code 1" in str(sent[1].run.facets["sparkLineage_status"])


def test_nothing_is_sent_while_one_goes_on(end: Callable[..., bool], sent: list[Any]) -> None:
    assert not end(s_1=DriverEnd("FINISHED", "EMR"), s_2=None)
    assert sent == []
    assert end(s_1=DriverEnd("FINISHED", "EMR"), s_2=DriverEnd("FINISHED", "EMR"))
    assert len(sent) == 2


def test_ends_are_sent_once(end: Callable[..., bool], sent: list[Any]) -> None:
    over = DriverEnd("FINISHED", "EMR")
    assert end(s_1=over, s_2=over)
    assert not end(s_1=over, s_2=over)
    assert len(sent) == 2
