"""The spool: events that wait to be sent, one file each, as mail waits in a Maildir.

An outbox is a directory for each user, with a spool for each destination, by its name. Below that of a spool::

    <stamp>-<run id>-<type>-<bytes>.json    waits; the order of the names is the order of sending
    dead/<the same name>, <the same name>.why    refused, with what the backend has answered
    runs/<run id> -> <type>,<stamp>,<START's eventTime>,<bytes>    what was put last of a run, as the text of a link
    .later    how long nothing is sent to the backend, or of one run, in the time since the host was started
    .sender    locked by the one process that sends; holds the name of what it is sending
    .used    how many bytes there were when they were last counted
    .added    as many bytes as blocks of the disk were put since then

A file is written beside its place, renamed, and then fsynced: it is there whole, or not at all. A broken file harms
its own event alone, and ``ls``, ``cat`` and ``rm`` are the tools.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from heapq import nsmallest
from pathlib import Path
from typing import Literal, NamedTuple

from spark_lineage.deliver.outgoing import TERMINAL, Outgoing, SpoolError
from spark_lineage.deliver.pauses import BACKEND, Pauses
from spark_lineage.launch.directory import (
    APPENDING,
    FREE_BYTES,
    NoRegularFileError,
    create_private,
    open_regular,
    path_segment,
    read_small,
    replace_file,
    write_new,
)
from spark_lineage.launch.lock import take
from spark_lineage.secrets.redaction import redact

MAX_BYTES = 500_000_000
_BLOCK = _PAGE_BYTES = 4096
_COUNTED_SECONDS, _FULL_SECONDS = 300.0, 5.0
# The longest time of a process between an event and its note.
_PUTTING_SECONDS = 2.0
# A hundred thousand names take as much memory as the rest of a courier.
_MOST_AT_ONCE = 5_000
_REMEMBERED_RUNS = 10_000
# How long the end of a run keeps later events of it away, and a file that was never renamed stays.
_ENDED_SECONDS, _PART_SECONDS = 2 * 24 * 3600.0, 3600.0
# Streams run for weeks.
_OPEN_SECONDS = 90 * 24 * 3600.0
_STAMP = "%Y%m%dT%H%M%S.%f"
_STAMPED = re.compile(r"\d{8}T\d{6}\.\d{6}", re.ASCII)
_NAME = re.compile(rf"({_STAMPED.pattern})-([!-~]*)-([A-Z]*)-(0|[1-9]\d{{0,11}})\.json", re.ASCII)
_TICK = timedelta(microseconds=1)
# The run in the name of an event without a run (``JobEvent``, ``DatasetEvent``).
_NO_RUN = "none"
_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "; free some space there"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "; may this user write to it?"),
}

Outcome = Literal["waiting", "refused", "sent", "gone"]


class Entry(NamedTuple):
    """One event of a spool, by the parts of its file's name: entries are sorted as they are sent.

    Later events of a run have later stamps. The ``run_id`` is a path segment; ``event_type`` is empty for an event
    without a type; ``size`` is in bytes.
    """

    stamp: str
    run_id: str
    event_type: str
    size: int

    @classmethod
    def of(cls, name: str) -> Entry | None:
        """Return the entry of a file, None for a file that holds no event."""
        parts = _NAME.fullmatch(name)
        return cls(parts[1], parts[2], parts[3], int(parts[4])) if parts is not None else None

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.stamp}-{self.run_id}-{self.event_type}-{self.size}.json"

    @property
    def id(self) -> str:
        """The name for users."""
        return f"{self.stamp}-{self.run_id}"

    @property
    def disk_bytes(self) -> int:
        """The size of its file on the disk, in whole blocks."""
        return -(-self.size // _BLOCK) * _BLOCK

    @property
    def put_at(self) -> datetime:
        """When it was put, by the clock of its host; later where that went back."""
        with suppress(ValueError):
            return _time(self.stamp)
        return datetime.fromtimestamp(0, UTC)


class Run(NamedTuple):
    """The note of a run in a spool: its last event, when it began (its START's ``eventTime``), its end's bytes."""

    event_type: str = ""
    stamp: str = ""
    began: str = ""
    size: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether its end was put."""
        return self.event_type in TERMINAL

    @property
    def is_open(self) -> bool:
        """Whether it has begun, and has not ended."""
        return bool(self.event_type) and not self.has_ended

    def admits(self, event: Outgoing) -> bool:
        """Whether an event is news: a START comes once, an end once, and nothing after the end.

        An end of another type, or a longer end with datasets, corrects the first. Another START after the end begins
        the run anew: a DAG run that is tested twice has the same run ids. If no START was put here, a START after the
        end is late, and no beginning.
        """
        if event.event_type == "START":
            return event.event_time not in (self.began, "") if self.has_ended and self.began else not self.event_type
        if not self.has_ended:
            return True
        is_longer = event.has_datasets and len(event.body) > self.size
        return event.event_type in TERMINAL and (event.event_type != self.event_type or is_longer)

    def next_stamp(self) -> str:
        """Return a time that comes after the last event, whatever the clock shows."""
        now = datetime.now(UTC)
        # A stranger's file may have a stamp that is no time, or the last time of all.
        with suppress(ValueError, OverflowError):
            now = max(now, _time(self.stamp) + _TICK)
        return now.strftime(_STAMP)


class Spool:
    """The events for one destination, in a directory that any number of processes of one host may share.

    Nothing is made before it is needed. ``put`` takes no lock. Every method raises ``SpoolError``.

    :param directory: made where it is missing, for its owner alone (0700)
    :param max_bytes: how many bytes of events it holds, about: they are counted every five minutes
    """

    def __init__(self, directory: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.directory = directory
        self._dead = directory / "dead"
        self._runs = directory / "runs"
        self._used = directory / ".used"
        self._added = directory / ".added"
        self._turn = directory / ".sender"
        self._max_bytes = max_bytes

    def put(self, event: Outgoing) -> str | None:
        """Store an event, and return its name; None for an event that is no news. It is then on the disk."""
        with self._usable():
            while (before := self.run(event.run_id)).admits(event):
                if name := self._put(event, before):
                    return name
            return None

    def _put(self, event: Outgoing, before: Run) -> str:
        """Store an event that is news; return an empty name if another process has begun its run meanwhile."""
        self._create()
        self._make_space(len(event.body))
        run_id = path_segment(event.run_id or _NO_RUN)
        entry = Entry(before.next_stamp(), run_id, event.event_type, len(event.body))
        place, part = self.directory / entry.name, self.directory / f".{entry.name}.{os.getpid()}.part"
        try:
            write_new(part, event.body)
            part.rename(place)
            if not self._note(event, before, entry.stamp):
                place.unlink(missing_ok=True)
                return ""
            _sync(place)
        except OSError:
            self._take_back(event.run_id, before, (part, place))
            raise
        self._add(entry.disk_bytes)
        return entry.name

    def note(self, event: Outgoing) -> None:
        """Remember an event that was sent without being put."""
        with self._usable():
            self._create()
            before = self.run(event.run_id)
            self._note(event, before, before.next_stamp())

    def waiting(self) -> Sequence[Entry]:
        """Return what waits, in the order of sending; of a run that is being put, a later event may be there alone."""
        return sorted(self._scan(self.directory))

    def dead(self) -> Sequence[Entry]:
        """Return what was refused, oldest first."""
        return sorted(self._scan(self._dead))

    def sendable(self, is_held: Callable[[Entry], bool], most: int = _MOST_AT_ONCE) -> Sequence[Entry]:
        """Return what waits, in the order of sending, ``most`` at once; no earlier event of the same run is missing.

        A large directory is read in pieces: a list may lack an event, and have another one that was put later. A second
        list has every event that was put before an event of the first list.

        :param is_held: whether an event is not to be sent now
        """
        first = nsmallest(most, (entry for entry in self._scan(self.directory) if not is_held(entry)))
        last = {entry.run_id: entry for entry in first}
        if not last:
            return ()
        second = self._scan(self.directory)
        return sorted(entry for entry in second if entry.run_id in last and entry <= last[entry.run_id])

    def is_being_put(self, entry: Entry) -> bool:
        """Whether the process that puts an event has not noted it yet: it may take it back."""
        is_noted = entry.run_id == _NO_RUN or self._run(entry.run_id).stamp >= entry.stamp
        return not is_noted and abs((datetime.now(UTC) - entry.put_at).total_seconds()) < _PUTTING_SECONDS

    def read(self, entry: Entry) -> bytes | None:
        """Return the JSON of an event that waits or was refused, None where it is gone.

        :raises SpoolError: also where the disk gives other bytes than were written
        """
        for directory in (self.directory, self._dead):
            with self._usable(), suppress(FileNotFoundError):
                body = read_small(directory / entry.name)
                if len(body) != entry.size:
                    raise SpoolError(f"{directory / entry.name} has {len(body)} bytes, and was put with {entry.size}")
                return body
        return None

    def why(self, entry: Entry) -> str:
        """Return what a backend has answered to a dead event; empty where that is not known."""
        with suppress(OSError):
            return read_small(self._dead / f"{entry.name}.why").decode("utf-8", "replace")
        return ""

    def job_of(self, entry: Entry) -> str:
        """Return the job of an event (``namespace name``); empty where the event is gone or broken."""
        with suppress(SpoolError):
            return Outgoing.of(self.read(entry) or b"").job
        return ""

    def remove(self, entry: Entry) -> None:
        """Forget an event that was sent, or that is not to be sent."""
        with self._usable():
            try:
                (self.directory / entry.name).unlink()
            except FileNotFoundError:
                with suppress(NotADirectoryError):
                    for name in (entry.name, f"{entry.name}.why"):
                        (self._dead / name).unlink(missing_ok=True)

    def refuse(self, entry: Entry, why: str) -> None:
        """Make an event a dead letter, with the reason beside it."""
        with self._usable():
            create_private(self._dead)
            reason = self._dead / f"{entry.name}.why"
            reason.unlink(missing_ok=True)
            write_new(reason, redact(why).encode())
            with suppress(FileNotFoundError):
                (self.directory / entry.name).rename(self._dead / entry.name)

    def retry(self, entries: Iterable[Entry]) -> Sequence[Entry]:
        """Have dead letters wait again, in their old place, and return them.

        A letter that came before an end of its run which was sent is removed: it would open the run again.
        """
        retried, stamps = [], {entry.stamp for entry in (*self.waiting(), *self.dead())}
        with self._usable():
            for entry in entries:
                run = self._run(entry.run_id)
                is_late = run.has_ended and entry.stamp < run.stamp and run.stamp not in stamps
                with suppress(FileNotFoundError):
                    if is_late:
                        (self._dead / entry.name).unlink()
                    else:
                        (self._dead / entry.name).rename(self.directory / entry.name)
                        retried.append(entry)
                (self._dead / f"{entry.name}.why").unlink(missing_ok=True)
        return retried

    def outcome(self, name: str) -> Outcome:
        """Return what became of an event."""
        with self._usable():
            if (self.directory / name).exists():
                return "waiting"
            if (self._dead / name).exists():
                return "refused"
            return "sent" if self.directory.exists() else "gone"

    def run(self, run_id: str) -> Run:
        """Return what is remembered of a run; an empty note for an unknown run, or where something else is there."""
        return self._run(path_segment(run_id)) if run_id else Run()

    def _run(self, segment: str) -> Run:
        with self._usable(), suppress(ValueError):
            try:
                event_type, stamp, began, size = str((self._runs / segment).readlink()).split(",")
                if _STAMPED.fullmatch(stamp):
                    return Run(event_type, stamp, began, int(size))
            except OSError as error:
                # The second is that of a file that is no link.
                if error.errno not in (errno.ENOENT, errno.EINVAL):
                    raise
        return Run()

    def take_turn(self, wait: Callable[[], bool] = lambda: False) -> int | None:
        """Be the one process that sends, until ``lock.release`` gets the descriptor; None where another one is.

        :param wait: as of ``lock.take``
        """
        with self._usable():
            create_private(self.directory)
            return take(self._turn, wait, flags=os.O_NOFOLLOW)

    def has_turn(self, lock: int) -> bool:
        """Whether the lock is still that of this spool: a user may have removed its file, or all."""
        with suppress(OSError):
            return os.path.samestat(self._turn.lstat(), os.fstat(lock))
        return False

    def begin(self, lock: int, entry: Entry | None) -> None:
        """Note what is being sent, so that it is known when this process is killed before the answer; None: nothing."""
        with suppress(OSError):
            name = entry.name.encode() if entry is not None else b""
            os.ftruncate(lock, os.pwrite(lock, name, 0))

    def interrupted(self, lock: int) -> Entry | None:
        """Return what the process before was sending when it was killed, if it still waits."""
        with suppress(OSError, UnicodeDecodeError):
            entry = Entry.of(os.pread(lock, _PAGE_BYTES, 0).decode())
            return entry if entry is not None and (self.directory / entry.name).exists() else None
        return None

    @property
    def pauses(self) -> Pauses:
        """The pauses, as they are on the disk now."""
        return Pauses(self.directory / ".later")

    def are_paused(self, names: Iterable[str]) -> bool:
        """Whether nothing of some waiting events is sent now: the backend pauses, or their runs do."""
        pauses, runs = self.pauses, {entry.run_id for entry in map(Entry.of, names) if entry is not None}
        return pauses.seconds_left(BACKEND) > 0 or all(pauses.seconds_left(run_id) > 0 for run_id in runs)

    def count(self, *, is_due: bool = True) -> int:
        """Count the bytes of all events in whole blocks of the disk, note them for ``put``, prune, and return them.

        :param is_due: whether they are counted although that was done within the last five minutes
        """
        with self._usable():
            if not is_due and (used := self._estimate(_COUNTED_SECONDS)) is not None:
                return used
            if not self.directory.exists():
                return 0
            used = sum(entry.disk_bytes for place in (self.directory, self._dead) for entry in self._scan(place))
            self._added.unlink(missing_ok=True)
            replace_file(self._used, str(used).encode(), 0o600)
            self.prune()
            return used

    def prune(self) -> None:
        """Forget runs that ended two days ago, or began long ago, and files that were never renamed.

        The runs that changed last are remembered whatever the clock shows: it may be days ahead for an hour.
        """
        now = time.time()
        with self._usable(), suppress(FileNotFoundError):
            runs = [*os.scandir(self._runs)]
            stale = [part for part in self.directory.glob(".*.part") if now - part.lstat().st_mtime > _PART_SECONDS]
            for run in nsmallest(len(runs) - _REMEMBERED_RUNS, runs, key=_changed_at):
                seconds = _ENDED_SECONDS if self._run(run.name).has_ended else _OPEN_SECONDS
                stale += [Path(run.path)] if now - _changed_at(run) > seconds else []
            for file in stale:
                # A directory that a user has made stays.
                with suppress(OSError):
                    file.unlink()

    def _scan(self, directory: Path) -> Iterator[Entry]:
        """Return the events of a directory, in any order, and few at once in memory."""
        with self._usable(), suppress(FileNotFoundError), os.scandir(directory) as files:
            yield from filter(None, (Entry.of(file.name) for file in files))

    def _create(self) -> None:
        """Make the directories; each user can make an own one in that of the outbox (``run_as_user`` of a task)."""
        shared = self.directory.parent.parent
        with suppress(OSError):
            if not shared.exists():
                shared.parent.mkdir(parents=True, exist_ok=True)
                shared.mkdir()
                # The umask changes the mode of mkdir.
                shared.chmod(0o1777)
        create_private(self._runs)

    def _note(self, event: Outgoing, before: Run, stamp: str) -> bool:
        """Remember an event of a run; return False where another process has put the first one meanwhile."""
        if not event.run_id:
            return True
        note = self._runs / path_segment(event.run_id)
        began = event.event_time if event.event_type == "START" else before.began
        after = Run(event.event_type, stamp, began, len(event.body) if event.event_type in TERMINAL else 0)
        try:
            if not before.event_type:
                # Exclusively: a START that was slow must not replace the end.
                note.symlink_to(",".join(map(str, after)))
                return True
        except FileExistsError:
            # The file there may be no note.
            if self.run(event.run_id) != before:
                return False
        self._replace(note, after)
        return True

    def _replace(self, note: Path, run: Run) -> None:
        part = self.directory / f".{note.name}.{os.getpid()}.part"
        part.unlink(missing_ok=True)
        part.symlink_to(",".join(map(str, run)))
        part.rename(note)

    def _take_back(self, run_id: str, before: Run, files: Iterable[Path]) -> None:
        with suppress(OSError):
            for file in files:
                file.unlink(missing_ok=True)
            if before.event_type:
                self._replace(self._runs / path_segment(run_id), before)
            elif run_id:
                (self._runs / path_segment(run_id)).unlink(missing_ok=True)

    def _estimate(self, at_most_seconds: float = float("inf")) -> int | None:
        """Return how many bytes there are, about; None where they were not counted within some seconds."""
        with suppress(OSError, ValueError):
            # A clock may have been set back since.
            if abs(time.time() - self._used.lstat().st_mtime) < at_most_seconds:
                used = int(read_small(self._used))
                with suppress(FileNotFoundError):
                    used += self._added.lstat().st_size * _BLOCK
                return used
        return None

    def _add(self, disk_bytes: int) -> None:
        with suppress(OSError), os.fdopen(open_regular(self._added, APPENDING), "ab") as added:
            added.write(b"." * (disk_bytes // _BLOCK))

    def _make_space(self, size: int) -> None:
        """Remove RUNNING events, for a later event of their run says the same, then dead letters; the oldest first.

        :raises SpoolError: where that is not enough, or the disk is nearly full
        """
        disk = os.statvfs(self.directory)
        if disk.f_bavail * disk.f_frsize < FREE_BYTES + size:
            raise SpoolError(f"the disk of {self.directory} is nearly full: free some space there")
        if (self._estimate() or 0) + size <= self._max_bytes:
            return
        # A full spool is not counted anew for each event.
        used = self._estimate(_FULL_SECONDS)
        missing = (self.count() if used is None else used) + size - self._max_bytes
        has_removed = False
        running = sorted(entry for entry in self._scan(self.directory) if entry.event_type == "RUNNING")
        for entry in (*running, *self.dead()):
            if missing <= 0:
                break
            self.remove(entry)
            missing, has_removed = missing - entry.disk_bytes, True
        if has_removed:
            self.count()
        if missing > 0:
            raise SpoolError(
                f"the outbox in {self.directory} is full: an event of {size} bytes does not fit into {self._max_bytes} "
                "bytes. See what waits with `spark-lineage outbox list`, send it with `outbox flush`"
            )

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename if isinstance(error, NoRegularFileError) else self.directory
            problem = f"{error.strerror or error}{_ADVICE.get(error.errno or 0, '')}"
            raise SpoolError(f"the outbox in {where} cannot be used: {problem}") from error


def _time(stamp: str) -> datetime:
    """Return the time of a stamp.

    :raises ValueError: for another text
    """
    return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)


def _changed_at(entry: os.DirEntry[str]) -> float:
    return entry.stat(follow_symlinks=False).st_mtime


def _sync(place: Path) -> None:
    for path, flags in ((place, os.O_RDONLY), (place.parent, os.O_RDONLY | os.O_DIRECTORY)):
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
