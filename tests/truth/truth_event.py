"""Compares events about a program with its truth: the merged event, or all events of another producer."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from truth_file import EVIDENCE, MEASURES, STATED, WHOLE, Facts, Name, Truth, ordered

NONE: Mapping[str, Sequence[str]] = MappingProxyType({})
_ENDS = ("COMPLETE", "FAIL", "ABORT")


@dataclass(frozen=True)
class Score:
    """How one measure of one job came out; ``missing`` and ``too_much`` are facts."""

    right: int
    missing: tuple[str, ...]
    too_much: tuple[str, ...]

    @property
    def precision(self) -> float:
        """Of what the event says, how much is true."""
        return self.right / (self.right + len(self.too_much)) if self.right or self.too_much else 1.0

    @property
    def recall(self) -> float:
        """Of what is true, how much the event says."""
        return self.right / (self.right + len(self.missing)) if self.right or self.missing else 1.0

    @property
    def is_perfect(self) -> bool:
        """Whether nothing is missing and nothing too much."""
        return not self.missing and not self.too_much

    def __add__(self, other: Score) -> Score:
        """The score of both."""
        return Score(self.right + other.right, self.missing + other.missing, self.too_much + other.too_much)


def compare(
    truth: Truth,
    events: Sequence[Mapping[str, Any]],
    directory: Path,
    evidence: str = "all",
    snapshots: Mapping[str, Sequence[str]] = NONE,
) -> dict[str, Score]:
    """Score each measure of the events about the job that ran in ``directory``: their facts are those of any of them.

    ``evidence`` is what they were made from; ``snapshots`` are those of Iceberg's tables below the directory, in order.
    Without them the versions of these tables have no numbers.
    """
    names = truth.names(directory)
    facts = [facts_of(event, names, directory) for event in events]
    observed: Facts = {each: set().union(*(one.get(each, ()) for one in facts)) for each in (*MEASURES, *STATED)}
    observed["state"] = set(_last_states(events))
    has_versions = bool(snapshots) or "iceberg" not in truth.packages
    versions = (_version_facts(event, names, directory, snapshots) for event in events)
    observed["versions"] = set().union(*versions) if has_versions else set()
    observed["counted"] = {evidence} if any(map(is_counted, events)) else set()
    other = {("counted", each) for each in EVIDENCE if each != evidence}
    beyond = {(each["measure"], each["fact"]) for each in truth.without_evidence} | other
    scores = {}
    for measure in (*MEASURES, *STATED):
        expected = {fact for fact in truth.facts[measure] if (measure, fact) not in beyond}
        if measure == "versions":
            unnamed = truth.outputs if evidence == "event_log" else truth.unversioned
            expected = set(_to_find(expected, observed[measure], unnamed)) if has_versions else set()
        said = {fact for fact in observed[measure] if truth.is_stated(measure, fact) and (measure, fact) not in beyond}
        scores[measure] = Score(len(expected & said), tuple(sorted(expected - said)), tuple(sorted(said - expected)))
    return scores


def facts_of(event: Mapping[str, Any], aliases: Mapping[Name, str], directory: Path) -> Facts:
    """Say what an event says; a dataset that the truth has no alias for is called by its name."""

    def called(dataset: Mapping[str, Any]) -> str:
        return _called(dataset, aliases, directory)

    run_facets, job_facets = event["run"].get("facets", {}), event["job"].get("facets", {})
    facts: Facts = {
        "state": {event["eventType"]},
        "inputs": {called(each) for each in event.get("inputs", [])},
        "outputs": {called(each) for each in event.get("outputs", [])},
        "attempted": {called(each) for each in run_facets.get("sparkLineage_attemptedOutputs", {}).get("outputs", [])},
        "direct": set(),
        "indirect": set(),
        "rows": set(),
        "write": set(),
        "feeds": set(),
        "catalog": ordered(
            f"{change['change'].lower()} "
            + (called(change) if change["objectType"] == "TABLE" else change["objectName"])
            for change in run_facets.get("sparkLineage_catalogChanges", {}).get("changes", [])
            # IF EXISTS and IF NOT EXISTS: the event itself says that it does not know.
            if change.get("isCertain", True)
        ),
    }
    for output in event.get("outputs", []):
        rows = output.get("outputFacets", {}).get("outputStatistics", {}).get("rowCount")
        if rows is not None:
            facts["rows"].add(f"{called(output)} = {rows}")
        for write in output.get("outputFacets", {}).get("sparkLineage_writes", {}).get("operations", []):
            facts["write"].add(f"{called(output)} = {write['operation'].lower()}")
        for kind, column, source in _edges(output.get("facets", {}).get("columnLineage", {})):
            facts[kind].add(f"{called(output)}.{column} < {called(source)}.{source['field']}")
    for entry in job_facets.get("lineage", {}).get("entries", []):
        facts["feeds"] |= {f"{called(entry)} < {called(fed)}" for fed in entry.get("inputs", [])}
    return facts


def is_counted(event: Mapping[str, Any]) -> bool:
    """Whether an event has at least one count of what it leaves unnamed."""
    facets = event["run"].get("facets", {})
    unknown = facets.get("sparkLineage_unknownDatasets", {}).get("commands", [])
    unread = facets.get("sparkLineage_unreadPlans", {}).get("parts", [])
    return any(each["count"] > 0 for each in (*unknown, *unread))


def versions_of(dataset: Mapping[str, Any]) -> set[str]:
    """Return the versions that an event names of a dataset."""
    facet = dataset.get("facets", {}).get("version", {})
    several = dataset.get("inputFacets", {}).get("sparkLineage_versions", {}).get("versions", ())
    named = (facet.get("datasetVersion"), *several)
    return {str(version) for version in named if version is not None}


def _last_states(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the last state of each run that has no parent among the runs of the events."""
    states: dict[str, str] = {}
    parents: dict[str, str] = {}
    for event in events:
        run_id = event["run"]["runId"]
        parents[run_id] = event["run"].get("facets", {}).get("parent", {}).get("run", {}).get("runId", "")
        # What comes late does not begin a run anew.
        if states.get(run_id) not in _ENDS:
            states[run_id] = event["eventType"]
    return (state for run_id, state in states.items() if parents[run_id] not in states)


