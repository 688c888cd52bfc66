"""What a spool keeps, in which order, and what is no news."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.deliver import spool as module
from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing, SpoolError
from spark_lineage.deliver.spool import Spool
from spark_lineage.settings.places import outbox_directory

RUN = "0190a5b2-7c1e-7d5f-9d4b-{:012x}"


def put(spool: Spool, *contents: bytes) -> list[bool]:
    return [spool.put(Outgoing.of(content)) is not None for content in contents]


def types(spool: Spool) -> list[str]:
    return [entry.event_type for entry in spool.waiting()]


def refuse_all(spool: Spool) -> None:
    for entry in spool.waiting():
        spool.refuse(entry, "422 no schemaURL")


def test_outbox_before_an_event_makes_nothing(outbox: Outbox) -> None:
    assert outbox.destinations() == []
    assert outbox.spool("marquez").waiting() == []
    assert not outbox.directory.exists()


def test_put_an_event_keeps_its_bytes_for_the_owner_alone(spool: Spool, event: Any) -> None:
    content = event(0, ours={"käse": ["\U0001f9c0", 0, False]})
    put(spool, content)
    (entry,) = spool.waiting()
    place = spool.directory / entry.name
    assert spool.read(entry) == place.read_bytes() == content
    assert place.stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (spool.directory, spool.directory.parent)} == {0o700}
    assert spool.job_of(entry) == "airflow dag.task"


def test_waiting_returns_events_as_they_were_put(spool: Spool, event: Any) -> None:
    kinds = ("START", "RUNNING", "COMPLETE")
    put(spool, *(event(run, kind, second) for second, kind in enumerate(kinds) for run in (0, 1)))
    assert types(spool) == ["START", "START", "RUNNING", "RUNNING", "COMPLETE", "COMPLETE"]


@pytest.mark.parametrize(
    "content",
    [
        {"job": {"namespace": "n", "name": "j"}, "outputs": [{"namespace": "n", "name": "d"}]},
        {"dataset": {"namespace": "n", "name": "d", "facets": {}}},
    ],
)
def test_put_an_event_without_a_run_keeps_each(spool: Spool, content: dict[str, Any]) -> None:
    event = json.dumps({"eventTime": "2024-01-31T12:00:00Z", "producer": "p", "schemaURL": "s", **content}).encode()
    assert put(spool, event, event) == [True, True]
    assert len(spool.waiting()) == 2


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"run":{},"job":{"namespace":"n","name":"j"}}']
)
def test_outgoing_of_no_event_is_an_error(content: bytes) -> None:
    with pytest.raises(SpoolError, match="not an event of OpenLineage"):
        Outgoing.of(content)


@pytest.mark.parametrize("run_id", ["../../elsewhere", "a/b", "x" * 300, ".", "ü"])
def test_put_a_strange_run_id_stays_in_the_directory(spool: Spool, event: Any, run_id: str) -> None:
    content = json.loads(event(0)) | {"run": {"runId": run_id}, "eventType": "odd/type"}
    assert put(spool, json.dumps(content).encode()) == [True]
    (entry,) = spool.waiting()
    assert json.loads(spool.read(entry) or b"")["run"]["runId"] == run_id
    assert {path.name for path in spool.directory.parent.iterdir()} == {"marquez"}


def test_put_a_run_begins_once_until_it_ends(spool: Spool, event: Any) -> None:
    """A task that was deferred has another START with the same run id, and Marquez drops its edges at each."""
    assert put(spool, event(0, "START", 1), event(0, "START", 2)) == [True, False]
    assert spool.run(RUN.format(0)).is_open
    assert put(spool, event(0, "FAIL", 4)) == [True]
    assert spool.run(RUN.format(0)).has_ended
    # That of a task which was cleared, and not the first one, which a process was slow to put.
    assert put(spool, event(0, "START", 1), event(0, "START", 5)) == [False, True]


def test_put_after_an_end_without_a_start_nothing_follows(spool: Spool, event: Any) -> None:
    assert put(spool, event(0, "COMPLETE", 1), event(0, "START", 2), event(0, "RUNNING", 3)) == [True, False, False]


def test_put_a_second_end_is_kept_where_it_says_more(spool: Spool, event: Any) -> None:
    """A scheduler that was killed ends a DAG run again; a worker that was slow has the lineage."""
    put(spool, event(0, "START", 1))
    more = event(0, "FAIL", 6, inputs=[{"namespace": "s3://lake", "name": "a"}])
    ends = event(0, "COMPLETE", 2), event(0, "COMPLETE", 3), event(0, "FAIL", 5), event(0, "FAIL", 5), more
    assert put(spool, *ends) == [True, False, True, False, True]
    assert put(spool, event(0, "FAIL", 7, ours="x" * 500)) == [False]


def test_put_with_a_clock_that_goes_back_keeps_the_order_of_the_run(
    spool: Spool, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Behind(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) - timedelta(days=8)

    put(spool, event(0, "START", 1))
    monkeypatch.setattr(module, "datetime", Behind)
    assert put(spool, event(0, "RUNNING", 2), event(0, "COMPLETE", 3)) == [True, True]
    assert types(spool) == ["START", "RUNNING", "COMPLETE"]


def test_put_a_start_that_an_end_overtakes_is_no_news(
    spool: Spool, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process puts the end when this one has seen that nothing was put of the run."""
    write_new = module.write_new

    def overtaken(path: Path, content: bytes) -> None:
        monkeypatch.setattr(module, "write_new", write_new)
        assert put(Spool(spool.directory), event(0, "COMPLETE", 2)) == [True]
        write_new(path, content)

    monkeypatch.setattr(module, "write_new", overtaken)
    assert put(spool, event(0, "START", 1)) == [False]
    assert types(spool) == ["COMPLETE"]
    assert spool.run(RUN.format(0)).has_ended


