"""Short sequences of events whose effect on Marquez's pages is worth knowing; by name, one event after the other."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

BASE = "2026-03-01T10:20:"
PRODUCER = "https://example.com/proof"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACET = {"_producer": PRODUCER, "_schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/BaseFacet"}
DAG, TASK = "dag", "dag.task"


class Names:
    """Long names for one Marquez, short ones for people; each sequence has a namespace of its own."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._short: dict[str, str] = {}

    def run(self, short: str) -> str:
        """The id of a run."""
        run_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.namespace}/{short}"))
        self._short[run_id] = short
        return run_id

    def short(self, run_id: str | None) -> str | None:
        """What a run is called in the sequence."""
        return None if run_id is None else self._short[run_id]

    def source(self, dataset: str) -> str:
        """The source of a dataset: it has the first letter of its name."""
        return f"{self.namespace}:{dataset[0]}"

    def short_source(self, source: str) -> str:
        """What a source is called in the sequence."""
        return source.rpartition(":")[2]


@dataclass(frozen=True)
class Said:
    """One event, as a line of the table has it: ``TYPE RUN INPUTS > OUTPUTS key=value``.

    Only the first two must be there. ``TYPE~`` is one of a stream, ``RUN^PARENT`` one with a parent. Keys are ``job``
    (else the task's), ``at``, the second of the event's time (else its place in the sequence), ``location`` and
    ``description`` of the job, ``change`` of the outputs' lifecycle, and ``column``, which the datasets have.
    """

    line: str
    type: str
    run: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: Mapping[str, str]

    @classmethod
    def read(cls, line: str) -> Said:
        """Read a line."""
        kind, run, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        datasets = [word for word in words if "=" not in word]
        arrow = datasets.index(">") if datasets else 0
        return cls(line, kind, run, tuple(datasets[:arrow]), tuple(datasets[arrow + 1 :]), options)

    def event(self, names: Names, number: int) -> dict[str, Any]:
        """The event, for the place that it has in its sequence."""
        run, _, parent = self.run.partition("^")
        processing = "STREAMING" if self.type.endswith("~") else "BATCH"
        job_type = {"integration": "SPARK", "jobType": "TASK", "processingType": processing}
        job_facets: dict[str, Any] = {"jobType": FACET | job_type}
        if "location" in self.options:
            job_facets["sourceCodeLocation"] = FACET | {"type": "git", "url": self.options["location"]}
        if "description" in self.options:
            job_facets["documentation"] = FACET | {"description": self.options["description"]}
        run_facets: dict[str, Any] = {}
        if parent:
            above = {"job": {"namespace": names.namespace, "name": DAG}, "run": {"runId": names.run(parent)}}
            run_facets["parent"] = FACET | above
        return {
            "eventType": self.type.removesuffix("~"),
            "eventTime": f"{BASE}{int(self.options.get('at', number)):02}Z",
            "producer": PRODUCER,
            "schemaURL": SCHEMA,
            "job": {"namespace": names.namespace, "name": self.options.get("job", TASK), "facets": job_facets},
            "run": {"runId": names.run(run), "facets": run_facets},
            "inputs": [self._dataset(names, each) for each in self.inputs],
            "outputs": [self._dataset(names, each, self.options.get("change")) for each in self.outputs],
        }

    def _dataset(self, names: Names, name: str, change: str | None = None) -> dict[str, Any]:
        source = {"name": names.source(name), "uri": f"http://sources/{name[0]}"}
        facets: dict[str, Any] = {"dataSource": FACET | source}
        if change is not None:
            facets["lifecycleStateChange"] = FACET | {"lifecycleStateChange": change}
        if "column" in self.options:
            facets["schema"] = FACET | {"fields": [{"name": self.options["column"], "type": "string"}]}
        return {"namespace": names.namespace, "name": name, "facets": facets}


