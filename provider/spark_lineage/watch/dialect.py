"""REST dialects: generators that yield requests and are sent the answers, and what their reports are made from.

A dialogue knows neither clients nor threads: ``converse`` sends its requests by a client, ``converse_async`` by that of
an event loop, a test answers them itself. A request without an answer raises ``NoAnswerError`` where it was yielded.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

import msgspec

from spark_lineage.http_client import NoAnswerError, Request, place_of
from spark_lineage.merge.transition import ENDED, Status, StatusReport, Subject

if TYPE_CHECKING:
    from spark_lineage.http_client import HttpClient
    from spark_lineage.launch.driver import Driver
    from spark_lineage.watch.endpoints import Endpoints

Answer = TypeVar("Answer")
Result = TypeVar("Result")
_MAX_SECONDS, _GROWTH = 60.0, 1.5
# So that the tasks of a worker do not ask all at once; by the system's chance, for a DAG file may seed that of Python.
_JITTER = 0.2
_chance = random.SystemRandom()
_JSON = "application/json, text/json"
Dialogue = Generator[Request, bytes, Result]

# The states of Spark (JobExecutionStatus, SQLExecutionUIData, DriverState, ApplicationState), of YARN
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
# How much of a driver's log is asked for at once, below what a client takes.
PIECE_BYTES = 15 * 1024 * 1024
# The order of states; those that may come at any time are left out.
_ORDER: dict[Status, int] = {"SUBMITTED": 1, "WAITING": 2, "RUNNING": 3}


def converse(dialogue: Dialogue[Result], send: Callable[[Request], bytes]) -> Result:
    """Return the result of a dialogue; ``send`` sends a request, and raises ``NoAnswerError``."""

    async def answered(request: Request) -> bytes:
        return send(request)

    # It never waits for an event loop, and so ends when it begins.
    try:
        converse_async(dialogue, answered).send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("a dialogue waits for nothing but its answers")


async def converse_async(dialogue: Dialogue[Result], send: Callable[[Request], Awaitable[bytes]]) -> Result:
    """Return the result of a dialogue, as ``converse``."""
    go_on: Callable[..., Request] = dialogue.send
    answer: bytes | NoAnswerError | None = None
    try:
        while True:
            request = go_on(answer)
            try:
                go_on, answer = dialogue.send, await send(request)
            except NoAnswerError as error:
                go_on, answer = dialogue.throw, error
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def get(url: str, shape: type[Answer], seconds: float | None = None) -> Dialogue[Answer]:
    """Request JSON, and return it as ``shape``."""
    return decoded(url, (yield Request(url, accept=_JSON, seconds=seconds)), shape)


def get_json(client: HttpClient, url: str, shape: Any = Any) -> Any:
    """Return what one URL answers, as ``shape``.

    :raises NoAnswerError: when there is no such answer
    """
    return converse(get(url, shape), client.send)


def decoded(url: str, body: bytes, shape: type[Answer]) -> Answer:
    """Return what a URL has answered, as ``shape``.

    :raises NoAnswerError: when it is no JSON of that shape
    """
    try:
        # Not strict: Spark's master gives times of drivers as text.
        return msgspec.json.decode(body, type=shape, strict=False)
    except msgspec.ValidationError as error:
        problem = f"JSON of another shape ({error})"
    except (msgspec.DecodeError, ValueError, RecursionError):
        problem = "not JSON, or only a part of it (a login page?)"
    raise NoAnswerError(f"{place_of(url)} answered {problem}", 200)


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


class Dialect:
    """One REST API, aimed at one launch; its dialogues raise ``NoAnswerError`` when nothing can be understood.

    ``name`` is the source of its reports, ``first_seconds`` how many seconds after the launch it is asked first,
    ``least_seconds`` for how many it is left alone after an answer, and ``due`` when it is asked next (monotonic).
    """

    name: str
    first_seconds = 1.0
    least_seconds = 0.0
    due = 0.0
    page = ""
    """Where the server that answers shows an application to people, with ``{}`` for its id; empty: nowhere."""
    answered_url = ""
    is_unknown_the_end = False
    """Whether a driver that it does not know has ended."""

    def __init__(self, endpoints: Endpoints, driver: Driver) -> None:
        self.endpoints = endpoints
        self.driver = driver
        # The states at the latest answer.
        self.last: dict[tuple[Subject, str], State] = {}
        # The second answer is wanted soon after the first, when things still change.
        self._pause, self._unanswered = 1.0, 0

    def wait(self, seconds: float, longest_seconds: float) -> None:
        """Be due later; times are those of ``pause_seconds``."""
        self.due = time.monotonic() + pause_seconds(seconds, self._unanswered, longest_seconds)

    def asked(self, interval_seconds: float, *, has_answered: bool) -> None:
        """Be due again, at first soon, then at an interval, and ever more seldom while there is no answer."""
        self._unanswered = 0 if has_answered else self._unanswered + 1
        self._pause = min(self._pause * _GROWTH, interval_seconds)
        self.wait(max(self._pause, self.least_seconds), interval_seconds)

    def poll(self) -> Dialogue[list[StatusReport]]:
        """Return the present statuses, nothing while nothing can be asked; reports may repeat earlier ones."""
        raise NotImplementedError

    def kill_requests(self, driver_id: str) -> list[Request]:  # noqa: ARG002 - for cluster managers
        """Return the requests that end a driver, of which one has to succeed."""
        return []

    def log_tail(self) -> Dialogue[Mapping[str, str]]:
        """Return the ends of what the driver has printed in cluster mode, about 32 kB, by the names of their files."""
        yield from ()
        return {}

    def log_files(self) -> Iterable[str]:
        """Return the addresses of the driver's log; each is read before the next one is chosen.

        :raises NoAnswerError: while they are not known
        """
        return ()

    def lines_of(self, place: str, *, is_last: bool) -> Dialogue[tuple[list[bytes | None], bool]]:
        """Return the next lines of a file of the log, None where some are lost, and whether that is its end."""
        raise NotImplementedError

    def first_answer(
        self, urls: Iterable[str], path: str, shape: type[Answer], problem: Callable[[Answer], str]
    ) -> Dialogue[Answer]:
        """Return the first answer that has no problem; the other servers stand by, or are gone.

        :raises NoAnswerError: when no server has such an answer; the text says what each of them did, and the status is
            404 where one of them has no such thing
        """
        problems: list[str] = []
        is_unknown = False
        for url in urls:
            try:
                answer = yield from get(f"{url}{path}", shape)
            except NoAnswerError as error:
                problems.append(str(error))
                is_unknown = is_unknown or error.http_status == HTTPStatus.NOT_FOUND
                continue
            if not (word := problem(answer)):
                self.answered_url = url
                return answer
            problems.append(f"{place_of(url)} {word}")
        raise NoAnswerError(
            "; ".join(problems) or "there is no address to ask", HTTPStatus.NOT_FOUND if is_unknown else None
        )

    def news(self, subject: Subject, subject_id: str, steps: Sequence[State], asked: datetime) -> list[StatusReport]:
        """Return the reports that are due of one thing: its present state, and those before it that were missed.

        A ``SUBMITTED`` that is repeated after ``RUNNING`` would look like a thing that started anew.

        :param asked: the time of a present state whose own time lies before that of the last one: it came back to it
        """
        present, last = steps[-1], self.last.get((subject, subject_id))
        if last is not None and present.status not in ENDED and present.time < last.time:
            present = present._replace(time=asked)
        self.last[subject, subject_id] = present
        missed = [one for one in steps[:-1] if last is None or _ORDER.get(one.status, 0) > _ORDER.get(last.status, 9)]
        return [self.report(subject, subject_id, one) for one in (*missed, present)]

    def report(self, subject: Subject, subject_id: str, state: State, application_id: str = "") -> StatusReport:
        """Return one state of a thing as a report of this source."""
        status, time, detail, exception = state
        return StatusReport(subject, subject_id, status, time, self.name, application_id, detail, exception)


class FilesDialect(Dialect):
    """A dialect that also knows where the driver's log lies: in files that a server gives by pieces."""

    def __init__(self, endpoints: Endpoints, driver: Driver) -> None:
        super().__init__(endpoints, driver)
        # How far they were read, by their addresses.
        self._offsets: dict[str, int] = {}

    @property
    def log_url(self) -> str:
        """The common beginning of the addresses of the files, before their names; empty while it is not known."""
        raise NotImplementedError

    def piece(self, url: str, offset: float) -> Dialogue[LogPiece]:
        """Return a part of a file, which begins at an offset or before it; its end, for an infinite one."""
        raise NotImplementedError

    def log_tail(self) -> Dialogue[Mapping[str, str]]:
        """Request the ends of the files."""
        texts: dict[str, str] = {}
        for name in LOG_FILES if (url := self.log_url) else ():
            piece = yield from self.piece(url + name, inf)
            texts[name] = piece.content.decode(errors="replace")
        return texts

    def log_files(self) -> Iterable[str]:
        """Return those of this attempt, and of earlier ones."""
        if not (url := self.log_url):
            raise NoAnswerError(f"the {self.name} does not say where the driver's log is")
        return list(dict.fromkeys((*self._offsets, *(url + name for name in LOG_FILES))))

    def lines_of(self, place: str, *, is_last: bool) -> Dialogue[tuple[list[bytes | None], bool]]:
        """Request what was added to a file; that of an earlier attempt may be removed."""
        asked, lines = self._offsets.get(place, 0), list[bytes | None]()
        try:
            start, end, size, content = yield from self.piece(place, asked)
        except NoAnswerError:
            if place.startswith(self.log_url):
                raise
            return [], True
        if size < asked or start > asked:
            # It was cut off at its front, or another file has its name now.
            lines.append(None)
        if size < asked:
            self._offsets[place] = 0
            return lines, False
        asked = max(asked, start)
        *whole, torn = content[asked - start :].split(b"\n")
        lines += whole
        # The torn line comes again. Who decodes the file may make more bytes of it: then a little of the line before it
        # does, too.
        following = end - len(torn)
        if torn and end == size and is_last:
            lines.append(torn)
            following = end
        elif following <= asked and end < size:
            # A line that no piece can hold.
            lines.append(None)
            following = end
        self._offsets[place] = max(following, asked)
        return lines, end == size


def status_of(word: str | None) -> Status:
    """Return the status that a source's word stands for; ``UNKNOWN`` for a word that is not known here."""
    return _STATUSES.get((word or "").upper(), "UNKNOWN")


def from_millis(millis: int | None) -> datetime | None:
    """Return the time of milliseconds since 1970; None for what is no time (0 and -1 mean: not yet)."""
    return datetime.fromtimestamp(millis / 1000, UTC) if millis is not None and millis > 0 else None


def pause_seconds(seconds: float, unanswered: int, longest_seconds: float) -> float:
    """Return how long to wait: twice as long for each question without an answer, up to a minute, a fifth more or less.

    :param longest_seconds: where it is more than a minute, the limit
    """
    pause: float = min(seconds * 2 ** min(unanswered, 10), max(_MAX_SECONDS, longest_seconds))
    return pause * _chance.uniform(1 - _JITTER, 1 + _JITTER)
