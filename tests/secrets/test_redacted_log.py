"""What is logged: by our modules, by operators, by the hook, and the driver's lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.adapters.driver_output import LineRedaction
from spark_lineage.launch.log import Log
from spark_lineage.secrets import redaction as own_secrets
from spark_lineage.secrets.redaction import redact_name

masker = pytest.importorskip("airflow.sdk._shared.secrets_masker")
IDS = [
    "INFO YarnClientImpl: Submitted application application_1706702400000_0042",
    "INFO ClientEndpoint: Driver successfully submitted as driver-20240131120000-0001",
    "\t pod name: nightly-0a1b2c3d-driver",
    "INFO LoggingPodStatusWatcherImpl: submission ID spark:nightly-0a1b-driver is done",
    "\t labels: spark-app-selector -> spark-0a1b2c3d4e5f, spark-role -> driver",
    "\t Exit code: 137",
]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    masker.reset_secrets_masker()
    own_secrets.use_patterns(())


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    with caplog.at_level(logging.DEBUG):
        yield Log(logging.getLogger("hook"), redact_name)


@pytest.mark.parametrize("line", IDS)
@pytest.mark.parametrize("pattern", [r"\d+", "[a-z]+", ".", "application_.*"])
def test_a_pattern_cannot_hide_the_ids_by_which_the_hook_finds_the_job(line: str, pattern: str) -> None:
    from spark_lineage.adapters.driver_output import _READ_BY_HOOK

    own_secrets.use_patterns([pattern])
    masked = LineRedaction()(line)
    assert _READ_BY_HOOK.findall(masked) == _READ_BY_HOOK.findall(line)


@pytest.mark.parametrize("word", ["application", "driver", "spark", "nightly"])
def test_a_registered_common_word_cannot_hide_them_either(word: str) -> None:
    masker.mask_secret(word)
    redact_line = LineRedaction()
    assert [redact_line(line) for line in IDS] == IDS


def test_the_lines_of_a_private_key_go() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----\n", "aHVudGVyMg==\n", "-----END PRIVATE KEY-----\n", "aHVudGVyMg==\n"]
    redact_line = LineRedaction()
    assert [redact_line(line) for line in lines][1] == "***\n"
    assert redact_line("a line\n") == "a line\n"


def test_the_lines_of_a_private_key_go_with_what_a_logger_puts_before_each() -> None:
    key = ["-----BEGIN PRIVATE KEY-----", "aHVudGVyMg==", "aHVudGVyMg==", "-----END PRIVATE KEY-----"]
    redact_line = LineRedaction()
    lines = [f"24/01/31 12:00:0{second} INFO Job: {line}\n" for second, line in enumerate(key)]
    assert [redact_line(line) for line in lines][1:3] == ["***\n", "***\n"]
    report = "24/01/31 12:00:09 INFO Client: Application report for application_1_0001 (state: RUNNING)\n"
    assert redact_line(report) == report


def test_whatever_the_hook_says_is_masked(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    masker.mask_secret("Zx9!q2")
    log.debug(["curl", "--password", "hunter2", "http://me:hunter2@master:6066"])
    log.debug("Poll cmd: %s", ["spark-submit", "--conf", "spark.x.secret=hunter2"])
    log.warning("Exited with %d: %s", 3, "mysql -u me --password=hunter2 Zx9!q2")
    log.warning("raised an exception: %s", ValueError("password=hunter2"))
    log.log(logging.INFO, "a %s", "token=hunter2")
    log.info("100% of password=hunter2 %s")
    log.info("50%% of %d", "no number, Zx9!q2")
    error = ValueError("password=hunter2")
    try:
        raise error
    except ValueError:
        log.exception("It failed")
    assert "hunter2" not in caplog.text
    assert "Zx9!q2" not in caplog.text
    assert [record.getMessage() for record in caplog.records][1:6] == [
        "Poll cmd: ['spark-submit', '--conf', 'spark.x.secret=***']",
        "Exited with 3: mysql -u me --password=*** ***",
        "raised an exception: password=***",
        "a token=***",
        "100% of password=*** %s",
    ]


def test_a_line_that_was_masked_is_passed_on_as_it_is(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.masked_line = "token=hunter2"
    log.info("token=hunter2")
    assert caplog.messages == ["token=hunter2"]


def test_all_else_of_the_logger_is_there(log: Log) -> None:
    assert log.name == "hook"
    assert log.isEnabledFor(logging.DEBUG)


def _operators_log() -> Any:
    from airflow.providers.common.compat.sdk import BaseOperator

    return BaseOperator(task_id="load").log


@pytest.mark.parametrize("given", [lambda: logging.getLogger("spark_lineage.of_a_test"), _operators_log])
def test_no_secret_is_logged(
    given: Callable[[], Any], caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    error = ValueError("password=hunter2 \x1b[31m", {"token": "hunter3"})
    error.__cause__ = OSError(2, "no such file", "s3://me:hunter4@lake/orders")
    error.add_note("Authorization: Bearer hunter5hunter5hunter5")
    log = Log(Log(given()))
    log.warning("password=hunter6 in %s", "a message")
    log.info("An argument: %s, a command: %s", "secret: hunter7", ["--token", "hunter8"])
    log.warning("A value: %s", {"secret": "hunter9"})
    log.error("An error: %s", KeyError("password=hunter2"))
    log.error("One line:\n%s", "\x1b[2J")
    log.error("Its traceback:", exc_info=error)
    try:
        raise error
    except ValueError:
        log.warning("That of the error that is handled:", exc_info=True)
    logged = caplog.text + "".join(capsys.readouterr())
    assert "Its traceback:" in logged
    assert "no such file" in logged
    assert "hunter" not in logged
    assert r"One line:\n\x1b[2J" in logged


def test_a_line_stands_where_it_was_said(caplog: pytest.LogCaptureFixture) -> None:
    Log("spark_lineage.of_a_test").warning("100%")
    assert [(record.filename, record.getMessage()) for record in caplog.records] == [(Path(__file__).name, "100%")]


def test_what_is_not_logged_is_not_looked_at() -> None:
    log, error = logging.getLogger("spark_lineage.silent"), ValueError("password=hunter2")
    log.setLevel(logging.WARNING)
    Log(log).debug("No one reads it", exc_info=error)
    assert error.args == ("password=hunter2",)


def test_a_word_on_its_own_after_a_key_is_no_part_of_it() -> None:
    redact_line = LineRedaction()
    key = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj", "-----END PRIVATE KEY-----"]
    shown = [redact_line(f"{line}\n") for line in [*key, "finished", "MIIEvQ"]]
    assert not any("MIIEvQIBADAN" in line for line in shown)
    assert shown[-2:] == ["finished\n", "MIIEvQ\n"]