TABLE = """
# The edges of a batch job.
edges-come-at-the-end
    START r1 a > b
    RUNNING r1 a > b
    COMPLETE r1 a > b
edges-of-fail
    START r1 a >
    FAIL r1 a > b
edges-of-abort
    START r1 a >
    ABORT r1 a > b
empty-start-drops-edges
    START r1
    COMPLETE r1 a > b
    START r2
    RUNNING r2 a > b
    COMPLETE r2 a > b
other-does-not-bring-edges
    START r1
    COMPLETE r1 a > b
    START r2
    OTHER r2 a > b
    ABORT r2 a > b
start-repeats-datasets
    START r1
    COMPLETE r1 a > b
    START r2 a > b
    FAIL r2 a >
start-repeats-inputs
    START r1
    COMPLETE r1 a > b
    START r2 a >
    COMPLETE r2 a > b
union-of-a-run
    START r1 a > b
    COMPLETE r1 c > d
    START r2 c > d
    COMPLETE r2 c > d
empty-end
    START r1 a > b
    COMPLETE r1
empty-end-of-an-empty-run
    START r1
    COMPLETE r1 a > b
    START r2
    FAIL r2
end-twice
    START r1
    COMPLETE r1 a > b
    COMPLETE r1 a > b
empty-end-after-the-end
    START r1
    COMPLETE r1 a > b
    FAIL r1
two-runs-at-once
    START r1 a > b
    START r2 c > d
    COMPLETE r1 a > b
    COMPLETE r2 c > d
fewer-datasets-next-time
    COMPLETE r1 a b > c d
    COMPLETE r2 a > c
# Streams.
stream-has-edges-at-once
    START~ r1 a > b
    RUNNING~ r1 a > b c
stream-after-batch-start
    START r1
    RUNNING~ r1 a > b
    ABORT~ r1 a > b
stream-restarted-empty
    START~ r1
    COMPLETE~ r1 a > b
    START~ r2
    RUNNING~ r2 a > b
    COMPLETE~ r2 a > b
stream-restarted-as-batch
    START~ r1
    COMPLETE~ r1 a > b
    START r2
    RUNNING~ r2 a > b
    COMPLETE r2 a > b
stream-restarted-aborted
    START~ r1
    COMPLETE~ r1 a > b
    START r2
    RUNNING~ r2 a > b
    ABORT~ r2 a > b
stream-restarted-with-datasets
    START~ r1
    COMPLETE~ r1 a > b
    START~ r2 a > b
    RUNNING~ r2 a > b
stream-restarted-elsewhere
    START~ r1
    COMPLETE~ r1 a > b
    START~ r2
    RUNNING~ r2 a > c
    RUNNING~ r2 a > b c
stream-ends-empty
    START~ r1
    COMPLETE~ r1 a > b
    START~ r2 a > b
    FAIL~ r2
stream-aborts-empty
    START~ r1
    COMPLETE~ r1 a > b
    START~ r2 a > b
    ABORT~ r2
stream-ends-as-batch
    START~ r1 a > b
    COMPLETE r1 a > b
stream-moves-its-program
    START~ r1 a > b location=file:/1
    RUNNING~ r1 a > b location=file:/2
# What a job is said to be.
type-and-words-are-reset
    START~ r1 a > b location=file:/1 description=words
    RUNNING r1 a > b
    COMPLETE r1 a > b location=file:/2
locations-that-java-knows
    START r1 location=file:///a/b.py
    RUNNING r1 location=s3a://a/b.py
    RUNNING r1 location=/a/b.py
    COMPLETE r1 location=https://a/b.py
# Runs and their times.
running-moves-the-start
    START r1
    RUNNING r1 at=5
    OTHER r1 at=9
    COMPLETE r1 at=12
late-start
    COMPLETE r1 at=9
    START r1 at=1
late-running
    START r1
    COMPLETE r1 a > b
    RUNNING r1 a > b
fail-after-complete
    START r1
    COMPLETE r1 a > b
    FAIL r1 a > b at=30
start-again-after-the-end
    START r1
    COMPLETE r1 a > b
    START r1 a > b
    COMPLETE r1 a > b
# Parents.
parent-is-made
    START t1^d1 location=file:/1 description=words
    COMPLETE t1^d1 a > b
parent-is-made-by-an-end
    FAIL t1^d1 a > b
parent-is-made-by-a-stream
    RUNNING~ t1^d1 a > b
parent-is-known
    START d1 job=dag description=dag
    START t1^d1
    COMPLETE t1^d1 a > b
    COMPLETE d1 job=dag description=dag
parent-has-ended
    START d1 job=dag
    COMPLETE d1 job=dag
    START t1^d1 at=9
    COMPLETE t1^d1 at=10
parent-started-after-its-task
    START t1^d1
    START d1 job=dag
    COMPLETE t1^d1
    COMPLETE d1 job=dag
another-run-of-a-known-parent
    START d1 job=dag location=file:/dag description=dag
    COMPLETE d1 job=dag location=file:/dag description=dag
    START t2^d2 location=file:/task
two-tasks-of-a-parent
    START t1^d1 job=dag.one
    START t2^d1 job=dag.two
    FAIL t1^d1 job=dag.one
    COMPLETE t2^d1 job=dag.two
name-without-its-parent
    START t1^d1 job=task
    COMPLETE t1^d1 a > b job=task
once-without-its-parent
    START t1
    COMPLETE t1^d1 a > b
# Versions of datasets.
failed-run-creates-a-version
    START r1 > b
    FAIL r1
retry-creates-a-version
    START r1 a > b
    FAIL r1 a > b
    START r2 a > b
    COMPLETE r2 a > b
read-then-written-by-one-run
    START r1 a >
    COMPLETE r1 a > a
written-then-read-by-one-run
    START r1 > a
    RUNNING r1 a >
    COMPLETE r1 a > b
read-by-another-job
    COMPLETE r1 > b job=one
    START r2 b > c job=two
    COMPLETE r2 b > c job=two
columns-make-a-version
    START r1 > b
    COMPLETE r1 > b column=id
    COMPLETE r2 > b column=name
dropped-dataset
    START r1
    COMPLETE r1 a > b
    COMPLETE r2 > b job=dropper change=DROP
    START r3 b > c job=reader
"""


def _sequences() -> Iterator[tuple[str, tuple[Said, ...]]]:
    names: dict[str, list[Said]] = {}
    for line in TABLE.strip().splitlines():
        if line.startswith("    "):
            names[next(reversed(names))].append(Said.read(line.strip()))
        elif not line.startswith("#"):
            names[line] = []
    return ((name, tuple(said)) for name, said in names.items())


SEQUENCES = dict(_sequences())
