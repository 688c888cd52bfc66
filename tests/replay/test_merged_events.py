from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from spark_lineage.deliver.outgoing import Outgoing, append_end, append_event, stored_end
from spark_lineage.launch.directory import RUN_EVENTS_FILE
from spark_lineage.launch.line import LineCounts
from spark_lineage.replay.merged_events import KeptEventsError, digest_of, events_in

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
RUN_ID = "0190e6e0-0000-7000-8000-000000000000"
COUNT = itertools.count()


def event(day: int = 1, **values: Any) -> bytes:
    made = {
        "eventType": "COMPLETE",
        "eventTime": f"2026-01-{day:02}T00:00:00Z",
        "producer": "https://example.com",
        "run": {"runId": RUN_ID},
        "job": {"namespace": "shop", "name": "etl.load"},
        "number": next(COUNT),
        **values,
    }
    return json.dumps(made).encode()


def contents(path: Path, **values: Any) -> list[bytes]:
    return [each.content for each in events_in([str(path)], **values)]


def line_at(path: Path, offset: int) -> bytes:
    return path.read_bytes()[offset:].split(b"\n")[0].strip()


def test_events_are_read_as_they_were_kept(tmp_path: Path) -> None:
    kept = [event(3), event(1), event(2, eventType=None, name="é")]
    for each in kept:
        (tmp_path / "launch").mkdir(parents=True, exist_ok=True)
        append_event(tmp_path / "launch", each)
    found = list(events_in([str(tmp_path)]))
    assert [each.content for each in found] == kept
    assert [each.event_type for each in found] == ["COMPLETE", "COMPLETE", None]
    assert found[0].time == datetime(2026, 1, 3, tzinfo=UTC)
    assert found[0].run_id == RUN_ID
    assert found[0].job == "shop etl.load"
    assert [line_at(each.path, each.offset) for each in found] == kept


def test_they_are_for_their_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "launch").mkdir(parents=True, exist_ok=True)
    append_event(tmp_path / "launch", event())
    assert stat.S_IMODE((tmp_path / "launch" / RUN_EVENTS_FILE).stat().st_mode) == 0o600


def test_a_content_of_several_lines_is_kept_on_one(tmp_path: Path) -> None:
    append_event(tmp_path, json.dumps(json.loads(event(number=1)), indent=2).encode().replace(b"\n", b"\r\n"))
    (found,) = contents(tmp_path)
    assert json.loads(found) == json.loads(event(number=1))


def test_what_follows_a_torn_line_is_whole(tmp_path: Path) -> None:
    first, second = event(), event()
    append_event(tmp_path, first)
    with (tmp_path / RUN_EVENTS_FILE).open("ab") as stream:
        stream.write(event()[:40])
    append_event(tmp_path, second)
    counts = LineCounts()
    assert contents(tmp_path, counts=counts) == [first, second]
    assert counts.read == 2
    assert counts.set_aside == {"not JSON (torn?)": 1}


def test_of_a_full_disk_nothing_is_left(tmp_path: Path) -> None:
    first = event()
    append_event(tmp_path, first)
    size = (tmp_path / RUN_EVENTS_FILE).stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        with pytest.raises(OSError, match="File too large"):
            append_event(tmp_path, event())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (tmp_path / RUN_EVENTS_FILE).stat().st_size == size
    assert contents(tmp_path) == [first]


WRITER = """
import pathlib, sys
from spark_lineage.deliver.outgoing import append_event
content = sys.stdin.buffer.read()
for _ in range(200):
    append_event(pathlib.Path(sys.argv[1]), content)
    print("kept", flush=True)
"""


