"""Ask a real Marquez what it shows after each event of ``marquez_sequences``, and compare it with ``marquez_pages``.

    PYTHONPATH=tests/backends python -m lineage_backends.marquez_probe http://localhost:5000 [--record FILE]

Each sequence has a namespace of its own, ``proof-…``, so that any Marquez will do. ``--record`` keeps the answers for
the test that has none at hand. Exit code 1 where the model and Marquez differ.
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
            "location": page.location,
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

    def _job(self, names: Names, job: Mapping[str, Any]) -> Shown:
        node_id = f"job:{names.namespace}:{job['name']}"
        graph = self._get(f"lineage?nodeId={quote(node_id, safe='')}&depth=1")["graph"]
        (node,) = (each for each in graph if each["id"] == node_id)
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


def main() -> int:
    """Compare, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    marquez = Marquez(arguments.url)
    recorded: dict[str, list[Shown]] = {}
    differ = 0
    for name, said in SEQUENCES.items():
        if arguments.only not in name:
            continue
        names = Names(f"proof-{secrets.token_hex(4)}-{name}")
        pages = MarquezPages()
        for number, one in enumerate(said):
            event = one.event(names, number)
            marquez.take(event)
            real = marquez.shown(names, said[: number + 1])
            recorded.setdefault(name, []).append(real)
            if (model := shown_by_model(pages.take(event), names)) != real:
                differ += 1
                sys.stdout.write(
                    f"{name}, event {number}: {one.line}\n  model   {json.dumps(model)}\n  Marquez {json.dumps(real)}\n"
                )
    if arguments.record is not None:
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(answers)}" for name, answers in recorded.items())
        arguments.record.write_text(f"{{\n{lines}\n}}\n")
    sys.stdout.write(f"{len(recorded)} sequences, {differ} differences\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
