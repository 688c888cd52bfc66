"""Judges OpenLineage events of any producer by the hand-written truth about the programs that they describe.

``python tests/truth/judge.py`` judges the recordings of this repository: the events of the listener as they are, and
what is merged of the listener, of the event log, and of both. ``python tests/truth/judge.py DIR... --work PATH`` judges
the events of other producers: ``DIR/PROGRAM.jsonl`` has one event a line, and ``PATH`` is the directory in which the
program ran (``{program}`` stands for its name). Nothing is merged: a fact is right if it is true and in any event.

``python tests/truth/judge.py --lay-out HOME [--program PATTERN]`` makes ``HOME/PROGRAM/work`` with what each program
reads, and ``HOME/PROGRAM/run.sh``, which runs it with the options of ``spark-submit`` that a listener needs.
"""

from __future__ import annotations

import argparse
import fnmatch
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from truth_event import Score, compare
from truth_file import jobs, read_truth
from truth_recording import merged_recording, recordings
from truth_run import iceberg_snapshots, lay_out, own_version

from spark_lineage.launch.directory import EVENTS_FILE

Event = dict[str, Any]
SUFFIXES = (".jsonl", ".ndjson", ".json")
# The measures, as a reader of the table knows them, and the facet or field of OpenLineage that has them.
KINDS: Mapping[str, tuple[str, str]] = {
    "state": ("state", "eventType"),
    "inputs": ("inputs", "inputs"),
    "outputs": ("outputs", "outputs"),
    "feeds": ("inputs of each output", "lineage"),
    "direct": ("columns, DIRECT", "columnLineage"),
    "indirect": ("columns, INDIRECT", "columnLineage"),
    "rows": ("rows written", "outputStatistics"),
    "versions": ("versions of tables", "version"),
    "catalog": ("catalog changes", "sparkLineage_catalogChanges"),
    "write": ("kinds of writes", "sparkLineage_writes"),
    "attempted": ("failed writes", "sparkLineage_attemptedOutputs"),
    "counted": ("gaps that are counted", "sparkLineage_unknownDatasets"),
}
STANDARD = tuple(kind for kind, (_, facet) in KINDS.items() if not facet.startswith("sparkLineage_"))


@dataclass(frozen=True)
class Verdict:
    """How the events of one producer compare with the truths: the scores of each program."""

    producer: str
    programs: Mapping[str, Mapping[str, Score]]
    engine: Mapping[str, str]

    def total(self, kind: str) -> Score:
        """The score of all programs."""
        return reduce(add, (scores[kind] for scores in self.programs.values()), Score(0, (), ()))

    def perfect(self, kinds: Iterable[str]) -> int:
        """The number of programs about which nothing of these kinds is missing, and nothing too much."""
        wanted = set(kinds)
        return sum(all(scores[kind].is_perfect for kind in wanted) for scores in self.programs.values())


@dataclass(frozen=True)
class Described:
    """The events about one program, and the directory in which it ran."""

    program: str
    events: Sequence[Event]
    work: Path
    evidence: str = "all"
    snapshots: Mapping[str, Sequence[str]] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how the events of each producer compare with the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIR", help="events of a producer, by program")
    parser.add_argument("--work", default="/data/lab/work", help="where the programs of DIR ran; default: %(default)s")
    parser.add_argument("--recorded", action="store_true", help="beside DIR, judge the recordings of the same programs")
    parser.add_argument("--format", choices=_FORMATS, default="text", help="report: JSON of compatibility-tests")
    parser.add_argument("--details", action="store_true", help="list what is missing and what is too much (text only)")
    parser.add_argument("--lay-out", type=Path, metavar="HOME", help="prepare the programs for another listener")
    parser.add_argument("--program", default="*", metavar="PATTERN", help="which are prepared; default: all")
    asked = parser.parse_args(arguments)
    if asked.lay_out:
        lay_out_programs(asked.lay_out, asked.program)
        return 0
    with redirect_stderr(io.StringIO()):
        verdicts = [judge(each.name, read_directory(each, asked.work)) for each in asked.directories]
        if asked.recorded or not asked.directories:
            chosen = {program for verdict in verdicts for program in verdict.programs}
            verdicts += judge_recordings(chosen or set(jobs()))
    sys.stdout.write(_FORMATS[asked.format](verdicts))
    if asked.details and asked.format == "text":
        sys.stdout.write("\n".join(_details(verdicts)) + "\n")
    return 0


