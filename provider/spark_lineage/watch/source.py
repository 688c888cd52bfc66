"""Shared by the REST dialects: what is known of the launch, and how states become reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from math import inf
from typing import NamedTuple, TypeVar, get_args

from spark_lineage.merge.transition import ENDED, Status, StatusReport, Subject
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.rest import NoAnswerError, RestClient, place_of

Answer = TypeVar("Answer")

# The words of Spark (JobExecutionStatus, SQLExecutionUIData, DriverState, ApplicationState), of YARN
# (YarnApplicationState, FinalApplicationStatus) and of pods (PodPhase), which agree where they share one.
_STATUSES: dict[str, Status] = {
    **{name: name for name in get_args(Status)},
    "NEW": "SUBMITTED",
    "NEW_SAVING": "SUBMITTED",
    "ACCEPTED": "WAITING",
    "PENDING": "WAITING",
    "SUCCEEDED": "FINISHED",
    "COMPLETED": "FINISHED",
    "ERROR": "FAILED",
}
# How much of the end of a driver's log is asked for, and shown.
LOG_BYTES, LOG_LINES = 32 * 1024, 100
LOG_FILES = ("stderr", "stdout")
# How much of a driver's log is asked for at once, below what a ``RestClient`` takes.
PIECE_BYTES = 15 * 1024 * 1024
# How far a thing is on its way; what may come at any time is nowhere on it.
_WAY: dict[Status, int] = {"SUBMITTED": 1, "WAITING": 2, "RUNNING": 3}


@dataclass
class Known:
    """What is known of a launch while it runs, from logs, events and sources; the sources look here each time.

    ``driver_id`` is what the Spark provider finds the driver again by, in cluster mode: ``driver-…``,
    ``application_…``, ``{namespace}:{pod}``. ``ui_url`` is the latest address that the driver gave of its UI, which
    gets no credentials; ``proxied_ui_url`` leads to it through YARN's proxy. Neither has a ``/`` at its end.
    ``attempt_id`` is the latest attempt, where attempts have ids (YARN in cluster mode).
    """

    application_id: str | None = None
    driver_id: str | None = None
    ui_url: str | None = None
    proxied_ui_url: str | None = None
    logs_url: str | None = None
    attempt_id: str | None = None


class State(NamedTuple):
    """One state of a thing, at an aware time; ``detail`` and ``exception`` are the source's own words."""

    status: Status
    time: datetime
    detail: str = ""
    exception: str = ""


class LogPiece(NamedTuple):
    """A part of a growing file: the bytes that it begins and ends at, how long the file is, and what it holds."""

    start: int
    end: int
    size: int
    content: bytes


class Source:
    """One REST dialect, aimed at one launch; all methods raise ``NoAnswerError`` when nothing can be understood.

    ``name`` is the source of its reports, ``first_seconds`` how many seconds after the launch it is asked first, and
    ``least_seconds`` for how many it is left alone after an answer.
    """

    name: str
    first_seconds = 1.0
    least_seconds = 0.0
    page = ""
    """Where the server that answers shows an application to people, with ``{}`` for its id; empty: nowhere."""
    answered_url = ""

    def __init__(self, client: RestClient, endpoints: Endpoints, known: Known) -> None:
        self.client = client
        self.endpoints = endpoints
        self.known = known
        self._last: dict[tuple[Subject, str], State] = {}

    def poll(self) -> Iterable[StatusReport]:
        """Return what the source says now, nothing while nothing can be asked; it may repeat what it said."""
        raise NotImplementedError

    def log_tail(self) -> Mapping[str, str]:
        """Return the ends of what the driver has printed in cluster mode, about 32 kB, by the names of their files."""
        return {}

    def added_log(self, *, is_last: bool = False) -> Iterator[bytes | None]:  # noqa: ARG002 - for those that have one
        """Return the lines that were added to the driver's log since the last call, as ``Sources.added``."""
        yield from ()

    def first_answer(
        self, urls: Iterable[str], path: str, shape: type[Answer], problem: Callable[[Answer], str]
    ) -> Answer:
        """Return the first answer that has no problem; the other servers stand by, or are gone.

        :raises NoAnswerError: when no server has such an answer; the text says what each of them did, and the status is
            404 where one of them has no such thing
        """
        words: list[str] = []
        is_unknown = False
        for url in urls:
            try:
                answer = self.client.get_json(f"{url}{path}", shape)
            except NoAnswerError as error:
                words.append(str(error))
                is_unknown = is_unknown or error.http_status == HTTPStatus.NOT_FOUND
                continue
            if not (word := problem(answer)):
                self.answered_url = url
                return answer
            words.append(f"{place_of(url)} {word}")
        raise NoAnswerError(
            "; ".join(words) or "there is no address to ask", HTTPStatus.NOT_FOUND if is_unknown else None
        )

    def last(self, subject: Subject, subject_id: str) -> State | None:
        """Return the state that a thing had at the latest answer."""
        return self._last.get((subject, subject_id))

    def news(self, subject: Subject, subject_id: str, way: Sequence[State], asked: datetime) -> list[StatusReport]:
        """Return the reports that are due of one thing: its present state, and those before it that were missed.

        A ``SUBMITTED`` that is repeated after ``RUNNING`` would look like a thing that started anew.

        :param asked: the time of a present state whose own time lies before that of the last one: it came back to it
        """
        present, last = way[-1], self.last(subject, subject_id)
        if last is not None and present.status not in ENDED and present.time < last.time:
            present = present._replace(time=asked)
        self._last[subject, subject_id] = present
        missed = [one for one in way[:-1] if last is None or _WAY.get(one.status, 0) > _WAY.get(last.status, 9)]
        return [self.report(subject, subject_id, one) for one in (*missed, present)]

    def report(self, subject: Subject, subject_id: str, state: State, application_id: str = "") -> StatusReport:
        """Return one state of a thing as a report of this source."""
        status, time, detail, exception = state
        return StatusReport(subject, subject_id, status, time, self.name, application_id, detail, exception)


