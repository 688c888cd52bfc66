from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.deliver.outbox.database import Database, _after_fork, _before_fork
from spark_lineage.deliver.outbox.outbox import Delivered, Outbox, OutboxError
from spark_lineage.deliver.outbox.schema import journal_mode, set_aside

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DESTINATION = "marquez"


def fill(directory: Path, contents: list[bytes]) -> Path:
    """Fill an outbox, all of which is in its file then."""
    outbox = Outbox(directory)
    for content in contents:
        outbox.put(DESTINATION, content)
    outbox.close()
    return directory / "outbox.db"


def test_only_its_owner_may_read_it(tmp_path: Path, event: Any) -> None:
    old = os.umask(0)
    try:
        outbox = Outbox(tmp_path / "made" / "outbox")
        outbox.put(DESTINATION, event())
    finally:
        os.umask(old)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in outbox.directory.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"outbox.db", "outbox.db-wal", "outbox.lock"} <= modes.keys()
    assert stat.S_IMODE(outbox.directory.stat().st_mode) == 0o700
    outbox.close()


def test_a_put_is_synced(tmp_path: Path, backend: Any, event: Any) -> None:
    outbox = Outbox(tmp_path)
    outbox.put(DESTINATION, event())

    def modes(connection: sqlite3.Connection) -> tuple[Any, Any]:
        return tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous"))

    normal, full = 1, 2
    assert outbox._database._run(modes) == ("wal", full)
    # What was sent is removed without that, and does not change what follows.
    outbox.deliver([DESTINATION], backend.open, 20)
    assert outbox._database._run(modes) == ("wal", normal)
    outbox.put(DESTINATION, event(1))
    assert outbox._database._run(modes) == ("wal", full)
    outbox.close()


@pytest.mark.parametrize(
    ("file_system", "mode"),
    [
        ("ext4", "WAL"),
        ("xfs", "WAL"),
        ("overlay", "WAL"),
        ("", "WAL"),
        ("nfs4", "TRUNCATE"),
        ("fuse.sshfs", "TRUNCATE"),
    ],
)
def test_wal_is_for_local_file_systems(file_system: str, mode: str) -> None:
    assert journal_mode(file_system) == mode


def test_it_works_without_wal(tmp_path: Path, backend: Any, event: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_lineage.deliver.outbox.schema.file_system_of", lambda _: "nfs")
    outbox = Outbox(tmp_path)
    outbox.put(DESTINATION, event())
    assert not (tmp_path / "outbox.db-wal").exists()
    assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(sent=1)
    outbox.close()


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1000)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def scribbled(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xaa" * 3 * 4096)


@pytest.mark.parametrize("broken", [garbage, cut, scribbled])
def test_a_broken_file_is_set_aside_and_what_can_be_read_of_it_is_kept(
    tmp_path: Path, backend: Any, event: Any, logged: pytest.LogCaptureFixture, broken: Callable[[Path], None]
) -> None:
    contents = [event(run, text="x" * 2000) for run in range(40)]
    path = fill(tmp_path, contents)
    broken(path)
    outbox = Outbox(tmp_path)
    outbox.put(DESTINATION, event(99))
    delivered = outbox.deliver([DESTINATION], backend.open, 30)
    # What is broken may be found only when it is read.
    delivered = outbox.deliver([DESTINATION], backend.open, 30) if delivered.waiting else delivered
    assert delivered.waiting == 0
    assert event(99) in backend.taken
    assert set(backend.taken) <= {*contents, event(99)}
    # In their order.
    assert sorted(backend.taken) == backend.taken
    if broken is garbage:
        assert len(backend.taken) == 1
    else:
        assert len(backend.taken) > 10
    assert (tmp_path / "outbox.db.corrupt-1").exists()
    assert "is broken" in logged.text
    assert "a new one is begun" in logged.text
    outbox.close()


def test_of_a_file_without_a_column_events_and_ends_are_kept(tmp_path: Path, backend: Any, event: Any) -> None:
    outbox = Outbox(tmp_path)
    outbox.put(DESTINATION, event(0, "COMPLETE", 1))
    assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(sent=1)
    outbox.put(DESTINATION, event(0, "RUNNING", 2))
    outbox.put(DESTINATION, event(1, "START", 3))
    outbox.close()
    with closing(sqlite3.connect(tmp_path / "outbox.db")) as database:
        database.execute("ALTER TABLE events DROP COLUMN answer")
    assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(sent=1, discarded=1)
    assert (tmp_path / "outbox.db.corrupt-1").exists()
    outbox.close()


@pytest.mark.parametrize("column", ["attempts"])
def test_a_number_that_is_broken_stands_in_nobodys_way(tmp_path: Path, backend: Any, event: Any, column: str) -> None:
    path = fill(tmp_path, [event()])
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"UPDATE events SET {column} = ''")  # noqa: S608
    with closing(Outbox(tmp_path)) as outbox:
        assert getattr(outbox.events()[0], column) == 0
        assert outbox.deliver([DESTINATION], backend.open, 20) == Delivered(sent=1)


def test_the_second_broken_file_has_another_name(tmp_path: Path, event: Any) -> None:
    for _ in range(2):
        garbage(fill(tmp_path, [event()]))
    fill(tmp_path, [event()])
    assert {path.name for path in tmp_path.glob("*corrupt*")} == {"outbox.db.corrupt-1", "outbox.db.corrupt-2"}


def test_a_file_that_is_gone_is_begun_anew_by_who_has_it_open(tmp_path: Path, event: Any) -> None:
    outbox = Outbox(tmp_path)
    outbox.put(DESTINATION, event())
    for path in tmp_path.iterdir():
        path.unlink()
    outbox.put(DESTINATION, event(1))
    assert len(Outbox(tmp_path).events()) == 1
    outbox.close()


