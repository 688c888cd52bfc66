"""Lines are decoded, or set aside with what is wrong with them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.launch import line as module
from spark_lineage.launch.line import LineDecoder, LineError, LineSplitter

FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
GOOD = (FIXTURES / "a_414.ndjson").read_bytes().splitlines()[14]


def reason(line: bytes) -> str:
    with pytest.raises(LineError) as caught:
        LineDecoder().decode(line)
    return caught.value.reason


SPARK = "https://github.com/OpenLineage/OpenLineage/tree/1.40.1/integration/spark"


def made_by(integration: str, producer: str) -> bytes:
    event = json.loads(GOOD) | {"producer": producer}
    event["job"]["facets"]["jobType"]["integration"] = integration
    return json.dumps(event).encode()


@pytest.mark.parametrize(
    ("integration", "producer", "expected"),
    [
        ("DBT", SPARK, "not of Spark: it is an event of 'DBT', as backends get them"),
        ("airflow", SPARK, "not of Spark: it is an event of 'AIRFLOW', as backends get them"),
        ("", SPARK.replace("spark", "flink"), "not of Spark: it is an event of 'FLINK', as backends get them"),
        ("", SPARK.replace("spark", "hive/"), "not of Spark: it is an event of 'HIVE', as backends get them"),
    ],
)
def test_decode_event_of_other_producer_is_set_aside_by_name(integration: str, producer: str, expected: str) -> None:
    with pytest.raises(LineError) as caught:
        LineDecoder().decode(made_by(integration, producer))
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("integration", "producer"),
    [("SPARK", SPARK.replace("spark", "dbt")), ("", SPARK), ("", "https://example.com/mine")],
)
def test_decode_event_of_spark_or_unknown_producer_is_read(integration: str, producer: str) -> None:
    event, *_ = LineDecoder().decode(made_by(integration, producer))
    assert event.eventType == "START"


def test_a_good_line() -> None:
    event, inputs, outputs, _ = LineDecoder().decode(GOOD)
    assert event.eventType == "START"
    assert [one.dataset.name for one in inputs] == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert [one.dataset.name for one in outputs] == ["/data/lab/out/a_parquet"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"", "empty"),
        (b"  \t", "empty"),
        (GOOD[: len(GOOD) // 2], "not JSON"),
        (GOOD[len(GOOD) // 2 :], "not JSON"),
        (GOOD[:700] + GOOD, "not JSON"),
        (GOOD + GOOD, "not JSON"),
        (b"garbage", "not JSON"),
        (b"[" * 100_000, "not a RunEvent"),
        (b'{"x":' + b"[" * 100_000, "not JSON"),
        (b"null", "not a RunEvent"),
        (b"[]", "not a RunEvent"),
        (b"{}", "not a RunEvent"),
        (GOOD.replace(b'"eventTime"', b'"time"'), "not a RunEvent"),
        (GOOD.replace(b'42.522Z"', b'42.522"'), "not a RunEvent"),
        (GOOD.replace(b'"START"', b'"BEGIN"'), "not a RunEvent"),
        (GOOD.replace(b'"name":"/data/lab/out/a_parquet"', b'"name":7'), "not a RunEvent"),
        (GOOD.replace(b"job a csv", b"job \xff csv"), "not UTF-8"),
        (GOOD.replace(b"/out/a_parquet", b"/out/\xc3\x28"), "not UTF-8"),
    ],
)
def test_bad_lines(line: bytes, expected: str) -> None:
    assert line != GOOD
    assert reason(line) == expected


def test_an_oversized_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.MAX_LINE_BYTES == 64 * 1024 * 1024
    monkeypatch.setattr(module, "MAX_LINE_BYTES", len(GOOD))
    LineDecoder().decode(GOOD)
    assert reason(GOOD + b" ") == "oversized"


def test_names_beyond_ascii() -> None:
    _event, inputs, *_ = LineDecoder().decode(GOOD.replace(b"cust.csv", "künden-客户.csv".encode()))
    assert "/data/lab/data/künden-客户.csv" in {one.dataset.name for one in inputs}


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("42Z", 0), ("42.5Z", 500_000), ("42.16Z", 160_000), ("42.123456Z", 123_456), ("42.123456789Z", 123_457)],
)
def test_times_of_any_number_of_digits(text: str, microseconds: int) -> None:
    event, *_ = LineDecoder().decode(GOOD.replace(b"42.522Z", text.encode()))
    assert event.eventTime.second == 42
    assert event.eventTime.microsecond == microseconds


def test_a_time_with_an_offset_is_the_same_moment() -> None:
    here, *_ = LineDecoder().decode(GOOD)
    there, *_ = LineDecoder().decode(GOOD.replace(b"T22:56:42.522Z", b"T23:56:42.522+01:00"))
    assert here.eventTime == there.eventTime


def test_of_a_repeated_key_the_last_value_counts() -> None:
    doubled = GOOD.replace(b'"eventType":"START"', b'"eventType":"RUNNING","eventType":"START"')
    assert doubled != GOOD
    event, inputs, *_ = LineDecoder().decode(doubled)
    assert event.eventType == json.loads(doubled)["eventType"] == "START"
    rdd = (FIXTURES / "d_414.ndjson").read_bytes().splitlines()[2]
    assert rdd.count(b'"processing_engine"') == 2
    event, inputs, *_ = LineDecoder().decode(rdd)
    assert event.run.facets is not None
    assert event.run.facets.processing_engine is not None
    assert event.run.facets.processing_engine.version == "4.1.4"
    assert [one.dataset.name for one in inputs] == ["/data/lab/data"]


def test_equal_datasets_are_shared_and_the_memo_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MEMO_BYTES", 10_000)
    decoder = LineDecoder()
    first = decoder.decode(GOOD)[1]
    other = GOOD.replace(b"cust.csv", b"other.csv")
    decoder.decode(other)
    assert decoder.decode(GOOD)[1] is first
    for number in range(50):
        decoder.decode(GOOD.replace(b"cust.csv", b"%d.csv" % number))
    assert len(decoder._memo) < 20
    assert decoder.decode(GOOD)[1] == first


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_an_error(line: bytes) -> None:
    with pytest.raises(LineError):
        LineDecoder().decode(line)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_lines_do_not_depend_on_how_they_are_cut(content: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(content)) for cut in cuts} | {0, len(content)})
    splitter = LineSplitter()
    lines = [line for start, end in itertools.pairwise(places) for line in splitter.feed(content[start:end])]
    lines += splitter.finish()
    expected = content.split(b"\n")
    assert lines == (expected if expected[-1] else expected[:-1])


def test_an_oversized_line_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 1000)
    splitter = LineSplitter()
    for _ in range(100):
        assert splitter.feed(b"x" * 100) == []
        assert sum(map(len, splitter._pending)) <= 1100
    too_long, good = splitter.feed(b"end\nnext\n")
    assert isinstance(too_long, LineError)
    assert too_long.reason == "oversized"
    assert "10003 bytes" in str(too_long)
    assert good == b"next"


def test_decode_facets_of_the_listener_itself_and_one_of_a_user_passes_only_that_on() -> None:
    own = {
        struct_field.encode_name: {"is": "the listener's"}
        for facets in (module._OwnRunFacets, module._OwnJobFacets)
        for struct_field in msgspec.structs.fields(facets)
        if struct_field.type is msgspec.Raw
    }
    event = json.loads(GOOD)
    event["run"]["facets"] |= {**own, "acme_cost": {"euros": 1}}
    event["job"]["facets"] |= {**own, "acme_team": {"name": "x"}}
    plain, *_, no_others = LineDecoder().decode(GOOD)
    found, *_, others = LineDecoder().decode(json.dumps(event).encode())
    assert no_others == ()
    assert [(facet.place, facet.name) for facet in others] == [("run", "acme_cost"), ("job", "acme_team")]
    assert found.job.name == plain.job.name
