"""What a person reads at the end of the task's log."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest
from msgspec import structs

from spark_lineage.launch.launch import Launch
from spark_lineage.launch.line import LineCounts
from spark_lineage.launch.log import Log, error_text, log_lineage, log_status
from spark_lineage.merge.lineage import DatasetLineage, TaskLineage, UnknownDatasets, UnreadPart
from spark_lineage.merge.transition import StatusSummary, StatusTransition
from spark_lineage.naming.identity import DatasetName

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
log = Log("task")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="task")
    return caplog


def said(logged: pytest.LogCaptureFixture, level: int = logging.DEBUG) -> list[str]:
    others = [one for one in logged.records if not one.getMessage().startswith("The lineage is not complete: ")]
    assert {record.levelno for record in others} <= {logging.INFO, logging.DEBUG}
    return [record.getMessage() for record in logged.records if record.levelno == level]


def of_driver(old: str | None, new: str, source: str, detail: str = "") -> StatusTransition:
    return StatusTransition("DRIVER", "host:4711", old, new, NOON, source, detail=detail)  # type: ignore[arg-type]


def of_application(old: str | None, new: str, source: str, detail: str = "") -> StatusTransition:
    return StatusTransition("APPLICATION", "local-1", old, new, NOON, source, detail=detail)  # type: ignore[arg-type]


def test_how_a_job_failed_and_where_to_read_on(logged: pytest.LogCaptureFixture) -> None:
    status = StatusSummary(
        transitions=(
            of_driver(None, "SUBMITTED", "spark-submit"),
            of_application(None, "RUNNING", "OpenLineage listener"),
            StatusTransition("SPARK_JOB", "3", "RUNNING", "FAILED", NOON, "event log", exception="broken"),
            StatusTransition("STREAMING_QUERY", "q", None, "RUNNING", NOON, "driver UI"),
            of_application("RUNNING", "FINISHED", "event log", "context stopped"),
            of_driver("SUBMITTED", "FAILED", "spark-submit", "exit code 1"),
        ),
        counts=(("SPARK_JOB", "FAILED", 1), ("SPARK_JOB", "FINISHED", 12), ("SQL_EXECUTION", "FINISHED", 7)),
        error="ValueError: 2 orders without a quantity (exit code 1)",
        history_url="http://history:18080/history/local-1/jobs/",
    )
    log_status(status, log)
    # The last word about each; of what the application ran, which may be much, only how many.
    assert said(logged) == [
        "::group::Status of the job",
        "Driver host:4711: FAILED (exit code 1) (source: spark-submit)",
        "Application local-1: FINISHED (context stopped) (source: event log)",
        "Of the application: 1 Spark jobs FAILED, 12 Spark jobs FINISHED, 7 SQL executions FINISHED",
        "The application failed: ValueError: 2 orders without a quantity (exit code 1)",
        "History: http://history:18080/history/local-1/jobs/",
        "::endgroup::",
    ]


def test_of_a_job_that_succeeded_no_more_is_said_than_is_known(logged: pytest.LogCaptureFixture) -> None:
    log_status(StatusSummary(transitions=(of_driver("SUBMITTED", "FINISHED", "spark-submit"),)), log)
    log_status(StatusSummary(counts=(("STREAMING_QUERY", "FINISHED", 2),)), log)
    log_status(StatusSummary(), log)
    assert said(logged) == [
        "::group::Status of the job",
        "Driver host:4711: FINISHED (source: spark-submit)",
        "::endgroup::",
        "::group::Status of the job",
        "Of the application: 2 streaming queries FINISHED",
        "::endgroup::",
    ]


def test_no_secret_is_in_what_is_said_of_the_status(logged: pytest.LogCaptureFixture) -> None:
    status = StatusSummary(
        transitions=(of_driver("RUNNING", "FAILED", "YARN ResourceManager", "launched with password=hunter2"),),
        error="ValueError: jdbc:postgresql://me:hunter2@db/shop refused it",
        history_url="http://me:hunter2@history:18080/?token=hunter2",
    )
    log_status(status, log)
    assert "hunter2" not in logged.text
    assert said(logged)[1:-1] == [
        "Driver host:4711: FAILED (launched with password=***) (source: YARN ResourceManager)",
        "The application failed: ValueError: jdbc:postgresql://***@db/shop refused it",
        "History: http://***@history:18080/?token=***",
    ]


INCOMPLETE = TaskLineage(
    "COMPLETE",
    unknown=(UnknownDatasets("AppendData ledger to an unknown sink", 1),),
    unread=tuple(UnreadPart(name, count) for name, count in (("BatchScan prices", 2), ("Scan x", 1), ("Scan y", 1))),
)
NAMES = "AppendData ledger to an unknown sink, BatchScan prices (2 times), Scan x, and 1 more"


def test_counts_are_one_warning_with_the_first_three_names(logged: pytest.LogCaptureFixture) -> None:
    log_lineage(INCOMPLETE, LineCounts(), log)
    (warning,) = [record.getMessage() for record in logged.records if record.levelno == logging.WARNING]
    assert warning.startswith(f"The lineage is not complete: {NAMES}. See docs/troubleshooting.md#")


def test_the_lineage_in_short(lineage: TaskLineage, counts: LineCounts, logged: pytest.LogCaptureFixture) -> None:
    log_lineage(lineage, counts, log)
    assert "hunter2" not in logged.text
    what = "2 inputs, 2 outputs, 1,000 rows written, 1 attempted output"
    assert said(logged, logging.INFO) == [
        f"Lineage: COMPLETE, {what} (1,042 events of 7 Spark runs, 3 lines set aside)",
        (
            "Read: file /data/cust.csv, s3://***@landing-zone-of-the-shop "
            "orders/year=2024/month=01/day=31/part-of-a-long-name.parquet"
        ),
        "Wrote: postgres://db:5432 shop.public.report, file /warehouse/db1.db/sales_by_country",
        "Attempted: file /out/broken",
    ]
    assert said(logged) == []


def test_one_of_each_is_not_many_and_the_job_has_its_page(logged: pytest.LogCaptureFixture) -> None:
    counts = LineCounts()
    counts.read = 1
    inputs = (DatasetLineage(DatasetName("file", "/in")),)
    lineage = TaskLineage("COMPLETE", inputs=inputs, evidence=("event_log",), run_count=1)
    log_lineage(lineage, counts, log, url="http://marquez:3000/lineage/job/shop/load")
    assert said(logged, logging.INFO) == [
        (
            "Lineage: COMPLETE, 1 input, 0 outputs (1 event of 1 Spark run, all from the event log): "
            "http://marquez:3000/lineage/job/shop/load"
        ),
        "Read: file /in",
    ]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "[Errno 111] Connection refused"),
        (TimeoutError("not all was read"), "not all was read"),
        (FileNotFoundError("/gone"), "FileNotFoundError: /gone"),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError"),
    ],
)
def test_class_of_an_error_is_shown_where_its_text_explains_nothing(error: Exception, text: str) -> None:
    assert error_text(error) == text


@pytest.mark.parametrize(
    ("launch", "read", "is_warned"),
    [
        (Launch("/shop/1", "run", deploy_mode="cluster"), 0, True),
        (Launch("/shop/1", "run", deploy_mode="cluster"), 1, False),
        (Launch("/shop/1", "run", deploy_mode="cluster", events_from="receiver"), 0, False),
        (Launch("/shop/1", "run", deploy_mode="client"), 0, False),
        (None, 0, False),
    ],
)
def test_a_directory_that_the_driver_does_not_share(
    lineage: TaskLineage, logged: pytest.LogCaptureFixture, launch: Launch | None, read: int, is_warned: bool
) -> None:
    counts = LineCounts()
    counts.read = read
    log_lineage(lineage, counts, log, launch)
    assert ("does not share /shop/1 with this worker" in logged.text) == is_warned


def test_a_namespace_of_several_hosts_is_said_to_want_a_name_once(
    lineage: TaskLineage, logged: pytest.LogCaptureFixture
) -> None:
    topics = tuple(DatasetLineage(DatasetName("kafka://a:9092,b:9092", topic)) for topic in ("orders", "sales"))
    log_lineage(structs.replace(lineage, inputs=topics), LineCounts(), log)
    (hint,) = [text for text in said(logged) if "several hosts" in text]
    assert hint.startswith("kafka://a:9092,b:9092 names several hosts; the option hostnamePattern.<cluster>")


def test_of_many_datasets_the_first_ten_are_named(lineage: TaskLineage, logged: pytest.LogCaptureFixture) -> None:
    inputs = tuple(DatasetLineage(DatasetName("file", f"/in/{number:03}")) for number in range(100))
    log_lineage(structs.replace(lineage, inputs=inputs), LineCounts(), log)
    summary, read, *_ = said(logged, logging.INFO)
    assert "100 inputs" in summary
    assert read == f"Read: {', '.join(f'file /in/{number:03}' for number in range(10))}, and 90 more"
