"""Measures the precision and recall of the merge on real Spark applications whose truth was written by hand.

``python tests/truth/measure.py [JOB...] [--spark VERSION] [--keep DIR] [--again DIR] [--recorded] [--record]
[--evidence event_log]``; ends with 1 where an event is not the truth. Without ``--spark`` a job is run on each release
that is installed: that beside this Python, and those whose environments ``SPARK_LINEAGE_TRUTH_PYSPARK_4_0`` and the
like name.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import reduce
from operator import add
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from truth_event import Score, compare
from truth_file import JOBS, MEASURES, STATED, VERSIONS, jobs, read_truth
from truth_recording import merged_recording, record, recorded, recording, recordings
from truth_run import environment, kept_application, own_version, run_job

from spark_lineage.inject.properties import JarNotFoundError

__all__ = ["own_version", "recordings"]

AT_ONCE = 2
_SHOWN = 12
Scores = Mapping[str, Score]


@dataclass(frozen=True)
class How:
    """What a job's files are taken from, without any of these from a run of it, and whether they are recorded.

    ``evidence``: what of it is merged; ``event_log`` is all that an application without listener has.
    """

    is_again: bool = False
    is_recorded: bool = False
    is_to_record: bool = False
    evidence: str = "all"


LIVE = How()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the jobs, or merge the files of an earlier run again, and print how the events compare with the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="names or patterns of jobs; default: all")
    parser.add_argument("--spark", action="append", metavar="VERSION", choices=VERSIONS, help="default: all installed")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep what each run leaves in DIR/VERSION/JOB")
    parser.add_argument("--again", metavar="DIR", type=Path, help="run no Spark: merge what --keep left in DIR")
    parser.add_argument(
        "--recorded", action="store_true", help="run no Spark: merge what is recorded in the repository"
    )
    parser.add_argument("--record", action="store_true", help="record each run in the repository")
    parser.add_argument("--evidence", choices=("all", "event_log"), default="all", help="merge the event log alone")
    asked = parser.parse_args(arguments)
    how = How(asked.again is not None, asked.recorded, asked.record, asked.evidence)
    versions = asked.spark or [version for version in VERSIONS if asked.recorded or environment(version)]
    chosen = [
        (version, job)
        for version in versions
        for job in jobs()
        if version in read_truth(job).releases and any(fnmatch(job, pattern) for pattern in asked.jobs or "*")
        if not asked.recorded or recording(job, version).exists()
    ]
    console = Console(width=None if sys.stdout.isatty() else 180)
    # The command says of each application what it has read.
    with tempfile.TemporaryDirectory(prefix="truth-") as temporary, redirect_stderr(io.StringIO()):
        home = asked.again or asked.keep or Path(temporary)
        table = Table("Spark", "job", "s", *MEASURES, *STATED, title="precision/recall")
        all_scores: list[Scores] = []
        wrong: list[str] = []
        for (version, job), seconds, result in _measured(chosen, home.resolve(), how):
            if isinstance(result, Exception):
                table.add_row(version, job, "", "skipped" if isinstance(result, JarNotFoundError) else "[red]broken")
                wrong.append(f"{version} {job}\n  {result}")
                continue
            all_scores.append(result)
            table.add_row(version, job, f"{seconds:.0f}", *_cells(result))
            if not all(score.is_perfect for score in result.values()):
                wrong.append(report(f"{version} {job}", result))
        if all_scores:
            total = {each: reduce(add, (scores[each] for scores in all_scores)) for each in all_scores[0]}
            table.add_row("", "total", "", *_cells(total))
    console.print(table)
    console.print(escape("\n".join(wrong)), soft_wrap=True, highlight=False)
    return int(bool(wrong))


def measure(job: str, version: str, home: Path, how: How = LIVE) -> tuple[float, Scores]:
    """Run one job in ``home`` on a Spark release (or take what is there, or recorded), merge, and compare."""
    truth = read_truth(job)
    if how.is_again:
        application = kept_application(home)
    elif how.is_recorded:
        application = recorded(job, version, home)
    else:
        application = run_job(truth, version, home)
    if how.is_to_record:
        record(application, recording(job, version))
    event = application.merged(evidence=how.evidence)
    return application.seconds, compare(truth, [event], application.work, how.evidence, application.snapshots)


def recorded_scores(job: str, version: str, evidence: str = "all") -> Scores:
    """Compare the event of a recording, which this process merges once."""
    application, event = merged_recording(job, version, evidence)
    return compare(read_truth(job), [event], application.work, evidence, application.snapshots)


def jobs_to_run() -> list[str]:
    """The jobs that every run of the tests runs: our own, on the PySpark beside this Python."""
    return [job for job in jobs() if (JOBS / f"{job}.toml").exists() and own_version() in read_truth(job).releases]


def report(job: str, scores: Scores) -> str:
    """Say what is missing and what is too much."""
    lines = [job]
    for name, score in scores.items():
        for what, facts in (("missing ", score.missing), ("too much", score.too_much)):
            lines += [f"  {name}: {what} {fact}" for fact in facts[:_SHOWN]]
            lines += [f"  {name}: {what} … and {len(facts) - _SHOWN} more"] if len(facts) > _SHOWN else []
    return "\n".join(lines)


def _measured(
    chosen: Sequence[tuple[str, str]], home: Path, how: How
) -> Iterator[tuple[tuple[str, str], float, Scores | Exception]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(measure, job, version, home / version / job, how) for version, job in chosen]
        for each, future in zip(chosen, futures, strict=True):
            try:
                seconds, scores = future.result()
                yield each, seconds, scores
            except Exception as error:  # one broken job hides no other
                yield each, 0, error


def _cells(scores: Scores) -> Iterator[str]:
    for score in scores.values():
        if score.is_perfect:
            yield "[green]1" if score.right else ""
        else:
            yield f"[red]{score.precision:.2f}/{score.recall:.2f}"


if __name__ == "__main__":
    sys.exit(main())
