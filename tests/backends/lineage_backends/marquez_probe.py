"""Ask a real Marquez what it shows after each event of ``marquez_sequences``, and compare it with ``marquez_pages``.

    PYTHONPATH=tests/backends python -m lineage_backends.marquez_probe http://localhost:5000 [--record FILE]

Each sequence has a namespace of its own, ``proof-…``, so that any Marquez will do. ``--record`` keeps the answers for
the test that has none at hand. ``--replay`` sends events of a file in place of the sequences, one a line, with their
jobs in such a namespace, and compares what is shown after the last. Exit code 1 where the model and Marquez differ.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests

from lineage_backends.marquez_pages import INPUT, OUTPUT, MarquezPages
from lineage_backends.marquez_sequences import BASE, SEQUENCES, Names, Said

TIMEOUT_SECONDS = 60
Shown = dict[str, Any]
"""What the pages of a namespace show, by short names; edges as the lineage graph draws them."""


def shown_by_model(pages: MarquezPages, names: Names) -> Shown:
    """What the model shows."""
    jobs = {
        name: {
            "type": page.type,
            "description": page.description,
            "location": page.shown_location,
            "latest_run": names.short(page.latest_run),
            "inputs": sorted(each for _, each in page.edges(INPUT)),
            "outputs": sorted(each for _, each in page.edges(OUTPUT)),
        }
        for (_, name), page in pages.jobs.items()
    }
    runs = {
        names.short(run_id): {
            "job": run.job[1],
            "state": run.state,
            "started_at": _second(run.started_at),
            "ended_at": _second(run.ended_at),
            "inputs": sorted(each for _, each in pages.named(run_id, INPUT)),
            "outputs": sorted(each for _, each in pages.named(run_id, OUTPUT)),
        }
        for run_id, run in pages.runs.items()
    }
    versions = {
        key[1]: sorted([_second(each.created_at), names.short(each.created_by)] for each in pages.versions(key))
        for key in pages.datasets
    }
    deleted = sorted(name for (_, name), page in pages.datasets.items() if page.is_deleted)
    sources = {names.short_source(name): url for name, url in pages.sources.items()}
    return {"jobs": jobs, "runs": runs, "versions": versions, "deleted": deleted, "sources": sources}


class Marquez:
    """The REST API of a real one."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/") + "/api/v1"
        self._session = requests.Session()

    def take(self, event: Mapping[str, Any]) -> None:
        """Post an event; ``RuntimeError`` when it is refused."""
        reply = self._session.post(f"{self._url}/lineage", json=event, timeout=TIMEOUT_SECONDS)
        if not reply.ok:
            raise RuntimeError(f"{reply.status_code} {reply.text[:500]}")

    def shown(self, names: Names, said: Sequence[Said]) -> Shown:
        """What its pages show of the jobs and datasets of these events."""
        jobs = self._get(f"namespaces/{names.namespace}/jobs?limit=100")["jobs"]
        runs = {}
        for job in jobs:
            for run in self._get(f"namespaces/{names.namespace}/jobs/{quote(job['name'])}/runs?limit=100")["runs"]:
                runs[names.short(run["id"])] = self._run(run["id"], job["name"])
        datasets = sorted({each for one in said for each in (*one.inputs, *one.outputs)})
        pages = {
            each["name"]: each for each in self._get(f"namespaces/{names.namespace}/datasets?limit=100")["datasets"]
        }
        sources = {}
        for name in {names.source(each) for each in datasets}:
            sources[names.short_source(name)] = self._get(f"sources/{quote(name, safe='')}")["connectionUrl"]
        return {
            "jobs": {job["name"]: self._job(names, job) for job in jobs},
            "runs": runs,
            "versions": {each: self._versions(names, each) for each in datasets},
            "deleted": sorted(name for name, page in pages.items() if page["deleted"]),
            "sources": sources,
        }

    def job(self, namespace: str, name: str) -> list[Any]:
        """Type, description, location, and the edges of the graph, as ``namespace:name``."""
        job = self._get(f"namespaces/{namespace}/jobs/{quote(name)}")
        node = self._node(namespace, name)
        inputs = sorted(each["origin"].removeprefix("dataset:") for each in node["inEdges"])
        outputs = sorted(each["destination"].removeprefix("dataset:") for each in node["outEdges"])
        return [job["type"], job["description"], job["location"], inputs, outputs]

    def state(self, run_id: str) -> str:
        """The state of a run."""
        return str(self._get(f"jobs/runs/{run_id}")["state"])

    def _node(self, namespace: str, name: str) -> Any:
        node_id = f"job:{namespace}:{name}"
        graph = self._get(f"lineage?nodeId={quote(node_id, safe='')}&depth=1")["graph"]
        (node,) = (each for each in graph if each["id"] == node_id)
        return node

    def _job(self, names: Names, job: Mapping[str, Any]) -> Shown:
        node = self._node(names.namespace, job["name"])
        return {
            "type": job["type"],
            "description": job["description"],
            "location": job["location"],
            "latest_run": names.short((node["data"]["latestRun"] or {}).get("id")),
            "inputs": sorted(each["origin"].rpartition(":")[2] for each in node["inEdges"]),
            "outputs": sorted(each["destination"].rpartition(":")[2] for each in node["outEdges"]),
        }

    def _run(self, run_id: str, job: str) -> Shown:
        run = self._get(f"jobs/runs/{run_id}")
        return {
            "job": job,
            "state": run["state"],
            "started_at": _second(run["startedAt"]),
            "ended_at": _second(run["endedAt"]),
            "inputs": sorted({each["datasetVersionId"]["name"] for each in run["inputDatasetVersions"]}),
            "outputs": sorted({each["datasetVersionId"]["name"] for each in run["outputDatasetVersions"]}),
        }

    def _versions(self, names: Names, dataset: str) -> list[Any]:
        found = self._get(f"namespaces/{names.namespace}/datasets/{quote(dataset)}/versions?limit=100")["versions"]
        runs = [(each["createdAt"], (each["createdByRun"] or {}).get("id")) for each in found]
        return sorted([_second(at), names.short(run_id)] for at, run_id in runs)

    def _get(self, path: str) -> Any:
        reply = self._session.get(f"{self._url}/{path}", timeout=TIMEOUT_SECONDS)
        reply.raise_for_status()
        return reply.json()