class FilesSource(Source):
    """A source that also knows where the driver's log lies: in files that a server gives by pieces."""

    def __init__(self, client: RestClient, endpoints: Endpoints, known: Known) -> None:
        super().__init__(client, endpoints, known)
        # How far they were read, by their addresses.
        self._offsets: dict[str, int] = {}

    @property
    def log_url(self) -> str:
        """What the addresses of the files begin with, which end with their names; empty while it is not known."""
        raise NotImplementedError

    def piece(self, url: str, offset: float) -> LogPiece:
        """Return a part of a file, which begins at an offset or before it; its end, for an infinite one."""
        raise NotImplementedError

    def log_tail(self) -> Mapping[str, str]:
        """Ask for the ends of the files."""
        url = self.log_url
        texts = {name: self.piece(url + name, inf).content for name in LOG_FILES if url}
        return {name: text.decode(errors="replace") for name, text in texts.items()}

    def added_log(self, *, is_last: bool = False) -> Iterator[bytes | None]:
        """Ask for what was added to the files, and to those of earlier attempts."""
        if not (url := self.log_url):
            raise NoAnswerError(f"the {self.name} does not say where the driver's log is")
        for place in dict.fromkeys((*self._offsets, *(url + name for name in LOG_FILES))):
            try:
                yield from self.added_lines(place, partial(self.piece, place), is_last=is_last)
            except NoAnswerError:
                # That of an earlier attempt may be removed.
                if place.startswith(url):
                    raise

    def added_lines(self, place: str, ask: Callable[[int], LogPiece], *, is_last: bool) -> Iterator[bytes | None]:
        """Return the lines that follow in a file of the log, as ``added_log``.

        :param ask: returns a piece that begins at an offset, or before it; after it where the file begins later now
        """
        while True:
            asked = self._offsets.get(place, 0)
            start, end, size, content = ask(asked)
            if size < asked or start > asked:
                # It was cut off at its front, or another file has its name now.
                yield None
            if size < asked:
                self._offsets[place] = 0
                continue
            asked = max(asked, start)
            *lines, torn = content[asked - start :].split(b"\n")
            yield from lines
            # The torn line comes again. Who decodes the file may make more bytes of it: then a little of the line
            # before it does, too.
            following = end - len(torn)
            if torn and end == size and is_last:
                yield torn
                following = end
            elif following <= asked and end < size:
                # A line that no piece can hold.
                yield None
                following = end
            self._offsets[place] = max(following, asked)
            if end == size:
                return


def status_of(word: str | None) -> Status:
    """Return the status that a source's word stands for; ``UNKNOWN`` for a word that is not known here."""
    return _STATUSES.get((word or "").upper(), "UNKNOWN")


def from_millis(millis: int | None) -> datetime | None:
    """Return the time of milliseconds since 1970; None for what is no time (0 and -1 mean: not yet)."""
    return datetime.fromtimestamp(millis / 1000, UTC) if millis is not None and millis > 0 else None