def test_processes_that_are_killed_tear_no_line_of_another(tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(content := event(number="x" * 100_000))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(2):
        with (
            (tmp_path / "content").open("rb") as first,
            (tmp_path / "content").open("rb") as second,
            writer(first, tmp_path, env) as one,
            writer(second, tmp_path, env) as other,
        ):
            for process in (one, other):
                assert process.stdout is not None
                assert process.stdout.readline() == b"kept\n"
            one.kill()
            other.kill()
    append_event(tmp_path, content)
    counts = LineCounts()
    found = contents(tmp_path / RUN_EVENTS_FILE, counts=counts)
    assert len(found) == counts.read >= 5
    assert set(found) == {content}
    assert counts.set_aside_total <= 4


def writer(content: BinaryIO, directory: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(directory)]
    return subprocess.Popen(command, env=env, stdin=content, stdout=subprocess.PIPE)


def test_only_events_of_a_time_or_later(tmp_path: Path) -> None:
    kept = [event(day) for day in (1, 2, 3)]
    for each in kept:
        append_event(tmp_path, each)
    counts = LineCounts()
    assert contents(tmp_path, since=datetime(2026, 1, 2, tzinfo=UTC), counts=counts) == kept[1:]
    assert counts.read == 3


def test_files_directories_and_globs_each_file_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "deep" / name).mkdir(parents=True, exist_ok=True)
        append_event(tmp_path / "deep" / name, event())
    (tmp_path / "deep" / "a" / "openlineage-events.ndjson").write_text("the listener's")
    (tmp_path / "transport.ndjson").write_bytes(event())
    file = tmp_path / "deep" / "a" / RUN_EVENTS_FILE
    assert len(contents(tmp_path / "deep")) == 2
    assert len(contents(tmp_path / "*.ndjson")) == 1
    assert len(contents(tmp_path / "**" / "*.*")) == 3
    assert len(list(events_in([str(file), str(tmp_path / "deep"), f"{file.parent}/../a/{RUN_EVENTS_FILE}"]))) == 2


def test_a_directory_of_other_ndjson_files(tmp_path: Path) -> None:
    (tmp_path / "merged.ndjson").write_bytes(event() + b"\n\n" + event())
    (tmp_path / "sent.jsonl").write_bytes(event())
    assert len(contents(tmp_path)) == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"garbage", "not JSON (torn?)"),
        (b"{}", "not a RunEvent"),
        (b"[]", "not JSON (torn?)"),
        (b'{"password": "hunter2"}', "not a RunEvent"),
        (b"\xff", "not JSON (torn?)"),
    ],
)
def test_other_lines_are_set_aside(line: bytes, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = event()
    file = tmp_path / "merged.ndjson"
    file.write_bytes(line + b"\n" + kept + b"\n")
    counts = LineCounts()
    assert contents(file, counts=counts) == [kept]
    assert counts.set_aside == {reason: 1}
    assert f"{file}:1:" in caplog.text
    assert "hunter2" not in caplog.text


def test_an_oversized_line_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("spark_lineage.replay.merged_events.MAX_LINE_BYTES", 300)
    first, last = event(number=1), event(number=2)
    file = tmp_path / "merged.ndjson"
    lines = [b"x" * 301, first, b"x" * 601, b"x" * 5000, last.ljust(300), b"x" * 1000]
    file.write_bytes(b"\n".join(lines))
    counts = LineCounts()
    found = list(events_in([str(file)], counts=counts))
    assert [each.content for each in found] == [first, last]
    assert [line_at(each.path, each.offset) for each in found] == [first, last]
    assert counts.set_aside == {"oversized": 4}
    assert f"{file}:4:" in caplog.text


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
def test_files_of_the_listener_are_to_be_merged_first(name: str) -> None:
    with pytest.raises(KeptEventsError, match=f"merge them first .spark-lineage merge .*{name}"):
        contents(FIXTURES / name)


@pytest.mark.parametrize(
    ("made", "told"),
    [(None, "there is no file"), ("directory", "no run-events.jsonl and no NDJSON file in"), ("pipe", "is not a file")],
)
def test_paths_where_nothing_is(made: str | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "asked"
    if made == "directory":
        path.mkdir()
    elif made == "pipe":
        os.mkfifo(path)
    with pytest.raises(KeptEventsError, match=told):
        contents(path)


def test_content_is_the_same_however_it_is_spelled(tmp_path: Path) -> None:
    spellings = [
        event(number="é"),
        json.dumps(json.loads(event(number="é")), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode(),
    ]
    other, broken = event(number="e"), event(number="\ud800")
    for each in (*spellings, other, broken, broken):
        append_event(tmp_path, each)
    found = list(events_in([str(tmp_path)]))
    digests = [each.digest for each in found]
    assert digests == [digest_of(each.content) for each in found]
    assert digests[0] == digests[1]
    assert digests[3] == digests[4]
    assert len(set(digests)) == 3


def test_a_run_has_one_end_whoever_tells_it(tmp_path: Path) -> None:
    start, first, second = event(eventType="START"), event(eventType="FAIL"), event(eventType="COMPLETE")
    append_event(tmp_path, start)
    assert stored_end(tmp_path, RUN_ID) is None
    assert append_end(tmp_path, Outgoing.of(first)).body == first
    assert append_end(tmp_path, Outgoing.of(second)).body == first
    assert stored_end(tmp_path, RUN_ID) == Outgoing.of(first)
    other = event(run={"runId": RUN_ID.replace("e6e0", "e6e1")})
    assert append_end(tmp_path, Outgoing.of(other)).body == other
    assert contents(tmp_path) == [start, first, other]


def test_processes_at_once_tell_one_end(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys; from spark_lineage.deliver.outgoing import append_end; "
        "from spark_lineage.deliver.outgoing import Outgoing; "
        "sys.stdout.write(append_end(pathlib.Path(sys.argv[1]), Outgoing.of(sys.argv[2].encode())).body.decode())"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), event().decode()], env=env, stdout=subprocess.PIPE
        )
        for _ in range(4)
    ]
    assert len({process.communicate(timeout=60)[0] for process in started}) == 1
    assert len(contents(tmp_path)) == 1


