"""Trouble with lineage: it is told with its cause, and fails the task only if that asked for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from launches import location

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"


def trouble(bench: Any, kind: str) -> tuple[dict[str, Any], str]:
    """Return the arguments that bring about the trouble, and the words that its cause is told in."""
    return {
        "setting": ({"retention_days": -1}, "operator argument 'retention_days' is -1; give a number above 0"),
        "jar": (
            {"openlineage_jar": "/nowhere/openlineage-spark.jar", "evidence": "listener"},
            "/nowhere/openlineage-spark.jar",
        ),
        "dir": ({"lineage_dir": "/proc/lineage"}, "/proc/lineage"),
        "url": ({"lineage_dir": "s3://bucket/lineage"}, "is a URL"),
        "relative": ({"lineage_dir": "lineage"}, "is not an absolute path"),
        "file": ({"lineage_dir": str(bench.file("in-the-way", b""))}, "in-the-way"),
        "transport": (
            {
                "conf": {
                    "spark.openlineage.transport.type": "composite",
                    "spark.openlineage.transport.transports": "[]",
                },
                "evidence": "listener",
            },
            "composite",
        ),
    }[kind]


TROUBLE = ["setting", "jar", "dir", "url", "relative", "file", "transport"]


def test_a_tag_that_the_listener_would_misread_costs_no_lineage(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], lineage_tags={"url": "a:b", "team": "sales"})
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert "The tag 'url' is left out" in outcome.printed
    assert "spark.openlineage.job.tags=team:sales" in outcome.command["argv"]


@pytest.mark.parametrize("kind", TROUBLE)
def test_trouble_is_told_with_its_cause_and_does_not_fail_the_task(bench: Any, kind: str) -> None:
    arguments, cause = trouble(bench, kind)
    outcome = bench.run(log=["the job has run"], **arguments)
    assert outcome.error is None
    # Of settings that do not fit none is believed.
    assert (outcome.lineage is None) is (kind == "setting")
    if outcome.lineage is not None:
        assert (outcome.names("inputs"), outcome.names("outputs")) == ([], [])
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without lineage" in line]
    assert cause in line
    assert "[warning" in line
    assert "the job has run" in outcome.printed
    added = set(outcome.command["conf"]) - set(arguments.get("conf", {}))
    assert added == set()
    assert outcome.threads == ["MainThread"]


@pytest.mark.parametrize("kind", TROUBLE)
def test_trouble_fails_the_task_that_requires_lineage_before_it_submits(bench: Any, kind: str) -> None:
    arguments, cause = trouble(bench, kind)
    outcome = bench.run(lineage_required=True, **arguments)
    assert outcome.error.startswith("LineageRequiredError: lineage_required is set, and there is no lineage: ")
    assert cause in outcome.error
    assert outcome.told == []
    assert outcome.lineage is None


@pytest.mark.parametrize("value", [True, "true", "True", "yes", "1", 1])
def test_lineage_required_holds_in_every_spelling_even_beside_a_bad_setting(bench: Any, value: object) -> None:
    outcome = bench.run(lineage_required=value, retention_days=-1)
    assert (outcome.error or "").startswith("LineageRequiredError")
    assert "retention_days" in outcome.error


@pytest.mark.parametrize("place", ["extra", "section"])
def test_lineage_required_holds_from_every_place_even_beside_a_bad_setting(bench: Any, place: str) -> None:
    if place == "extra":
        bench.connection["extra"] = {"lineage_required": True}
    else:
        bench.env["AIRFLOW__SPARK_LINEAGE__LINEAGE_REQUIRED"] = "True"
    outcome = bench.run(retention_days=-1)
    assert (outcome.error or "").startswith("LineageRequiredError")
    assert "retention_days" in outcome.error


def test_an_argument_of_the_operator_can_lift_the_requirement_of_the_section(bench: Any) -> None:
    bench.env["AIRFLOW__SPARK_LINEAGE__LINEAGE_REQUIRED"] = "True"
    outcome = bench.run(lineage_required=False, retention_days=-1)
    assert outcome.error is None


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(("content", "set_aside"), [(b"", 0), (b"garbage\n\xff\xfe\n", 2)])
def test_when_nothing_came_it_says_where_it_looked_and_why_that_may_be(
    bench: Any, content: bytes, set_aside: int, *, required: bool
) -> None:
    lineage = [bench.file("garbage", content)] if content else []
    outcome = bench.run(lineage=lineage, lineage_required=required)
    directory = location(outcome).parent
    if required:
        assert outcome.error.startswith("LineageRequiredError")
        text = outcome.error
    else:
        assert outcome.error is None
        (text,) = [line for line in outcome.printed.splitlines() if "No lineage came from the driver" in line]
    assert f"{directory}/*.ndjson" in text
    assert f"({set_aside} lines set aside)" in text
    assert "(1) the listener jar was not resolved" in text
    assert "(2) the driver ran on another host" in text
    assert "(3) the listener was switched off" in text


@pytest.mark.parametrize("required", [False, True, "complete"])
def test_counts_fail_only_the_task_that_asked_for_a_complete_lineage(bench: Any, required: object) -> None:
    named = b"adaptive_spark_plan.out_a_parquet"
    written = [json.loads(line) for line in EVENTS.read_bytes().replace(named, b"execute_update_command").splitlines()]
    silent = [event | {"outputs": []} for event in written]
    lineage = [bench.file("silent", b"".join(json.dumps(event).encode() + b"\n" for event in silent))]
    outcome = bench.run(lineage=lineage, lineage_required=required)
    assert outcome.printed.count("The lineage is not complete: ") == 1
    if required == "complete":
        assert outcome.error.startswith("LineageRequiredError: lineage_required is complete. The lineage is not")
    else:
        assert outcome.error is None


@pytest.mark.parametrize("kind", ["nothing", "garbage"])
def test_a_task_that_fails_anyway_keeps_its_own_error(bench: Any, kind: str) -> None:
    lineage = [bench.file("garbage", b"garbage\n")] if kind == "garbage" else []
    outcome = bench.run(lineage=lineage, lineage_required=True, exit_code=3, log=["the true reason"])
    assert outcome.error.startswith("AirflowException: ")
    assert "Error code is: 3." in outcome.error
    assert "the true reason" in outcome.error
    assert "No lineage came from the driver" in outcome.printed


def test_garbage_between_the_lines_costs_only_itself(bench: Any) -> None:
    lines = EVENTS.read_bytes().splitlines(keepends=True)
    huge = b'{"eventTime": "' + b"x" * (70 * 1024 * 1024) + b'"}\n'
    garbage = [b"hello\n", b"\xff\xfe\x00\n", b"\n", b"[1, 2]\n", lines[0][:100] + b"\n", huge]
    mixed = [line for pair in zip(lines, garbage, strict=False) for line in pair] + lines[len(garbage) :]
    torn = b'{"eventTime": "2024-01-31T12:00:00Z", "run'
    outcome = bench.run(lineage=[bench.file("mixed", b"".join([*mixed, torn]))], poll_interval_seconds=0.02)
    assert outcome.error is None
    assert outcome.names("inputs") == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    facet = outcome.lineage["run_facets"]["sparkLineage_collection"]
    assert (facet["linesRead"], facet["linesSetAside"]) == (21, 7)
    assert facet["setAside"] == {"not JSON": 3, "not UTF-8": 1, "empty": 1, "not a RunEvent": 1, "oversized": 1}
    for number in (2, 4, 6, 8, 10, 12, 28):
        assert f"Set aside {location(outcome)}:{number}: " in outcome.printed


def test_a_spark_submit_that_is_not_there_is_the_providers_error(bench: Any) -> None:
    outcome = bench.run(spark_binary="spark3-submit", lineage_required=True)
    assert outcome.error.startswith("FileNotFoundError: ")
    assert "spark3-submit" in outcome.lineage["run_facets"]["errorMessage"]["message"]
    assert "No lineage came from the driver" in outcome.printed
    assert outcome.threads == ["MainThread"]


def test_the_default_jar_fits_the_scala_version_of_the_spark_found(bench: Any) -> None:
    bench.env = {
        **bench.env,
        "XDG_CACHE_HOME": str(bench.root / "jars"),
        "DEFAULT_ARTIFACT_REPOSITORY": "http://127.0.0.1:1",  # nobody listens there
    }
    outcome = bench.run(openlineage_jar=None, evidence="both")
    (line,) = [line for line in outcome.printed.splitlines() if "The job runs without OpenLineage's listener" in line]
    assert "openlineage-spark_2.13-1.53.0.jar: Connection refused" in line
    assert outcome.error is None


def test_a_store_that_cannot_be_written_to_costs_no_lineage(bench: Any) -> None:
    outcome = bench.run(lineage=[EVENTS], store={}, fails="store")
    assert outcome.error is None
    assert "the API server is away" in outcome.printed
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]


def test_a_lineage_file_that_cannot_be_read_does_not_fail_the_task(bench: Any) -> None:
    outcome = bench.run(log=["ran"], break_lineage_file=True)
    assert outcome.error is None
    assert "no file: this is no regular file" in outcome.printed
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "COMPLETE"
    assert outcome.threads == ["MainThread"]