def _version_facts(
    event: Mapping[str, Any], aliases: Mapping[Name, str], directory: Path, snapshots: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    by_alias = {aliases.get(("file", f"{directory}/{location}")): known for location, known in snapshots.items()}
    for datasets, kind in ((event.get("inputs", []), "@"), (event.get("outputs", []), "=")):
        for dataset in datasets:
            alias = _called(dataset, aliases, directory)
            known = by_alias.get(alias, ())
            for version in versions_of(dataset):
                yield f"{alias} {kind} {known.index(version) + 1 if version in known else version}"


def _to_find(expected: set[str], said: set[str], unnamed: Container[str]) -> Iterator[str]:
    """Return the versions that an event must name: that of each output, and all of a dataset of which it names one.

    Where no evidence has the version of an input, that is counted as such, which tests of the merge see. ``unnamed``
    are the outputs of which no evidence has it: an event log has none.
    """
    named = {fact.rpartition(" ")[0] for fact in said}
    for fact in expected:
        alias, kind, _ = fact.rsplit(" ", 2)
        if f"{alias} {kind}" in named or (kind == "=" and alias not in unnamed):
            yield fact


def _called(dataset: Mapping[str, Any], aliases: Mapping[Name, str], directory: Path) -> str:
    namespace, name = dataset["namespace"], dataset["name"]
    return aliases.get((namespace, name)) or f"<{namespace} {name}>".replace(f"{directory}/", "")


def _edges(lineage: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Return kind, output column and source of each edge; an edge without transformations is a plain copy."""
    for column, each in lineage.get("fields", {}).items():
        for source in each.get("inputFields", []):
            for how in source.get("transformations") or [{"type": "DIRECT"}]:
                yield how["type"].lower(), column, source
    for source in lineage.get("dataset", []):
        yield "indirect", WHOLE, source
