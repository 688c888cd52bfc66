"""Tasks that a trigger waits for, without a worker; a real YARN is in ``tests/clusters``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster_manager import APPLICATION_ID, DRIVER_LINE, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
YARN_LINE = f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"


@pytest.fixture
def submit(bench: Any) -> Callable[..., Any]:
    """Submits to a cluster manager that answers with these states."""

    def run(master: str, states: list[str], **arguments: Any) -> Any:
        with Cluster(states).serving() as cluster:
            url = f"http://127.0.0.1:{cluster.port}"
            keys = {"rest-port": cluster.port, "yarn_resourcemanager_webapp_address": url}
            bench.connection = {"conn_type": "spark", "host": master, "extra": {"deploy-mode": "cluster", **keys}}
            line = YARN_LINE if master == "yarn" else DRIVER_LINE
            return bench.run(**{"log": [line], "store": {}, "deferrable": True, **arguments})

    return run


def ends(outcome: Any) -> list[tuple[str, str]]:
    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    return [(one["newStatus"], one["source"]) for one in status["transitions"] if one["subject"] == "DRIVER"]


@pytest.mark.parametrize(("master", "word"), [("yarn", "SUCCEEDED"), ("spark://127.0.0.1:7077", "FINISHED")])
@pytest.mark.parametrize("is_first_running", [True, False])
def test_the_event_is_that_of_a_task_that_waits_itself(
    submit: Callable[..., Any], master: str, word: str, is_first_running: bool
) -> None:
    states = ["RUNNING"] * is_first_running + [word]
    waits, deferred = (submit(master, [*states], deferrable=one, lineage=[EVENTS]) for one in (False, True))
    assert (waits.error, deferred.error) == (None, None), deferred.printed
    assert deferred.lineage["inputs"] == waits.lineage["inputs"]
    assert deferred.lineage["outputs"] == waits.lineage["outputs"]
    assert ends(deferred) == ends(waits)