def lay_out_programs(home: Path, pattern: str) -> None:
    """Prepare the programs that the PySpark beside this Python can run without a server, and print their scripts."""
    version = own_version()
    for program in fnmatch.filter(jobs(), pattern):
        truth = read_truth(program)
        if version in truth.releases and "kafka" not in truth.packages:
            sys.stdout.write(f"{lay_out(truth, version, home / program)}\n")


def judge(producer: str, described: Iterator[Described]) -> Verdict:
    """Compare the events about each program with its truth."""
    programs, engine = {}, {"version": "", "openlineageAdapterVersion": ""}
    every = list(described)
    is_explicit = any("lineage" in event["job"].get("facets", {}) for each in every for event in each.events)
    for each in every:
        events = each.events if is_explicit else [_with_lineage(event) for event in each.events]
        programs[each.program] = compare(read_truth(each.program), events, each.work, each.evidence, each.snapshots)
        for event in each.events:
            engine |= event["run"].get("facets", {}).get("processing_engine", {})
    return Verdict(producer, programs, engine)


def judge_recordings(programs: set[str]) -> list[Verdict]:
    """Compare what is recorded of each program on its last Spark release."""
    return [
        judge("listener's own events", _recorded(programs, "listener", is_merged=False)),
        judge("listener, merged", _recorded(programs, "listener")),
        judge("event log, merged", _recorded(programs, "event_log")),
        judge("both, merged", _recorded(programs, "all")),
    ]


def read_directory(directory: Path, work: str) -> Iterator[Described]:
    """Return the events in ``DIR/PROGRAM.jsonl``.

    :raises ValueError: for a file that is about no program, and for a line that is not a run event
    """
    for path in sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES):
        place = Path(work.replace("{program}", path.stem)).absolute()
        yield Described(path.stem, read_events(path), place, snapshots=iceberg_snapshots(place))


def read_events(path: Path) -> list[Event]:
    """Read a file of one event a line."""
    events = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            event = json.loads(line) if line.strip() else None
        except ValueError as error:
            message = f"{path.name}, line {number}: {error}"
            raise ValueError(message) from error
        # Events about a job or a dataset alone are about no run.
        if event is not None and "run" in event:
            events.append(event)
    return events


def _with_lineage(event: Event) -> Event:
    """Return an event whose facet ``lineage`` has what the event means without it: each input feeds each output."""
    entries = [
        {"namespace": output["namespace"], "name": output["name"], "inputs": event.get("inputs", [])}
        for output in event.get("outputs", [])
    ]
    return {**event, "job": {**event["job"], "facets": {"lineage": {"entries": entries}}}}


def _recorded(programs: set[str], evidence: str, *, is_merged: bool = True) -> Iterator[Described]:
    last = {program: version for version, program in recordings() if program in programs}
    for program, version in sorted(last.items()):
        application, event = merged_recording(program, version, evidence)
        events = [event] if is_merged else read_events(application.home / "lineage" / EVENTS_FILE)
        yield Described(program, events, application.work, evidence, application.snapshots)


def _rows(verdicts: Sequence[Verdict]) -> Iterator[Sequence[str]]:
    yield "", *(verdict.producer for verdict in verdicts)
    yield "programs", *(str(len(verdict.programs)) for verdict in verdicts)
    yield "right in what OpenLineage has facets for", *(str(verdict.perfect(STANDARD)) for verdict in verdicts)
    yield "right in all", *(str(verdict.perfect(KINDS)) for verdict in verdicts)
    for kind, (name, _) in KINDS.items():
        yield name, *(_cell(verdict.total(kind)) for verdict in verdicts)


