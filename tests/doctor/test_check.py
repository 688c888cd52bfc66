"""One check that fails, hangs, or finds a secret does not spoil the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.cli.output import print_json, print_line
from spark_lineage.doctor.checks import Check, checks_for, run_check
from spark_lineage.doctor.setup import Finding, ok, problem


@pytest.mark.parametrize("error", [RuntimeError("password=hunter2"), SystemExit(3), KeyboardInterrupt()])
def test_a_check_that_raises(setup: Any, error: BaseException) -> None:
    def check(_: Any) -> Iterator[Finding]:
        yield ok("one")
        raise error

    first, second = run_check(setup(), Check("x", check))
    assert first == ok("one")
    assert second.level == "warning"
    assert second.text.startswith(f"could not be checked: {type(error).__name__}")


def test_a_check_that_hangs(setup: Any) -> None:
    is_over = threading.Event()

    def check(_: Any) -> Iterator[Finding]:
        yield ok("one")
        is_over.wait()

    first, second = run_check(setup(), Check("x", check, seconds=0.2))
    is_over.set()
    assert first == ok("one")
    assert (second.level, second.text) == ("problem", "no answer within 0.2 s")


def test_no_secret_is_told(setup: Any, capsys: pytest.CaptureFixture[str]) -> None:
    secrets = ("http://me:hunter2@host", "Authorization: Bearer hunter2hunter2", "api_key=hunter2")
    (found,) = run_check(setup(), Check("x", lambda _: [problem(" ".join(secrets), " ".join(secrets))]))
    print_line(f"{found.text} -> {found.remedy}")
    print_json({"findings": [asdict(found)]})
    assert "hunter2" not in capsys.readouterr().out


def test_the_document_has_what_to_do_for_every_check(setup: Any) -> None:
    document = Path(__file__).parents[2].joinpath("docs", "doctor.md").read_text()
    for check in checks_for(setup()):
        assert f"\n| {check.name}: " in document, check.name
