"""Makes programs at random, runs them in one Spark application, and compares their lineage with their truth.

``python tests/truth/generated.py [--count N] [--seed S] [--show SEED] [--shrink] [--spark 3.5] [--keep DIR] [--again
DIR]``; ends with 1 where a program's lineage is not its truth, and nothing counts
what was not understood. ``--spark 3.5`` takes the environment that the variable
``SPARK_LINEAGE_TRUTH_PYSPARK_3_5`` names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from truth_run import kept_application

from generator.programs import generate, trace
from generator.rendering import text
from generator.running import Outcome, plans, run, run_again
from generator.shrinking import shrink

SHRUNK = 12
ROUNDS = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for, and print how it came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first; the next has the next number")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the program of a seed, and run nothing")
    parser.add_argument("--shrink", action="store_true", help="search for the smallest programs that fail")
    parser.add_argument("--spark", default="", metavar="VERSION", help="another PySpark than ours, as 3.5")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what the application leaves")
    parser.add_argument("--again", type=Path, metavar="DIR", help="run no Spark: merge again what --keep left in DIR")
    parser.add_argument("--batch", type=int, default=100, help="how many programs run in one application")
    asked = parser.parse_args(arguments)
    if asked.show is not None:
        sys.stdout.write(text(generate(asked.show)))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 180)
    programs = [generate(seed) for seed in range(asked.seed, asked.seed + asked.count)]
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="generated-") as temporary:
        home = asked.again or asked.keep or Path(temporary)
        for at in range(0, len(programs), asked.batch):
            batch, folder = programs[at : at + asked.batch], home / f"batch{at // asked.batch}"
            outcomes += run_again(batch, folder) if asked.again else run(batch, folder, asked.spark)
        console.print(table(outcomes))
        failing = sorted((each for each in outcomes if each.is_fault), key=lambda each: len(each.program.steps))
        for outcome in failing:
            console.print(report(outcome), soft_wrap=True, highlight=False, markup=False)
        if asked.shrink and failing and not asked.again:
            smallest = shrink(failing[:SHRUNK], lambda each: run(each, home / "shrink", asked.spark), ROUNDS)
            run([each.program for each in smallest], home / "smallest", asked.spark)
            for outcome in smallest:
                console.print(
                    f"\n{report(outcome)}\n{text(outcome.program)}", soft_wrap=True, highlight=False, markup=False
                )
                for place in trace(outcome.program).outputs:
                    for plan in plans(kept_application(home / "smallest"), place):
                        console.print(plan, soft_wrap=True, highlight=False, markup=False)
        for outcome in (each for each in outcomes if each.error):
            console.print(outcome.program.name, outcome.error[:300], soft_wrap=True, highlight=False, markup=False)
    return int(any(each.is_fault for each in outcomes))


def table(outcomes: Sequence[Outcome]) -> Table:
    """How often each kind of operation was used, and in how many programs that fail."""
    used, failing = Counter[str](), Counter[str]()
    for each in outcomes:
        used.update(each.program.kinds)
        failing.update(each.program.kinds if each.is_fault else ())
    ran = [each for each in outcomes if not each.error]
    wrong, faults = sum(each.is_wrong for each in ran), sum(each.is_fault for each in ran)
    title = (
        f"{len(outcomes)} programs, {len(ran)} ran, {faults} with a fault, {wrong - faults} not understood and counted"
    )
    found = Table("operation", "programs", "with a fault", title=title)
    for kind, number in sorted(used.items()):
        found.add_row(kind, str(number), str(failing[kind] or ""))
    return found


def report(outcome: Outcome) -> str:
    """One program that fails."""
    lines = [f"{outcome.program.name}: {', '.join(kind for kind in outcome.program.kinds if kind != 'source')}"]
    for what, facts in (("missing ", outcome.missing), ("too much", outcome.too_much)):
        lines += [f"  {what} {fact}" for fact in facts[:8]] + (
            [f"  {what} … {len(facts) - 8} more"] if len(facts) > 8 else []
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
