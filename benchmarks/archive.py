"""Measures the archive job against a bare read of the same files, and its memory.

Prints one line a figure, as ``pairs.py`` does.

The archive is made by ``generate.py``: 1,000,000 events in some 12,000 files. All programs are started anew for each
measurement, and their time is that from the start of Python to the end of the JVM.

- ``archive_vs_json_loads``: time of ``spark-lineage archive merge`` on ``local[2]``, divided by that of a Spark program
  which parses each line by ``json.loads`` and counts (``programs/bare_read.py``; goal: at most 1.2)
- ``archive_vs_jvm_json``: the same, where Spark's own reader of JSON parses, and no Python
- ``archive_cores``: time on ``local[1]``, divided by that on ``local[2]`` (goal: at least 1.6)
- ``archive_cores_alone``: the same, where ``local[1]`` has one core of the machine: otherwise its JVM and its Python
  have two, and use both (only on Linux)
- ``archive_again``: time of a second run that finds nothing new, divided by that of the first
- ``# few``: an archive of a few events on as many days, whose time is the start-up
- ``…_cpu``: the same of CPU time, with that of Spark's Python workers, which the operating system charges to no parent
- ``…_mb``: the most memory that a part of the job had at any moment, in MiB; no ratio. On ``local-cluster``, where
  executors are processes of their own, of 1 GB each
- ``shuffle_bytes``: bytes that executors gave each other, for each event of the archive; no ratio
- ``event_…``, with ``--large``: the same of one event, by the time beyond that of the few; ``# event_…_us`` has its
  microseconds. The archive has 10,000,000 events (34 GB), and each run is done once, those of cores with a tenth
- ``skew_…``, with ``--skew``: both for one application of 1,000,000 events beside 100,000 small ones, all in
  gzip, which no reader can split, so that one task has the million
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self

import psutil
from pairs import Round, Taken, by_turns, parser, timed, uncharged

HERE = Path(__file__).resolve().parent
GENERATE, BARE_READ = HERE / "generate.py", HERE / "programs" / "bare_read.py"
ARCHIVE = [sys.executable, "-m", "spark_lineage.cli", "archive", "merge"]
FEW = 5000
LARGE = 10_000_000
EXECUTORS = "local-cluster[1,2,1024]"
MEBIBYTE = 1024 * 1024
PR_SET_CHILD_SUBREAPER = 36
TAIL_LINES = 40
SET_ASIDE = re.compile(r"^\d+ lines read, (\d+) set aside$", re.MULTILINE)


@dataclass
class Laboratory:
    """Where archives lie, what is in them, and what is run."""

    folder: Path
    env: Mapping[str, str]
    archives: dict[str, dict[str, int]] = field(default_factory=dict)
    runs: int = 0

    def generate(self, name: str, *arguments: str) -> None:
        """Make an archive, unless it is there."""
        directory, summary = self.folder / name, self.folder / f"{name}.txt"
        if not summary.exists():
            command = [sys.executable, str(GENERATE), str(directory), *arguments]
            summary.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            # What is still to be written to disk would be written while others are measured.
            os.sync()
        lines = [line.split() for line in summary.read_text().splitlines() if not line.startswith("#")]
        self.archives[name] = {key: int(number) for key, number in lines}

    def merge(self, name: str, master: str, *conf: str, is_again: bool = False) -> Taken:
        """Run the archive job."""
        out = self.folder / "out"
        if not is_again:
            shutil.rmtree(out, ignore_errors=True)
        command = [*ARCHIVE, str(self.folder / name), "--out", str(out), "--master", master]
        command += (word for each in conf for word in ("--conf", each))
        taken, said = self._timed(command, "merge")
        found = SET_ASIDE.search(said)
        if not is_again and (found is None or int(found[1]) != self.archives[name]["torn"]):
            raise SystemExit(f"{said}\nThis is not all of the archive {name}: {self.archives[name]}")
        return taken

    def read(self, kind: str, name: str, master: str) -> Taken:
        """Run a bare read."""
        command = [sys.executable, str(BARE_READ), kind, master, str(self.folder / name)]
        taken, said = self._timed(command, kind)
        archive = self.archives[name]
        if said.split()[-1] != str(archive["lines"] - archive["torn"]):
            raise SystemExit(f"{said}\n{kind} did not count all of {archive}")
        return taken

    def _timed(self, command: Sequence[str], name: str) -> tuple[Taken, str]:
        self.runs += 1
        log = self.folder / f"{self.runs:03}-{name}.log"
        with log.open("wb") as stream:
            run = partial(
                subprocess.run, command, env=self.env, cwd=self.folder, stdout=stream, stderr=stream, check=True
            )
            try:
                with Workers() as workers:
                    taken = timed(_run_to_its_end, run)
                uncharged.append(workers.seconds)
                taken = {**taken, "cpu": taken["cpu"] + workers.seconds}
            except subprocess.CalledProcessError as error:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
                raise SystemExit(f"{tail}\n{name}: {error}: {log}") from error
        return taken, log.read_text(errors="replace")


def _run_to_its_end(run: Callable[[], object]) -> None:
    """Run a program, and wait for its JVM too: PySpark does not, and then its CPU time counts for nobody."""
    if sys.platform == "linux":
        # Processes whose parent has ended become ours.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    run()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


@contextlib.contextmanager
def laboratory(directory: Path | None) -> Iterator[Laboratory]:
    """Return a place that is removed in the end, or one that stays."""
    with contextlib.ExitStack() as stack:
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-archive-")))
        directory.mkdir(parents=True, exist_ok=True)
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))}
        env = inherited | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        yield Laboratory(directory.resolve(), env)


class Sampler:
    """Calls ``sample`` again and again, in a thread of its own."""

    seconds_between = 0.25

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def sample(self) -> None:
        """Look at the processes that this one has started."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._is_over.wait(self.seconds_between):
            self.sample()


