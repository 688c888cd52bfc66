"""Keeps copies of event logs from elsewhere in the directory of a launch, where they are read like its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from spark_lineage.launch.directory import EVENT_LOG_DIRECTORY, OWN_EVENT_LOGS, append_private
from spark_lineage.plans.event_log_files import IN_PROGRESS, parts_of


class SourceError(Exception):
    """A source that cannot be used; the text says why, without secrets."""


@dataclass(frozen=True)
class Wanted:
    """The wanted logs: those of some applications, or, while none is known, those submitted as a run.

    Logs from before ``earliest``, in epoch seconds, are not looked into.

    :param has_several: whether the run may have logs of applications that are not known yet
    :param is_shared: whether a log serves others as well, so that of its parts from before only the beginning is wanted
    """

    run_id: str
    earliest: float
    application_ids: Callable[[], set[str]]
    is_shared: bool = False
    has_several: bool = False


class Copies:
    """The files of logs that were copied; sizes of those that were read and removed are remembered.

    A file is named by its log and its part, which is empty where the log is one file. ``.inprogress`` is left out, so
    that a log keeps its name.

    :param names: gets the names of the logs that are copied
    """

    def __init__(self, directory: Path, names: set[str], is_over: Callable[[], bool]) -> None:
        self.is_over = is_over
        self.names = names
        self._directory = directory / EVENT_LOG_DIRECTORY / OWN_EVENT_LOGS
        self._sizes: dict[Path, int] = {}
        self._numbers: dict[str, int] = {}

    @property
    def total(self) -> int:
        """How many bytes are here, or were."""
        return sum(self._sizes.values())

    def parts(self, log: str, names: Iterable[str]) -> list[str]:
        """Return the parts of a rolling log of which something may be missing, in their order.

        All parts but the last are whole, so they must be copied in this order.
        """
        found = [(number, name) for number, name in parts_of(names) if number >= self._numbers.get(log, -1)]
        if found:
            self._numbers[log] = found[-1][0]
        return [name for _, name in found]

    def size(self, log: str, part: str = "") -> int:
        """Return how many bytes of a file were copied."""
        path = self._path(log, part)
        if path not in self._sizes:
            # An earlier try may have copied it.
            self._sizes[path] = path.stat().st_size if path.is_file() else 0
        return self._sizes[path]

    def add(self, log: str, part: str, pieces: Iterable[bytes]) -> None:
        """Append what follows in a file.

        :raises OSError: when it cannot be written, or the disk is nearly full
        """
        path, size = self._path(log, part), self.size(log, part)
        if size and not path.exists():
            return
        for piece in pieces:
            if self.is_over():
                return
            append_private(path, [piece])
            self._sizes[path] += len(piece)
            self.names.add(self._path(log).name)

    def add_beginning(self, log: str, part: str, piece: bytes, changed: float) -> None:
        """Keep no more than the beginning of a part, with the time of its last change, by which readers know it."""
        if not self.size(log, part):
            self.add(log, part, [piece])
            os.utime(self._path(log, part), (changed, changed))

    def _path(self, log: str, part: str = "") -> Path:
        names = [log.removesuffix(IN_PROGRESS), *([part] if part else [])]
        if any(Path(name).name != name or name.startswith(".") for name in names):
            raise SourceError("a file of an event log has a name that Spark does not give")
        return self._directory.joinpath(*names)
