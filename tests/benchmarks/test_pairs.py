"""Comparisons by turns: the ratio and its interval are right, and a busy machine prints no figure."""

from __future__ import annotations

import random
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pairs
import pytest
from pairs import by_turns, interval, parser, timed

if TYPE_CHECKING:
    from collections.abc import Callable

# One order: with another the chances are others, and one interval in twenty is wrong.
BUSY = ["--busy", "--seed", "1"]


def noisy(seconds: float, chance: random.Random) -> Callable[[], dict[str, float]]:
    """A run on a machine that others use: now and then it takes much longer."""
    return lambda: {"wall": seconds * chance.lognormvariate(0, 0.3), "cpu": seconds * chance.lognormvariate(0, 0.01)}


def chance_of(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311


def test_what_is_twice_as_slow_is_two_within_its_interval(capsys) -> None:
    chance = chance_of(1)
    found = by_turns({"ours": noisy(2, chance), "peer": noisy(1, chance)}, parser(None, 30).parse_args(BUSY))
    found.compare("ours_vs_peer", "ours", "peer")
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    figures = [line.translate(str.maketrans("", "", "[],")).split() for line in lines]
    assert [name for name, *_ in figures] == ["ours_vs_peer", "ours_vs_peer_cpu"]
    for _, *numbers in figures:
        ratio, low, high = map(float, numbers)
        assert low <= ratio <= high
        assert low <= 2 <= high
    cpu_low, cpu_high = map(float, figures[1][2:])
    assert cpu_high - cpu_low < 0.1


def test_the_interval_has_the_true_median_in_95_percent_of_cases() -> None:
    chance = chance_of(1)
    for count in (6, 10, 31):
        cases = [interval([chance.expovariate(1) for _ in range(count)]) for _ in range(2000)]
        assert sum(low <= 0.6931 <= high for low, high in cases) / len(cases) > 0.945


@pytest.mark.parametrize(
    ("count", "rank"),
    # By a table of the binomial distribution with p = 0.5.
    [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (20, 6)],
)
def test_the_interval_is_between_two_of_the_values(count: int, rank: int) -> None:
    assert interval([float(each) for each in range(count, 0, -1)]) == (rank, count + 1 - rank)


def test_a_busy_machine_prints_no_figure(capsys, monkeypatch) -> None:
    cpu = iter((1000.0, 1000.0 + 3600.0))
    monkeypatch.setattr(pairs.psutil, "cpu_times", lambda: SimpleNamespace(user=next(cpu), nice=0.0, system=0.0))
    run = {"ours": lambda: {"wall": 2.0}, "peer": lambda: {"wall": 1.0}}
    found = by_turns(run, parser(None, 6).parse_args([]))
    found.compare("ours_vs_peer", "ours", "peer")
    found.show_numbers()
    printed = capsys.readouterr().out
    assert "# ours_vs_peer: not measured, as other processes took " in printed
    assert all(line.startswith("# ") for line in printed.splitlines())


def test_an_idle_machine_prints_its_figures(capsys, monkeypatch) -> None:
    monkeypatch.setattr(pairs.psutil, "cpu_times", lambda: SimpleNamespace(user=0.0, nice=0.0, system=0.0))
    found = by_turns({"ours": lambda: {"wall": 2.0}, "peer": lambda: {"wall": 1.0}}, parser(None, 6).parse_args([]))
    found.compare("ours_vs_peer", "ours", "peer")
    assert "\nours_vs_peer 2.000 [2.000, 2.000]\n" in capsys.readouterr().out


def test_our_own_processes_are_not_others(monkeypatch) -> None:
    own = pairs._cpu()
    monkeypatch.setattr(
        pairs.psutil, "cpu_times", lambda: SimpleNamespace(user=pairs._cpu() - own, nice=0.0, system=0.0)
    )
    before = pairs._others()
    taken = timed(subprocess.run, [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"])
    assert taken["cpu"] >= 0.3
    assert pairs._others() - before < 0.1


def test_a_seed_repeats_the_order() -> None:
    def order(seed: int) -> list[str]:
        seen: list[str] = []
        runs = {name: lambda name=name: seen.append(name) or {"wall": 1.0} for name in "abcd"}
        assert len(by_turns(runs, parser(None, 6).parse_args(["--seed", str(seed)]), is_warm=True).rounds) == 6
        return seen

    assert order(1) == order(1) != order(2)
    assert sorted(order(1)[:4]) == list("abcd")


def test_few_rounds_say_so(capsys) -> None:
    by_turns({"ours": lambda: {"wall": 2.0}}, parser(None, 5).parse_args(["--rounds", "2"]))
    assert "# so few rounds have intervals of 50%, not 95%" in capsys.readouterr().out
