"""Facets that the merge does not read pass through on each level, the last of each; technical ones do not."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import msgspec
import pytest

from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.emit.size_limit import cut
from spark_lineage.launch.line import LineDecoder
from spark_lineage.merge.state import LineageState, decode_state, encode_state
from spark_lineage.merge.task import task_lineage

RUN_ID = "00000000-0000-7000-8000-000000000001"


def facet(**said: Any) -> dict[str, Any]:
    return {"_producer": "https://acme.example", "_schemaURL": "https://acme.example/x.json", **said}


def event(second: int, said: str, kind: str = "COMPLETE") -> bytes:
    def named(place: str) -> dict[str, Any]:
        return {
            "namespace": "file",
            "name": f"/data/{place}/day=1",
            "facets": {"acme_owner": facet(of=f"{place} {said}")},
        }

    return json.dumps(
        {
            "eventType": kind,
            "eventTime": f"2026-01-01T00:00:{second:02d}Z",
            "producer": "https://github.com/OpenLineage/OpenLineage/tree/1.53.0/integration/spark",
            "run": {"runId": RUN_ID, "facets": {"tags": facet(run=said), "debug": facet(x=1)}},
            "job": {
                "namespace": "n",
                "name": "j",
                "facets": {"ownership": facet(job=said, api_key="hunter2"), "sql": facet(query="SELECT 1")},
            },
            "inputs": [
                named("in")
                | {"inputFacets": {"icebergScanReport": facet(rows=said), "subset": facet(inputCondition={})}}
            ],
            "outputs": [named("out") | {"outputFacets": {"dataQualityMetrics": facet(rows=said)}}],
        }
    ).encode()


EVENTS = (event(1, "first", "START"), event(3, "last"), event(2, "between", "RUNNING"))


def folded(lines: Any) -> LineageState:
    decoder, state = LineDecoder(), LineageState()
    for line in lines:
        state.add(*decoder.decode(line))
    return state


def sent(state: LineageState) -> dict[str, Any]:
    made = run_event(task_lineage(state, "COMPLETE"), None, job_namespace="n", job_name="j", run_id=RUN_ID)
    found: dict[str, Any] = json.loads(to_json(made))
    return found


def test_the_last_of_each_passes_through_on_each_level() -> None:
    found = sent(folded(EVENTS))
    (read,), (written,) = found["inputs"], found["outputs"]
    assert found["run"]["facets"]["tags"] == facet(run="last")
    assert found["job"]["facets"]["ownership"] == facet(job="last", api_key="***")
    assert (read["name"], read["facets"]["acme_owner"]) == ("/data/in", facet(of="in last"))
    assert read["inputFacets"]["icebergScanReport"] == facet(rows="last")
    assert written["facets"]["acme_owner"] == facet(of="out last")
    assert written["outputFacets"]["dataQualityMetrics"] == facet(rows="last")


def test_a_dataset_has_them_decoded_and_the_declared_properties() -> None:
    declared = json.loads(EVENTS[1])
    declared["outputs"][0]["facets"]["sparkLineage_properties"] = facet(properties={"owner": "sales"})
    lineage = task_lineage(folded((json.dumps(declared).encode(),)), "COMPLETE")
    (read,), (written,) = lineage.inputs, lineage.outputs
    assert (read.facets["acme_owner"]["of"], read.facets["icebergScanReport"]["rows"]) == ("in last", "last")
    assert (read.properties, written.properties) == ({}, {"owner": "sales"})
    # Listeners may send it anywhere, and to a file of JSON.
    redacted = json.loads(msgspec.json.encode(redact_lineage(lineage)))
    assert dict(redacted["foreign_of_job"])["ownership"] == facet(job="last", api_key="***")


def test_technical_facets_are_dropped() -> None:
    found = sent(folded(EVENTS))
    assert "debug" not in found["run"]["facets"]
    assert "sql" not in found["job"]["facets"]
    assert "subset" not in found["inputs"][0]["inputFacets"]


@pytest.mark.parametrize("content", ['"text"', "null", "[{}]"])
def test_what_is_no_facet_is_dropped(content: str) -> None:
    line = EVENTS[0].replace(b'"debug":', b'"acme_broken":' + content.encode() + b',"debug":')
    facets = sent(folded([line]))["run"]["facets"]
    assert ("acme_broken" in facets, "tags" in facets) == (False, True)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_and_the_shards_of_events_do_not_matter(order: tuple[int, ...]) -> None:
    expected = sent(folded(EVENTS))
    first, *others = (EVENTS[place] for place in order)
    shard = decode_state(encode_state(folded([first])))
    shard.merge(decode_state(encode_state(folded(others))))
    shard.merge(folded(EVENTS))
    assert sent(shard) == expected


def test_over_the_limit_of_size_they_are_left_out_and_named() -> None:
    lineage = task_lineage(folded([event(1, "x" * 50_000)]), "COMPLETE")
    made = run_event(lineage, None, job_namespace="n", job_name="j", run_id=RUN_ID)
    reduced = cut(made, 20_000)
    assert [each["detail"] for each in reduced.leftOut] == ["otherFacets"]
    assert reduced.leftOut[0]["datasetCount"] == 2
    assert "acme_owner" not in to_json(made).decode()
