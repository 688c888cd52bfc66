"""What Marquez 0.51.1 shows after a sequence of events: a model of its tables, pure, without a database.

Its rules are those of Marquez's ``OpenLineageDao``, ``JobVersionDao``, ``RunDao`` and ``LineageDao``; ``marquez_probe``
asks a real one whether they hold. Left out, for nothing of ours needs them: symlinks of datasets and jobs, nominal
times, columns, tags, and a parent run that is known as that of another job (``UnknownRuleError``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, str]
"""Namespace and name, of a job or of a dataset."""

INPUT, OUTPUT = "inputs", "outputs"
STATES = {"COMPLETE": "COMPLETED", "FAIL": "FAILED", "ABORT": "ABORTED"}
RUNNING = "RUNNING"
JAVA_SCHEMES = {"file", "ftp", "http", "https"}


class UnknownRuleError(Exception):
    """The events need a rule of Marquez that is not in this model."""


@dataclass
class JobPage:
    """A job. ``edges`` are what the lineage graph draws, by direction; ``type`` is BATCH or STREAM.

    ``latest_run`` is the run whose state the graph gives to the job: that of the parent, where there is one.
    """

    type: str
    description: str | None
    location: str | None
    latest_run: str | None
    parent: Key | None = None
    versions: dict[Any, dict[str, dict[Key, bool]]] = field(default_factory=dict)
    """By version: direction, dataset, and whether the graph draws it."""

    @property
    def shown_location(self) -> str | None:
        """The location as Java writes it; None where it knows no such URL (``s3a://…``)."""
        if self.location is None or self.location.partition(":")[0] not in JAVA_SCHEMES:
            return None
        return self.location.replace("file:///", "file:/")

    def edges(self, direction: str) -> set[Key]:
        """The datasets that the graph joins to the job."""
        return {key for each in self.versions.values() for key, is_drawn in each[direction].items() if is_drawn}

    def drop(self, direction: str, but: Any = None) -> None:
        """Draw the edges of no version, ``but`` of one."""
        for version, each in self.versions.items():
            if version != but:
                each[direction] = dict.fromkeys(each[direction], False)


@dataclass
class RunPage:
    """A run; the times are those of the events, as they were given."""

    job: Key
    state: str
    started_at: str | None = None
    ended_at: str | None = None
    reads: set[Any] = field(default_factory=set, repr=False)
    """Keys of the versions of datasets that it has read."""


@dataclass
class Version:
    """A version of a dataset; ``created_by`` is a run, None where it was only read."""

    dataset: Key
    created_at: str
    created_by: str | None


@dataclass
class DatasetPage:
    """A dataset. DROP marks it as deleted, and leaves its edges, until an event without it names the dataset."""

    source: str
    is_deleted: bool = False
    current_version: Any = None


@dataclass
class MarquezPages:
    """All pages; ``take`` the events in the order in which they arrive."""

    jobs: dict[Key, JobPage] = field(default_factory=dict)
    runs: dict[str, RunPage] = field(default_factory=dict)
    datasets: dict[Key, DatasetPage] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    """URLs by name. An empty one: ``/api/v1/sources`` answers 500 from then on."""
    _versions: dict[Any, Version] = field(default_factory=dict)

    def named(self, run: str, direction: str) -> set[Key]:
        """The datasets of one run, which is what the page of the job shows of its latest one."""
        if direction == INPUT:
            return {self._versions[version].dataset for version in self.runs[run].reads}
        return {each.dataset for each in self._versions.values() if each.created_by == run}

    def versions(self, dataset: Key) -> list[Version]:
        """The versions of a dataset, in the order in which they came."""
        return [each for each in self._versions.values() if each.dataset == dataset]

    def take(self, *events: Mapping[str, Any]) -> MarquezPages:
        """Take events, one after the other."""
        for event in events:
            self._take(event)
        return self

    def _take(self, event: Mapping[str, Any]) -> None:
        run_id, at = event["run"]["runId"], event["eventTime"]
        key = self._job(event)
        state = STATES.get(event["eventType"], RUNNING)
        run = self.runs.setdefault(run_id, RunPage(key, state))
        _move(run, state, at)
        is_stream = _is_stream(event)
        is_empty = not event.get(INPUT) and not event.get(OUTPUT)
        # Marquez forgets that ABORT is an end, too.
        is_bare_end_of_stream = is_stream and is_empty and event["eventType"] in {"COMPLETE", "FAIL"}
        job = self.jobs[key]
        for direction in (INPUT, OUTPUT):
            for dataset in event.get(direction) or ():
                self._dataset(dataset, run_id, at, is_input=direction == INPUT)
            if not event.get(direction) and not is_bare_end_of_stream:
                job.drop(direction)
        version = (job.location, *(frozenset(self.named(run_id, direction)) for direction in (INPUT, OUTPUT)))
        if is_stream:
            # A version that is known is not made the current one again: edges that were dropped stay away.
            if not is_bare_end_of_stream and version not in job.versions:
                self._draw(job, version, run_id)
        elif state != RUNNING:
            self._draw(job, version, run_id)
        if event["eventType"] == "COMPLETE" or is_stream:
            for version_key, each in self._versions.items():
                if each.created_by == run_id:
                    self.datasets[each.dataset].current_version = version_key

    def _job(self, event: Mapping[str, Any]) -> Key:
        """Return the key of the job, whose page it makes or changes, as that of a parent that is not known."""
        namespace, name = event["job"]["namespace"], event["job"]["name"]
        facets = event["job"].get("facets") or {}
        kind = "STREAM" if _is_stream(event) else "BATCH"
        location = (facets.get("sourceCodeLocation") or {}).get("url")
        description = (facets.get("documentation") or {}).get("description")
        facet = (event["run"].get("facets") or {}).get("parent")
        if facet is None:
            return self._upsert((namespace, name), JobPage(kind, description, location, event["run"]["runId"]))
        parent = self._parent(event, facet, kind, location)
        name = f"{parent[1]}.{name.removeprefix(f'{parent[1]}.')}"
        page = JobPage(kind, description, location, self.jobs[parent].latest_run, parent)
        return self._upsert((namespace, name), page)

    def _parent(self, event: Mapping[str, Any], facet: Mapping[str, Any], kind: str, location: str | None) -> Key:
        run_id, named = facet["run"]["runId"], facet["job"]
        name = named["name"]
        if name == event["job"]["name"]:
            name = name.rpartition(".")[0] or name
        if (known := self.runs.get(run_id)) is not None:
            if known.job != (named["namespace"], name):
                raise UnknownRuleError(f"the run {run_id} is known as one of {known.job}, and named as one of {name}")
            return known.job
        key = self._upsert((event["job"]["namespace"], name), JobPage(kind, None, location, run_id))
        state = STATES.get(event["eventType"], RUNNING)
        _move(self.runs.setdefault(run_id, RunPage(key, state)), state, event["eventTime"])
        return key

    def _upsert(self, key: Key, page: JobPage) -> Key:
        known = self.jobs.setdefault(key, page)
        known.type, known.description, known.location = page.type, page.description, page.location
        known.latest_run = page.latest_run
        known.parent = known.parent or page.parent
        return key

    def _dataset(self, dataset: Mapping[str, Any], run_id: str, at: str, *, is_input: bool) -> None:
        key = dataset["namespace"], dataset["name"]
        facets = dataset.get("facets") or {}
        source = facets.get("dataSource") or {"name": "default", "uri": self.sources.get("default", "")}
        self.sources[source["name"]] = source.get("uri") or ""
        change = (facets.get("lifecycleStateChange") or {}).get("lifecycleStateChange", "")
        page = self.datasets.setdefault(key, DatasetPage(source["name"]))
        page.is_deleted = change.upper() == "DROP"
        version = page.current_version
        if not is_input or version is None:
            fields = [(each["name"], each.get("type")) for each in (facets.get("schema") or {}).get("fields") or ()]
            version = (key, source["name"], change, tuple(fields), run_id)
            made = self._versions.setdefault(version, Version(key, at, None))
            made.created_by = None if is_input else run_id
        if is_input:
            self.runs[run_id].reads.add(version)
            if page.current_version is None:
                page.current_version = version

    def _draw(self, job: JobPage, version: Any, run_id: str) -> None:
        edges = job.versions.setdefault(version, {INPUT: {}, OUTPUT: {}})
        for direction in (INPUT, OUTPUT):
            if named := self.named(run_id, direction):
                job.drop(direction, but=version)
                edges[direction] |= dict.fromkeys(named, True)


def pages_after(events: Iterable[Mapping[str, Any]]) -> MarquezPages:
    """The pages of a Marquez that has taken these events and no others."""
    return MarquezPages().take(*events)


def _move(run: RunPage, state: str, at: str) -> None:
    run.state = state
    if state == RUNNING:
        run.started_at = at
    else:
        run.ended_at = at


def _is_stream(event: Mapping[str, Any]) -> bool:
    facet = (event["job"].get("facets") or {}).get("jobType") or {}
    return bool((facet.get("processingType") or "").upper() == "STREAMING")
