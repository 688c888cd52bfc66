"""Reads the truth about a job (``NAME.toml`` beside its program), which somebody wrote from what the program means."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

# Programs of those who wrote the merge, and of those who had not read it.
JOBS = Path(__file__).parent / "jobs"
FIELD = Path(__file__).parent / "field"
WHOLE = "*"
# Compared in every job, and only where the truth states them.
MEASURES = ("state", "inputs", "outputs", "attempted", "direct", "indirect")
STATED = ("rows", "feeds", "write", "catalog", "counted", "versions")
# What an event is made from: the listener and the event log, or the event log alone.
EVIDENCE = ("all", "event_log")

# Which Spark releases a program is run on: those that the package supports.
VERSIONS = ("3.5", "4.0", "4.1", "4.2")
# The jars of what a program needs beside Spark, by the Spark release.
PACKAGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "delta": {
        "3.5": ("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2"),
        "4.0": ("io.delta:delta-spark_4.0_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
        "4.1": ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
        "4.2": ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    },
    "iceberg": {
        "3.5": ("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0",),
        "4.0": ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",),
        "4.1": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
    },
    "hudi": {"3.5": ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",)},
    "h2": dict.fromkeys(VERSIONS, ("com.h2database:h2:2.4.240",)),
    "postgresql": dict.fromkeys(VERSIONS, ("org.postgresql:postgresql:42.7.8",)),
    "kafka": {
        "3.5": (
            "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.2", "org.apache.kafka:kafka-clients:3.4.1",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.12:3.5.2", "org.apache.commons:commons-pool2:2.11.1",
        ),
        "4.2": (
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0", "org.apache.kafka:kafka-clients:3.9.2",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0", "org.apache.commons:commons-pool2:2.13.1",
        ),
    },
}  # fmt: skip

_NUMBERS = re.compile(r"\{(\d+)\.\.(\d+)\}")

Name = tuple[str, str]
# A path, or namespace and name.
Place = str | dict[str, str]
Facts = dict[str, set[str]]


@dataclass(frozen=True)
class Truth:
    """The truth about one job; a fact is a line of text, in which a dataset is called by its alias.

    A dataset has several names where the event log alone knows it by another than the listener.
    ``packages`` are names of ``PACKAGES``, ``spark`` the releases that the program is written for. ``counted`` names
    the ``EVIDENCE`` that leaves a dataset or a column of the program unnamed: the event must count it.
    ``versions`` are those of an input that the program read, and an output's ``version`` is the one that it left: of
    Delta the version of the table's log, of Iceberg the snapshot's number among all of the table, from 1.
    ``unversioned`` names the outputs of which no evidence has the version: an event need not name it.
    """

    job: str
    exit_code: int = 0
    state: str = ""
    about: str = ""
    before: str = ""
    packages: list[str] = field(default_factory=list)
    spark: tuple[str, ...] = VERSIONS
    conf: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    parquet: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    datasets: dict[str, Place | list[Place]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    attempted: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    versions: dict[str, list[int]] = field(default_factory=dict)
    unversioned: list[str] = field(default_factory=list)
    catalog: list[dict[str, str]] | None = None
    without_evidence: list[dict[str, str]] = field(default_factory=list)

    @property
    def program(self) -> Path:
        """The program that it is the truth about."""
        return _path(self.job).with_suffix(".py")

    @property
    def releases(self) -> list[str]:
        """The Spark releases that it can be run on."""
        return [version for version in self.spark if all(version in PACKAGES[name] for name in self.packages)]

    def jars(self, version: str) -> list[str]:
        """The coordinates of the jars that it needs on a Spark release."""
        return [jar for name in self.packages for jar in PACKAGES[name][version]]

    @cached_property
    def facts(self) -> Facts:
        """What a perfect event says."""
        facts: Facts = {
            "state": {self.state or ("FAIL" if self.exit_code else "COMPLETE")},
            "inputs": {self._known(alias) for alias in self.inputs},
            "outputs": {self._known(alias) for alias in self.outputs},
            "attempted": {self._known(alias) for alias in self.attempted},
            "direct": set(self._edges("direct")),
            "indirect": set(self._edges("indirect")),
            "rows": {f"{alias} = {told['rows']}" for alias, told in self.outputs.items() if "rows" in told},
            "write": {f"{alias} = {kind}" for alias, told in self.outputs.items() for kind in _kinds(told)},
            "feeds": {
                f"{alias} < {self._known(fed)}" for alias, told in self.outputs.items() for fed in told.get("feeds", [])
            },
            "catalog": ordered(
                f"{each['change']} {each.get('view') or each.get('database') or self._known(each['dataset'])}"
                for each in self.catalog or ()
            ),
            "counted": set(self.counted),
            "versions": {f"{self._known(alias)} @ {number}" for alias, told in self.versions.items() for number in told}
            | {f"{alias} = {told['version']}" for alias, told in self.outputs.items() if "version" in told},
        }
        return facts

    def is_stated(self, measure: str, fact: str) -> bool:
        """Whether the truth says anything about what this fact is about."""
        if measure == "catalog":
            return self.catalog is not None
        if measure == "counted":
            return fact in self.counted
        if measure == "versions":
            alias, kind, _ = fact.rsplit(" ", 2)
            return alias in self.versions if kind == "@" else "version" in self.outputs.get(alias, {})
        return measure in MEASURES or measure in self.outputs.get(fact.partition(" ")[0], {})

    def names(self, directory: Path) -> dict[Name, str]:
        """The aliases by OpenLineage's namespace and name, for a job that ran in ``directory``."""
        names: dict[Name, str] = {}
        places = [(alias, one) for alias, told in self.datasets.items() for one in _several(told)]
        for alias, told in places:
            if isinstance(told, str):
                names["file", f"{directory}/{told}".rstrip("/")] = alias
            else:
                namespace, name = (told[key].replace("{dir}", str(directory)) for key in ("namespace", "name"))
                names[namespace, name] = alias
        return names

    def _edges(self, kind: str) -> Iterator[str]:
        for alias, told in self.outputs.items():
            for column, sources in told.get(kind, {}).items():
                for source in sources:
                    self._known(source.partition(".")[0])
                    yield f"{alias}.{column} < {source}"

    def _known(self, alias: str) -> str:
        if alias not in self.datasets:
            message = f"{self.job}.toml: there is no {alias!r} in [datasets]"
            raise ValueError(message)
        return alias


