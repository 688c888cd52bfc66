"""Several jobs that go on when their task has ended: each has an end of its own, sent when all are over."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from spark_lineage.launch.directory import LAUNCH_FILE
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import STORE_KEY, Launch, Part, TaskKey, read_launch, storable, store_launch
from spark_lineage.launch.stores import WorkerStore
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

_DAY, _BEGAN = 24 * 3600.0, 1_000_000.0


class Kept(WorkerStore):
    """Airflow's task state store, as JSON in memory."""

    def __init__(self, root: Path) -> None:
        (file,) = root.rglob(LAUNCH_FILE)
        launch = read_launch(file.parent)
        assert launch is not None
        self.content = {STORE_KEY: storable(launch)}
        super().__init__(SimpleNamespace(get=self.content.get, set=self.content.__setitem__))


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

    def end(seen_at: float = 0.0, store: Any = None, **ends: DriverEnd | Exception | None) -> bool:
        def service_end(one: Launch) -> DriverEnd | None:
            end = ends[str(one.external_id).replace("-", "_")]
            if isinstance(end, Exception):
                raise end
            return end

        monkeypatch.setattr(closing, "service_end", service_end)
        airflow: Any = SimpleNamespace(task=None)
        known = store.get() if store is not None else None
        return closing.end_child(ChildEnd(TaskKey("d", "r", "t"), known or launch, seen_at=seen_at), airflow, store)

    store_launch(None, launch)

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


def test_service_that_is_gone_for_days_ends_the_jobs_by_their_logs(
    end: Callable[..., bool], sent: list[Any], tmp_path: Path
) -> None:
    store, away = Kept(tmp_path), ConnectionError("no route to password=hunter2")
    for seen_at in (_BEGAN, _BEGAN + 2.9 * _DAY):
        with pytest.raises(ConnectionError):
            end(seen_at, store, s_1=away, s_2=away)
    assert sent == []
    assert end(_BEGAN + 3.1 * _DAY, store, s_1=away, s_2=away)
    assert [one.eventType.value for one in sent] == ["COMPLETE", "COMPLETE"]
    transitions = str(sent[0].run.facets["sparkLineage_status"])
    assert "has not answered for 3 days" in transitions
    assert "hunter2" not in transitions


def test_service_that_answers_again_has_its_days_anew(end: Callable[..., bool], tmp_path: Path) -> None:
    store, away = Kept(tmp_path), ConnectionError("no route")
    with pytest.raises(ConnectionError):
        end(_BEGAN, store, s_1=away, s_2=away)
    assert not end(_BEGAN + _DAY, store, s_1=None, s_2=None)
    with pytest.raises(ConnectionError):
        end(_BEGAN + 4 * _DAY, store, s_1=away, s_2=away)


def test_end_of_another_application_with_the_same_id_is_not_believed(end: Callable[..., bool], sent: list[Any]) -> None:
    other = DriverEnd("FAILED", "Livy", "the batch is dead", "application_9_0009")
    assert end(s_1=other, s_2=DriverEnd("FINISHED", "Livy"))
    assert [one.eventType.value for one in sent] == ["COMPLETE", "COMPLETE"]
    assert "its id is that of application_9_0009 by now" in str(sent[0].run.facets["sparkLineage_status"])
