"""Removes lineage files that are too old, a step at a time, and never through a link.

Others may write below the lineage directory. So every directory is opened within the one above it, links are not
followed, and only files with a name that we or Spark give are removed. Errors are those of ``os``.
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
    OWN_EVENT_LOGS,
    PRIVATE_FILE,
    ROLLING,
    RUN_EVENTS_FILE,
    TRANSITIONS_FILE,
    root_of,
)
from spark_lineage.launch.lock import locked, within

_FILES = (EVENTS_FILE, PRIVATE_FILE, DECLARE_ARCHIVE, LAUNCH_FILE, TRANSITIONS_FILE, RUN_EVENTS_FILE)
_NAMES = "|".join(map(re.escape, _FILES))
# The names of `spark_lineage.declare` too, and of a file that `replace_private` leaves when its process is killed.
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
# The least number of launches for each call, however little time it has: so each call makes progress.
_AT_LEAST = 100
# Another user's directory may not be ours to read, and another task may be at work here.
_NOT_OURS = (FileNotFoundError, NotADirectoryError, PermissionError)


def clean_up(root: Path, retention_days: float, *, keep: Path, is_over: Callable[[], bool] = lambda: False) -> int:
    """Remove lineage files that nothing was added to for ``retention_days``, and directories that are empty then.

    All launches are gone through at most once an hour, by one process at a time; ``keep`` stays. Returns how many files
    were removed.

    :param is_over: asked now and then; where the time is over, the next call goes on from there
    """
    removed = 0
    oldest = time.time() - retention_days * _DAY_SECONDS
    with suppress(FileNotFoundError), _opened(str(root)) as top, _turn(top) as turn:
        if turn is None:
            return 0
        if not turn:
            removed += _expire_last_ends(top, oldest)
        with closing(_launches(top, tuple(turn))) as launches:
            turn.clear()
            for count, (names, parent) in enumerate(launches):
                if count >= _AT_LEAST and is_over():
                    turn[:] = names
                    break
                if keep != (directory := root.joinpath(*names)):
                    with suppress(*_NOT_OURS):
                        removed += _expire(directory, parent, oldest)
    return removed


@LINEAGE_FILES.bounded
def remove_submitted(directory: Path) -> None:
    """Remove what only the submission of a launch needed, and its directory if that is empty.

    :raises OSError: when something cannot be removed
    """
    for name in (PRIVATE_FILE, DECLARE_ARCHIVE):
        (directory / name).unlink(missing_ok=True)
    remove_if_empty(directory)


def remove_if_empty(directory: Path) -> None:
    """Remove the directory of a launch, and those above it up to the lineage directory, as far as they are empty."""
    with suppress(OSError), ExitStack() as stack:
        *holders, _ = _all_opened(stack, directory)
        for holder, name in zip(reversed(holders), reversed(directory.parts), strict=False):
            os.rmdir(name, dir_fd=holder)


def remove_event_logs(directory: Path, applications: Iterable[str] = ()) -> None:
    """Remove the event logs of a launch, also those of some applications whose ids Spark would not have given."""
    with suppress(FileNotFoundError), ExitStack() as stack:
        _event_logs(stack, _all_opened(stack, directory)[-1], tuple(applications)).remove()


def remove_part(directory: Path, part: Path) -> None:
    """Remove a file of the event logs of a launch that was read, unless a link leads there."""
    with suppress(OSError), ExitStack() as stack:
        os.unlink(part.name, dir_fd=_all_opened(stack, directory, *part.parent.relative_to(directory).parts)[-1])


def _all_opened(stack: ExitStack, launch: Path, *below: str) -> list[int]:
    """Open the lineage directory of a launch, and what leads to the launch or below it, one within the other."""
    root = root_of(launch)
    opened = [stack.enter_context(_opened(str(root)))]
    for name in (*launch.relative_to(root).parts, *below):
        opened.append(stack.enter_context(_opened(name, opened[-1])))
    return opened


class _Ours(NamedTuple):
    """The removable files of a launch: entries, each with the directory it is in, and directories of event logs."""

    entries: list[tuple[int, os.DirEntry[str]]]
    directories: list[tuple[int, str]]

    def remove(self) -> None:
        for holder, entry in self.entries:
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=holder)
        for holder, name in reversed(self.directories):
            # A directory that holds other files stays.
            with suppress(OSError):
                os.rmdir(name, dir_fd=holder)


def _event_logs(stack: ExitStack, launch: int, applications: tuple[str, ...] = ()) -> _Ours:
    """Return what Spark logged, and the links that lie beside it; not what they lead to."""
    found = _Ours([], [])

    def within(name: str, parent: int) -> Iterator[tuple[int, os.DirEntry[str]]]:
        with suppress(*_NOT_OURS):
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


@contextmanager
def _turn(top: int) -> Iterator[list[str] | None]:
    """Return the path of the launch to go on from, to be changed, empty for the first one.

    None while another process cleans up, or all was gone through within the hour.
    """
    with locked(_MARKER, within(0), flags=os.O_NOFOLLOW | os.O_NONBLOCK, parent=top) as marker:
        text = b"" if marker is None else os.pread(marker, _MARKER_BYTES, 0)
        position: list[str] = []
        with suppress(msgspec.DecodeError):
            position = msgspec.json.decode(text, type=list[str])
        is_over = text and not position
        if marker is None or (is_over and 0 <= time.time() - os.fstat(marker).st_mtime < _INTERVAL_SECONDS):
            yield None
            return
        yield position
        os.ftruncate(marker, 0)
        os.pwrite(marker, msgspec.json.encode(position), 0)


def _launches(top: int, first: Sequence[str] = ()) -> Generator[tuple[tuple[str, ...], int]]:
    """Return the directories of launches from one on, by name: each as its path, and what it lies in."""
    for path, names, _, holder in os.fwalk(".", onerror=_only_missing, dir_fd=top):
        above = Path(path).parts
        names[:] = sorted(name for name in names if (*above, name) >= tuple(first[: len(above) + 1]))
        if len(above) == _LAUNCH_DEPTH - 1:
            yield from (((*above, name), holder) for name in names if _LAUNCH.fullmatch(name))
            names.clear()


def _only_missing(error: OSError) -> None:
    if not isinstance(error, _NOT_OURS):
        raise error


def old_launches(root: Path, retention_days: float) -> Iterator[Path]:
    """Return the directories of the launches that ``clean_up`` would remove files of."""
    oldest = time.time() - retention_days * _DAY_SECONDS
    with suppress(FileNotFoundError), _opened(str(root)) as top, closing(_launches(top)) as launches:
        for names, parent in launches:
            with suppress(*_NOT_OURS), ExitStack() as stack:
                if _old(stack, names[-1], parent, oldest) is not None:
                    yield root.joinpath(*names)


def _expire(directory: Path, parent: int, oldest: float) -> int:
    with ExitStack() as stack:
        if (ours := _old(stack, directory.name, parent, oldest)) is None:
            return 0
        ours.remove()
    remove_if_empty(directory)
    return sum(not entry.is_symlink() for _, entry in ours.entries)


def _old(stack: ExitStack, name: str, parent: int, oldest: float) -> _Ours | None:
    """Return what is ours in the directory of a launch; None where a file of it is not old enough."""
    launch = stack.enter_context(_opened(name, parent))
    ours = _event_logs(stack, launch)
    ours.entries.extend((launch, entry) for entry in _files(launch) if _OURS.fullmatch(entry.name))
    files = [entry for _, entry in ours.entries if not entry.is_symlink()]
    times = [entry.stat(follow_symlinks=False).st_mtime for entry in files] or [os.fstat(launch).st_mtime]
    return None if max(times) >= oldest else ours


def _expire_last_ends(top: int, oldest: float) -> int:
    removed = 0
    with suppress(FileNotFoundError, NotADirectoryError), _opened(LAST_ENDS_DIRECTORY, top) as ends:
        for entry in _files(ends):
            with suppress(FileNotFoundError):
                if _LAST_ENDS.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.name, dir_fd=ends)
                    removed += 1
    return removed


def _files(directory: int) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return [entry for entry in entries if entry.is_file(follow_symlinks=False)]


@contextmanager
def _opened(name: str, parent: int | None = None) -> Iterator[int]:
    """Open a directory: the lineage directory itself, or, without following a link, one that lies in another."""
    links = 0 if parent is None else os.O_NOFOLLOW
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | links, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
