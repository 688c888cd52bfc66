"""Removes lineage files that are too old, a step at a time, and never through a link.

Others may write below the lineage directory. So every directory is opened within the one above it, links are not
followed, and only files with a name that we or Spark give are removed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import (
    CLAIM_PREFIX,
    DECLARE_ARCHIVE,
    EVENT_LOG_DIRECTORY,
    EVENTS_FILE,
    LAST_ENDS_DIRECTORY,
    LAUNCH_FILE,
    LISTENER_FILE,
    OWN_EVENT_LOGS,
    PRIVATE_FILE,
    ROLLING,
    RUN_EVENTS_FILE,
    TRANSITIONS_FILE,
    root_of,
)
from spark_lineage.launch.lock import locked, within

_FILES = (EVENTS_FILE, PRIVATE_FILE, LISTENER_FILE, DECLARE_ARCHIVE, LAUNCH_FILE, TRANSITIONS_FILE, RUN_EVENTS_FILE)
_NAMES = "|".join(map(re.escape, _FILES))
# Also those of `spark_lineage.declare`, and what `replace_private` leaves when its process is killed.
_OURS = re.compile(rf"{_NAMES}|declared-\d+-[0-9a-f]+\.ndjson|{CLAIM_PREFIX}[\w-]+|\.(?:{_NAMES})\.\d+")
_LAST_ENDS = re.compile(r".+-[0-9a-f]{32}\.json(?:\.\d+)?")
# The ids that Spark's schedulers and cluster managers give; an attempt, a codec, and `.inprogress` may follow.
APPLICATION = re.compile(r"local-\d+|app-\d+-\d+|application_\d+_\d+|spark-(?:application-)?[0-9a-f]+")
EVENT_LOG = re.compile(rf"(?:{ROLLING})?(?:{APPLICATION.pattern})(?:_\w+)?(?:\.[a-z0-9]+)?(?:\.inprogress)?")
_PART_OF_LOG = re.compile(r"\.?(?:events_\d+|appstatus)_.+")
# try_number-application_run_id
_LAUNCH = re.compile(r"\d+-[0-9A-Za-z]{8}(?:-[0-9A-Za-z]{4}){3}-[0-9A-Za-z]{12}")
_LAUNCH_DEPTH = 5
_MARKER = ".retention"
_MARKER_BYTES = 4096
_DAY_SECONDS = 24 * 60 * 60
_INTERVAL_SECONDS = 60 * 60
# So many launches are looked at, however little time there is: else nothing would ever be done.
_AT_LEAST = 100


def clean_up(root: Path, retention_days: float, *, keep: Path, is_over: Callable[[], bool] = lambda: False) -> int:
    """Remove lineage files that nothing was added to for ``retention_days``, and directories that are empty then.

    All launches are gone through at most once an hour, by one process at a time; ``keep`` stays.

    :param is_over: asked now and then; where the time is over, the next call goes on from there
    :return: the number of files removed
    :raises OSError: when something cannot be removed
    """
    removed = 0
    oldest = time.time() - retention_days * _DAY_SECONDS
    with suppress(FileNotFoundError), _opened(str(root)) as top, _turn(top) as turn:
        if turn is None:
            return 0
        if not turn.position:
            removed += _expire_last_ends(top, oldest)
        with closing(_launches(top, _LAUNCH_DEPTH, turn.position)) as launches:
            turn.position = ()
            for count, (names, parent) in enumerate(launches):
                if count >= _AT_LEAST and is_over():
                    turn.position = names
                    break
                if keep != root.joinpath(*names):
                    # Another user's directory may not be ours to read, and another task may be at work here.
                    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                        removed += _expire(top, names, parent, oldest)
    return removed


@LINEAGE_FILES.bounded
def remove_if_empty(directory: Path) -> None:
    """Remove the directory of a launch, and those above it up to the lineage directory, as far as they are empty."""
    root = root_of(directory)
    with suppress(OSError), _opened(str(root)) as top:
        _remove_empty(top, directory.relative_to(root).parts)


def remove_event_logs(directory: Path, applications: Iterable[str] = ()) -> None:
    """Remove the event logs of a launch, also those of some applications whose ids Spark would not have given.

    :raises OSError: when they cannot be removed
    """
    with suppress(FileNotFoundError), ExitStack() as stack:
        _event_logs(stack, _opened_below(stack, root_of(directory), directory), tuple(applications)).remove()


def remove_part(directory: Path, part: Path) -> None:
    """Remove a file of the event logs of a launch that was read, unless a link leads there."""
    with suppress(OSError), ExitStack() as stack:
        os.unlink(part.name, dir_fd=_opened_below(stack, root_of(directory), part.parent))


def _opened_below(stack: ExitStack, root: Path, directory: Path) -> int:
    opened = stack.enter_context(_opened(str(root)))
    for name in directory.relative_to(root).parts:
        opened = stack.enter_context(_opened(name, opened))
    return opened


class _EventLogs(NamedTuple):
    """What belongs to the event logs of a launch: entries, each with the directory it is in, and directories."""

    entries: list[tuple[int, os.DirEntry[str]]]
    directories: list[tuple[int, str]]

    def remove(self) -> None:
        for holder, entry in self.entries:
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=holder)
        for holder, name in reversed(self.directories):
            # What is not ours stays.
            with suppress(OSError):
                os.rmdir(name, dir_fd=holder)


def _event_logs(stack: ExitStack, launch: int, applications: tuple[str, ...] = ()) -> _EventLogs:
    """Return what Spark logged, and the links that lie beside it; not what they lead to."""
    found = _EventLogs([], [])

    def within(name: str, parent: int) -> Iterator[tuple[int, os.DirEntry[str]]]:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            child = stack.enter_context(_opened(name, parent))
            found.directories.append((parent, name))
            with os.scandir(child) as entries:
                yield from ((child, entry) for entry in list(entries))

    for top, beside in within(EVENT_LOG_DIRECTORY, launch):
        if beside.name != OWN_EVENT_LOGS:
            found.entries.extend([(top, beside)] if beside.is_symlink() and beside.name.lower() == "true" else ())
            continue
        for own, entry in within(beside.name, top):
            name = entry.name.removeprefix(ROLLING)
            if not (EVENT_LOG.fullmatch(entry.name) or (applications and name.startswith(applications))):
                continue
            if entry.is_file(follow_symlinks=False):
                found.entries.append((own, entry))
            elif entry.is_dir(follow_symlinks=False):
                found.entries.extend(one for one in within(entry.name, own) if _PART_OF_LOG.fullmatch(one[1].name))
    return found


class _Turn(msgspec.Struct):
    """Whose turn it is to clean up: ``position`` is the launch to go on from, empty for the first one."""

    position: tuple[str, ...] = ()


@contextmanager
def _turn(top: int) -> Iterator[_Turn | None]:
    """Return the turn, None while another process has it, or all was gone through within the hour."""
    with locked(_MARKER, within(0), flags=os.O_NOFOLLOW | os.O_NONBLOCK, parent=top) as marker:
        if marker is None:
            yield None
            return
        text = os.pread(marker, _MARKER_BYTES, 0)
        turn = _Turn()
        with suppress(msgspec.DecodeError):
            turn = msgspec.json.decode(text, type=_Turn)
        if text and not turn.position and 0 <= time.time() - os.fstat(marker).st_mtime < _INTERVAL_SECONDS:
            yield None
            return
        yield turn
        os.ftruncate(marker, 0)
        os.pwrite(marker, msgspec.json.encode(turn), 0)


def _launches(parent: int, depth: int, after: Sequence[str]) -> Generator[tuple[tuple[str, ...], int]]:
    """Return the directories of launches in the order of their names, each as its path, and what it lies in.

    :param after: the path to go on from
    """
    with os.scandir(parent) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    for name in names:
        if after and name < after[0]:
            continue
        if depth == 1:
            if _LAUNCH.fullmatch(name):
                yield (name,), parent
            continue
        rest = after[1:] if after and name == after[0] else ()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError), _opened(name, parent) as child:
            for below, holder in _launches(child, depth - 1, rest):
                yield (name, *below), holder


def old_launches(root: Path, retention_days: float) -> Iterator[Path]:
    """Return the directories of the launches that ``clean_up`` would remove files of.

    :raises OSError: when something cannot be read
    """
    oldest = time.time() - retention_days * _DAY_SECONDS
    with (
        suppress(FileNotFoundError),
        _opened(str(root)) as top,
        closing(_launches(top, _LAUNCH_DEPTH, ())) as launches,
    ):
        for names, parent in launches:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError), ExitStack() as stack:
                if _old(stack, names[-1], parent, oldest) is not None:
                    yield root.joinpath(*names)


def _expire(top: int, names: Sequence[str], parent: int, oldest: float) -> int:
    with ExitStack() as stack:
        if (old := _old(stack, names[-1], parent, oldest)) is None:
            return 0
        ours, logs = old
        for holder, entry in ours:
            os.unlink(entry.name, dir_fd=holder)
        logs.remove()
    _remove_empty(top, names)
    return len(ours) + sum(not entry.is_symlink() for _, entry in logs.entries)


def _old(
    stack: ExitStack, name: str, parent: int, oldest: float
) -> tuple[list[tuple[int, os.DirEntry[str]]], _EventLogs] | None:
    """Return our files in the directory of a launch, and its event logs; None where one of them is not old enough."""
    launch = stack.enter_context(_opened(name, parent))
    ours = [(launch, entry) for entry in _files(launch) if _OURS.fullmatch(entry.name)]
    logs = _event_logs(stack, launch)
    files = [*ours, *(each for each in logs.entries if not each[1].is_symlink())]
    times = [entry.stat(follow_symlinks=False).st_mtime for _, entry in files] or [os.fstat(launch).st_mtime]
    return None if max(times) >= oldest else (ours, logs)


def _expire_last_ends(top: int, oldest: float) -> int:
    removed = 0
    with suppress(FileNotFoundError, NotADirectoryError), _opened(LAST_ENDS_DIRECTORY, top) as ends:
        for entry in _files(ends):
            with suppress(FileNotFoundError):
                if _LAST_ENDS.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.name, dir_fd=ends)
                    removed += 1
    return removed


def _remove_empty(top: int, names: Sequence[str]) -> None:
    with suppress(OSError), ExitStack() as stack:
        holders = [top]
        for name in names[:-1]:
            holders.append(stack.enter_context(_opened(name, holders[-1])))
        for holder, name in zip(reversed(holders), reversed(names), strict=True):
            os.rmdir(name, dir_fd=holder)


def _files(directory: int) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return [entry for entry in entries if entry.is_file(follow_symlinks=False)]


@contextmanager
def _opened(name: str, parent: int | None = None) -> Iterator[int]:
    """Open a directory: the lineage directory itself, or, without following a link, one that lies in another.

    :raises OSError: for what cannot be opened, or is none
    """
    links = 0 if parent is None else os.O_NOFOLLOW
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | links, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
