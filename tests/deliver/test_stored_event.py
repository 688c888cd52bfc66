from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import attr
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent, RunState
from openlineage.client.facet_v2 import parent_run
from openlineage.client.serde import Serde
from openlineage.client.transport.kafka import KafkaConfig, KafkaTransport
from openlineage.client.transport.transform.transformers.job_namespace_replace_transformer import (
    JobNamespaceReplaceTransformer,
)

from spark_lineage.deliver.profile import Profile
from spark_lineage.deliver.stored_event import event_time, restore, restore_any
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.merge.lineage import TaskLineage

EVENTS = Path(__file__).parents[1] / "fixtures" / "events"
RUN_ID = "0190e6e0-0000-7000-8000-000000000000"
# What the classes have besides fields cannot be a field.
TAKEN = {name for kind in (RunEvent, InputDataset, parent_run.ParentRunFacet) for name in dir(kind)}

VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        # openlineage-python writes no empty object in a list.
        st.lists(inner.filter(lambda each: each != {}), max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
EXTRA = st.dictionaries(st.text(max_size=9).filter(lambda key: key not in TAKEN), VALUES, max_size=3)
FACETS = st.dictionaries(st.text(max_size=9).filter(lambda key: key != "parent"), VALUES, max_size=3)
AIRFLOW_FACETS = st.fixed_dictionaries({}, optional={"airflow": EXTRA | VALUES, "airflowDagRun": EXTRA})


def _with_extra(known: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    required = {key: value for key, value in known.items() if not key.endswith("?")}
    optional = {key[:-1]: value for key, value in known.items() if key.endswith("?")}
    made = st.fixed_dictionaries(required, optional=optional)
    return st.builds(lambda extra, made: {**extra, **made}, EXTRA, made)


RUN = {"runId": st.uuids().map(str), "facets?": FACETS}
JOB = {"namespace": st.text(max_size=5), "name": st.text(max_size=5), "facets?": FACETS}
PARENT = _with_extra(
    {
        "run": _with_extra(RUN),
        "job": _with_extra(JOB),
        "root?": _with_extra({"run": _with_extra(RUN), "job": _with_extra(JOB)}),
        "_producer?": st.text(max_size=5),
        "_schemaURL?": st.text(max_size=5),
    }
)
RUN_FACETS = st.builds(
    lambda *facets: {key: value for each in facets for key, value in each.items()},
    FACETS,
    AIRFLOW_FACETS,
    st.fixed_dictionaries({}, optional={"parent": PARENT}),
)
DOCUMENTS = _with_extra(
    {
        "eventTime": st.datetimes().map(lambda time: time.isoformat() + "Z"),
        "eventType?": st.sampled_from([each.value for each in RunState]),
        "producer?": st.text(max_size=5),
        "schemaURL?": st.text(max_size=5),
        "run": _with_extra({**RUN, "facets?": RUN_FACETS}),
        "job": _with_extra(JOB),
        "inputs?": st.lists(_with_extra({**JOB, "inputFacets?": FACETS}), max_size=2),
        "outputs?": st.lists(_with_extra({**JOB, "outputFacets?": FACETS}), max_size=2),
    }
)


def lines() -> list[bytes]:
    return [line for file in sorted(EVENTS.iterdir()) for line in file.read_bytes().splitlines()]


def document(**values: Any) -> dict[str, Any]:
    made = {
        "eventType": "COMPLETE",
        "eventTime": "2024-01-31T12:00:00Z",
        "producer": "https://example.com",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": RUN_ID},
        "job": {"namespace": "shop", "name": "etl.load"},
    }
    return {key: value for key, value in {**made, **values}.items() if value is not None}


def parent(**values: Any) -> dict[str, Any]:
    return {"run": {"runId": RUN_ID}, "job": {"namespace": "shop", "name": "etl"}, **values}


def restored(document: Any) -> RunEvent:
    return restore(json.dumps(document).encode())


def sent(event: RunEvent) -> Any:
    """What a transport sends."""
    return json.loads(Serde.to_json(event))


def test_every_event_of_the_listener_is_sent_as_it_was() -> None:
    recorded = lines()
    assert len(recorded) > 1000
    for line in recorded:
        # The listener writes nulls, which openlineage-python never does.
        assert sent(restore(line)) == Serde.remove_nulls_and_enums(json.loads(line))


@given(DOCUMENTS)
def test_an_event_with_any_keys_on_any_level_is_sent_as_it_was(document: dict[str, Any]) -> None:
    event = restored(document)
    assert sent(event) == document
    assert sent(copy.deepcopy(event)) == document
    assert sent(pickle.loads(pickle.dumps(event))) == document  # noqa: S301
    assert to_json(event) == to_json(restore(to_json(event)))


def test_our_own_event_is_sent_byte_for_byte(lineage: TaskLineage) -> None:
    event = run_event(lineage, None, job_namespace="shop", job_name="etl.load", run_id=RUN_ID)
    content = to_json(event)
    assert to_json(restore(content)) == content
    assert Serde.to_json(restore(content)) == Serde.to_json(event)


@pytest.mark.parametrize(
    "value", [0, -0.0, 1.0, 1e300, 2**80, 0.1, "\u0000", "\ud800", "é", "\U0001f600", {}, [], [[]], "", False, {"": {}}]
)
def test_a_value_stays_what_it_is(value: Any) -> None:
    made = document(job={"namespace": "n", "name": "m", "facets": {"a facet": {"value": value}}})
    assert Serde.to_json(restored(made)) == json.dumps(made, sort_keys=True)


def test_nothing_is_added() -> None:
    made = {"eventTime": "2024-01-31T12:00:00Z", "run": {"runId": RUN_ID}, "job": {"namespace": "n", "name": "m"}}
    assert sent(restored(made)) == made


def test_nulls_are_no_keys() -> None:
    made = document(run={"runId": RUN_ID, "facets": None, "more": None}) | {"inputs": None, "eventType": None}
    event = restored(made)
    assert sent(event) == document(run={"runId": RUN_ID}, eventType=None)
    assert event.inputs is None


def test_it_is_made_of_the_classes_that_transports_know() -> None:
    dataset = {"namespace": "n", "name": "m", "a-key": 1}
    made = document(
        run={"runId": RUN_ID, "facets": {"parent": parent(more=1, root=parent()), "other": {}}},
        inputs=[dataset],
        outputs=[dataset],
        class_=1,
    )
    event = restored(made)
    assert isinstance(event, RunEvent)
    assert event.eventType is RunState.COMPLETE
    assert event.inputs is not None
    assert event.outputs is not None
    assert isinstance(event.inputs[0], InputDataset)
    assert isinstance(event.outputs[0], OutputDataset)
    facets = event.run.facets or {}
    facet = facets["parent"]
    assert isinstance(facet, parent_run.ParentRunFacet)
    assert isinstance(facet.root, parent_run.Root)
    assert facet.root.job.namespace == "shop"
    assert facets["other"] == {}
    assert attr.has(type(event))
    assert sent(event) == made


@pytest.mark.parametrize(
    ("facets", "key"),
    [
        ({}, "run:shop/etl.load"),
        ({"parent": parent()}, "run:shop/etl"),
        ({"parent": parent(root={"run": {"runId": RUN_ID}, "job": {"namespace": "r", "name": "t"}})}, "run:r/t"),
        ({"parent": parent(more={"a key": 1})}, "run:shop/etl"),
    ],
)
def test_the_kafka_transport_gives_it_its_key(facets: dict[str, Any], key: str) -> None:
    transport = KafkaTransport(KafkaConfig({"bootstrap.servers": "127.0.0.1:1"}, "topic"))
    assert transport._get_message_key(restored(document(run={"runId": RUN_ID, "facets": facets}))) == key


@pytest.mark.parametrize("name", ["airflow", "airflowDagRun"])
def test_airflows_provider_finds_the_team(name: str) -> None:
    facet = {"dagRun": {"dag_team_name": "sales", "a-key": None}, "_producer": "p", "a-key": {}, "task": []}
    made = document(run={"runId": RUN_ID, "facets": {name: facet}})
    event = restored(made)
    found: Any = (event.run.facets or {})[name]
    assert found.dagRun.get("dag_team_name") == "sales"
    del facet["dagRun"]["a-key"]  # type: ignore[attr-defined]
    assert sent(event) == sent(copy.deepcopy(event)) == made


def test_a_transformer_can_change_a_copy() -> None:
    event = restored(document(run={"runId": RUN_ID, "facets": {"parent": parent(root=parent())}, "a-key": 1}))
    changed = JobNamespaceReplaceTransformer({"new_job_namespace": "new"}).transform(copy.deepcopy(event))
    assert Serde.to_json(changed) == Serde.to_json(event).replace('"shop"', '"new"')


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8, byte 0"),
        (b'{"eventTime": ', "not JSON, byte 14"),
        (b"[]", "Expected `object`, got `array` - at `$`"),
        (document(run=None), "missing required field `run` - at `$`"),
        (document(job=None), "missing required field `job`"),
        (document(eventTime=None), "missing required field `eventTime`"),
        (document(eventTime="2024-01-31"), "Expected a date and a time - at `$.eventTime`"),
        (document(eventTime="hunter2"), "Expected a date and a time - at `$.eventTime`"),
        (document(eventTime=7), "Expected `str`, got `int` - at `$.eventTime`"),
        (document(eventType="DONE"), "Invalid enum value '…' - at `$.eventType`"),
        (document(run={}), "missing required field `runId` - at `$.run`"),
        (document(run={"runId": "hunter2"}), "Invalid UUID - at `$.run.runId`"),
        (document(job={"name": "x"}), "missing required field `namespace` - at `$.job`"),
        (document(inputs={}), "Expected `array | null`, got `object` - at `$.inputs`"),
        (document(outputs=[{"namespace": "n"}]), "missing required field `name` - at `$.outputs[0]`"),
        (
            document(run={"runId": RUN_ID, "facets": {"parent": {}}}),
            "missing required field `run` - at `$.run.facets.parent`",
        ),
        (
            document(run={"runId": RUN_ID, "facets": {"parent": parent(job={})}}),
            "missing required field `namespace` - at `$.run.facets.parent.job`",
        ),
        (document(__class__=1), "no place for a key '__class__'"),
        (document(x=json.loads("[" * 400 + "]" * 400)), "nested deeper than 150 levels"),
    ],
)
def test_what_is_no_run_event_is_refused_and_says_why(content: Any, told: str) -> None:
    with pytest.raises(ValueError, match="RunEvent") as refused:
        restore(content if isinstance(content, bytes) else json.dumps(content).encode())
    assert told in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_what_python_cannot_read_is_refused() -> None:
    with pytest.raises(ValueError, match="nested deeper than 150 levels"):
        restore(b"[" * 100_000)