def _cell(score: Score) -> str:
    """Return precision and recall; of a kind about which the events have nothing there is no precision."""
    if not score.right and not score.missing and not score.too_much:
        return ""
    precision = _percent(score.precision) if score.right or score.too_much else "none"
    return f"{precision} / {_percent(score.recall)}"


def _percent(share: float) -> str:
    """Return a share that is rounded down: 100 % has no exception."""
    return f"{int(share * 1000) / 10:g}%"


def _markdown(verdicts: Sequence[Verdict]) -> str:
    head, *rows = _rows(verdicts)
    lines = ["".join(f" {cell} |" if cell else " |" for cell in row) for row in (head, *rows)]
    lines.insert(1, "---|" * len(head))
    return "".join(f"|{line}\n" for line in lines)


def _text(verdicts: Sequence[Verdict]) -> str:
    head, *rows = _rows(verdicts)
    table = Table(*head, title="precision / recall")
    for row in rows:
        table.add_row(*row)
    console = Console(file=io.StringIO(), width=40 + 26 * len(verdicts))
    console.print(table)
    return str(console.file.getvalue()) if isinstance(console.file, io.StringIO) else ""


def _json(verdicts: Sequence[Verdict]) -> str:
    """Return the scores of each producer by kind and by program."""
    found = {
        verdict.producer: {
            "programs": len(verdict.programs),
            "right": {"standard": verdict.perfect(STANDARD), "all": verdict.perfect(KINDS)},
            "kinds": {kind: _numbers(verdict.total(kind)) for kind in KINDS},
            "by_program": {
                program: {kind: asdict(score) for kind, score in scores.items() if not score.is_perfect}
                for program, scores in verdict.programs.items()
            },
        }
        for verdict in verdicts
    }
    return json.dumps(found, indent=1) + "\n"


def _numbers(score: Score) -> dict[str, float]:
    return {
        "right": score.right,
        "missing": len(score.missing),
        "too_much": len(score.too_much),
        "precision": score.precision,
        "recall": score.recall,
    }


def _report(verdicts: Sequence[Verdict]) -> str:
    """Return the form of reports of OpenLineage's compatibility-tests: a test for each kind of each program."""
    components = []
    for verdict in verdicts:
        scenarios = [
            {
                "name": program,
                "status": "SUCCESS" if all(score.is_perfect for score in scores.values()) else "FAILURE",
                "tests": [_test(kind, scores[kind]) for kind in KINDS],
            }
            for program, scores in verdict.programs.items()
        ]
        components.append(
            {
                "name": verdict.producer,
                "component_type": "producer",
                "component_version": verdict.engine["version"],
                "openlineage_version": verdict.engine["openlineageAdapterVersion"],
                "scenarios": scenarios,
            }
        )
    return json.dumps(components, indent=2) + "\n"


def _test(kind: str, score: Score) -> dict[str, Any]:
    details = [f"'{kind}' missing {fact}" for fact in score.missing]
    details += [f"'{kind}' too much {fact}" for fact in score.too_much]
    return {
        "name": kind,
        "status": "SUCCESS" if score.is_perfect else "FAILURE",
        "validation_type": "semantics",
        "entity_type": "openlineage",
        "details": details,
        "tags": {"facets": [KINDS[kind][1]] if score.right else []},
    }


def _details(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        for program, scores in verdict.programs.items():
            lines = (
                f"  {kind}: {what} {fact}"
                for kind, score in scores.items()
                for what, facts in (("missing", score.missing), ("too much", score.too_much))
                for fact in facts
            )
            for first in lines:
                yield f"{verdict.producer}: {program}"
                yield from chain([first], lines)


_FORMATS: Mapping[str, Callable[[Sequence[Verdict]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
    "report": _report,
}

if __name__ == "__main__":
    sys.exit(main())
