"""The collecting side of a session: what the driver of a launch writes, followed while it runs, and read at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.collect.collector import DirectoryCollector, Follower
from spark_lineage.collect.followed_event_logs import FollowedEventLogs
from spark_lineage.launch.log import Log
from spark_lineage.task.reading import read_all
from spark_lineage.task.tracking import Tracking

if TYPE_CHECKING:
    from spark_lineage.inject.event_log import EventLogInjection
    from spark_lineage.launch.guard import Guard
    from spark_lineage.launch.kill import Kill
    from spark_lineage.merge.transition import StatusReport
    from spark_lineage.settings.task import TaskSettings
    from spark_lineage.submit.hook import Submission
    from spark_lineage.task.task_events import TaskEvents
    from spark_lineage.task.watching import Watching

_SECONDS = 5.0


class Collecting:
    """Of one launch, by its directory; ``collector`` has what was collected so far. It begins at once.

    :param event_log: where the driver logs, None where that is not known
    :param submission: learns what the events tell of the application, and ``watching`` after it
    :param events: is given the lineage so far when it is time for that
    """

    def __init__(
        self,
        directory: Path,
        task: TaskSettings,
        submission: Submission,
        watching: Watching,
        events: TaskEvents,
        *,
        event_log: EventLogInjection | None,
        guard: Guard,
        logger: Log,
    ) -> None:
        self.collector = DirectoryCollector(directory, logger)
        self._submission = submission
        self._watching = watching
        self._guard = guard
        self._log = logger
        self._seconds = task.settings.collect_timeout_seconds
        directories, ours = event_log.places if event_log is not None else ((), None)
        self._event_logs = FollowedEventLogs(self.collector, self._tell, directories, ours=ours)
        self._tracking = Tracking(
            task.settings.tracking_interval_seconds,
            naming=task.naming,
            send=events.go_on,
            status=lambda: watching.summary,
            guard=guard,
        )
        self._follower = Follower(self.collector, task.settings.poll_interval_seconds, self._after_poll)
        self._follower.start()

    def read_all(self, kill: Kill) -> bool:
        """Read to the last line, as long as the setting and a kill allow, and give whether there was time for that.

        :raises OSError: when a lineage file is there and cannot be read; the rest has been read then
        """
        try:
            is_whole = read_all(
                self._follower,
                self._event_logs,
                kill,
                self._seconds,
                observe=self._observe,
                guard=self._guard,
            )
        finally:
            if not self._tracking.stop(kill.seconds(_SECONDS)):
                self._log.warning("The backend has not taken a RUNNING event yet: it may come after the last one.")
        if missing := self._event_logs.missing:
            text = (
                "No event log was found of %s: the program has turned it off, or writes one of its own on another "
                "file system. Some lineage may be missing."
            )
            self._log.info(text, ", ".join(sorted(missing)))
        if not is_whole and kill.why:
            text = "Some lineage may be missing: the task is being killed, and there was no time to read all."
            self._log.warning(text)
        return is_whole

    def _after_poll(self, collector: DirectoryCollector) -> None:
        self._observe()
        self._event_logs.poll()
        self._tracking.tell(collector, is_logged=self._event_logs.is_followed)

    def _tell(self, report: StatusReport) -> None:
        # Nobody watches a launch before it was submitted.
        if (tell := self._watching.tell) is not None:
            tell(report)

    def _observe(self) -> None:
        """Tell the sources, and the timeline, what the events have told so far."""
        self._submission.learn(self.collector.state.applications.values())
        self._watching.learn(self._submission)
        self._watching.observe(self.collector)
