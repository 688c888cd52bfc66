"""What the START of a run repeats of the last end of its task, to its connections and to the OpenLineage provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
EVENTS = FIXTURES / "a_414.ndjson"
OTHER = FIXTURES / "b_414.ndjson"
STREAM = FIXTURES / "e_414.ndjson"


def starts(backend: Any) -> list[Any]:
    """Return the START events that the backend has."""
    assert not backend.refused, backend.refused[0].reason
    return [event for event in backend.events if event["eventType"] == "START"]


def names(event: Any, side: str) -> list[str]:
    """Return the names of the inputs or outputs of an event."""
    return [dataset["name"] for dataset in event[side]]


def run_again(shop: Any, **scenario: Any) -> Any:
    """Run another try of the task, whose run id is another."""
    return shop.run(task={"try_number": 2}, **scenario)


def test_a_start_repeats_the_inputs_of_the_last_end(shop: Any, openlineage_backend: Any) -> None:
    first = shop.run(lineage=[EVENTS])
    assert first.last["at_start"]["inputs"] == first.last["at_start"]["outputs"] == []
    again = run_again(shop, lineage=[EVENTS])
    begun, begun_again = starts(openlineage_backend)
    assert names(begun, "inputs") == []
    assert names(begun_again, "inputs") == first.names("inputs") != []
    assert names(begun_again, "outputs") == []
    assert all("schema" in one["facets"] for one in begun_again["inputs"])
    assert not any(one.get("inputFacets") for one in begun_again["inputs"])
    assert names(again.last["at_start"], "inputs") == first.names("inputs")


def test_a_start_names_inlets_and_no_outlet_which_the_task_may_never_write(shop: Any, openlineage_backend: Any) -> None:
    shop.run(lineage=[EVENTS], context={"inlets": ["/declared"], "outlets": ["/promised"]})
    (begun,) = starts(openlineage_backend)
    assert (names(begun, "inputs"), names(begun, "outputs")) == (["/declared"], [])


def test_a_task_that_only_reads_begins_with_its_inputs(shop: Any, openlineage_backend: Any) -> None:
    events = [json.loads(line) | {"outputs": []} for line in EVENTS.read_bytes().splitlines()]
    reads = shop.bench.file("reads.ndjson", "\n".join([*map(json.dumps, events), ""]).encode())
    first = shop.run(lineage=[reads])
    run_again(shop, lineage=[reads])
    assert first.names("outputs") == []
    assert names(starts(openlineage_backend)[-1], "inputs") == first.names("inputs") != []


def test_a_stream_goes_on_with_both_sides(shop: Any, openlineage_backend: Any) -> None:
    first = shop.run(lineage=[STREAM], exit_code=1)
    again = run_again(shop, lineage=[STREAM])
    begun = starts(openlineage_backend)[-1]
    assert names(begun, "inputs") == first.names("inputs")
    assert names(begun, "outputs") == first.names("outputs")
    assert begun["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert again.last["at_start"]["job_facets"]["sparkLineage_job"]["processingType"] == "STREAMING"


def test_what_a_failed_run_read_is_not_repeated(shop: Any, openlineage_backend: Any) -> None:
    shop.run(lineage=[EVENTS])
    run_again(shop, lineage=[OTHER], exit_code=1)
    last = shop.run(task={"try_number": 3}, lineage=[EVENTS])
    assert names(starts(openlineage_backend)[-1], "inputs") == last.names("inputs")


@pytest.mark.parametrize("change", [{"application": "other.py"}, {"application_args": ["--full"]}])
def test_another_program_and_other_arguments_have_nothing_to_repeat(
    shop: Any, openlineage_backend: Any, change: dict[str, Any]
) -> None:
    shop.run(lineage=[EVENTS])
    run_again(shop, lineage=[EVENTS], **change)
    assert names(starts(openlineage_backend)[-1], "inputs") == []


def test_another_content_of_the_program_has_nothing_to_repeat(shop: Any, openlineage_backend: Any) -> None:
    program = shop.bench.file("job.py", b"first")
    shop.run(lineage=[EVENTS], application=str(program))
    program.write_bytes(b"second")
    run_again(shop, lineage=[EVENTS], application=str(program))
    assert names(starts(openlineage_backend)[-1], "inputs") == []


def test_what_is_kept_cannot_be_read(shop: Any, openlineage_backend: Any) -> None:
    shop.run(lineage=[EVENTS])
    (kept,) = (shop.bench.lineage_dir / ".last-ends").iterdir()
    kept.write_text("{")
    outcome = run_again(shop, lineage=[EVENTS])
    assert outcome.error is None
    assert names(starts(openlineage_backend)[-1], "inputs") == []


def test_each_index_of_a_mapped_task_may_be_a_job_of_its_own(shop: Any, openlineage_backend: Any) -> None:
    for index in (0, 1):
        shop.run(lineage=[EVENTS], task={"map_index": index}, map_index_in_job_name=True)
    shop.run(lineage=[EVENTS], task={"try_number": 2}, map_index_in_job_name=True)
    assert [event["job"]["name"] for event in starts(openlineage_backend)] == [
        "shop.load[0]",
        "shop.load[1]",
        "shop.load",
    ]
