"""The event logs of the applications of one launch, folded while Spark writes them, and to the last line at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.launch.directory import local_directory
from spark_lineage.launch.retention import remove_event_logs, remove_part
from spark_lineage.plans.event_log import EventLogError, FollowedEventLog
from spark_lineage.plans.event_log_files import IN_PROGRESS, logs_of

if TYPE_CHECKING:
    from spark_lineage.collect.collector import DirectoryCollector
    from spark_lineage.launch.guard import Guard
    from spark_lineage.merge.execution import Execution
    from spark_lineage.merge.transition import StatusReport

log = logging.getLogger(__name__)


class FollowedEventLogs:
    """Folds into ``collector`` what the driver logs, in our directory, in the user's, or in the program's.

    :param directories: where the logs may lie
    :param ours: the one of them that holds nothing but the logs of this launch, None for none
    :param tell: called with what a log says of status
    """

    def __init__(
        self,
        collector: DirectoryCollector,
        tell: Callable[[StatusReport], object],
        directories: Sequence[Path] = (),
        *,
        ours: Path | None = None,
    ) -> None:
        self._collector = collector
        self._directories = directories
        self._ours = ours
        self._tell = tell
        self._logs: dict[str, FollowedEventLog] = {}
        self._found_for: set[str] = set()
        self.is_followed = False
        """Whether what the applications do is read from a log: the listener is not the only witness."""

    def poll(self) -> None:
        """Fold what was added since the last call; trouble is left to the end."""
        try:
            # The user's own directory may hold many logs: it is looked through until that of each application is found.
            if not self._collector.application_ids <= self._found_for:
                self._find()
            for one in self._logs.values():
                self._fold(one.poll())
            self.is_followed = bool(self._logs)
        except (EventLogError, OSError) as error:
            self.is_followed = False
            log.debug("The event log cannot be read yet: %s", error)

    def finish(self, guard: Guard) -> None:
        """Fold what is left, to the last line; a log of ours has then served its purpose."""
        with guard("Some lineage may be missing, because the event log cannot be read", can_fail=False):
            self._find()
            for one in self._logs.values():
                with closing(one):
                    self._fold(one.finish())
        if self._ours is not None and not self._collector.is_closed:
            with guard("An event log stays", can_fail=False):
                remove_event_logs(self._ours.parent.parent, self._found_for)

    @property
    def missing(self) -> set[str]:
        """The applications of which a log is expected, or was told, and none was found."""
        told = self._collector.event_log_directories.keys()
        known = self._collector.application_ids
        return (known if self._directories else known & told) - self._found_for

    def _find(self) -> None:
        for application_id in self._collector.application_ids:
            for path in self._logs_of(application_id):
                self._found_for.add(application_id)
                name = path.name.removesuffix(IN_PROGRESS)
                if name not in self._logs:
                    counts, tell = self._collector.log_counts, self._tell
                    remove = self._remove if path.parent == self._ours else None
                    self._logs[name] = FollowedEventLog(
                        path, counts, tell, lambda: self._collector.is_closed, remove=remove
                    )

    def _remove(self, part: Path) -> None:
        if self._ours is not None:
            remove_part(self._ours.parent.parent, part)

    def _logs_of(self, application_id: str) -> Iterator[Path]:
        """Return the logs of an application, where it says that they are, or else where they are expected."""
        told = self._collector.event_log_directories.get(application_id, "")
        # Ours is told as it was asked for, with the variable in it.
        local = local_directory(told) if "${" not in told else None
        for directory in [Path(local)] if local else self._directories:
            if directory.is_dir():
                yield from logs_of(directory, [application_id])

    def _fold(self, executions: Iterable[Execution]) -> None:
        for execution in executions:
            self._collector.state.add_execution(execution)
