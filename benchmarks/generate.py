"""Makes an archive of lineage files, of any size, out of the real events in ``tests/fixtures/events``.

Each application of the fixtures is a program here, which runs again and again under run ids, times, and names of its
own. A DAG of the archive has five tasks, and a task has one program, reads and writes in one area of the lake, and does
so in each DAG run: datasets are shared between the tasks of all DAGs, and areas feed each other. The rest is what makes
an archive hard, each in a set share: drivers that failed, with the ``status-transitions.jsonl`` of their launch and a
second try that succeeds; tasks of several applications; applications without a parent; streams, some of which have not
ended; files that several drivers wrote to, and applications in several files; compressed files; torn lines.

The same arguments make the same archive, to the byte; another seed adds other files to it.
"""

from __future__ import annotations

import argparse
import gzip
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

import msgspec
import zstandard
from recorded import epoch, programs, run_id, torn

from spark_lineage.launch.directory import EVENTS_FILE, TRANSITIONS_FILE, launch_directory
from spark_lineage.merge.transition import Status, StatusTransition

STREAM, LONG, FAILING = "e_414", "i2_ol1", "g"
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
TASKS = 5
# A central file holds so many applications, which take turns; it is cut in two.
CENTRAL = 20
HOUR = 60 * 60 * 1000
BUFFER = 256 * 1024


@dataclass(frozen=True)
class Shares:
    """How much of the archive is what."""

    failed: float = 0.05
    """Of tries: their driver failed or was killed; a second try succeeds."""
    torn: float = 0.001
    """Of lines. The last line of a driver that was killed is torn in any case."""
    orphans: float = 0.02
    """Of applications: without a parent."""
    several: float = 0.03
    """Of tries: of two applications."""
    central: float = 0.1
    """Of applications: write to a file with others; those without a parent always do."""
    streams: float = 0.02
    """Of tasks: a stream, of 1 to 20 times the micro-batches of the fixture."""
    long: float = 0.05
    """Of tasks: 200 actions, 802 events; those of the others make 6 to 40."""
    gzip: float = 0.05
    """Of files."""
    zstd: float = 0.05
    """Of files."""


DEFAULT_SHARES = Shares()


@dataclass
class Summary:
    """What was written."""

    lines: int = 0
    torn: int = 0
    bytes: int = 0
    """Of all lines, before compression."""
    files: int = 0
    """Of lines; those of transitions do not count."""
    applications: int = 0
    orphans: int = 0
    tries: int = 0
    """Runs of tasks: what is merged to one event each, as is each orphan."""
    failed: int = 0
    """Tries with a FAILED driver in their transitions."""


class Task(NamedTuple):
    """One task of a DAG."""

    dag_id: str
    task_id: str
    program: str
    area: int


class Try(NamedTuple):
    """One try of a task in one DAG run; the run ids are those of the task and of the DAG run."""

    task: Task
    dag_run_id: str
    number: int
    run_id: bytes
    root_run_id: bytes