class Workers(Sampler):
    """Samples the CPU time of PySpark's workers: their daemon ignores their ends, so no parent is charged for it."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds: dict[int, float] = {}

    @property
    def seconds(self) -> float:
        """The CPU time of all workers, but for what each took after its last sample."""
        return sum(self._seconds.values())

    def sample(self) -> None:
        """Note what each worker has taken so far."""
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                parent = process.parent()
                if parent is not None and all("pyspark.daemon" in each.cmdline() for each in (process, parent)):
                    self._seconds[process.pid] = sum(process.cpu_times()[:2])


class Peaks(Sampler):
    """Samples the memory of all processes that this one starts: the most of each part of a Spark application.

    Of a page that several processes share each counts its part, as the workers of PySpark are forks.
    """

    # The kernel looks at each page of a JVM.
    seconds_between = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.peaks: dict[str, float] = defaultdict(float)

    def sample(self) -> None:
        """Note what is more than before."""
        now: dict[str, float] = defaultdict(float)
        for process in psutil.Process().children():
            self._add(process, "driver", now)
        for part, size in now.items():
            self.peaks[part] = max(self.peaks[part], size)

    def show(self, prefix: str) -> None:
        """Print them, in MiB."""
        for part, size in sorted(self.peaks.items()):
            print(f"{prefix}{part}_mb {size:.0f}")

    def _add(self, process: psutil.Process, role: str, now: dict[str, float]) -> None:
        with contextlib.suppress(psutil.Error, OSError):
            command = " ".join(process.cmdline())
            if "CoarseGrainedExecutorBackend" in command:
                role = "executor"
            elif "pyspark.daemon" in command and role == "driver":
                role = "worker"
            language = "jvm" if "org.apache.spark" in command else "python"
            memory = process.memory_full_info()
            # Only Linux tells the share.
            now[f"{role}_{language}"] += getattr(memory, "pss", memory.uss) / MEBIBYTE
            for child in process.children():
                self._add(child, role, now)


def merge_twice(place: Laboratory) -> Taken:
    """Merge everything, and a second time, right after the first."""
    first = place.merge("all", "local[2]")
    return {**first, "again": place.merge("all", "local[2]", is_again=True)["wall"]}


def merge_on_one_core(place: Laboratory, name: str) -> Taken:
    """Merge an archive with one core of the machine."""
    cores = os.sched_getaffinity(0)
    # What is started meanwhile inherits it.
    os.sched_setaffinity(0, {min(cores)})
    try:
        return place.merge(name, "local[1]")
    finally:
        os.sched_setaffinity(0, cores)


def shuffled(logs: Path) -> int:
    """Return the bytes of all shuffles of the applications whose event logs are in a directory."""
    written = re.compile(r'"Shuffle Bytes Written":(\d+)')
    files = (file for file in logs.rglob("*") if file.is_file())
    ends = (line for file in files for line in file.read_text().splitlines() if '"SparkListenerTaskEnd"' in line)
    # The same number comes once more among the accumulators, under another name.
    return sum(int(found[1]) for found in map(written.search, ends) if found)


def show_memory(place: Laboratory, name: str, prefix: str) -> None:
    """Print the peaks of one run with executors of their own."""
    logs = place.folder / "event-log"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    with Peaks() as peaks:
        taken = place.merge(
            name,
            EXECUTORS,
            "spark.eventLog.enabled=true",
            "spark.eventLog.compress=false",
            f"spark.eventLog.dir={logs.as_uri()}",
        )
    peaks.show(prefix)
    print(f"{prefix}shuffle_bytes {shuffled(logs) / place.archives[name]['lines']:.0f}")
    print(f"# {name} on {EXECUTORS}: {taken['wall']:.1f} s", flush=True)


def show_large(place: Laboratory, asked: argparse.Namespace) -> None:
    """Print the figures of an archive in which start-up hardly counts, and those of one event."""
    peaks = {name: Peaks() for name in ("tenth", "all")}

    def merge(name: str) -> Taken:
        with peaks[name]:
            return place.merge(name, "local[2]")

    runs: dict[str, Callable[[], Taken]] = {
        "all": partial(merge, "all"),
        "all_json_loads": partial(place.read, "json_loads", "all", "local[2]"),
        "tenth": partial(merge, "tenth"),
        "tenth_one_core": partial(place.merge, "tenth", "local[1]"),
        "tenth_alone": partial(merge_on_one_core, place, "tenth"),
        "few": partial(place.merge, "few", "local[2]"),
        "few_json_loads": partial(place.read, "json_loads", "few", "local[2]"),
        "few_one_core": partial(place.merge, "few", "local[1]"),
        "few_alone": partial(merge_on_one_core, place, "few"),
    }
    found = by_turns(runs, asked, is_warm=True)

    def of_event(one: Round, name: str) -> Taken:
        archive, _, kind = name.partition("_")
        few = "_".join(filter(None, ("few", kind)))
        count = place.archives[archive]["lines"] - place.archives["few"]["lines"]
        return {clock: (one[name][clock] - one[few][clock]) / count * 1e6 for clock in one[name]}

    rounds = [{**one, **{f"event_of_{name}_us": of_event(one, name) for name in [*runs][:5]}} for one in found.rounds]
    found = replace(found, rounds=rounds)
    found.compare("archive_vs_json_loads", "all", "all_json_loads")
    found.compare("event_vs_json_loads", "event_of_all_us", "event_of_all_json_loads_us")
    found.compare("event_cores", "event_of_tenth_one_core_us", "event_of_tenth_us")
    found.compare("event_cores_alone", "event_of_tenth_alone_us", "event_of_tenth_us")
    found.show_numbers()
    for name, most in peaks.items():
        most.show(f"{name}_")


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=6)
    asking.add_argument("--events", type=int, help=f"default: 1000000; {LARGE} with --large")
    asking.add_argument("--directory", type=Path, help="for archives and logs, to keep them; default: one that goes")
    asking.add_argument("--skew", action="store_true", help="measure only what one large application does to memory")
    asking.add_argument("--large", action="store_true", help="measure what one event of a large archive costs, once")
    asked = asking.parse_args()
    asked.events = asked.events or (LARGE if asked.large else 1_000_000)
    asked.rounds = 1 if asked.large else asked.rounds
    with laboratory(asked.directory) as place:
        if asked.skew:
            # Some 21 events in a small application.
            small = ("--flat", "--long", "0", "--streams", "0", "--gzip", "1")
            place.generate("skew", "--events", str(21 * asked.events // 10), "--giant", str(asked.events), *small)
            show_memory(place, "skew", "skew_")
            return
        # The bare reads cannot read zstd without a native library.
        place.generate("few", "--events", str(FEW), "--zstd", "0")
        place.generate("tenth", "--events", str(asked.events // 10), "--zstd", "0")
        place.generate("all", "--events", str(asked.events), "--zstd", "0")
        place.merge("few", "local[2]")
        if asked.large:
            show_large(place, asked)
            return
        runs = {
            "ours": partial(merge_twice, place),
            "json_loads": partial(place.read, "json_loads", "all", "local[2]"),
            "jvm_json": partial(place.read, "jvm_json", "all", "local[2]"),
            "one_core": partial(place.merge, "all", "local[1]"),
            "alone": partial(merge_on_one_core, place, "all"),
            "few": partial(place.merge, "few", "local[2]"),
        }
        found = by_turns(runs, asked, is_warm=True)
        found.compare("archive_vs_json_loads", "ours", "json_loads")
        found.compare("archive_vs_jvm_json", "ours", "jvm_json")
        found.compare("archive_cores", "one_core", "ours")
        found.compare("archive_cores_alone", "alone", "ours")
        found.show("archive_again", (one["ours"]["again"] / one["ours"]["wall"] for one in found.rounds))
        found.show_numbers()
        show_memory(place, "tenth", "tenth_")
        show_memory(place, "all", "")


if __name__ == "__main__":
    main()