def test_put_an_event_that_cannot_be_kept_is_news_the_next_time(
    spool: Spool, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(place: Path) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    for kind in ("START", "COMPLETE"):
        with monkeypatch.context() as broken:
            broken.setattr(module, "_sync", fail)
            with pytest.raises(SpoolError, match="the disk is broken"):
                put(spool, event(0, kind))
        assert put(spool, event(0, kind)) == [True]
    assert types(spool) == ["START", "COMPLETE"]


def test_refuse_keeps_the_event_and_the_reason(spool: Spool, event: Any) -> None:
    put(spool, event())
    refuse_all(spool)
    (entry,) = spool.dead()
    assert (spool.why(entry), spool.outcome(entry.name), spool.read(entry)) == ("422 no schemaURL", "refused", event())
    assert spool.waiting() == []


def test_refuse_where_the_reason_cannot_be_kept_leaves_the_event_where_it_is(spool: Spool, event: Any) -> None:
    put(spool, event())
    (entry,) = spool.waiting()
    (spool.directory / "dead" / f"{entry.name}.why").mkdir(parents=True)
    with pytest.raises(SpoolError):
        spool.refuse(entry, "422")
    assert (spool.waiting(), spool.dead()) == ([entry], [])


def test_retry_puts_a_dead_letter_into_its_old_place(spool: Spool, event: Any) -> None:
    put(spool, event(0, "START"))
    refuse_all(spool)
    put(spool, event(0, "COMPLETE", 1))
    (refused,) = spool.dead()
    assert spool.retry([refused]) == [refused]
    assert types(spool) == ["START", "COMPLETE"]
    assert spool.dead() == []
    assert spool.why(refused) == ""


def test_retry_of_what_would_open_an_ended_run_removes_it(spool: Spool, event: Any) -> None:
    put(spool, event(0, "START"))
    refuse_all(spool)
    put(spool, event(0, "COMPLETE", 1))
    (end,) = spool.waiting()
    spool.remove(end)
    assert spool.retry(spool.dead()) == []
    assert spool.waiting() == spool.dead() == []


def test_read_of_a_torn_file_is_an_error(spool: Spool, event: Any) -> None:
    put(spool, event())
    (entry,) = spool.waiting()
    os.truncate(spool.directory / entry.name, 20)
    with pytest.raises(SpoolError, match=r"has 20 bytes, and was put with \d+"):
        spool.read(entry)


class TestFull:
    """What goes where there is no room."""

    def test_put_at_the_bound_drops_running_events_then_dead_letters_then_nothing(
        self, tmp_path: Path, event: Any
    ) -> None:
        spool = Spool(tmp_path / "s", max_bytes=4 * 4096)
        put(spool, event(0, "COMPLETE", 1))
        refuse_all(spool)
        put(spool, event(1, "START", 2), event(1, "RUNNING", 3), event(2, "START", 4))
        spool.count()
        put(spool, event(1, "COMPLETE", 5))
        assert types(spool) == ["START", "START", "COMPLETE"]
        assert len(spool.dead()) == 1
        spool.count()
        put(spool, event(2, "COMPLETE", 6))
        assert spool.dead() == []
        spool.count()
        kept = types(spool)
        with pytest.raises(SpoolError, match="outbox flush"):
            put(spool, event(3, "COMPLETE", 7))
        assert types(spool) == kept == ["START", "START", "COMPLETE", "COMPLETE"]
        assert not spool.run(RUN.format(3)).has_ended

    def test_put_on_a_disk_that_is_nearly_full_is_an_error(
        self, spool: Spool, event: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "FREE_BYTES", 1 << 60)
        with pytest.raises(SpoolError, match="nearly full: free some space"):
            put(spool, event())
        assert spool.waiting() == []


def test_put_where_nothing_may_be_written_is_an_error_with_advice(tmp_path: Path, event: Any) -> None:
    (tmp_path / "outbox").write_text("a file")
    with pytest.raises(SpoolError, match="cannot be used"):
        put(Outbox(tmp_path / "outbox").spool("marquez"), event())


def test_put_a_start_whose_time_has_a_comma_is_kept_once(spool: Spool, event: Any) -> None:
    start = Outgoing.of(event(0).replace(b".000Z", b",000Z"))
    assert spool.put(start)
    assert spool.put(start) is None


def test_retry_of_a_run_with_any_id_finds_its_end(spool: Spool, event: Any) -> None:
    start, end = (event(0, kind, at).replace(b"0190a5b2", b"a%/b") for at, kind in enumerate(("START", "COMPLETE")))
    put(spool, start, end)
    first, last = spool.waiting()
    spool.refuse(first, "no")
    spool.remove(last)
    assert spool.retry(spool.dead()) == []


def test_put_what_is_no_news_on_a_full_disk_is_no_news(
    spool: Spool, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(spool, event(0, "COMPLETE"))
    monkeypatch.setattr("spark_lineage.deliver.spool.FREE_BYTES", 1 << 60)
    # Else its task would send it past the spool, after the end.
    assert spool.put(Outgoing.of(event(0, "RUNNING", 1))) is None


def test_prune_forgets_runs_that_ended_long_ago_and_files_that_were_never_renamed(
    spool: Spool, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(spool, event(0, "COMPLETE"), event(1, "START"), event(2, "COMPLETE"))
    old = (datetime.now(UTC) - timedelta(days=3)).timestamp()
    for number in (0, 1):
        os.utime(spool.directory / "runs" / RUN.format(number), (old, old), follow_symlinks=False)
    part = spool.directory / ".x.json.1.part"
    part.write_text("torn")
    os.utime(part, (old, old))
    monkeypatch.setattr("spark_lineage.deliver.spool._REMEMBERED_RUNS", 1)
    spool.prune()
    assert [spool.run(RUN.format(number)).event_type for number in range(3)] == ["", "START", "COMPLETE"]
    assert not part.exists()


def test_outbox_directory_is_that_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", "/home/airflow")
    assert str(outbox_directory("")) == f"/home/airflow/spark_lineage_outbox/{os.getuid()}"
    assert str(outbox_directory("/mnt/outbox")) == f"/mnt/outbox/{os.getuid()}"
    with pytest.raises(ValueError, match="not an absolute path"):
        outbox_directory("outbox")