class Archive:
    """Writes lines to files, as many as are asked for, tears some, and counts."""

    def __init__(self, directory: Path, *, lines: int, seed: int, shares: Shares, is_flat: bool) -> None:
        self.summary = Summary()
        self.left = lines
        # What it makes is no secret.
        self.random = random.Random(seed)  # noqa: S311
        self._directory = directory
        self._seed = seed
        self._shares = shares
        self._is_flat = is_flat
        self._central: list[list[bytes]] = []
        self._central_files = 0

    def chance(self, share: float) -> bool:
        """Whether this one belongs to a share."""
        return self.random.random() < share

    def launch(self, run: Try, application_run_id: bytes, lines: Iterable[bytes]) -> Path | None:
        """Write one application; give the directory of its launch, if it has one."""
        if self._is_flat or self.chance(self._shares.central):
            self.central(lines)
            return None
        directory = launch_directory(
            self._directory,
            dag_id=run.task.dag_id,
            run_id=run.dag_run_id,
            task_id=run.task.task_id,
            map_index=-1,
            try_number=run.number,
            application_run_id=application_run_id.decode(),
        )
        directory.mkdir(parents=True)
        self._write(directory / EVENTS_FILE, self._limited(lines))
        return directory

    def central(self, lines: Iterable[bytes]) -> None:
        """Write one application to a file with others."""
        # A torn end would tear the next driver's line, too.
        self._central.append([line.removesuffix(b"\n") + b"\n" for line in self._limited(lines)])
        if len(self._central) == CENTRAL:
            self.finish()

    def alone(self, name: str, lines: Iterable[bytes]) -> None:
        """Write one application to a file of this name."""
        self._write(self._directory / name, self._limited(lines))

    def finish(self) -> None:
        """Write the applications that wait for others: they take turns, and each is in two files."""
        directory = self._directory if self._is_flat else self._directory / "central"
        directory.mkdir(parents=True, exist_ok=True)
        lines = [line for turn in zip_longest(*self._central, fillvalue=b"") for line in turn if line]
        middle = len(lines) // 2
        for half in filter(None, (lines[:middle], lines[middle:])):
            self._write(directory / f"drivers-{self._seed}-{self._central_files:05}.ndjson", half)
            self._central_files += 1
        self._central.clear()

    def _limited(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Return no more lines than are left, some torn; one without its newline is torn already."""
        self.summary.applications += 1
        for line in islice(lines, self.left):
            self.left -= 1
            if not line.endswith(b"\n"):
                self.summary.torn += 1
                yield line
            elif self.chance(self._shares.torn):
                self.summary.torn += 1
                yield torn(line, self.random) + b"\n"
            else:
                yield line

    def _write(self, file: Path, lines: Iterable[bytes]) -> None:
        kind = self.random.random()
        write: Callable[[bytes], object]
        with ExitStack() as stack:
            # The time and the name that gzip would keep are left out: the same archive has the same bytes.
            if kind < self._shares.gzip:
                raw = stack.enter_context(file.with_name(f"{file.name}.gz").open("wb", BUFFER))
                write = stack.enter_context(gzip.GzipFile("", "wb", 1, raw, mtime=0)).write
            elif kind < self._shares.gzip + self._shares.zstd:
                raw = stack.enter_context(file.with_name(f"{file.name}.zst").open("wb", BUFFER))
                write = stack.enter_context(zstandard.ZstdCompressor(level=1).stream_writer(raw)).write
            else:
                write = stack.enter_context(file.open("wb", BUFFER)).write
            for line in lines:
                write(line)
                self.summary.lines += 1
                self.summary.bytes += len(line)
        self.summary.files += 1


def generate(
    directory: Path,
    events: int,
    *,
    seed: int = 0,
    days: int = 30,
    dags: int = 100,
    areas: int = 50,
    giant: int = 0,
    shares: Shares = DEFAULT_SHARES,
    is_flat: bool = False,
) -> Summary:
    """Write an archive of ``events`` lines, torn ones among them, into a directory.

    :param seed: another one adds other files to the same directory
    :param days: from 2026-01-01 on
    :param areas: of the lake, each of some twenty datasets
    :param giant: lines of one more application, in a file of its own
    :param is_flat: all in one directory and in files of several applications, as a shared storage has them, without
        transitions; instead of a directory for each launch
    """
    archive = Archive(directory, lines=events, seed=seed, shares=shares, is_flat=is_flat)
    _Runs(archive, shares, days=days, dags=dags, areas=areas).write()
    archive.finish()
    if giant:
        archive.left = giant
        program = programs()[LONG]
        start, chance = epoch(FIRST_DAY), archive.random
        run = Try(Task("giant", "load", LONG, 0), f"manual__{seed}", 1, run_id(start, chance), run_id(start, chance))
        places = islice(cycle(range(areas)), giant // len(program.body) + 1)
        archive.summary.tries += 1
        archive.alone(f"giant-{seed}.ndjson", program.events(_names(run, start, chance), places, start, chance))
    return archive.summary


class _Runs:
    """The DAGs, and what becomes of them."""

    def __init__(self, archive: Archive, shares: Shares, *, days: int, dags: int, areas: int) -> None:
        self._archive = archive
        self._chance = archive.random
        self._shares = shares
        self._days = days
        self._areas = areas
        self._programs = programs()
        self._failing = [name for name in self._programs if name.startswith(FAILING)]
        self._ordinary = [name for name in self._programs if name not in {*self._failing, STREAM, LONG}]
        self._orphans = [self._programs[name].without_parent() for name in self._ordinary]
        self._dags = [[self._task(dag, number) for number in range(TASKS)] for dag in range(dags)]

    def write(self) -> None:
        """Run DAGs until there are lines enough."""
        while self._archive.left:
            scheduled = FIRST_DAY + timedelta(minutes=self._chance.randrange(self._days * 24 * 60))
            root_run_id = run_id(epoch(scheduled), self._chance)
            for task in self._chance.choice(self._dags):
                start = epoch(scheduled) + self._chance.randrange(HOUR)
                is_failed = self._archive.chance(self._shares.failed)
                for number in (1, 2) if is_failed else (1,):
                    moment = start + (number - 1) * HOUR
                    task_run_id = run_id(moment, self._chance)
                    run = Try(task, f"scheduled__{scheduled.isoformat()}", number, task_run_id, root_run_id)
                    self._run(run, moment, is_failed=is_failed and number == 1)
                if self._archive.left and self._archive.chance(self._shares.orphans):
                    self._run_orphan(start)

    def _task(self, dag: int, number: int) -> Task:
        kind = self._chance.random() - self._shares.streams
        program = STREAM if kind < 0 else LONG if kind < self._shares.long else self._chance.choice(self._ordinary)
        return Task(f"dag_{dag:03}", f"task_{number}", program, self._chance.randrange(self._areas))

    def _run(self, run: Try, start: int, *, is_failed: bool) -> None:
        archive = self._archive
        name = self._chance.choice(self._failing) if is_failed else run.task.program
        program, areas = self._programs[name], [run.task.area]
        if name == STREAM:
            areas *= self._chance.randint(1, 20)
            # Every other one still runs.
            program = replace(program, end=self._chance.choice((program.end, None)))
        archive.summary.tries += archive.left > 0
        is_told = False
        for begin in (start, start + HOUR // 2) if archive.chance(self._shares.several) else (start,):
            if archive.left:
                names = _names(run, begin, self._chance)
                lines = program.events(names, areas, begin, self._chance)
                launch = archive.launch(run, names[b"application_run_id"], lines)
                # Of those that succeeded, some were not watched.
                if launch is not None and (is_failed or archive.chance(0.5)):
                    is_told = is_failed
                    _write_transitions(launch, begin, "FAILED" if is_failed else "FINISHED")
        archive.summary.failed += is_told

    def _run_orphan(self, start: int) -> None:
        self._archive.summary.orphans += 1
        names = {
            b"application_run_id": run_id(start, self._chance),
            b"application_name": b"adhoc_%02d" % self._chance.randrange(100),
        }
        area = self._chance.randrange(self._areas)
        self._archive.central(self._chance.choice(self._orphans).events(names, [area], start, self._chance))


def _names(run: Try, start: int, chance: random.Random) -> dict[bytes, bytes]:
    dag, task = run.task.dag_id.encode(), run.task.task_id.encode()
    return {
        b"run_id": run.run_id,
        b"job": b"%b.%b" % (dag, task),
        b"root_run_id": run.root_run_id,
        b"root_job": dag,
        b"application_run_id": run_id(start, chance),
        b"application_name": b"%b_%b" % (dag, task),
    }


def _write_transitions(launch: Path, start: int, end: Status) -> None:
    """Say of the driver of a launch how it ended, half an hour after it had started."""
    moment = datetime.fromtimestamp(start / 1000, UTC)
    driver_id = f"driver-{moment:%Y%m%d%H%M%S}-0000"
    steps: tuple[tuple[Status | None, Status, int], ...] = (
        (None, "SUBMITTED", 0),
        ("SUBMITTED", "RUNNING", 5),
        ("RUNNING", end, 1800),
    )
    transitions = (
        StatusTransition("DRIVER", driver_id, old, new, moment + timedelta(seconds=seconds), "standalone")
        for old, new, seconds in steps
    )
    launch.joinpath(TRANSITIONS_FILE).write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in transitions))


def main() -> None:
    """Write an archive, and print what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, default=100_000, help="lines; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="another one adds other files to a directory")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--dags", type=int, default=100, help=f"of {TASKS} tasks each; default: %(default)s")
    parser.add_argument("--areas", type=int, default=50, help="of the lake, some twenty datasets each; default: 50")
    parser.add_argument("--giant", type=int, default=0, metavar="N", help="lines of one more application")
    parser.add_argument("--flat", action="store_true", help="files of several applications, all in the directory")
    for share in fields(Shares):
        parser.add_argument(f"--{share.name}", type=float, default=share.default, metavar="SHARE")
    arguments = parser.parse_args()
    start = time.perf_counter()
    summary = generate(
        arguments.directory,
        arguments.events,
        seed=arguments.seed,
        days=arguments.days,
        dags=arguments.dags,
        areas=arguments.areas,
        giant=arguments.giant,
        shares=Shares(**{share.name: getattr(arguments, share.name) for share in fields(Shares)}),
        is_flat=arguments.flat,
    )
    for name, number in asdict(summary).items():
        print(name, number)
    print(f"# {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
