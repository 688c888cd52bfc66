"""The graph that Marquez shows of a task while it runs, by the model of its pages that a real one has confirmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lineage_backends.marquez_pages import MarquezPages, pages_after

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
EVENTS = FIXTURES / "a_414.ndjson"
OTHER = FIXTURES / "gtask_414.ndjson"
STREAM = FIXTURES / "e_414.ndjson"
JOB = ("airflow-of-the-test", "shop.load")


def steps(backend: Any, try_number: int) -> list[tuple[str, MarquezPages]]:
    """Return the pages after each event of a try, with the type of the event."""
    assert not backend.refused, backend.refused[0].reason
    events = backend.events
    run_ids = list(dict.fromkeys(event["run"]["runId"] for event in events))
    run_id = run_ids[try_number - 1]
    return [
        (event["eventType"], pages_after(events[: position + 1]))
        for position, event in enumerate(events)
        if event["run"]["runId"] == run_id
    ]


def edges(pages: MarquezPages) -> tuple[set[str], set[str]]:
    """Return the names of the datasets that the graph joins to the job."""
    inputs, outputs = ({name for _, name in pages.jobs[JOB].edges(side)} for side in ("inputs", "outputs"))
    return inputs, outputs


def run_twice(shop: Any, first: Path, second: Path, **scenario: Any) -> tuple[set[str], set[str]]:
    """Run the task, and another try of it in the way of the scenario; give what the first one has read and written."""
    outcome = shop.run(lineage=[first])
    shop.run(task={"try_number": 2}, lineage=[second], **scenario)
    return set(outcome.names("inputs")), set(outcome.names("outputs"))


def test_a_second_run_keeps_its_inputs(shop: Any, openlineage_backend: Any) -> None:
    inputs, outputs = run_twice(shop, EVENTS, EVENTS, poll_interval_seconds=0.01)
    *running, (end, pages) = steps(openlineage_backend, 2)
    assert running[0][0] == "START"
    for _, while_it_runs in running:
        assert edges(while_it_runs) == (inputs, set())
    assert (end, edges(pages)) == ("COMPLETE", (inputs, outputs))


def test_a_run_that_failed_has_created_no_version_of_what_it_did_not_write(shop: Any, openlineage_backend: Any) -> None:
    _, outputs = run_twice(shop, EVENTS, OTHER, exit_code=1)
    (_, pages) = steps(openlineage_backend, 2)[-1]
    run_id = openlineage_backend.events[-1]["run"]["runId"]
    created = {name for _, name in pages.named(run_id, "outputs")}
    assert not created & outputs
    assert pages.runs[run_id].state == "FAILED"


def test_a_stream_that_is_restarted_keeps_its_edges(shop: Any, openlineage_backend: Any) -> None:
    expected = run_twice(shop, STREAM, STREAM, exit_code=1, poll_interval_seconds=0.01)
    for _, pages in steps(openlineage_backend, 2):
        assert edges(pages) == expected
        assert pages.jobs[JOB].type == "STREAM"


def test_a_stream_to_which_nothing_came_keeps_its_edges(shop: Any, openlineage_backend: Any, tmp_path: Path) -> None:
    first, *_, last = STREAM.read_bytes().splitlines(keepends=True)
    (idle := tmp_path / "idle.ndjson").write_bytes(first + last)
    expected = run_twice(shop, STREAM, idle, exit_code=1)
    for _, pages in steps(openlineage_backend, 2):
        assert edges(pages) == expected
        assert pages.jobs[JOB].type == "STREAM"
