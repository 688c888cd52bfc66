"""Event logs that lie elsewhere: what is copied while they grow, and what becomes of sources that do not work."""

from __future__ import annotations

import io
import logging
import os
import sys
import time
import uuid
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import fsspec
import pytest
import zstandard

from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.directory import EVENT_LOG_DIRECTORY, OWN_EVENT_LOGS, append_private, remote_directory
from spark_lineage.launch.driver import Driver
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.log import Guard
from spark_lineage.submission import log_mirror, stored_event_log
from spark_lineage.submission.collector import Collector, DirectoryCollector, FollowedEventLogs
from spark_lineage.submission.log_mirror import CUT_OFF, LogMirror, why_not_copied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SESSIONS = Path(__file__).parents[1] / "fixtures" / "connect" / "two_sessions.zstd"
# Of 2024.
TIMED_RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"
STREAM = Path(__file__).parents[1] / "fixtures" / "event_logs" / "stream"
APPLICATION = "local-1795291862028"
LINES = STREAM.read_bytes().splitlines(keepends=True)
LOG = logging.getLogger(__name__)
GUARD = Guard(lambda: False, LOG)
RUN_ID = "spark.openlineage.applicationRunId"


def executions() -> dict[Any, Any]:
    collector = Collector()
    collector.read_event_log(STREAM)
    return collector.state.executions


WHOLE = executions()
START = (
    '{"eventTime":"2026-01-01T00:00:00Z","eventType":"START","run":{"runId":"1","facets":{"spark_applicationDetails":'
    f'{{"applicationId":"{APPLICATION}"}}}}}},"job":{{"namespace":"ns","name":"app","facets":{{"jobType":'
    '{"jobType":"APPLICATION"}}},"inputs":[],"outputs":[]}\n'
)


def framed(lines: list[bytes]) -> bytes:
    compressor = zstandard.ZstdCompressor()
    return b"".join(compressor.compress(b"".join(lines[at : at + 3])) for at in range(0, len(lines), 3))


@dataclass
class History:
    """A History Server that has one application, and says when it knows its end."""

    content: bytes | None = None
    ends: list[bool] = field(default_factory=lambda: [True])
    place: str = "http://history:18080"
    asked: list[str] = field(default_factory=list)
    error: str = ""

    def is_over(self, application_id: str) -> bool:
        self.asked.append(application_id)
        if self.content is None:
            raise OSError(self.error or "no such application")
        return self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]

    def applications_of(self, run_id: str, began: float) -> set[str]:
        return {APPLICATION} if self.content is not None else set()

    def download(self, application_id: str, stream: BinaryIO, most_bytes: int, is_over: Callable[[], bool]) -> None:
        assert len(self.content or b"") < most_bytes
        stream.write(self.content or b"")


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@dataclass
class Task:
    """What collects the logs of one launch."""

    launch: Launch
    driver: Driver
    collect: str = "auto"
    history: History | None = None

    def __post_init__(self) -> None:
        self.collector = DirectoryCollector(Path(self.launch.directory), LOG)
        self.bringing = LogMirror(
            self.launch,
            self.collect,
            self.collector,
            driver=self.driver,
            history=self.history,
            logger=LOG,
        )
        self.logs = FollowedEventLogs(self.collector, lambda _: None, self.launch, copies=self.bringing.names)

    def poll(self) -> None:
        self.bringing.poll()
        self.logs.poll()

    def finish(self, seconds: float = 60.0) -> None:
        self.bringing.finish(Deadline(seconds), is_missing=self.logs.is_missing)
        self.logs.finish(GUARD)

    @property
    def copies(self) -> Path:
        return self.collector.directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS

    @property
    def told(self) -> tuple[bool, set[str], dict[str, int]]:
        """Whether all is known, where it came from, and what is said to be wrong."""
        counts = self.collector.counts
        return self.collector.state.executions == WHOLE, counts.sources, counts.set_aside


@pytest.fixture
def store() -> Iterator[str]:
    """The URL of an empty directory that is in no directory of this machine."""
    url = f"memory://{uuid.uuid4().hex}"
    files = fsspec.filesystem("memory")
    files.makedirs(url)
    yield url
    files.rm(url, recursive=True)