def test_each_byte_of_the_header_may_be_another(tmp_path: Path, backend: Any, event: Any) -> None:
    good = fill(tmp_path / "good", [event()]).read_bytes()
    for place in range(100):
        for junk in {0, good[place] ^ 1}:
            path = tmp_path / f"{place}-{junk}" / "outbox.db"
            path.parent.mkdir()
            path.write_bytes(good[:place] + bytes([junk]) + good[place + 1 :])
            with closing(Outbox(path.parent)) as outbox:
                outbox.put(DESTINATION, event(1))
                assert outbox.deliver([DESTINATION], backend.open, 30).waiting == 0, (place, junk)
            assert event(1) in backend.taken, (place, junk)
            backend.taken.clear()


@pytest.mark.parametrize("change", ["CAST(replace(content, 'START', 'STARt') AS BLOB)", "CAST(content AS TEXT)"])
def test_an_event_of_other_bytes_is_a_dead_letter_and_one_of_another_type_is_sent(
    tmp_path: Path, backend: Any, event: Any, change: str
) -> None:
    path = fill(tmp_path, [event(0, "START"), event(1)])
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"UPDATE events SET content = {change} WHERE id = 1")  # noqa: S608
    with closing(Outbox(tmp_path)) as outbox:
        is_other = "replace" in change
        assert outbox.deliver([DESTINATION], backend.open, 30) == Delivered(sent=2 - is_other, refused=int(is_other))
        assert all("other bytes" in dead.answer for dead in outbox.events(is_dead=True))


def test_a_byte_that_only_an_index_lacks_is_found(
    tmp_path: Path, backend: Any, event: Any, logged: pytest.LogCaptureFixture
) -> None:
    path = fill(tmp_path, [event(run) for run in range(3)])
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'dead')"
                         " WHERE name = 'waiting'")  # fmt: skip
    with closing(Outbox(tmp_path)) as outbox:
        outbox.put(DESTINATION, event(99))
        assert outbox.deliver([DESTINATION], backend.open, 30) == Delivered(sent=4)
    assert "is broken" in logged.text


def test_the_events_of_another_version_are_taken_over(tmp_path: Path, backend: Any, event: Any) -> None:
    path = fill(tmp_path, [event()])
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE events ADD COLUMN colour TEXT")
    with closing(Outbox(tmp_path)) as outbox:
        outbox.put(DESTINATION, event(1))
        assert outbox.deliver([DESTINATION], backend.open, 30) == Delivered(sent=2)


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path, event: Any) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutboxError, match="cannot be opened"):
        Outbox(tmp_path / "file" / "outbox").put(DESTINATION, event())


def test_who_writes_for_too_long_is_said(tmp_path: Path, event: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_lineage.deliver.outbox.schema.BUSY_SECONDS", 0.1)
    path = fill(tmp_path, [event()])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutboxError, match="other processes are writing for too long"):
            Outbox(tmp_path).put(DESTINATION, event(1))
        other.execute("ROLLBACK")


def test_a_large_file_that_is_empty_is_made_small(tmp_path: Path, backend: Any, event: Any) -> None:
    path = fill(tmp_path, [event(run, text="x" * 5000) for run in range(100)])
    assert path.stat().st_size > 500_000
    outbox = Outbox(tmp_path)
    assert outbox.deliver([DESTINATION], backend.open, 30) == Delivered(sent=100)
    outbox.put(DESTINATION, event(event_type="COMPLETE"))
    # An id is never given twice.
    assert outbox.events()[0].id == 101
    outbox.close()
    assert path.stat().st_size < 100_000


def test_the_file_is_closed_before_a_fork_and_open_again_after_it(tmp_path: Path, event: Any) -> None:
    with closing(Outbox(tmp_path)) as outbox:
        outbox.put(DESTINATION, event())
        database = outbox._database
        assert database._connection is not None
        _before_fork()
        assert database._connection is None
        _after_fork()
        assert len(outbox.events()) == 1


def test_a_fork_does_not_wait_for_a_disk_that_hangs(tmp_path: Path) -> None:
    program = """
import os, pathlib, sys, threading
from spark_lineage.deliver.outbox.database import Database
database, hangs = Database(pathlib.Path(sys.argv[1])), threading.Event()
def hang(connection):
    hangs.set()
    threading.Event().wait(60)
threading.Thread(target=database._run, args=(hang,), daemon=True).start()
hangs.wait()
if (child := os.fork()) == 0:
    os._exit(database._run(lambda connection: 42))
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    assert (
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=env, timeout=30, check=False).returncode
        == 42
    )


def test_what_was_written_while_another_process_set_the_file_aside_is_written_again(tmp_path: Path) -> None:
    calls: list[sqlite3.Connection] = []

    def work(connection: sqlite3.Connection) -> None:
        if not calls:
            set_aside(tmp_path / "outbox.db", sqlite3.DatabaseError("it is broken"))
        calls.append(connection)
        connection.execute("UPDATE totals SET drained_at = 42")

    with closing(Database(tmp_path)) as database:
        database.write(work)
        assert len(calls) == 2
        assert database.rows("SELECT drained_at FROM totals") == [(42,)]


def test_a_process_that_has_closed_its_standard_input_keeps_events_too(tmp_path: Path, event: Any) -> None:
    program = """
import os, sys
os.close(0)
from pathlib import Path
from spark_lineage.deliver.outbox.outbox import Outbox
Outbox(Path(sys.argv[1])).put("marquez", sys.argv[2].encode())
"""
    arguments = [sys.executable, "-c", program, str(tmp_path), event().decode()]
    subprocess.run(arguments, check=True, timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    (one,) = Outbox(tmp_path).destinations()
    assert one.waiting == 1
