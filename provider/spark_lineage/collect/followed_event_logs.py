"""The event logs of the applications of one launch, folded while Spark writes them, and to the last line at the end."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.collect.event_log import EventLogError, FollowedEventLog
from spark_lineage.collect.event_log_files import IN_PROGRESS, logs_of

if TYPE_CHECKING:
    from spark_lineage.collect.collector import DirectoryCollector
    from spark_lineage.inject.event_log import EventLogInjection
    from spark_lineage.merge.execution import Execution
    from spark_lineage.merge.transition import StatusReport
    from spark_lineage.tolerance import Tolerance

log = logging.getLogger(__name__)


class FollowedEventLogs:
    """Folds into ``collector`` what the driver logs, in its own directory or in the user's.

    :param tell: called with what a log says of status
    """

    def __init__(
        self,
        collector: DirectoryCollector,
        event_log: EventLogInjection | None,
        tell: Callable[[StatusReport], object],
    ) -> None:
        self._collector = collector
        self._directory = Path(event_log.directory) if event_log is not None and event_log.directory else None
        self._is_ours = event_log is not None and event_log.is_ours
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

    def finish(self, tolerating: Tolerance) -> None:
        """Fold what is left, to the last line; a log of ours has then served its purpose."""
        if self._directory is None:
            return
        with tolerating("Some lineage may be missing, because the event log cannot be read", can_fail=False):
            self._find()
            for one in self._logs.values():
                with one:
                    self._fold(one.finish())
        if self._is_ours and not self._collector.is_closed:
            with tolerating("An event log stays", can_fail=False):
                shutil.rmtree(self._directory)

    def _find(self) -> None:
        if self._directory is None:
            return
        for application_id in self._collector.application_ids:
            for path in logs_of(self._directory, [application_id]):
                self._found_for.add(application_id)
                name = path.name.removesuffix(IN_PROGRESS)
                if name not in self._logs:
                    counts, tell = self._collector.log_counts, self._tell
                    self._logs[name] = FollowedEventLog(path, counts, tell, lambda: self._collector.is_closed)

    def _fold(self, executions: Iterator[Execution]) -> None:
        for execution in executions:
            self._collector.state.add_execution(execution)
