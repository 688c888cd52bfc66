"""Which sources report the status of an application, by its master and its deploy mode, and when each is polled."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from urllib.parse import quote

from msgspec import structs

from spark_lineage.launch.log import log_trouble
from spark_lineage.merge.task_numbers import TaskNumbers
from spark_lineage.merge.transition import StatusReport, StatusSummary
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.kubernetes import Kubernetes
from spark_lineage.watch.rest import NoAnswerError
from spark_lineage.watch.source import Known, Source
from spark_lineage.watch.spark_api import DriverUi, HistoryServer
from spark_lineage.watch.standalone import StandaloneMaster, StandaloneSubmissions
from spark_lineage.watch.yarn import YarnResourceManager

# The second answer is wanted soon after the first, when things still change.
_SECOND_SECONDS = 1.0
_GROWTH = 1.5
_LEAST_SECONDS = 0.05
_STOP_SECONDS = 0.8
_MAX_SECONDS = 60.0
# So that the tasks of a worker do not ask all at once; by the system's chance, for a DAG file may seed that of Python.
_JITTER = 0.2
_chance = random.SystemRandom()

log = logging.getLogger(__name__)


class Sources:
    """The sources of one launch, as in the table of ``docs/status.md``.

    One without an address is left out, but for the driver UI, whose address is learnt later.
    """

    def __init__(self, endpoints: Endpoints, known: Known) -> None:
        self._endpoints = endpoints
        self._known = known
        client = endpoints.client()
        managers = self.managers = [kind(client, endpoints, known) for kind in _managers(endpoints)]
        history = self._history = [HistoryServer(client, endpoints, known)] if endpoints.history_server_url else []
        self.ui = DriverUi(client, endpoints, known)
        self.while_running: Sequence[Source] = [*managers, self.ui]
        self.at_the_end: Sequence[Source] = [*managers, *history]

    def log_tail(self) -> Mapping[str, str]:
        """Return the last lines of the driver's output, by the names of its files; empty if no source has them."""
        for source in self.managers:
            try:
                if texts := source.log_tail():
                    return texts
            except NoAnswerError as error:
                log.debug("The %s does not give the driver's log: %s", source.name, error)
        return {}

    def added(self, *, is_last: bool) -> Iterator[bytes | None]:
        """Return the lines that were added to a driver's log since the last call; None where some are lost.

        :param is_last: whether a last line without its end is wanted, too
        :raises NoAnswerError: when who keeps the log does not give it
        """
        for manager in self.managers:
            # Its answer says where the log is; others watch the status.
            answer_of(manager)
            yield from manager.added_log(is_last=is_last)

    def numbers(self) -> Iterator[TaskNumbers]:
        """Return what the tasks of the application did, as the History Server knows it; nothing where it does not."""
        for source in self._history:
            with suppress(NoAnswerError):
                yield from source.numbers()

    def linked(self, summary: StatusSummary, application_id: str | None) -> StatusSummary:
        """Return a summary with the links of an application; that of the UI is dead when the driver has ended."""
        history, attempt_id = self._endpoints.history_server_url, self._known.attempt_id
        attempt = f"{attempt_id}/" if attempt_id else ""
        pages = [one.answered_url + one.page for one in self.managers if one.page and one.answered_url]
        return structs.replace(
            summary,
            ui_url=self.ui.url,
            history_url=f"{history}/history/{application_id}/{attempt}jobs/" if history and application_id else None,
            logs_url=self._known.logs_url,
            manager_url=pages[0].replace("{}", quote(application_id, safe="")) if pages and application_id else None,
        )


def _managers(endpoints: Endpoints) -> list[type[Source]]:
    is_cluster = endpoints.is_cluster
    if endpoints.master.startswith("spark://"):
        return [StandaloneSubmissions, StandaloneMaster] if is_cluster else [StandaloneMaster]
    if endpoints.master.startswith("yarn") and endpoints.yarn_urls:
        return [YarnResourceManager]
    # In client mode the driver is no pod.
    return [Kubernetes] if endpoints.master.startswith("k8s://") and is_cluster else []


class Watcher:
    """Asks sources while a job runs, each in its own time, in a thread of its own: one may hang in its answer.

    The time between two polls of a source grows to ``interval_seconds``, and doubles, up to a minute, each time that it
    does not answer; both by a fifth more or less.
    """

    def __init__(
        self, sources: Iterable[Source], tell: Callable[[StatusReport], object], *, interval_seconds: float
    ) -> None:
        self._watched = [_Watched(source, interval_seconds) for source in sources]
        self._tell = tell
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-lineage-status", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        if self._watched:
            self._thread.start()

    def stop(self) -> None:
        """Stop within a second; an answer that comes after that is not passed on any more."""
        if not self._stopping.is_set():
            self._stopping.set()
            if self._thread.is_alive():
                self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            for watched in self._watched:
                if watched.due <= time.monotonic() and not self._stopping.is_set():
                    self._pass_on(watched.poll())
            due = min(watched.due for watched in self._watched)
            self._stopping.wait(max(_LEAST_SECONDS, due - time.monotonic()))

    def _pass_on(self, reports: Iterable[StatusReport]) -> None:
        try:
            for report in reports:
                if not self._stopping.is_set():
                    self._tell(report)
        except Exception as error:
            # The watch continues after an error in its callback.
            log_trouble(log, "A status is not passed on", error)


def answer_of(source: Source) -> list[StatusReport] | None:
    """Return the reports of a source, None where it gives no answer; an error does not stop the other sources."""
    try:
        return list(source.poll())
    except NoAnswerError as error:
        log.debug("No answer from the %s: %s", source.name, error)
    except Exception as error:
        log_trouble(log, f"Error in the answer of the {source.name} says", error)
    return None


class _Watched:
    def __init__(self, source: Source, interval_seconds: float) -> None:
        self.due = time.monotonic() + pause_seconds(source.first_seconds, 0, interval_seconds)
        self._source = source
        self._interval_seconds = interval_seconds
        self._wait_seconds = min(_SECOND_SECONDS, interval_seconds)
        self._unanswered = 0

    def poll(self) -> list[StatusReport]:
        """Ask, and return the answer, empty where there is none."""
        reports = answer_of(self._source)
        self._unanswered = self._unanswered + 1 if reports is None else 0
        self._wait_seconds = min(self._wait_seconds * _GROWTH, self._interval_seconds)
        seconds = max(self._wait_seconds, self._source.least_seconds)
        self.due = time.monotonic() + pause_seconds(seconds, self._unanswered, self._interval_seconds)
        return reports or []


def pause_seconds(seconds: float, unanswered: int, longest_seconds: float) -> float:
    """Return how long to wait: twice as long for each question without an answer, up to a minute, a fifth more or less.

    :param longest_seconds: where it is more than a minute, the limit
    """
    pause: float = min(seconds * 2 ** min(unanswered, 10), max(_MAX_SECONDS, longest_seconds))
    return pause * _chance.uniform(1 - _JITTER, 1 + _JITTER)
