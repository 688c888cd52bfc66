"""The last look at an event: nothing secret in it, and it is the same event still."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.stored_event import restore
from spark_lineage.secrets import redaction as own_secrets
from spark_lineage.secrets.redaction import redact_event

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d60"
FACET = {"_producer": "https://github.com/me/x", "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/X.json"}


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    own_secrets.use_patterns(())


def event(**changes: Any) -> dict[str, Any]:
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-01-31T12:00:00.000001Z",
        "producer": "https://github.com/me/x",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": RUN_ID, "facets": {}},
        "job": {"namespace": "prod", "name": "shop.load", "facets": {}},
        "inputs": [],
        "outputs": [],
        **changes,
    }


def run_facet(facet: dict[str, Any]) -> dict[str, Any]:
    return event(run={"runId": RUN_ID, "facets": {"my_facet": {**FACET, **facet}}})


def masked(facet: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = redact_event(run_facet(facet))["run"]["facets"]["my_facet"]
    assert {key: result.pop(key) for key in FACET} == FACET
    return result


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.ndjson")), ids=lambda file: file.stem)
def test_real_events_without_secrets_stay_as_they_are(file: Path) -> None:
    for line in file.read_text().splitlines():
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            continue
        assert redact_event(found) == found


@pytest.mark.parametrize(
    ("facet", "expected"),
    [
        ({"password": "hunter2"}, {"password": "***"}),
        ({"password": 4711, "token": 1.5, "secret": True}, {"password": 0, "token": 0.0, "secret": True}),
        ({"apiKey": ["hunter2", {"a": "hunter2", "n": 1}]}, {"apiKey": ["***", {"a": "***", "n": 0}]}),
        ({"secret": None, "token": "", "pwd": "***"}, {"secret": None, "token": "", "pwd": "***"}),
        ({"message": "password=hunter2"}, {"message": "password=***"}),
        ({"args": ["--password", "hunter2", "x"]}, {"args": ["--password", "***", "x"]}),
        ({"args": ["spark.x.secret=hunter2 b"]}, {"args": ["spark.x.secret=***"]}),
        ({"all": [{"name": "DB_PASSWORD", "value": "hunter2"}]}, {"all": [{"name": "DB_PASSWORD", "value": "***"}]}),
        ({"tags": [{"key": "token", "value": "hunter2"}]}, {"tags": [{"key": "token", "value": "***"}]}),
        ({"tags": [{"key": "team", "value": "sales"}]}, {"tags": [{"key": "team", "value": "sales"}]}),
        ({"map": {"https://me:hunter2@host": 1}}, {"map": {"https://***@host": 1}}),
        ({"map": {"https://a:b@h": 1, "https://c:d@h": 2}}, {"map": {"https://***@h": 1, "https://***@h*": 2}}),
        ({"runId": RUN_ID, "aTime": "2024-01-31T12:00:00Z"}, {"runId": RUN_ID, "aTime": "2024-01-31T12:00:00Z"}),
        ({"runId": "password=hunter2"}, {"runId": "password=***"}),
        (
            {"namespace": "s3://me:hunter2@b", "name": "/token=7?password=hunter2"},
            {"namespace": "s3://***@b", "name": "/token=7?password=***"},
        ),
        (
            {"fields": [{"name": "password", "type": "struct<token:string>", "description": "password=hunter2"}]},
            {"fields": [{"name": "password", "type": "struct<token:string>", "description": "password=***"}]},
        ),
        (
            {"fields": {"password": {"inputFields": [{"namespace": "n", "name": "t", "field": "token"}]}}},
            {"fields": {"password": {"inputFields": [{"namespace": "n", "name": "t", "field": "token"}]}}},
        ),
        *(
            ({key: names}, {key: names})
            for key, names in {
                "fields": [{"name": "Basic Salary2023"}, {"name": "Basic Salary2024"}],
                "new": {"name": "Bearer shares", "type": "struct<Bearer shares:string>"},
                "schema": [{"name": "Bearer shares"}],
                "partitionedBy": ["Basic Salary2023", "--token", "x"],
                "objectName": "Bearer shares",
                "old": {"name": "Bearer shares", "type": "int"},
            }.items()
        ),
        ({"fields": {"Basic Salary2023": {"inputFields": []}}}, {"fields": {"Basic Salary2023": {"inputFields": []}}}),
        ({"all": [{"Name": "DB_PASSWORD", "Value": "hunter2"}]}, {"all": [{"Name": "DB_PASSWORD", "Value": "***"}]}),
        ({"columnMetrics": {"token": {"nullCount": 3}}}, {"columnMetrics": {"token": {"nullCount": 3}}}),
        ({"fields": {"password": "hunter2"}}, {"fields": {"password": "***"}}),
        ({"fields": [{"password": "hunter2"}]}, {"fields": [{"password": "***"}]}),
    ],
)  # fmt: skip
def test_a_facet_loses_its_secrets_alone(facet: dict[str, Any], expected: dict[str, Any]) -> None:
    assert masked(facet) == expected


def test_a_facet_may_be_called_as_a_secret_is() -> None:
    facets = {"token": {**FACET, "count": 3, "text": "x"}}
    found = event(run={"runId": RUN_ID, "facets": facets})
    assert redact_event(found) == found


def test_a_job_keeps_its_name_unless_there_is_a_secret_in_it() -> None:
    names = {"namespace": "https://me:hunter2@airflow", "name": "shop.load token=hunter2"}
    found = redact_event(
        event(job={**names, "facets": {}}, run={"runId": RUN_ID, "facets": {"parent": {"job": names}}})
    )
    expected = {"namespace": "https://***@airflow", "name": "shop.load token=***"}
    assert found["job"] == {**expected, "facets": {}}
    assert found["run"]["facets"]["parent"]["job"] == expected


@pytest.mark.parametrize("pattern", [r"[0-9a-f]{4,}", r"\d\d:\d\d", "(?i)complete|github", "[A-Za-z]+"])
def test_a_pattern_cannot_break_what_an_event_is_known_by(pattern: str) -> None:
    own_secrets.use_patterns([pattern])
    parent = {**FACET, "run": {"runId": RUN_ID}, "job": {"namespace": "prod", "name": "shop"}}
    nominal = {**FACET, "nominalStartTime": "2024-01-31T00:00:00+00:00"}
    found = redact_event(event(run={"runId": RUN_ID, "facets": {"parent": parent, "nominalTime": nominal}}))
    before = event()
    for key in ("eventType", "eventTime", "producer", "schemaURL"):
        assert found[key] == before[key]
    assert found["run"]["facets"]["parent"]["run"]["runId"] == found["run"]["runId"] == RUN_ID
    assert found["run"]["facets"]["nominalTime"] == nominal
    restore(json.dumps(found).encode())


def test_what_is_nested_too_deep_is_left_out() -> None:
    deep: Any = "hunter2"
    for _ in range(900):
        deep = {"a": [deep]}
    found = redact_event(run_facet({"deep": deep}))
    assert "hunter2" not in json.dumps(found)
    assert redact_event(found) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.sampled_from(["password=hunter2", "https://me:pw@h", "Bearer abcdefgh", "--password", "x=1", RUN_ID]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["password", "name", "namespace", "value", "key", "fields", "facets", "job", "runId", "old"])
        | st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


def kinds(value: Any) -> Any:
    if isinstance(value, dict):
        return [kinds(each) for each in value.values()]
    if isinstance(value, list):
        return [kinds(each) for each in value]
    return type(value)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from(["facets", "job", "token", "x"]), JSON))
def test_any_json_keeps_its_types_and_is_masked_once_and_for_all(found: dict[str, Any]) -> None:
    before = copy.deepcopy(found)
    once = redact_event(found)
    assert found == before
    assert kinds(once) == kinds(found)
    assert redact_event(once) == once


def test_a_number_that_json_does_not_know_is_left_out() -> None:
    event = restore((FIXTURES / "a_414.ndjson").read_bytes().splitlines()[0])
    event.run.facets = {"x": {**FACET, "rate": float("nan"), "most": float("inf"), "one": 1.5}}
    facet = json.loads(Outgoing.encode(event).body, parse_constant=pytest.fail)["run"]["facets"]["x"]
    assert facet == {**FACET, "rate": None, "most": None, "one": 1.5}
