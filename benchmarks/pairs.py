"""Compare runs by turns on a machine that may be busy; print one line a figure: ``name ratio [low, high]``.

Each round does every run once, in random order (``--seed`` repeats one). A ratio is the median of the rounds' ratios:
of wall time, and as ``name_cpu`` of CPU time, that of processes that were started and have ended included.

``[low, high]`` is the 95 % confidence interval of the median by order statistics, which holds for any distribution:
the Kth lowest and the Kth highest ratio, with K by the binomial distribution (W. J. Conover, Practical Nonparametric
Statistics, 3rd edition, 1999, section 3.2). It needs six rounds. With fewer it is their range, which covers less.

No figure is printed where other processes took more than 10 % of the CPU time of all cores during the rounds, as runs
had to wait for them; ``--busy`` prints all. Their time is what the kernel counts, less that of this process and its
descendants. The limit is not lower because threads of the kernel, such as those that write files, count as others.
The seconds behind the figures come in lines that begin with ``#``.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from math import comb

import psutil

CONFIDENCE = 0.95
MOST_OF_OTHERS = 0.1

Taken = Mapping[str, float]
"""Clock → seconds: ``wall``, ``cpu``, and others that a benchmark has."""
Round = Mapping[str, Taken]
"""Name of a run → what it took."""
uncharged: list[float] = []
"""CPU seconds of descendants that have ended, and that the operating system charged to no parent."""


@dataclass(frozen=True)
class Rounds:
    """What the runs took, round by round."""

    rounds: Sequence[Round]
    others: float
    """Share of the machine's CPU time that other processes took."""
    is_shown: bool

    def compare(self, figure: str, run: str, peer: str) -> None:
        """Print what a run took, divided by what its peer took: wall time, and CPU time as ``figure_cpu``."""
        for clock, name in (("wall", figure), ("cpu", f"{figure}_cpu")):
            if clock in self.rounds[0][run]:
                self.show(name, (one[run][clock] / one[peer][clock] for one in self.rounds))

    def show(self, figure: str, values: Iterable[float]) -> None:
        """Print the median of what each round gives, and its interval."""
        given = [*values]
        median, low, high = _texts(given, *interval(given))
        why = f"not measured, as other processes took {self.others:.0%} of the CPU time (--busy prints it)"
        print(f"{figure} {median} [{low}, {high}]" if self.is_shown else f"# {figure}: {why}")

    def show_numbers(self) -> None:
        """Print the seconds behind the figures: the median of each clock, and the range of the rounds."""
        for name, first in sorted(self.rounds[0].items()):
            texts = []
            for clock in first:
                values = [one[name][clock] for one in self.rounds]
                median, low, high = _texts(values, min(values), max(values))
                texts.append(f"{clock} {median} ({low} to {high})")
            print(f"# {name}: {', '.join(texts)}")
        print(f"# other processes took {self.others:.0%} of the machine's CPU time", flush=True)


def parser(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with what ``by_turns`` asks for."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=rounds, help="default: %(default)s")
    made.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of the order; default: a new one")
    made.add_argument("--busy", action="store_true", help="print figures of a machine that others use, too")
    return made


def by_turns(runs: Mapping[str, Callable[[], Taken]], asked: argparse.Namespace, *, is_warm: bool = False) -> Rounds:
    """Do every run in each round, after one of each that is not counted, unless all that they need ``is_warm``."""
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"# {asked.rounds} rounds, seed {asked.seed}, {load}", flush=True)
    if (covered := 1 - 2 ** (1 - asked.rounds)) < CONFIDENCE:
        print(f"# so few rounds have intervals of {covered:.0%}, not {CONFIDENCE:.0%}", flush=True)
    for run in () if is_warm else runs.values():
        run()
    chance = random.Random(asked.seed)  # noqa: S311
    began, before = time.perf_counter(), _others()
    rounds = [{name: runs[name]() for name in chance.sample([*runs], len(runs))} for _ in range(asked.rounds)]
    others = max(0.0, _others() - before) / ((time.perf_counter() - began) * (os.cpu_count() or 1))
    return Rounds(rounds, others, is_shown=asked.busy or others <= MOST_OF_OTHERS)


def timed(work: Callable[..., object], *arguments: object) -> Taken:
    """Do some work, and return its wall time and the CPU time of this process and its children that have ended."""
    began, cpu = time.perf_counter(), _cpu()
    work(*arguments)
    return {"wall": time.perf_counter() - began, "cpu": _cpu() - cpu}


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the confidence interval of the median, or the range where there are too few values for one."""
    ordered, count = sorted(values), len(values)
    # The chance that the median is lower than the lowest value, than the second lowest, and so on.
    beyond = list(accumulate(comb(count, below) / 2**count for below in range(count)))
    rank = max(1, bisect_right(beyond, (1 - CONFIDENCE) / 2))
    return ordered[rank - 1], ordered[-rank]


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _others() -> float:
    """Return the CPU seconds of the machine since its start, less those of this process and its descendants."""
    machine, own = psutil.cpu_times(), _cpu() + sum(uncharged)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            own += sum(process.cpu_times()[:4])
    # What the host gave to other machines is not ours either.
    return machine.user + machine.nice + machine.system + getattr(machine, "steal", 0.0) - own


def _texts(values: Sequence[float], low: float, high: float) -> list[str]:
    """Return the median, low and high with four digits."""
    numbers = statistics.median(values), low, high
    return [f"{number:#.4g}" if abs(number) < 1000 else f"{number:.0f}" for number in numbers]  # noqa: PLR2004
