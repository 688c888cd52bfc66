"""No secret stays in an exception, wherever its text comes from."""

from __future__ import annotations

import subprocess
import traceback

import pytest

from spark_lineage.secrets.redaction import redact_error

SECRET = "hunter2"  # noqa: S105 - planted
PLANTED = f"connect with password={SECRET} failed"


def noted() -> Exception:
    error = RuntimeError("harmless")
    error.add_note(PLANTED)
    return error


def noted_with_an_object() -> Exception:
    error = RuntimeError("harmless")
    error.__notes__ = [ValueError(PLANTED)]  # type: ignore[list-item] - Python prints its text
    return error


def chained() -> Exception:
    try:
        try:
            raise ValueError(PLANTED)  # noqa: TRY301 - the chain is the point
        except ValueError:
            raise KeyError(PLANTED) from OSError(2, PLANTED, f"jdbc:x://u:{SECRET}@h/db")
    except KeyError as error:
        return error


def looped() -> Exception:
    first, second = RuntimeError(PLANTED), RuntimeError(PLANTED)
    first.__cause__, second.__cause__ = second, first
    return first


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(PLANTED),
        RuntimeError([PLANTED], {"password": SECRET}),
        OSError(2, PLANTED, f"/x?token={SECRET}"),
        ExceptionGroup(PLANTED, [ValueError(PLANTED), ExceptionGroup("inner", [OSError(5, PLANTED)])]),
        noted(),
        noted_with_an_object(),
        chained(),
        looped(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_secret_is_gone_from_all_that_is_printed(error: Exception) -> None:
    members = error.exceptions if isinstance(error, ExceptionGroup) else ()
    redact_error(error)
    for one in (error, *members):
        assert SECRET not in str(one) or isinstance(one, ExceptionGroup)
        assert SECRET not in repr(one.args)
    if not isinstance(error, ExceptionGroup):
        assert SECRET not in "".join(traceback.format_exception(error))


def test_what_is_harmless_stays() -> None:
    error = FileNotFoundError(2, "No such file or directory", "/data/orders.csv")
    redact_error(error)
    assert str(error) == "[Errno 2] No such file or directory: '/data/orders.csv'"


def test_what_an_exception_makes_its_text_of_is_redacted_too() -> None:
    error = subprocess.CalledProcessError(1, ["app.py", "--password", "hunter2"], output="token=hunter2")
    assert "hunter2" in str(error)
    redact_error(error)
    assert str(error) == "Command '['app.py', '--password', '***']' returned non-zero exit status 1."
    assert error.output == "token=***"