@pytest.fixture
def task(tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Task]:
    monkeypatch.setattr(log_mirror, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(stored_event_log.StoredEventLog, "patience_seconds", 0.3)
    monkeypatch.setattr(stored_event_log, "_FIRST_LOOK_SECONDS", 0.0)

    def make(*places: str, known: str | None = APPLICATION, **arguments: Any) -> Task:
        directory = tmp_path / "dag" / "run" / "task" / "-1" / "launch"
        launch = Launch(
            str(directory),
            "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e",
            event_logs=places or (store,),
            deploy_mode=arguments.pop("deploy_mode", "cluster"),
            service=arguments.pop("service", ""),
        )
        return Task(launch, Driver(logged_ids=(known,) if known else ()), **arguments)

    return make


def put(url: str, content: bytes) -> None:
    fsspec.filesystem("memory").pipe_file(url, content)


def move(url: str, to: str) -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file(to, files.cat_file(url))
    files.rm_file(url)


def test_a_log_that_grows_is_copied_piece_by_piece_until_its_name_says_the_end(
    task: Callable[..., Task], store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, content, taken = task(), framed(LINES), []
    path = f"{store}/{APPLICATION}.zstd"

    def append(file: Path, pieces: list[bytes]) -> None:
        taken.extend(map(len, pieces))
        append_private(file, pieces)

    monkeypatch.setattr("spark_lineage.submission.copies.append_private", append)
    # Torn anywhere.
    for cut in range(0, len(content), len(content) // 7):
        put(f"{path}.inprogress", content[:cut])
        one.poll()
    assert 0 < one.collector.log_counts.read < len(LINES)
    put(path, content)
    fsspec.filesystem("memory").rm_file(f"{path}.inprogress")
    one.finish()
    assert one.told == (True, {"event_log"}, {})
    assert sum(taken) == len(content), "no byte is fetched twice"
    assert not one.copies.exists(), "copies go when they were read"
    assert fsspec.filesystem("memory").cat_file(path) == content


def test_the_log_of_an_application_that_the_program_began_later_comes_too(
    task: Callable[..., Task], store: str
) -> None:
    one, later = task(known="local-1"), framed(LINES)
    put(f"{store}/local-1", b"")
    one.poll()
    put(f"{store}/{APPLICATION}.zstd", later)
    one.driver.logged_ids = (*one.driver.logged_ids, APPLICATION)
    one.finish()
    assert one.told[0]


def test_copies_are_for_their_owner_alone(task: Callable[..., Task], store: str) -> None:
    one = task()
    put(f"{store}/{APPLICATION}.inprogress", LINES[0])
    one.bringing.poll()
    assert [path.stat().st_mode & 0o777 for path in (one.copies, *one.copies.iterdir())] == [0o700, 0o600]


@pytest.mark.parametrize("is_followed", [True, False])
def test_the_parts_of_a_rolling_log_are_copied_once_also_when_they_are_compacted(
    task: Callable[..., Task], store: str, is_followed: bool
) -> None:
    one, third, files = task(), len(LINES) // 3, fsspec.filesystem("memory")
    log = f"{store}/eventlog_v2_{APPLICATION}"
    parts = [LINES[:third], LINES[third : 2 * third], LINES[2 * third :]]
    poll = one.poll if is_followed else lambda: None
    put(f"{log}/appstatus_{APPLICATION}.inprogress", b"")
    put(f"{log}/events_1_{APPLICATION}.zstd", framed(parts[0])[:-9])
    poll()
    put(f"{log}/events_1_{APPLICATION}.zstd", framed(parts[0]))
    put(f"{log}/events_2_{APPLICATION}.zstd", framed(parts[1])[:300])
    poll()
    if is_followed:
        assert [path.name for path in (one.copies / f"eventlog_v2_{APPLICATION}").iterdir()] == [
            f"events_2_{APPLICATION}.zstd"
        ], "a part that was read is not kept"
    put(f"{log}/events_2_{APPLICATION}.zstd", framed(parts[1]))
    put(f"{log}/events_3_{APPLICATION}.zstd", framed(parts[2]))
    poll()
    # It stands for all before it: only who comes late needs it.
    put(f"{log}/events_2_{APPLICATION}.zstd.compact", framed(parts[0] + parts[1]))
    for number in (1, 2):
        files.rm_file(f"{log}/events_{number}_{APPLICATION}.zstd")
    move(f"{log}/appstatus_{APPLICATION}.inprogress", f"{log}/appstatus_{APPLICATION}")
    one.finish()
    assert one.told == (True, {"event_log"}, {})


def test_a_second_process_goes_on_with_the_copies_of_the_first(task: Callable[..., Task], store: str) -> None:
    content = b"".join(LINES)
    put(f"{store}/{APPLICATION}.inprogress", content[: len(content) // 2])
    task().bringing.poll()
    put(f"{store}/{APPLICATION}.inprogress", content)
    move(f"{store}/{APPLICATION}.inprogress", f"{store}/{APPLICATION}")
    again = task()
    again.finish()
    assert again.told == (True, {"event_log"}, {})
    assert again.bringing.copies.total == len(content)


def test_without_an_id_the_log_of_the_run_is_found_and_others_are_read_once(
    task: Callable[..., Task], store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = task(known=None)
    told = f'"Spark Properties":{{"{RUN_ID}":"{one.launch.application_run_id}"}}'.encode()
    ours = [LINES[0].replace(b'"Spark Properties":{}', told), *LINES[1:]]
    put(f"{store}/local-2", LINES[0])
    put(f"{store}/local-3.lz4", b"x")
    put(f"{store}/eventlog_v2_local-4/events_1_local-4", LINES[0])
    put(f"{store}/{APPLICATION}.inprogress", ours[0][:50])
    looked: list[str] = []
    run_id_of = stored_event_log.run_id_of
    monkeypatch.setattr(stored_event_log, "run_id_of", lambda path: looked.append(path.name) or run_id_of(path))
    one.poll()
    assert not one.bringing.names
    put(f"{store}/{APPLICATION}.inprogress", b"".join(ours))
    one.poll()
    move(f"{store}/{APPLICATION}.inprogress", f"{store}/{APPLICATION}")
    one.finish()
    assert one.told == (True, {"event_log"}, {})
    assert [looked.count(name) for name in ("local-2", "local-3.lz4", "events_1_local-4")] == [1, 1, 1]


@pytest.mark.parametrize("service", ["", "databricks.DatabricksAdapter"])
def test_run_of_a_service_may_have_a_log_of_each_of_its_clusters(
    service: str, task: Callable[..., Task], store: str
) -> None:
    one = task(known=None, service=service)
    told = f'"Spark Properties":{{"{RUN_ID}":"{one.launch.application_run_id}"}}'.encode()
    ours = b"".join([LINES[0].replace(b'"Spark Properties":{}', told), *LINES[1:]])
    put(f"{store}/{APPLICATION}", ours)
    put(f"{store}/local-2", LINES[0])
    one.poll()
    put(f"{store}/local-9", ours)
    one.finish()
    assert one.bringing.names == ({APPLICATION, "local-9"} if service else {APPLICATION})


def test_object_of_the_directory_itself_is_no_log(
    task: Callable[..., Task], store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = type(fsspec.filesystem("memory"))
    listed = files.ls

    def ls(self: Any, path: str, detail: bool = True, **others: Any) -> Any:
        found = listed(self, path, detail=detail, **others)
        # As S3 lists it.
        marker = [{"name": f"{path}/", "size": 0, "type": "file"}]
        return [*marker, *found] if detail and path.strip("/") == store.removeprefix("memory://") else found

    monkeypatch.setattr(files, "ls", ls)
    one = task(known=None)
    told = f'"Spark Properties":{{"{RUN_ID}":"{one.launch.application_run_id}"}}'.encode()
    put(f"{store}/{APPLICATION}", b"".join([LINES[0].replace(b'"Spark Properties":{}', told), *LINES[1:]]))
    one.finish()
    assert one.told == (True, {"event_log"}, {})


def test_logs_older_than_the_launch_are_not_looked_into(task: Callable[..., Task], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    one = task((tmp_path / "logs").as_uri(), known=None, collect="event_log")
    old = tmp_path / "logs" / "local-1"
    old.write_bytes(LINES[0])
    os.utime(old, (1, 1))
    one.finish()
    assert one.told == (False, set(), {CUT_OFF: 1})


def test_a_log_that_is_cut_off_is_said_to_be_and_the_next_source_has_the_rest(
    task: Callable[..., Task], store: str, caplog: pytest.LogCaptureFixture
) -> None:
    content = b"".join(LINES)
    history = History(zipped({APPLICATION: content}), ends=[False, True])
    one = task(history=history)
    put(f"{store}/{APPLICATION}.inprogress", content[:5000])
    words = one.bringing.described()
    with caplog.at_level(logging.INFO):
        one.finish()
    assert one.told == (True, {"event_log", "history"}, {})
    assert one.bringing.copies.total == len(content)
    waits, cut, _ = [record.getMessage() for record in caplog.records]
    assert words == (
        f"the event log is collected from where it lies ({store}) (event_log_from=auto: this machine sees no directory "
        "of it)"
    )
    assert "is without the application's end; next is the History Server (http://history:18080)" in cut
    assert waits.startswith(f"Waiting for the event log from where it lies ({store}), up to ")


def test_where_nobody_has_the_end_the_facet_says_so(task: Callable[..., Task], store: str) -> None:
    content = b"".join(LINES)
    one = task(history=History(zipped({f"{APPLICATION}.inprogress": content}), ends=[False]))
    put(f"{store}/{APPLICATION}.inprogress", content)
    one.finish(1.0)
    assert one.collector.counts.set_aside == {CUT_OFF: 1}
    assert one.collector.state.executions == WHOLE


def test_a_killed_driver_is_given_up_soon(task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_mirror, "_KILLED_SECONDS", 0.1)
    one, began = task("file:///tmp/of-the-driver", history=History(None), known=None), time.monotonic()
    one.bringing.finish(Deadline(12), is_missing=False, is_killed=True)
    assert time.monotonic() - began < 6
    assert one.collector.counts.set_aside == {CUT_OFF: 1}


@pytest.mark.parametrize("is_torn", [True, False])
def test_a_log_without_its_end_takes_back_no_gap_of_the_events(
    task: Callable[..., Task], store: str, *, is_torn: bool
) -> None:
    one = task()
    one.collector.directory.mkdir(parents=True)
    (one.collector.directory / "events.ndjson").write_text(START + START.replace("START", "COMPLETE", 1))
    one.collector.poll()
    one.collector.state.is_torn = is_torn
    one.finish(0.5)
    assert one.collector.counts.set_aside == {CUT_OFF: 1}
    assert one.collector.state.is_torn is is_torn


def test_log_below_the_id_of_a_job_is_read_to_its_last_event(task: Callable[..., Task], store: str) -> None:
    one = task(f"{store}/*/sparklogs", known=None)
    log = f"{store}/00job/sparklogs/eventlog_v2_00job"
    told = f'"Spark Properties":{{"{RUN_ID}":"{one.launch.application_run_id}"}}'.encode()
    lines = [LINES[0].replace(b'"Spark Properties":{}', told), *LINES[1:]]
    end = b'{"Event":"SparkListenerApplicationEnd","Timestamp":1735689700000}\n'
    one.poll()
    assert one.collector.counts.sources == set()
    one.driver.driver_id = "00job"
    # It is there from the beginning.
    put(f"{log}/appstatus_00job", b" \n")
    put(f"{log}/events_0_00job", b"".join(lines))
    one.bringing.finish(Deadline(1), is_missing=False)
    assert one.collector.counts.set_aside == {CUT_OFF: 1}
    one.collector.counts.set_aside.clear()
    put(f"{log}/events_1_00job", end)
    one.finish()
    assert one.told == (True, {"event_log"}, {})


def test_a_source_that_does_not_work_is_named_once_without_secrets(
    task: Callable[..., Task], store: str, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(None, error="http://history:18080/api?token=hunter2hunter2 refused")
    one = task(f"{store}/missing", history=history)
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            one.poll()
        one.finish(1.0)
    said = [record.getMessage() for record in caplog.records if "not read yet" in record.getMessage()]
    assert len(said) == 2
    assert "FileNotFoundError" in said[0]
    assert "hunter2" not in caplog.text
    why = f"FileNotFoundError: {store.removeprefix('memory:/')}/missing"
    assert one.told == (False, set(), {f"no event log is read: {why}": 1})


@pytest.mark.parametrize("is_rolling", [True, False])
def test_the_history_server_is_waited_for_until_it_knows_the_end(task: Callable[..., Task], is_rolling: bool) -> None:
    half = len(LINES) // 2
    log = f"eventlog_v2_{APPLICATION}/events_"
    files = {
        f"{log}2_{APPLICATION}.zstd": framed(LINES[half:]),
        f"{log}1_{APPLICATION}.zstd": framed(LINES[:half]),
        f"eventlog_v2_{APPLICATION}/appstatus_{APPLICATION}": b"",
    }
    history = History(zipped(files if is_rolling else {APPLICATION: b"".join(LINES)}), ends=[False, False, True])
    one = task("file:///tmp/of-the-driver", history=history, known=None)
    one.poll()
    assert not history.asked, "it is asked when the job is over"
    one.finish()
    assert one.told == (True, {"history"}, {})
    assert len(history.asked) == 3


@pytest.mark.parametrize("name", ["../../out", "/out", "eventlog_v2_x/../../out", ".hidden"])
def test_a_zip_file_leads_nowhere_else(task: Callable[..., Task], tmp_path: Path, name: str) -> None:
    one = task(collect="history", history=History(zipped({name: b"x"})))
    one.finish(0.5)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_no_source_is_asked_for_a_log_that_lies_here(task: Callable[..., Task], tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / APPLICATION).write_bytes(STREAM.read_bytes())
    history = History(zipped({}))
    one = task(str(shared), history=history)
    one.collector.directory.mkdir(parents=True)
    (one.collector.directory / "events.ndjson").write_text(START)
    one.collector.poll()
    one.poll()
    one.finish()
    assert not history.asked
    assert one.told == (True, {"directory"}, {})


def test_a_directory_that_this_machine_does_not_share_is_given_up_for_the_history_server(
    task: Callable[..., Task], tmp_path: Path
) -> None:
    one = task(str(tmp_path / "of another machine"), history=History(zipped({APPLICATION: b"".join(LINES)})))
    one.poll()
    one.finish()
    assert one.told == (True, {"history"}, {})


def test_where_the_program_turned_its_log_off_nobody_is_waited_for(task: Callable[..., Task], tmp_path: Path) -> None:
    history, began = History(None), time.monotonic()
    one = task(str(tmp_path / "ours"), history=history, deploy_mode="client")
    one.finish()
    assert time.monotonic() - began < 1
    assert (len(history.asked), one.told) == (1, (False, set(), {}))


def test_a_place_of_a_program_is_read_where_the_listener_says(task: Callable[..., Task], store: str) -> None:
    put(f"{store}/{APPLICATION}", b"".join(LINES))
    one = task("/nowhere")
    one.collector.event_log_directories[APPLICATION] = store
    one.finish()
    assert one.told == (True, {"event_log"}, {})


def test_nothing_is_copied_after_the_collector_was_closed(task: Callable[..., Task], store: str) -> None:
    put(f"{store}/{APPLICATION}", b"".join(LINES))
    one = task()
    one.collector.close()
    one.finish()
    assert not one.copies.exists()


def test_a_full_disk_is_left_with_room(
    task: Callable[..., Task], store: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("spark_lineage.launch.directory.FREE_BYTES", 2**62)
    put(f"{store}/{APPLICATION}", b"".join(LINES))
    one = task()
    with caplog.at_level(logging.INFO):
        one.finish(0.5)
    assert "is nearly full" in caplog.text
    assert not one.copies.exists()


@pytest.mark.parametrize(
    ("url", "collect", "has_history", "reason"),
    [
        ("memory://logs", "auto", False, ""),
        ("memory://logs", "directory", True, "event_log_from is directory"),
        ("oss://bucket/logs", "auto", False, "oss:// is not read here; the connection names no history_server_url"),
        ("oss://bucket/logs", "auto", True, ""),
        ("oss://bucket/logs", "event_log", True, "oss:// is not read here"),
        ("file:///tmp/spark-events", "auto", True, ""),
        ("file:///tmp/spark-events", "auto", False, "it is on the driver's machine; the connection names no"),
        ("file:///tmp/spark-events", "event_log", False, ""),
        ("memory://logs", "history", False, "the connection names no history_server_url"),
    ],
)
def test_it_is_known_beforehand_what_cannot_be_brought(url: str, collect: str, has_history: bool, reason: str) -> None:
    found = why_not_copied(url, collect, [], has_history=has_history)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


def test_hdfs_is_read_through_webhdfs_where_its_address_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ARROW_LIBHDFS_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(variable, raising=False)
    assert "webhdfs_url" in why_not_copied("hdfs://nn/logs", "event_log", [], has_history=False)
    assert not why_not_copied("hdfs://nn/logs", "event_log", ["http://nn:9870"], has_history=False)
    monkeypatch.setitem(fsspec.config.conf, "webhdfs", {"port": 9870})
    assert not why_not_copied("hdfs://nn/logs", "event_log", [], has_history=False)


def test_without_its_driver_the_reason_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Install s3fs" in why_not_copied("s3a://bucket/logs", "auto", [], has_history=False)
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    assert "[remote]" in why_not_copied("s3a://bucket/logs", "auto", [], has_history=False)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("hdfs://nn:8020/logs@home/", "hdfs://nn:8020/logs@home"),
        ("s3a://KEY:hunter2/x@bucket/logs", "s3a://bucket/logs"),
        ("abfss://logs@account.dfs.core.windows.net/a?sig=hunter2", "abfss://logs@account.dfs.core.windows.net/a"),
        ("/logs", None),
        ("file:///tmp/spark-events", None),
        ("hdfs://nn/${user.name}", None),
        ("relative", None),
    ],
)
def test_the_url_of_a_directory_is_without_a_login(given: str, url: str | None) -> None:
    assert remote_directory(given) == url


def test_of_the_log_of_a_server_parts_from_before_the_task_are_not_copied(
    tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_event_log, "_FIRST_LOOK_SECONDS", 0.0)
    session, server = "61c71826-e088-461d-9994-aa73bd3d5043", "local-1795895442308"
    log = zstandard.ZstdDecompressor().decompressobj().decompress(SESSIONS.read_bytes()).splitlines(keepends=True)
    rolling = f"{store}/eventlog_v2_{server}"
    noise = framed([b'{"Event":"Other","x":"%s"}\n' % os.urandom(100_000).hex().encode() for _ in range(30)])
    parts = [framed(log[:3]) + noise, noise, framed(log[3:20])]
    for number, content in enumerate(parts, 1):
        path = f"{rolling}/events_{number}_{server}.zstd"
        put(path, content)
        if number < 3:
            fsspec.filesystem("memory").store[path.removeprefix("memory:/")].created = datetime(2020, 1, 1, tzinfo=UTC)
    put(f"{rolling}/appstatus_{server}.inprogress", b"")
    put(f"{store}/{APPLICATION}", framed(LINES))
    launch = Launch(str(tmp_path / "dag" / "run" / "task" / "-1" / "launch"), TIMED_RUN_ID, session_id=session)
    driver = Driver(application_id=server, logged_ids=(server,), event_logs=(store,))
    collector = DirectoryCollector(Path(launch.directory), LOG)
    mirror = LogMirror(launch, "auto", collector, driver=driver, history=None, logger=LOG)
    rest = iter(log[20:])

    def pull() -> None:
        # The server writes a line whenever it is asked.
        if line := next(rest, b""):
            files = fsspec.filesystem("memory")
            path = f"{rolling}/events_3_{server}.zstd"
            put(path, files.cat_file(path) + framed([line]))
        mirror.poll()

    logs = FollowedEventLogs(collector, lambda _: None, launch, copies=mirror.names, pull=pull)
    mirror.poll()
    logs.poll()
    mirror.finish(Deadline(60.0), is_missing=logs.is_missing)
    logs.finish(GUARD)

    outputs = [output.dataset.name for one in collector.state.executions.values() for output in one.outputs]
    assert outputs == ["/area/out1", "/area/agg1"]
    assert collector.application_ids == {server}
    assert (collector.counts.set_aside, collector.log_counts.set_aside) == ({}, {})
    assert mirror.copies.total < stored_event_log.HEAD_OF_LOG_BYTES + 100_000 < sum(map(len, parts)) / 2
    assert next(rest, b"").startswith(b'{"Event":"org.apache.spark.sql.execution.ui'), (
        "no more than the session is read"
    )


@pytest.mark.parametrize(
    ("given", "collect", "place"),
    [
        ("{here}", "auto", "{here}"),
        ("file:{here}", "directory", "{here}"),
        ("{here}", "event_log", "file://{here}"),
        ("memory://logs/", "auto", "memory://logs"),
        ("", "auto", "writes no event log"),
        ("file:/nowhere", "auto", "it is on the driver's machine"),
        ("memory://logs", "directory", "event_log_from is directory"),
        ("memory://logs", "history", "the History Server gives a log as a whole"),
        ("hdfs://nn/logs", "auto", "webhdfs_url"),
        ("logs", "auto", "is no directory"),
    ],
)
def test_log_of_a_server_is_read_where_it_can_be_or_is_said_not_to(
    tmp_path: Path, given: str, collect: str, place: str
) -> None:
    wanted = place.format(here=tmp_path)
    if " " not in place and place != "webhdfs_url":
        assert log_mirror.server_log_directory(given.format(here=tmp_path), collect, ()) == wanted
        return
    with pytest.raises(OSError, match="Set spark") as raised:
        log_mirror.server_log_directory(given, collect, ())
    assert wanted in str(raised.value)


class Bucket(type(fsspec.filesystem("memory"))):  # type: ignore[misc]
    """The driver of an object store, which keeps listings as those of S3 and GCS do."""

    protocol = "s3"
    root_marker = ""

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        found = self.dircache[path] if path in self.dircache else super().ls(path, detail=True, **options)
        self.dircache[path] = found
        return [one if detail else one["name"] for one in found]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        path = path.removeprefix("s3://").strip("/")
        return f"/{path}" if path else ""


@pytest.fixture
def opened_with(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """An object store below ``s3://`` and a provider of it; the value has the connections that were used."""
    used: list[str | None] = []

    def get_fs(conn_id: str | None, _: Any) -> Any:
        used.append(conn_id)
        return Bucket()

    monkeypatch.setattr("airflow.sdk.io.fs._register_filesystems", lambda: {"s3": get_fs})
    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "s3", Bucket)
    return used


@pytest.mark.parametrize(
    ("place", "known", "used"),
    [
        ("s3a://my_aws@{}/logs", ["MY_AWS", "AWS_DEFAULT"], ["my_aws"]),
        ("s3://{}/logs", ["AWS_DEFAULT"], ["aws_default"]),
        ("s3n://{}/logs", [], []),
    ],
)
def test_an_object_store_is_read_with_a_connection_of_airflow(
    task: Callable[..., Task],
    store: str,
    opened_with: list[str | None],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    known: list[str],
    used: list[str],
) -> None:
    for name in known:
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", "aws://")
    bucket = store.removeprefix("memory://")
    fsspec.filesystem("memory").makedirs(f"{store}/logs")
    one = task(place.format(bucket))
    one.poll()
    put(f"{store}/logs/{APPLICATION}.zstd", framed(LINES))
    one.finish()
    assert one.told == (True, {"event_log"}, {})
    assert opened_with == used


def test_a_directory_that_the_driver_reports_is_read_with_the_connection_that_is_named(
    task: Callable[..., Task], store: str, opened_with: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MY_AWS", "aws://")
    bucket = store.removeprefix("memory://")
    one = task(f"s3a://my_aws@{bucket}")
    one.collector.event_log_directories[APPLICATION] = f"s3a://{bucket}/"
    put(f"{store}/{APPLICATION}.zstd", framed(LINES))
    one.finish()
    assert one.told == (True, {"event_log"}, {})
    assert opened_with == ["my_aws"]


@pytest.mark.parametrize(("scheme", "name"), [("s3a", "nobody"), ("gs", "my_aws")])
def test_a_connection_that_cannot_be_used_is_named_with_the_reason(
    opened_with: list[str | None], monkeypatch: pytest.MonkeyPatch, scheme: str, name: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MY_AWS", "aws://")
    with pytest.raises(stored_event_log.SourceError) as raised:
        stored_event_log.open_file_system(f"{scheme}://{name}@bucket/logs", ())
    assert str(raised.value) in {
        "the connection nobody cannot be used: The conn_id `nobody` isn't defined",
        "the connection my_aws cannot be used: no provider with a file system for gs:// is installed",
    }
    assert opened_with == []


def test_a_directory_is_missing_only_where_its_store_says_so(store: str) -> None:
    files = fsspec.filesystem("memory")
    files.makedirs(f"{store}/logs")
    put(f"{store}/a_file", b"")
    found = {name: stored_event_log.is_missing(f"{store}/{name}", ()) for name in ("logs", "gone", "a_file")}
    assert found == {"logs": False, "gone": True, "a_file": True}
    assert not stored_event_log.is_missing("s3a://nobody@bucket/logs", ()), "nobody knows"
