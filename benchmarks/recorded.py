"""The real applications of ``tests/fixtures/events`` as programs that can run again, under names of another run.

What is new in a run (run ids, times, names of jobs and of places) has slots in the bytes of each event; all else stays
as it was recorded. Filling the slots takes microseconds, where reading and writing JSON would take ten times as long.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

EVENTS = Path(__file__).parents[1] / "tests" / "fixtures" / "events"
DAY = 24 * 60 * 60 * 1000
# So many areas of the lake feed one another, in a row, before a new row begins.
ROW = 4

PARENT_RUN, ROOT_RUN = b"01890a5d-ac96-7dde-8a63-0123456789ab", b"01890a5d-ac96-7dde-8a63-0123456789ff"
RUN_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
EVENT_TIME = re.compile(rb'"eventTime":"([^"]+)"')
JOB_NAME = re.compile(rb'"job":\{"namespace":"[^"]+","name":"([^"]+)","facets"')
APPLICATION_ID = re.compile(rb'"applicationId":"([^"]+)"')
APPLICATION_NAME = re.compile(rb'"appName":"([^"]+)"')
PARENT_FACET = re.compile(rb'"parent":\{.*?"root":\{.*?\}\}\},')
ROOT = re.compile(rb',"root":\{.*?\}\}\}')
IS_APPLICATION = b'"jobType":"APPLICATION"'


class Line(NamedTuple):
    """One event with slots for what is new in each application; its time in milliseconds after the first event."""

    template: bytes
    time: int


@dataclass(frozen=True)
class Program:
    """A real application: its first event, what lies between, and its end, unless it was not the last event.

    ``runs`` names the slots of the runs between, ``span`` is the time in milliseconds until the last of them.
    """

    begin: Line
    body: tuple[Line, ...]
    end: Line | None
    runs: tuple[bytes, ...]
    span: int
    is_killed: bool

    @classmethod
    def read(cls, file: Path) -> Program:
        """Find in a fixture what is to be new."""
        content = file.read_bytes().replace(b"%", b"%%")
        first, *lines = content.splitlines()
        application = _found(RUN_ID, first[: first.index(b'"facets"')])
        slots = {
            PARENT_RUN: b"run_id",
            ROOT_RUN: b"root_run_id",
            application: b"application_run_id",
            _found(APPLICATION_ID, first): b"application_id",
            b"dag1.task1": b"job",
            b"dag1": b"root_job",
            b"/data/lab/data/orders.csv": b"orders",
            b"/data/lab": b"area",
        }
        runs = sorted({*RUN_ID.findall(content)} - {*slots})
        slots |= {run: b"run_%d" % number for number, run in enumerate(runs)}
        # The longest first: of alternatives, the first that fits is taken.
        slot = re.compile(b"|".join(re.escape(text) for text in sorted(slots, key=len, reverse=True)))
        names = b"|".join({re.escape(_found(pattern, first)) for pattern in (JOB_NAME, APPLICATION_NAME)})
        # "name":"job", "name":"job.command.table", "appName":"job", "spark.app.name":"job"
        name = re.compile(rb'([nN]ame":")(?:%b)(?=[".])' % names)
        start = _milliseconds(first)

        def line(text: bytes) -> Line:
            template = slot.sub(lambda match: b"%%(%b)b" % slots[match[0]], text)
            template = EVENT_TIME.sub(b'"eventTime":"%(time)b"', template)
            return Line(name.sub(rb"\1%(application_name)b", template) + b"\n", _milliseconds(text) - start)

        is_killed = not any(IS_APPLICATION in text for text in lines)
        end = line(lines.pop()) if IS_APPLICATION in lines[-1] else None
        body = tuple(line(text) for text in lines)
        return cls(line(first), body, end, tuple(slots[run] for run in runs), max(body, key=_time).time, is_killed)

    def without_parent(self) -> Program:
        """Return the same application as it is when nobody tells it who started it."""

        def line(old: Line) -> Line:
            facet, nothing = (PARENT_FACET, b"") if IS_APPLICATION in old.template else (ROOT, b"}")
            return Line(facet.sub(nothing, old.template), old.time)

        return replace(
            self,
            begin=line(self.begin),
            body=tuple(line(old) for old in self.body),
            end=None if self.end is None else line(self.end),
        )

    def events(
        self, names: Mapping[bytes, bytes], areas: Iterable[int], start: int, chance: random.Random
    ) -> Iterator[bytes]:
        """Return the lines of a new run; what lies between begin and end comes anew for each of ``areas``."""
        values = {**names, b"application_id": b"local-%d" % start}
        line, begin = self.begin, start

        def filled(line: Line) -> bytes:
            values[b"time"] = stamp(begin + line.time)
            return line.template % values

        for number, area in enumerate(areas):
            begin = start + number * self.span
            values |= _places(area)
            values.update((run, run_id(begin, chance)) for run in self.runs)
            if number == 0:
                yield filled(self.begin)
            for line in self.body[: -1 if self.is_killed else None]:
                yield filled(line)
        if self.is_killed:
            yield torn(filled(self.body[-1]), chance)
        elif self.end is not None:
            yield filled(self.end)


def _found(pattern: re.Pattern[bytes], text: bytes) -> bytes:
    match = pattern.search(text)
    if match is None:
        raise ValueError(f"{text[:300]!r} has no {pattern.pattern!r}")
    return match[match.lastindex or 0]


def _time(line: Line) -> int:
    return line.time


def _milliseconds(line: bytes) -> int:
    return epoch(datetime.fromisoformat(_found(EVENT_TIME, line).decode()))


def epoch(moment: datetime) -> int:
    """Return milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def _places(area: int) -> dict[bytes, bytes]:
    """Return where an area lies, and the orders, which the area before makes, unless it is the first of a row."""
    root = b"/data/lab/area_%03d"
    orders = b"%b/data/orders.csv" % (root % area) if area % ROW == 0 else b"%b/out/a_parquet" % (root % (area - 1))
    return {b"area": root % area, b"orders": orders}


@functools.cache
def _date(day: int) -> bytes:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).strftime("%Y-%m-%dT").encode()


def stamp(moment: int) -> bytes:
    """Return milliseconds since 1970 as the listener writes a time."""
    day, rest = divmod(moment, DAY)
    seconds, milliseconds = divmod(rest, 1000)
    minutes, seconds = divmod(seconds, 60)
    return b"%b%02d:%02d:%02d.%03dZ" % (_date(day), minutes // 60, minutes % 60, seconds, milliseconds)


def run_id(moment: int, chance: random.Random) -> bytes:
    """Return a UUID of version 7, as the listener does."""
    bits = chance.getrandbits(74)
    high, low = divmod(moment, 1 << 16)
    return b"%08x-%04x-7%03x-%04x-%012x" % (high, low, bits & 0xFFF, 0x8000 | bits >> 12 & 0x3FFF, bits >> 26)


def torn(line: bytes, chance: random.Random) -> bytes:
    """Return the beginning of a line, without its end."""
    return line[: chance.randrange(1, len(line) - 1)]


@functools.cache
def programs() -> dict[str, Program]:
    """Return the programs by the name of the fixture."""
    return {file.stem: Program.read(file) for file in sorted(EVENTS.glob("*.ndjson"))}