def archive_of(out: Path, days: dict[str, str]) -> None:
    """Make what the archive job leaves, with a version that no pointer names."""
    pointer = {"format": 1, "version": "v2", "days": days}
    (out / "_current.json").write_text(json.dumps(pointer))
    for day in (1, 2, 3):
        for version in ("v1", "v2"):
            directory = out / "events" / f"version={version}" / f"day=2026-01-{day:02}"
            directory.mkdir(parents=True)
            (directory / "part-0.txt").write_bytes(event(day, version=version) + b"\n")
            (directory / ".part-0.txt.crc").write_bytes(b"crc")


def versions(out: Path, **values: Any) -> list[tuple[int, str]]:
    found = [json.loads(each) for each in contents(out, **values)]
    return [(int(each["eventTime"][8:10]), each["version"]) for each in found]


def test_of_an_archive_what_the_pointer_names(tmp_path: Path) -> None:
    archive_of(tmp_path, {"2026-01-03": "v2", "2026-01-01": "v1"})
    assert versions(tmp_path) == [(1, "v1"), (3, "v2")]
    counts = LineCounts()
    assert versions(tmp_path, since=datetime(2026, 1, 2, tzinfo=UTC), counts=counts) == [(3, "v2")]
    assert counts.read == 1
    # Nothing is new, which is no mistake of whoever asks.
    assert versions(tmp_path, since=datetime(2026, 2, 1, tzinfo=UTC), counts=counts) == []
    assert counts.read == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"format": 1, "version": ""}', "no event in the archive .* yet"),
        ('{"format": 2}', "that this version knows .Invalid value 2"),
        ("{", "is no _current.json of an archive"),
    ],
)
def test_an_archive_that_gives_nothing(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "_current.json").write_text(content)
    with pytest.raises(KeptEventsError, match=told):
        contents(tmp_path)
