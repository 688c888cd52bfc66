"""A backend that is dead while ten tasks run, and comes back: nothing is lost, nothing is in another order."""

from __future__ import annotations

import json
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
# The ends of ten tasks, and what makes those that do not succeed.
ENDS = ("COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "ABORT", "COMPLETE", "COMPLETE", "COMPLETE", "ABORT", "COMPLETE")
WAYS: dict[int, dict[str, Any]] = {
    2: {"exit_code": 1},
    4: {"signal_parent": signal.SIGUSR1},
    6: {"granularity": "path"},
    8: {"signal_parent": signal.SIGUSR2, "granularity": "path"},
}


def test_ten_tasks(shop: Any, openlineage_backend: Any) -> None:
    openlineage_backend.stop()
    for number, end in enumerate(ENDS):
        task = {"run_id": f"run-{number}", "try_number": number + 1}
        outcome = shop.run(lineage=[EVENTS], task=task, **WAYS.get(number, {}))
        assert (outcome.error is None) == (end == "COMPLETE"), outcome.printed
    openlineage_backend.start()
    shop.flush()

    assert not openlineage_backend.refused, openlineage_backend.refused[0].reason
    runs: dict[str, list[Any]] = defaultdict(list)
    for event in openlineage_backend.events:
        runs[event["run"]["runId"]].append(event)
    tasks = [run for run in runs.values() if "airflow" in run[0]["run"]["facets"]]
    assert [[event["eventType"] for event in run] for run in tasks] == [["START", end] for end in ENDS]
    children = [run for run in runs.values() if run not in tasks]
    assert len(children) == len([way for way in WAYS.values() if way.get("granularity") == "path"])
    assert {tuple(event["eventType"] for event in run) for run in children} == {("START", "COMPLETE")}

    contents = [json.dumps(event, sort_keys=True) for event in openlineage_backend.events]
    assert len(contents) == len(set(contents)), "an event came twice"
    starts = {json.dumps(run[0], sort_keys=True) for run in tasks}
    assert sorted(set(contents) - starts) == sorted(json.dumps(event, sort_keys=True) for event in shop.kept)