def ordered(changes: Iterable[str]) -> set[str]:
    """Make facts of what comes in an order: what comes again is another fact, and so is which one each comes after."""
    facts: list[str] = []
    for change in changes:
        again = sum(fact.partition(" #")[0] == change for fact in facts)
        facts.append(f"{change} #{again + 1}" if again else change)
    return {*facts, *(f"{later} comes after {earlier}" for earlier, later in pairwise(facts))}


def read_truth(job: str) -> Truth:
    """Read ``JOB.toml``; an unknown key is an error, since nobody would notice what it was meant to say."""
    path = _path(job)
    if not path.exists():
        message = f"there is no job {job!r}; there are: {' '.join(jobs())}"
        raise ValueError(message)
    told = _expanded(tomllib.loads(path.read_text()))
    try:
        truth = Truth(job, **told)
    except TypeError as error:
        message = f"{path.name}: {error}"
        raise ValueError(message) from error
    _check(truth.outputs, path.name)
    if unknown := set(truth.counted) - set(EVIDENCE):
        message = f"{path.name}: counted has unknown evidence {sorted(unknown)}"
        raise ValueError(message)
    return truth


def jobs() -> list[str]:
    """The names of all jobs."""
    return sorted(path.stem for directory in (JOBS, FIELD) for path in directory.glob("*.toml"))


def _path(job: str) -> Path:
    return next((path for path in (FIELD / f"{job}.toml",) if path.exists()), JOBS / f"{job}.toml")


def _kinds(told: Mapping[str, Any]) -> list[str]:
    return _several(told.get("write", []))


def _several(told: Any) -> list[Any]:
    return told if isinstance(told, list) else [told]


def _expanded(value: Any) -> Any:
    """Say a hundred things in one: ``f{000..099}`` in a key or an item stands for each of the numbers."""
    match value:
        case dict():
            return {key: _expanded(told) for keys, each in value.items() for key, told in _pairs(keys, each)}
        case list():
            parts = [_each(each) if isinstance(each, str) else [_expanded(each)] for each in value]
            return [each for part in parts for each in part]
    return value


def _pairs(keys: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Give each key its own value, or all the same one where that has no numbers."""
    numbered = isinstance(value, str) and _NUMBERS.search(value)
    values = _each(value) if numbered and _NUMBERS.search(keys) else [value] * len(_each(keys))
    yield from zip(_each(keys), values, strict=True)


def _each(text: str) -> list[str]:
    found = _NUMBERS.search(text)
    if not found:
        return [text]
    first, last = found.groups()
    return [_NUMBERS.sub(f"{number:0{len(first)}}", text) for number in range(int(first), int(last) + 1)]


def _check(outputs: Mapping[str, Mapping[str, Any]], file: str) -> None:
    for alias, told in outputs.items():
        if unknown := set(told) - {"direct", "indirect", "rows", "write", "feeds", "version"}:
            message = f"{file}: outputs.{alias} has unknown keys {sorted(unknown)}"
            raise ValueError(message)
