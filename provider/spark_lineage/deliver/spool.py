"""The spool: events that wait to be sent, one file each, as mail waits in a Maildir.

An outbox is a directory for each user, with a spool for each destination, by its name. Below that of a spool::

    <stamp>-<run id>-<type>-<bytes>.json    waits; the order of the names is the order of sending
    dead/<the same name>, <the same name>.why    refused, with what the backend has answered
    runs/<run id> -> <type>,<stamp>,<START's eventTime>,<bytes>    what was put last of a run, as the text of a link
    .later    how long nothing is sent to the backend, or of one run, in the time since the host was started
    .sender    locked by the one process that sends; holds the name of what it is sending
    .used    how many bytes there were when they were last counted
    .added    as many bytes as blocks of the disk were put since then

A file is written beside its place, renamed, and then fsynced: it is there whole, or not at all. What harms one file
harms that event alone, and ``ls``, ``cat`` and ``rm`` are the tools.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import (
    APPENDING,
    FREE_BYTES,
    RUN_EVENTS_FILE,
    NoRegularFileError,
    create_private,
    open_regular,
    path_segment,
    read_small,
    replace_file,
    write_new,
)
from spark_lineage.launch.lock import appending, take
from spark_lineage.secrets.redaction import redact, redact_event

if TYPE_CHECKING:
    from openlineage.client.client import Event

BACKEND = ""
"""The key of the backend; all others are ids of runs."""
_MINUTE = 60.0
# The pauses of a run whose event the backend answers with an error, while it takes others.
_OF_RUN = (_MINUTE, 5 * _MINUTE, 30 * _MINUTE, 60 * _MINUTE)
_FIRST_SECONDS, _LONGEST_SECONDS = 2.0, 5 * _MINUTE
# A backend that asks for a day does not get it.
_LONGEST_OF_ALL = 60 * _MINUTE
# A DAG file may seed Python's own generator, and then all workers come back at once.
_chance = random.SystemRandom()


class Pause(Struct, frozen=True):
    """A pause that began at ``began`` (seconds since the start of the host) after so many failures in a row."""

    failures: int
    began: float
    seconds: float
    why: str

    @property
    def seconds_left(self) -> float:
        """How long it lasts; 0 where the host was started anew, so that its clock is behind the beginning."""
        passed = _now() - self.began
        return max(0.0, min(self.seconds, _LONGEST_OF_ALL) - passed) if passed >= 0 else 0.0


class Pauses:
    """The pauses of one destination.

    :param path: of the file, which is made when there is something to keep; one that cannot be read counts as empty
    :param scale: by which all pauses of runs are multiplied
    """

    def __init__(self, path: Path, *, scale: float = 1.0) -> None:
        self._path = path
        self._scale = scale
        self._pauses: dict[str, Pause] = {}
        with suppress(OSError, msgspec.MsgspecError, RecursionError):
            self._pauses = msgspec.json.decode(read_small(path), type=dict[str, Pause])

    def seconds_left(self, key: str) -> float:
        """Return how long nothing is sent; 0 where it may be."""
        pause = self._pauses.get(key)
        return pause.seconds_left if pause is not None else 0.0

    def why(self, key: str) -> str:
        """Return what the backend has answered; empty without a pause."""
        pause = self._pauses.get(key)
        return pause.why if pause is not None else ""

    @property
    def all(self) -> Mapping[str, Pause]:
        """The pauses by their keys, those included that are over."""
        return self._pauses

    def failed(self, key: str, why: str, *, retry_after: float | None = None, took_seconds: float = 0.0) -> float:
        """Begin a pause that is longer than the one before, and return its seconds.

        :param retry_after: seconds that the backend asks for
        :param took_seconds: how long the answer was awaited: a slow backend may have taken the event after all
        """
        failures = (self._pauses[key].failures if key in self._pauses else 0) + 1
        if key == BACKEND:
            longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(failures - 1, 16))
            seconds = _chance.uniform(longest / 2, longest)
        else:
            seconds = _OF_RUN[min(failures, len(_OF_RUN)) - 1] * self._scale
        seconds = min(max(seconds, took_seconds, retry_after or 0.0), _LONGEST_OF_ALL)
        self._pauses[key] = Pause(failures, _now(), seconds, redact(why))
        self._save()
        return seconds

    def taken(self, run_id: str) -> None:
        """Learn that the backend has taken an event of a run; after an outage all runs may go on."""
        ended = [*self._pauses] if BACKEND in self._pauses else [run_id] if run_id in self._pauses else []
        for key in ended:
            del self._pauses[key]
        if ended:
            self._save()

    def end(self) -> None:
        """End all pauses: a user says that the backend was mended."""
        self._pauses.clear()
        self._save()

    def _save(self) -> None:
        # Without its pause on the disk, an event is tried again too soon.
        with suppress(OSError):
            replace_file(self._path, msgspec.json.encode(self._pauses), 0o600)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


TERMINAL = frozenset({"COMPLETE", "FAIL", "ABORT"})
_TYPES = TERMINAL | {"START", "RUNNING", "OTHER"}
MAX_BYTES = 500_000_000
_BLOCK = _PAGE_BYTES = 4096
_COUNTED_SECONDS, _FULL_SECONDS = 300.0, 5.0
# How long a process may take between an event and its note.
_PUTTING_SECONDS = 2.0
# A hundred thousand names take as much memory as the rest of a courier.
_MOST_AT_ONCE = 5_000
_REMEMBERED_RUNS = 10_000
# How long the end of a run keeps later events of it away, and a file that was never renamed stays.
_ENDED_SECONDS, _PART_SECONDS = 2 * 24 * 3600.0, 3600.0
# Streams run for weeks.
_OPEN_SECONDS = 90 * 24 * 3600.0
_STAMP = "%Y%m%dT%H%M%S.%f"
_STAMPED = re.compile(r"\d{8}T\d{6}\.\d{6}")
_NAME = re.compile(_STAMPED.pattern + r"-[!-~]*-[A-Z]*-\d{1,12}\.json")
_STAMP_LENGTH = len("20260131T120000.123456")
_TICK = timedelta(microseconds=1)
# The run in the name of an event without one (``JobEvent``, ``DatasetEvent``).
_NO_RUN = "none"

Outcome = Literal["waiting", "refused", "sent", "gone"]


class SpoolError(Exception):
    """An event cannot be kept, or what is kept cannot be read; the text says what to do."""


class _Named(msgspec.Struct, gc=False):
    namespace: str
    name: str


class _RunId(msgspec.Struct, gc=False):
    runId: str  # noqa: N815 - the names are those of the specification


class _Head(msgspec.Struct, gc=False):
    run: _RunId | None = None
    job: _Named | None = None
    dataset: _Named | None = None
    eventType: str | None = None  # noqa: N815
    eventTime: str | None = None  # noqa: N815
    inputs: msgspec.Raw = msgspec.Raw(b"")
    outputs: msgspec.Raw = msgspec.Raw(b"")


_decode_head = msgspec.json.Decoder(_Head).decode


@dataclass(frozen=True)
class Outgoing:
    """One event as it is sent: its JSON without secrets, and what its order depends on.

    ``run_id`` and ``event_type`` are empty for a ``JobEvent`` and a ``DatasetEvent``; ``job`` is ``namespace name``. In
    ``event_time`` a point stands before fractions of a second, where ISO 8601 allows a comma too, which parts a note.
    """

    run_id: str
    event_type: str
    event_time: str
    job: str
    has_datasets: bool
    body: bytes

    @classmethod
    def encode(cls, event: Event) -> Outgoing:
        """Return an event of openlineage-python as it leaves: JSON in UTF-8, sorted keys, without secrets."""
        # The courier, which never encodes, saves the memory of this import.
        from openlineage.client.serde import Serde

        # JSON has no NaN and no infinity, which Python writes: they become null.
        redacted = redact_event(json.loads(Serde.to_json(event), parse_constant=lambda _: None))
        text = json.dumps(redacted, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        # A lone surrogate cannot be written in UTF-8; a question mark for it is better than no event.
        return cls.of(text.encode("utf-8", "replace"))

    @classmethod
    def of(cls, body: bytes) -> Outgoing:
        """Return an event by its JSON.

        :raises SpoolError: for what is no event of OpenLineage
        """
        try:
            head = _decode_head(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SpoolError(f"this is not an event of OpenLineage ({error}); the outbox keeps nothing else") from None
        subject = head.job or head.dataset
        if subject is None:
            raise SpoolError(
                "this is not an event of OpenLineage (no job and no dataset); the outbox keeps nothing else"
            )
        run_id = head.run.runId if head.run is not None else ""
        event_type = head.eventType if head.eventType in _TYPES else ""
        job = f"{subject.namespace} {subject.name}"
        has_datasets = any(bytes(each) not in (b"", b"[]", b"null") for each in (head.inputs, head.outputs))
        event_time = (head.eventTime or "").replace(",", ".")
        return cls(run_id, event_type, event_time, job, has_datasets, body)


@dataclass(frozen=True, order=True, slots=True)
class Entry:
    """One event of a spool, by the name of its file; 100,000 of them take little memory."""

    name: str

    @classmethod
    def of(cls, name: str) -> Entry | None:
        """Return the entry of a file, None for a file that is none."""
        return cls(name) if _NAME.fullmatch(name) else None

    @property
    def stamp(self) -> str:
        """When it was put; later events of a run have later ones."""
        return self.name[:_STAMP_LENGTH]

    @property
    def run_id(self) -> str:
        """The id of its run, as a path segment."""
        return self.name[_STAMP_LENGTH + 1 :].rsplit("-", 2)[0]

    @property
    def event_type(self) -> str:
        """``START`` and so on; empty for an event without one."""
        return self.name.rsplit("-", 2)[1]

    @property
    def size(self) -> int:
        """The bytes of its JSON."""
        return int(self.name.rpartition("-")[2].partition(".")[0])

    @property
    def disk_bytes(self) -> int:
        """The size of its file on the disk, in whole blocks."""
        return -(-self.size // _BLOCK) * _BLOCK

    @property
    def id(self) -> str:
        """The name for users: its stamp and its run."""
        return f"{self.stamp}-{self.run_id}"

    @property
    def put_at(self) -> datetime:
        """When it was put, by the clock of its host; later where that went back."""
        with suppress(ValueError):
            return _time(self.stamp)
        return datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class Run:
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

        An end of another type, or a longer one with datasets, corrects the first. Another START after the end begins
        the run anew: a DAG run that is tested twice has the same run ids. Where no START was put here, it is late, and
        no beginning.
        """
        if event.event_type == "START":
            return event.event_time not in (self.began, "") if self.has_ended and self.began else not self.event_type
        if not self.has_ended:
            return True
        is_longer = event.has_datasets and len(event.body) > self.size
        return event.event_type in TERMINAL and (event.event_type != self.event_type or is_longer)

    def next_stamp(self) -> str:
        """Return a time that comes after the last event, whatever the clock says."""
        now = datetime.now(UTC)
        if self.stamp:
            # A file of a stranger may have a stamp that is no time, or the last one.
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
        """Keep an event, and return its name; None for one that is no news. It is on the disk when this returns."""
        with self._usable():
            while (before := self.run(event.run_id)).admits(event):
                if name := self._put(event, before):
                    self._add(len(event.body))
                    return name
            return None

    def _put(self, event: Outgoing, before: Run) -> str:
        """Keep an event that is news; return an empty name where another process has begun its run meanwhile."""
        create_private(self._runs)
        disk, size = os.statvfs(self.directory), len(event.body)
        if disk.f_bavail * disk.f_frsize < FREE_BYTES + size:
            raise SpoolError(f"the disk of {self.directory} is nearly full: free some space there")
        if (self._estimate() or 0) + size > self._max_bytes:
            self._free_space(size)
        stamp = before.next_stamp()
        name = f"{stamp}-{path_segment(event.run_id or _NO_RUN)}-{event.event_type}-{len(event.body)}.json"
        place, part = self.directory / name, self.directory / f".{name}.{os.getpid()}.part"
        try:
            write_new(part, event.body)
            part.rename(place)
            if not self._note(event, before, stamp):
                place.unlink(missing_ok=True)
                return ""
            _sync(place)
        except OSError:
            self._take_back(event.run_id, before, (part, place))
            raise
        return name

    def note(self, event: Outgoing) -> None:
        """Remember an event that was sent without being put."""
        with self._usable():
            before = self.run(event.run_id)
            create_private(self._runs)
            self._note(event, before, before.next_stamp())

    def waiting(self) -> Sequence[Entry]:
        """Return what waits, in the order of sending; of a run that is being put, a later event may be there alone."""
        return self._entries(self.directory)

    def sendable(self, is_held: Callable[[Entry], bool], most: int = _MOST_AT_ONCE) -> Sequence[Entry]:
        """Return what waits, in the order of sending, ``most`` at once; nothing that was put before one is missing.

        A large directory is read in pieces: what was put first may be missing, and what was put last be there. What was
        put before anything in a first list is in a second one.

        :param is_held: whether an event is not to be sent now
        """
        first = nsmallest(most, (entry for entry in self._scan(self.directory) if not is_held(entry)))
        last = {entry.run_id: entry for entry in first}
        if not first:
            return ()
        found = [one for one in self._scan(self.directory) if one.run_id in last and one <= last[one.run_id]]
        return sorted(found)

    def is_being_put(self, entry: Entry) -> bool:
        """Whether the process that puts an event has not noted it yet: it may take it back."""
        run = entry.run_id
        is_noted = run == _NO_RUN or self._run(run).stamp >= entry.stamp
        return not is_noted and abs((datetime.now(UTC) - entry.put_at).total_seconds()) < _PUTTING_SECONDS

    def dead(self) -> Sequence[Entry]:
        """Return what was refused, oldest first."""
        return self._entries(self._dead)

    def read(self, entry: Entry) -> bytes | None:
        """Return the JSON of an event, None where it is gone; of a dead one too.

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

        One that came before an end of its run which was sent is removed: it would open the run again.
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
        """Return what is remembered of a run; of one that is not known, or where something else is there, nothing."""
        return self._run(path_segment(run_id)) if run_id else Run()

    def _run(self, segment: str) -> Run:
        """Return the same by the name of its note."""
        with self._usable(), suppress(ValueError):
            try:
                text = str((self._runs / segment).readlink())
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EINVAL):
                    raise
            else:
                event_type, stamp, began, size = text.split(",")
                if _STAMPED.fullmatch(stamp):
                    return Run(event_type, stamp, began, int(size))
        return Run()

    def take_turn(self, wait: Callable[[], bool] = lambda: False) -> int | None:
        """Be the one process that sends, until ``lock.release`` gets the descriptor; None where another one is.

        :param wait: as of ``lock.take``
        """
        with self._usable():
            create_private(self.directory)
            return take(self._turn, wait, flags=os.O_NOFOLLOW)

    def has_turn(self, lock: int) -> bool:
        """Whether the lock is still that of this spool: somebody may have removed its file, or all."""
        try:
            there = self._turn.lstat()
        except OSError:
            return False
        mine = os.fstat(lock)
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def begin(self, lock: int, entry: Entry | None) -> None:
        """Note what is being sent, so that it is known when this process is killed before the answer; None: nothing."""
        with suppress(OSError):
            name = entry.name.encode() if entry is not None else b""
            os.ftruncate(lock, os.pwrite(lock, name, 0))

    def interrupted(self, lock: int) -> Entry | None:
        """Return what the process before was sending when it was killed, and what still waits."""
        with suppress(OSError, UnicodeDecodeError):
            entry = Entry.of(os.pread(lock, _PAGE_BYTES, 0).decode())
            return entry if entry is not None and (self.directory / entry.name).exists() else None
        return None

    @property
    def pauses(self) -> Pauses:
        """The pauses, as they are on the disk now."""
        return Pauses(self.directory / ".later")

    def are_paused(self, names: Iterable[str]) -> bool:
        """Whether nothing of some waiting events is sent now: the backend does not take it, or that of their runs."""
        pauses = self.pauses
        runs = {entry.run_id for name in names if (entry := Entry.of(name))}
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
            places = (self.directory, self._dead)
            used = sum(entry.disk_bytes for place in places for entry in self._scan(place))
            self._added.unlink(missing_ok=True)
            replace_file(self._used, str(used).encode(), 0o600)
            self.prune()
            return used

    def prune(self) -> None:
        """Forget runs that ended two days ago, or began long ago, and what was never renamed.

        So many that ended last are remembered whatever the clock says: it may be days ahead for an hour.
        """
        now = time.time()
        with self._usable(), suppress(FileNotFoundError):
            runs = [*os.scandir(self._runs)]
            oldest = nsmallest(len(runs) - _REMEMBERED_RUNS, runs, key=_changed_at) if runs[_REMEMBERED_RUNS:] else ()
            for run in oldest:
                age = now - run.stat(follow_symlinks=False).st_mtime
                if age > (_ENDED_SECONDS if self._run(run.name).has_ended else _OPEN_SECONDS):
                    _remove(Path(run.path))
            for part in self.directory.glob(".*.part"):
                if now - part.lstat().st_mtime > _PART_SECONDS:
                    _remove(part)

    def _entries(self, directory: Path) -> list[Entry]:
        return sorted(self._scan(directory))

    def _scan(self, directory: Path) -> Iterator[Entry]:
        """Return the events of a directory, in any order, and few at once in memory."""
        with self._usable(), suppress(FileNotFoundError), os.scandir(directory) as found:
            yield from filter(None, (Entry.of(each.name) for each in found))

    def _note(self, event: Outgoing, before: Run, stamp: str) -> bool:
        """Remember an event of a run; return False where another process has put the first one meanwhile."""
        if not event.run_id:
            return True
        note = self._runs / path_segment(event.run_id)
        began = event.event_time if event.event_type == "START" else before.began
        after = Run(event.event_type, stamp, began, len(event.body) if event.event_type in TERMINAL else 0)
        if before.event_type:
            self._replace(note, after)
            return True
        try:
            # Exclusively: a START that was slow must not take the place of the end.
            note.symlink_to(_text(after))
        except FileExistsError:
            if self.run(event.run_id) != before:
                return False
            # The file there is no note.
            self._replace(note, after)
        return True

    def _replace(self, note: Path, run: Run) -> None:
        part = self.directory / f".{note.name}.{os.getpid()}.part"
        part.unlink(missing_ok=True)
        part.symlink_to(_text(run))
        part.rename(note)

    def _take_back(self, run_id: str, before: Run, places: Iterable[Path]) -> None:
        with suppress(OSError):
            for place in places:
                place.unlink(missing_ok=True)
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

    def _add(self, size: int) -> None:
        with suppress(OSError):
            descriptor = open_regular(self._added, APPENDING)
            try:
                os.write(descriptor, b"." * -(-size // _BLOCK))
            finally:
                os.close(descriptor)

    def _free_space(self, size: int) -> None:
        """Remove RUNNING events, for a later event of their run says the same, then dead letters; the oldest first."""
        # A full spool is not counted anew for each event.
        used = self._estimate(_FULL_SECONDS)
        missing = (self.count() if used is None else used) + size - self._max_bytes
        has_removed = False
        for entry in (*sorted(one for one in self._scan(self.directory) if one.event_type == "RUNNING"), *self.dead()):
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
            raise SpoolError(f"the outbox in {where} cannot be used: {_described(error)}") from error


def _described(error: OSError) -> str:
    advice = {errno.ENOSPC: "; free some space there", errno.EDQUOT: "; free some space there"}
    advice |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "; may this user write to it?")
    return f"{error.strerror or error}{advice.get(error.errno or 0, '')}"


def _time(stamp: str) -> datetime:
    """Return the time of a stamp.

    :raises ValueError: for a text that is none
    """
    return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)


def _changed_at(entry: os.DirEntry[str]) -> float:
    return entry.stat(follow_symlinks=False).st_mtime


def _remove(file: Path) -> None:
    """Remove a file; a directory that somebody has made stays."""
    with suppress(OSError):
        file.unlink(missing_ok=True)


def _text(run: Run) -> str:
    return f"{run.event_type},{run.stamp},{run.began},{run.size}"


def _sync(place: Path) -> None:
    for path, flags in ((place, os.O_RDONLY), (place.parent, os.O_RDONLY | os.O_DIRECTORY)):
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@LINEAGE_FILES.bounded
def append_event(directory: Path, content: bytes) -> None:
    """Keep the JSON of an event in the directory of its launch: whole and on disk when this returns, or not at all.

    Nothing is kept where there is no such directory.
    """
    if directory.is_dir():
        with appending(directory / RUN_EVENTS_FILE, 0o600, os.O_NOFOLLOW) as append_line:
            append_line(content)


@LINEAGE_FILES.bounded
def append_end(directory: Path, end: Outgoing) -> Outgoing:
    """Keep the end of a run, unless there is one already; return the one that is kept, or this one."""
    if directory.is_dir():
        with appending(directory / RUN_EVENTS_FILE, 0o600, os.O_NOFOLLOW) as append_line:
            if (kept := kept_end(directory, end.run_id)) is not None:
                return kept
            append_line(end.body)
    return end


@LINEAGE_FILES.bounded
def kept_end(directory: Path, run_id: str) -> Outgoing | None:
    """Return the end of a run that is kept in the directory of its launch, None where there is none."""
    with suppress(FileNotFoundError), (directory / RUN_EVENTS_FILE).open("rb") as lines:
        for line in lines:
            # A line may be torn.
            with suppress(SpoolError):
                event = Outgoing.of(line.strip())
                if event.run_id == run_id and event.event_type in TERMINAL:
                    return event
    return None


@dataclass(frozen=True)
class Waiting:
    """The events of one destination; ``answer`` has the reason where they cannot be read.

    ``oldest_at`` is when the oldest that waits was put, in seconds since the epoch; 0 where nothing waits. Nothing is
    sent for ``paused_seconds``, and of ``paused_runs`` runs not yet, because of ``answer``.
    """

    destination: str
    waiting: int = 0
    dead: int = 0
    bytes: int = 0
    oldest_at: float = 0.0
    paused_seconds: float = 0.0
    paused_runs: int = 0
    answer: str = ""


class Outbox:
    """All spools of one user, below a directory of its own; nothing is made before it is needed.

    Every method raises ``SpoolError`` where a directory cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def spool(self, destination: str) -> Spool:
        """Return the spool of a destination."""
        return Spool(self.directory / path_segment(destination))

    def put(self, spool: Spool, event: Outgoing) -> str | None:
        """Keep an event as its spool does; where the directory above is missing, it is made.

        Each user can make its own in that (``run_as_user`` of a task).
        """
        shared = self.directory.parent
        with suppress(OSError):
            if not shared.exists():
                shared.parent.mkdir(parents=True, exist_ok=True)
                shared.mkdir()
                # Not by the mode of mkdir, of which the umask takes its part.
                shared.chmod(0o1777)
        return spool.put(event)

    def others(self) -> Sequence[Path]:
        """Return the directories of other users."""
        with suppress(OSError):
            found = self.directory.parent.iterdir()
            return sorted(each for each in found if each.name.isdecimal() and each.name != self.directory.name)
        return ()

    def spools(self) -> Mapping[str, Spool]:
        """Return the spools that are there, by destination, sorted."""
        try:
            found = sorted(path for path in self.directory.iterdir() if path.is_dir())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SpoolError(f"the outbox in {self.directory} cannot be read: {error.strerror}") from error
        return {unquote(path.name): Spool(path) for path in found}

    def destinations(self) -> Sequence[Waiting]:
        """Return what is there for each destination for which something waits, or was refused."""
        found = (_summary(destination, spool) for destination, spool in self.spools().items())
        return [each for each in found if each.waiting or each.dead or each.answer]


def _summary(destination: str, spool: Spool) -> Waiting:
    try:
        return _summed(destination, spool)
    except SpoolError as error:
        return Waiting(destination, answer=str(error))


def _summed(destination: str, spool: Spool) -> Waiting:
    waiting, dead, pauses = spool.waiting(), spool.dead(), spool.pauses
    paused = {entry.run_id for entry in waiting if pauses.seconds_left(entry.run_id)}
    return Waiting(
        destination,
        len(waiting),
        len(dead),
        sum(entry.size for entry in (*waiting, *dead)),
        waiting[0].put_at.timestamp() if waiting else 0.0,
        pauses.seconds_left(BACKEND),
        len(paused),
        next(filter(None, map(pauses.why, (BACKEND, *sorted(paused)))), ""),
    )
