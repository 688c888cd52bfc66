from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import requests

from spark_lineage.deliver.transports.errors import NotTakenError, UnreachableError, answer_of


def http_error(status: int, body: bytes = b"", **headers: str) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    response.reason = "Reason"
    response.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    response._content = body
    return requests.HTTPError(f"{status} Reason: {body.decode()}", response=response)


def raised(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("status", [400, 406, 409, 410, 411, 413, 414, 415, 418, 422, 431, 451])
def test_what_the_event_is_to_blame_for_is_a_refusal(status: int) -> None:
    answer = answer_of(http_error(status, b'{"detail": "eventType, password=hunter2"}'))
    assert answer.is_refusal
    assert answer.text == f'HTTPError: {status} Reason: {{"detail": "eventType, password=***"}}'


@pytest.mark.parametrize(
    "status", [401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 426, 429, 500, 501, 502, 503, 504]
)
def test_what_somebody_else_mends_waits(status: int) -> None:
    answer = answer_of(http_error(status))
    assert not answer.is_refusal
    assert answer.is_suspect is (status not in {408, 425, 429, 503})
    assert answer.is_brief is (status >= 500)


def test_an_answer_is_found_below_what_wraps_it() -> None:
    wrapped = raised(RuntimeError("Transport failed"), http_error(422, b"no"))
    assert answer_of(wrapped).is_refusal


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7), ("0", 0), ("", None), ("soon", None), ("-1", None), ("9" * 40, 999_999_999)]
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    answer = answer_of(http_error(503, Retry_After=value))
    assert answer.retry_after_seconds == seconds
    assert answer.is_brief is (seconds is None)


def test_retry_after_as_a_date() -> None:
    moment = datetime.now(UTC) + timedelta(seconds=100)
    answer = answer_of(http_error(503, Retry_After=format_datetime(moment, usegmt=True)))
    assert answer.retry_after_seconds == pytest.approx(100, abs=3)


def test_a_connection_that_is_refused_says_nothing_about_the_event() -> None:
    with pytest.raises(requests.ConnectionError) as caught:
        requests.post("http://127.0.0.1:9", timeout=1)
    answer = answer_of(caught.value)
    assert (answer.is_refusal, answer.is_suspect, answer.is_brief) == (False, False, False)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UnreachableError("refused"), (False, False)),
        (NotTakenError("late"), (False, True)),
        (NotTakenError("Kafka: too large", is_refusal=True), (True, True)),
        (TimeoutError("late"), (False, True)),
        (ValueError("of an unknown kind"), (False, True)),
    ],
)
def test_other_errors(error: Exception, expected: tuple[bool, bool]) -> None:
    answer = answer_of(error)
    assert (answer.is_refusal, answer.is_suspect) == expected
    assert str(error) in answer.text


def test_texts_are_short_and_without_secrets() -> None:
    text = answer_of(http_error(400, b"token=" + b"s3cr3t" * 10 + b" x" * 5000)).text
    assert len(text) <= 1000
    assert "s3cr3t" not in text


def test_an_error_that_goes_round_in_circles_is_an_answer() -> None:
    one: Any = ValueError("one")
    two: Any = raised(TypeError("two"), one)
    one.__cause__ = two
    assert "one" in answer_of(one).text
