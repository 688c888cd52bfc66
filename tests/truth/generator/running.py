"""Runs many programs in one Spark application, merges what it leaves, and compares each program with its truth."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truth_event import facts_of
from truth_file import WHOLE, Name, Truth
from truth_run import Application, kept_application, own_version, run_job

from generator import sources
from generator.model import Edges, Output
from generator.names import bare
from generator.programs import Program, trace
from generator.rendering import text

ERRORS, ENDS = "errors.json", "ends.json"
_DRIVER = '''"""Runs each program of a directory, one after the other, in one Spark application."""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
errors, ends = {}, {}
for number, path in enumerate(json.loads(Path("order.json").read_text())):
    try:
        exec(compile(Path("programs", path).read_text(), path, "exec"), {"__name__": path})
    except Exception as error:
        errors[path.removesuffix(".py")] = f"{type(error).__name__}: {error}"
        if not spark.sparkContext._jsc.sc().isStopped():
            continue
        break
    finally:
        ends[path.removesuffix(".py")] = time.time()
    spark.catalog.clearCache()
Path("ends.json").write_text(json.dumps(ends, indent=1))
Path("errors.json").write_text(json.dumps(errors, indent=1))
spark.stop()
'''


@dataclass(frozen=True)
class Batch(Truth):
    """Many programs as one job, which is run as the jobs are whose truth was written by hand."""

    home: Path = field(default=Path())

    @property
    def program(self) -> Path:
        """The driver, which is laid out with the programs."""
        return self.home.resolve() / "work" / "driver.py"


@dataclass(frozen=True)
class Outcome:
    """How one program came out: ``error`` where it did not run, and what is missing and what too much.

    ``is_counted``: the reader of its plans says that it has not understood all of them.
    """

    program: Program
    error: str = ""
    missing: tuple[str, ...] = ()
    too_much: tuple[str, ...] = ()
    is_counted: bool = False

    @property
    def is_wrong(self) -> bool:
        """Whether it ran and its lineage is not the truth."""
        return bool(self.missing or self.too_much)

    @property
    def is_fault(self) -> bool:
        """Whether its lineage is not the truth, and nothing says so."""
        return self.is_wrong and not self.is_counted


def run(programs: Sequence[Program], home: Path, version: str = "") -> list[Outcome]:
    """Run them on a Spark release, ours if none is named, and compare."""
    files = {f"programs/{program.name}.py": text(program) for program in programs}
    files |= {"driver.py": _DRIVER, "order.json": json.dumps([f"{program.name}.py" for program in programs])}
    batch = Batch("generated", files=files | sources.files(), parquet=sources.parquet(), home=home)
    return outcomes(programs, run_job(batch, version or own_version(), home))


def run_again(programs: Sequence[Program], home: Path) -> list[Outcome]:
    """Merge and compare once more what a run left in ``home``, as far as it had the same programs."""
    application = kept_application(home)
    folder = application.home / "work" / "programs"
    paths = {program.name: folder / f"{program.name}.py" for program in programs}
    same = [each for each in programs if paths[each.name].exists() and paths[each.name].read_text() == text(each)]
    return outcomes(same, application)


def outcomes(programs: Sequence[Program], application: Application) -> list[Outcome]:
    """Merge what the application left, and compare."""
    event = application.merged("--max-event-bytes", "1000000000")
    (application.home / "event.json").write_text(json.dumps(event, indent=1, sort_keys=True))
    errors = json.loads((application.work / ERRORS).read_text())
    names: dict[Name, str] = {("file", str(application.work / sources.place(name))): name for name in sources.TABLES}
    truths = {program.name: trace(program).outputs for program in programs}
    for places in truths.values():
        names |= {("file", str(application.work / _path(place))): place for place in places}
    said = facts_of(event, names, application.work)
    by_place = _by_place(said)
    unknown = {each for each in said["inputs"] if each not in sources.TABLES}
    counted = _counted(application)
    found = []
    for program in programs:
        if program.name in errors:
            found.append(Outcome(program, errors[program.name]))
            continue
        missing, too_much = [], []
        for place, output in truths[program.name].items():
            if place not in said["outputs"]:
                missing.append(f"output {place}")
                continue
            one, other = compared(place, output, by_place)
            missing += one
            too_much += other
        mine = (f"/{program.name}/", f"/{program.name}_t")
        too_much += [f"input {each}" for each in sorted(unknown) if any(part in each for part in mine)]
        others = (said["outputs"] | said["attempted"]) - truths[program.name].keys()
        too_much += [f"output {each}" for each in sorted(others) if any(part in f"/{each}" for part in mine)]
        found.append(Outcome(program, "", tuple(missing), tuple(too_much), program.name in counted))
    return found


def _counted(application: Application) -> set[str]:
    """Return the programs of which a plan was not understood: those that ran when its execution started."""
    ends = json.loads((application.work / ENDS).read_text())
    names = sorted(ends, key=ends.__getitem__)
    places = (bisect_left(names, started, key=ends.__getitem__) for started in application.unread())
    return {names[place] for place in places if place < len(names)}


def compared(place: str, output: Output, said: Mapping[tuple[str, str], set[str]]) -> tuple[list[str], list[str]]:
    """What an event lacks about one output, and what it makes up."""
    missing, too_much = [], []
    for kind in ("direct", "indirect"):
        must = {f"{place}.{line}" for line in _lines(output, kind)}
        may = {f"{place}.{line}" for line in _lines(output, "may")}
        found = said.get((kind, place), set())
        missing += [f"{kind} {each}" for each in sorted(must - found)]
        too_much += [f"{kind} {each}" for each in sorted(found - must - may)]
    fed = said.get(("feeds", place), set())
    missing += [f"feeds {place} < {each}" for each in sorted(output.feeds - fed)]
    too_much += [f"feeds {place} < {each}" for each in sorted(fed - output.feeds - output.may_feed)]
    return missing, too_much


def _lines(output: Output, kind: str) -> list[str]:
    edges: dict[str, Edges] = {bare(name): each.edges for name, each in output.columns.items()} | {WHOLE: output.rows}
    return [f"{name} < {source}" for name, each in edges.items() for source in getattr(each, kind)]


def _by_place(said: Mapping[str, set[str]]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for kind in ("direct", "indirect"):
        for fact in said[kind]:
            # A place has no dot, a column may have several.
            place = fact.partition(".")[0]
            found.setdefault((kind, place), set()).add(fact)
    for fact in said["feeds"]:
        place, _, source = fact.partition(" < ")
        found.setdefault(("feeds", place), set()).add(source)
    return found


def _path(place: str) -> str:
    return place if "/" in place else f"warehouse/{place}"


def plans(application: Application, place: str) -> list[str]:
    """The physical plans, as the event log has them, of what wrote to a place."""
    found: dict[Any, str] = {}
    path = str(application.work / _path(place))
    for log in sorted(each for each in (application.home / "eventlog").rglob("*") if each.is_file()):
        for line in read_log(log):
            event = json.loads(line)
            plan = event.get("physicalPlanDescription", "")
            if path in plan or (place in plan and "/" not in place):
                found[event["executionId"]] = plan
    return list(found.values())


def read_log(path: Path) -> list[str]:
    """The lines of an event log about SQL."""
    import zstandard

    with path.open("rb") as file:
        raw = zstandard.ZstdDecompressor().stream_reader(file).read() if path.suffix == ".zstd" else file.read()
    return [line for line in raw.decode(errors="replace").splitlines() if "physicalPlanDescription" in line]
