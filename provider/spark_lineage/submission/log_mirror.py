"""Copies event logs from other file systems or servers: from the first source that works, else from the next."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.launch.bounded_run import Deadline
from spark_lineage.launch.directory import DELIVERED_JOB, local_directory, remote_directory, split_connection
from spark_lineage.launch.launch import application_ids
from spark_lineage.launch.line import no_event_log
from spark_lineage.launch.log import Log, error_line
from spark_lineage.submission.collector import Collector, earliest_of_run
from spark_lineage.submission.copies import Copies, Wanted
from spark_lineage.submission.history_log import HistoryLog, HistoryLogs
from spark_lineage.submission.stored_event_log import StoredEventLog, why_unreadable

if TYPE_CHECKING:
    from spark_lineage.launch.driver import Driver
    from spark_lineage.launch.launch import Launch

Source = StoredEventLog | HistoryLog

CUT_OFF = "event log without its end"
_NO_SERVER_LOG = (
    "Nothing is known of what the Spark Connect server does: {}. Set spark.eventLog.enabled=true for the server, and a "
    "spark.eventLog.dir that the worker can read: a directory that both see, or one on HDFS."
)
# The part of the time at the end that is reserved for reading the copies.
_READING_SECONDS = 5.0
_PAUSE_SECONDS, _BRIEF_SECONDS = 1.0, 3.0
# The time in which a History Server sees a log that a killed driver began.
_KILLED_SECONDS = 12.0


def why_not_copied(url: str, event_log_from: str, webhdfs_urls: Sequence[str], *, has_history: bool) -> str:
    """Return why an event log that this machine does not see cannot be copied, empty where it can."""
    if event_log_from == "directory":
        return "event_log_from is directory"
    is_elsewhere = event_log_from == "auto" and local_directory(url) is not None
    stored = "it is on the driver's machine" if is_elsewhere else why_unreadable(url, webhdfs_urls)
    history = "" if has_history else "the connection names no history_server_url"
    reasons = {"event_log": (stored,), "history": (history,)}.get(event_log_from, (stored, history))
    return "" if "" in reasons else "; ".join(reasons)


def server_log_directory(given: str, event_log_from: str, webhdfs_urls: Sequence[str]) -> str:
    """Return where the event log of a server is read that others use as well: a path, or the URL of a directory.

    :param given: its ``spark.eventLog.dir``, empty where it writes none
    :raises OSError: where it cannot be read from here; the text says what to set
    """
    path = local_directory(given)
    if path is not None and event_log_from in {"auto", "directory"} and os.access(path, os.R_OK | os.X_OK):
        return path
    url = Path(path).as_uri() if path is not None else remote_directory(given)
    if not given:
        reason = "it writes no event log"
    elif event_log_from == "history":
        reason = "event_log_from is history, and the History Server gives a log as a whole"
    elif url is None:
        reason = f"its spark.eventLog.dir {given} is no directory"
    elif why_not := why_not_copied(url, event_log_from, webhdfs_urls, has_history=False):
        reason = f"its spark.eventLog.dir {given} cannot be read here ({why_not})"
    else:
        return url
    raise OSError(_NO_SERVER_LOG.format(reason))


class LogMirror:
    """Copies the event logs of one launch that this machine does not see into the launch's directory.

    It is for one thread, as the collector is. An error is logged once for each source, and not raised.

    :param event_log_from: the setting: ``auto``, ``directory``, ``event_log`` or ``history``
    :param driver: what is known of the driver, with its applications
    :param history: asks the History Server; None where the connection names none
    """

    def __init__(
        self,
        launch: Launch,
        event_log_from: str,
        collector: Collector,
        *,
        driver: Driver,
        history: HistoryLogs | None,
        webhdfs_urls: Sequence[str] = (),
        logger: Log,
    ) -> None:
        self.names: set[str] = set()
        """The logs that were copied."""
        self.is_asking = False
        """Whether a source is being asked, which may hang."""
        self._launch = launch
        self._event_log_from = event_log_from
        self._collector = collector
        self._log = logger
        self.webhdfs_urls = webhdfs_urls
        self._driver = driver
        self._history = history
        self._logged: set[str] = set()
        self._trouble = ""

    @cached_property
    def copies(self) -> Copies:
        """Where they are kept."""
        return Copies(Path(self._launch.directory), self.names, lambda: self._collector.is_closed)

    @cached_property
    def _sources(self) -> Sequence[Source]:
        run_id, collector, driver = self._launch.application_run_id, self._collector, self._driver
        wanted = Wanted(
            run_id,
            earliest_of_run(run_id),
            lambda: (
                collector.application_ids
                | application_ids(driver.application_id, driver.driver_id)
                | set(driver.logged_ids)
            ),
            is_shared=bool(self._launch.session_id),
            has_several=bool(self._launch.service),
        )
        sources: list[Source] = []
        if self._event_log_from in {"auto", "event_log"}:
            sources.append(StoredEventLog(self._urls, self.copies, wanted, self.webhdfs_urls))
        if self._history is not None and not wanted.is_shared and self._event_log_from in {"auto", "history"}:
            sources.append(HistoryLog(self._history, self.copies, wanted))
        return sources

    @property
    def is_expected(self) -> bool:
        """Whether a log lies elsewhere, as far as is known."""
        return any("://" in place for place in self._launch.event_logs) or bool(self._urls())

    def described(self) -> str:
        """Return which source is the first, and why; empty for a directory that this machine sees, and for none."""
        if not self.is_expected:
            return ""
        reasons = ["this machine sees no directory of it"] if self._event_log_from == "auto" else []
        for source in self._sources:
            urls = self._urls() if source.is_growing else []
            why_not = [why_unreadable(url, self.webhdfs_urls) for url in urls] if urls else []
            if source.is_growing and (not urls or all(why_not)):
                reasons += [*dict.fromkeys(why_not)] or ["it lies on the driver's machine"]
                continue
            why = f": {'; '.join(reasons)}" if reasons else ""
            return f"the event log is collected from {source.description} (event_log_from={self._event_log_from}{why})"
        return ""

    def poll(self) -> None:
        """Copy what was added since the last call."""
        for source in self._sources if self._urls() else ():
            if source.is_growing:
                self._pull(source)

    def finish(self, deadline: Deadline, *, is_missing: bool, is_killed: bool = False) -> None:
        """Copy the rest, and wait for the ends of the applications as long as each source is worth it.

        :param is_missing: whether a log was expected in a directory of this machine, and none was found there
        """
        if not (self.is_expected or is_missing) or not (self._urls() or self._history):
            return
        if self._launch.session_id:
            # Its server goes on; the reader asks for more until it has the end of the session.
            self.poll()
            if self._trouble:
                self._log.warning("The event log of the server is not read: %s.", self._trouble)
            return
        is_patient = self.is_expected or self._launch.deploy_mode != "client"
        until = deadline.within(deadline.seconds_left, leaving=min(_READING_SECONDS, deadline.seconds_left / 4))
        urls = [url for url in self._urls() if not why_unreadable(url, self.webhdfs_urls)]
        sources = [source for source in self._sources if not source.is_growing or urls]
        refused = ""
        for position, source in enumerate(sources):
            # A log without its end is late, or its driver was killed: the next source hardly has more of it.
            patience = max(_BRIEF_SECONDS if self.names else source.patience_seconds, self._launch.log_delay)
            if is_killed:
                patience = min(patience, _KILLED_SECONDS)
            if self._wait(source, until.within(patience if is_patient else 0.0)):
                return
            refused = self._trouble if source.is_growing else refused
            if is_patient:
                what = "is without the application's end" if self.names else "has not come"
                following = f"; next is {sources[position + 1].description}" if position + 1 < len(sources) else ""
                why = self._trouble and f" ({self._trouble})"
                self._log.warning("The event log from %s %s%s%s.", source.description, what, why, following)
        if sources and is_patient:
            self._collector.counts.add(CUT_OFF if self.names else no_event_log(refused) or CUT_OFF)
            state = self._collector.state
            state.is_torn |= not any(one.is_ended for one in state.applications.values())

    def _wait(self, source: Source, until: Deadline) -> bool:
        """Ask a source until the end has come; once more for what it has, when the time is over."""
        is_logged = False
        while not self._collector.is_closed:
            # A program may have begun another application since its log was looked for.
            if self._pull(source, is_last=source.is_growing or until.seconds_left < _PAUSE_SECONDS):
                return True
            if until.seconds_left < _PAUSE_SECONDS:
                return False
            if not is_logged:
                self._log.info("Waiting for the event log from %s, up to %d s.", source.description, until.seconds_left)
            is_logged = True
            time.sleep(_PAUSE_SECONDS)
        return False

    def _pull(self, source: Source, *, is_last: bool = False) -> bool:
        before, self.is_asking = self.copies.total, True
        try:
            self._trouble = ""
            return source.pull(is_last=is_last)
        except Exception as error:
            self._trouble = error_line(error)
            text = f"{source.description}: {self._trouble}"
            if text not in self._logged:
                self._logged.add(text)
                self._log.debug("The event log is not read yet from %s", text)
            return False
        finally:
            self.is_asking = False
            if self.copies.total > before:
                self._collector.counts.sources.add(source.name)

    def _urls(self) -> list[str]:
        """Return the directories of logs that can be read from here: of the user, and of the applications."""
        reported = map(remote_directory, self._collector.event_log_directories.values())
        named = (*self._launch.event_logs, *(self._driver.event_logs if self._launch.session_id else ()))
        places = [place for place in named if "://" in place]
        if job_id := self._driver.driver_id:
            places = [place.replace(DELIVERED_JOB, DELIVERED_JOB.replace("*", job_id)) for place in places]
        if self._event_log_from != "event_log":
            places = [place for place in places if local_directory(place) is None]
        urls = dict.fromkeys(places)
        for url in filter(None, reported):
            # Spark reports what it was given, which has no connection.
            if url not in {split_connection(place)[0] for place in places}:
                urls[url] = None
        return list(urls)