def test_as_many_levels_as_are_taken_can_be_sent() -> None:
    # In a list in the document, so two of the 150 are taken.
    deepest = document(x=json.loads("[" * 149 + "]" * 149))
    assert sent(restored(deepest)) == deepest


def test_a_time_without_an_offset_is_utc() -> None:
    assert event_time("2024-01-31T12:00:00") == event_time("2024-01-31T13:00:00.000000000+01:00")


def test_an_event_without_a_run_gets_another_namespace_too() -> None:
    of_job, of_dataset = {"job": {"namespace": "a", "name": "j"}}, {"dataset": {"namespace": "a", "name": "d"}}
    assert json.loads(Profile("b").encoded(json.dumps(of_job).encode())) == {"job": {"namespace": "b", "name": "j"}}
    assert json.loads(Profile("b").encoded(json.dumps(of_dataset).encode())) == of_dataset


def test_what_is_nothing_of_all_is_refused() -> None:
    with pytest.raises(ValueError, match="neither run nor job nor dataset"):
        restore_any(b"{}")


def test_the_facets_of_inputs_are_checked_on_inputs_alone() -> None:
    odd = document(inputs=[{"namespace": "n", "name": "i", "outputFacets": "mine"}])
    assert sent(restored(odd)) == odd
    with pytest.raises(ValueError, match="inputFacets"):
        restored(document(inputs=[{"namespace": "n", "name": "i", "inputFacets": "mine"}]))


def test_a_parent_of_another_namespace_keeps_it() -> None:
    root = {"run": {"runId": RUN_ID}, "job": {"namespace": "others", "name": "etl"}}
    event = document(run={"runId": RUN_ID, "facets": {"parent": parent(root=root)}})
    named = json.loads(Profile("new").encoded(json.dumps(event).encode()))
    facet = named["run"]["facets"]["parent"]
    assert [each["job"]["namespace"] for each in (named, facet, facet["root"])] == ["new", "new", "others"]