def _second(time: str | None) -> int | None:
    """The seconds within the minute in which all events of a sequence are."""
    return None if time is None else int(time.removeprefix(BASE)[:2])


def _compare_sequences(marquez: Marquez, only: str, record: Path | None) -> int:
    recorded: dict[str, list[Shown]] = {}
    differ = 0
    for name, said in SEQUENCES.items():
        if only not in name:
            continue
        names = Names(f"proof-{secrets.token_hex(4)}-{name}")
        pages = MarquezPages()
        for number, one in enumerate(said):
            event = one.event(names, number)
            marquez.take(event)
            real = marquez.shown(names, said[: number + 1])
            recorded.setdefault(name, []).append(real)
            differ += _differ(f"{name}, event {number}: {one.line}", shown_by_model(pages.take(event), names), real)
    if record is not None:
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(answers)}" for name, answers in recorded.items())
        record.write_text(f"{{\n{lines}\n}}\n")
    sys.stdout.write(f"{len(recorded)} sequences, {differ} differences\n")
    return differ


def _compare_events(marquez: Marquez, file: Path) -> int:
    """Jobs with their edges, and runs with their states; not what other namespaces share."""
    pages, differ = MarquezPages(), 0
    namespace = f"proof-{secrets.token_hex(4)}"
    for line in file.read_text().splitlines():
        event = json.loads(line)
        parent = event["run"].get("facets", {}).get("parent")
        for job in [event["job"], *([parent["job"]] if parent else [])]:
            job["namespace"] = namespace
        marquez.take(event)
        pages.take(event)
    for (_, name), job in pages.jobs.items():
        edges = [sorted(":".join(key) for key in job.edges(direction)) for direction in (INPUT, OUTPUT)]
        differ += _differ(name, [job.type, job.description, job.shown_location, *edges], marquez.job(namespace, name))
    for run_id, run in pages.runs.items():
        differ += _differ(f"{run.job[1]} {run_id}", run.state, marquez.state(run_id))
    sys.stdout.write(f"{namespace}: {len(pages.jobs)} jobs, {len(pages.runs)} runs, {differ} differences\n")
    return differ


def _differ(what: str, model: Any, real: Any) -> bool:
    if model != real:
        sys.stdout.write(f"{what}\n  model   {json.dumps(model)}\n  Marquez {json.dumps(real)}\n")
    return bool(model != real)


def main() -> int:
    """Compare, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--only", default="", help="what is in the names of the sequences")
    parser.add_argument("--record", type=Path, metavar="FILE")
    parser.add_argument("--replay", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    marquez = Marquez(arguments.url)
    if arguments.replay is not None:
        return min(1, _compare_events(marquez, arguments.replay))
    return min(1, _compare_sequences(marquez, arguments.only, arguments.record))


if __name__ == "__main__":
    sys.exit(main())
