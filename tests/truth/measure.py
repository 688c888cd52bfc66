"""Measures the precision and recall of the merge on real Spark applications whose truth was written by hand.

``python tests/truth/measure.py [JOB...] [--keep DIR] [--again DIR]``; ends with 1 where an event is not the truth.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from functools import reduce
from operator import add
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from truth_event import Score, compare
from truth_file import MEASURES, STATED, jobs, read_truth
from truth_run import environment, kept_application, run_job

from spark_lineage.inject.jar import JarNotFoundError

AT_ONCE = 2
# What --keep left of the jobs that need another PySpark than ours, without their data.
RECORDED = Path(__file__).parent / "recorded"
_SHOWN = 12
Scores = Mapping[str, Score]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the jobs, or merge the files of an earlier run again, and print how the events compare with the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="names or patterns of jobs; default: all")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep what each run leaves in DIR/JOB")
    parser.add_argument("--again", metavar="DIR", type=Path, help="run no Spark: merge what --keep left in DIR")
    asked = parser.parse_args(arguments)
    chosen = [job for job in jobs() if not asked.jobs or any(fnmatch(job, pattern) for pattern in asked.jobs)]
    console = Console(width=None if sys.stdout.isatty() else 180)
    with tempfile.TemporaryDirectory(prefix="truth-") as temporary:
        home = asked.again or asked.keep or Path(temporary)
        table = Table("job", "s", *MEASURES, *STATED, title="precision/recall")
        all_scores: list[Scores] = []
        wrong: list[str] = []
        for job, seconds, result in _measured(chosen, home.resolve(), is_again=asked.again is not None):
            if isinstance(result, Exception):
                table.add_row(job, "", "skipped" if isinstance(result, JarNotFoundError) else "[red]broken")
                wrong.append(f"{job}\n  {result}")
                continue
            all_scores.append(result)
            table.add_row(job, f"{seconds:.0f}", *_cells(result))
            wrong += [report(job, result)] if not all(score.is_perfect for score in result.values()) else []
        if all_scores:
            total = {each: reduce(add, (scores[each] for scores in all_scores)) for each in all_scores[0]}
            table.add_row("total", "", *_cells(total))
    console.print(table)
    console.print(escape("\n".join(wrong)), soft_wrap=True, highlight=False)
    return int(bool(wrong))


def measure(job: str, home: Path, *, is_again: bool = False) -> tuple[float, Scores]:
    """Run one job in ``home`` (or take what is there), merge, and compare."""
    truth = read_truth(job)
    if is_again:
        application = kept_application(home)
    elif truth.pyspark and environment(truth.pyspark) is None:
        application = kept_application(RECORDED / job)
    else:
        application = run_job(truth, home)
    event = application.merged()
    home.mkdir(parents=True, exist_ok=True)
    (home / "event.json").write_text(json.dumps(event, indent=1, sort_keys=True))
    return application.seconds, compare(truth, event, application.work)


def report(job: str, scores: Scores) -> str:
    """Say what is missing and what is too much."""
    lines = [job]
    for name, score in scores.items():
        for what, facts in (("missing ", score.missing), ("too much", score.too_much)):
            lines += [f"  {name}: {what} {fact}" for fact in facts[:_SHOWN]]
            lines += [f"  {name}: {what} … and {len(facts) - _SHOWN} more"] if len(facts) > _SHOWN else []
    return "\n".join(lines)


def _measured(chosen: Sequence[str], home: Path, *, is_again: bool) -> Iterator[tuple[str, float, Scores | Exception]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(measure, job, home / job, is_again=is_again) for job in chosen]
        for job, future in zip(chosen, futures, strict=True):
            try:
                seconds, scores = future.result()
                yield job, seconds, scores
            except Exception as error:  # one broken job hides no other
                yield job, 0, error


def _cells(scores: Scores) -> Iterator[str]:
    for score in scores.values():
        if score.is_perfect:
            yield "[green]1" if score.right else ""
        else:
            yield f"[red]{score.precision:.2f}/{score.recall:.2f}"


if __name__ == "__main__":
    sys.exit(main())
