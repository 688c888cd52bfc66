"""A test that runs again (``--reruns``) gets new fixtures, and the summary says why it ran again.

Its servers may be what failed, and folders that it made are in the way of a second attempt. Hooks of a ``conftest.py``
are not told of the fixtures of the session.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_FAILED = pytest.StashKey[bool]()
_LONGEST = 2000
_lasting: list[tuple[pytest.FixtureDef[Any], Any]] = []


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """Remember what is there for more than one test."""
    if fixturedef.scope != "function":
        _lasting.append((fixturedef, request))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """End what is there for more than one test after one that failed."""
    report = yield
    item.stash[_FAILED] = report.failed or (report.when != "setup" and item.stash.get(_FAILED, False))
    if report.when == "teardown" and item.stash[_FAILED] and item.config.getoption("reruns", default=0):
        while _lasting:
            fixture, request = _lasting.pop()
            # The reason why the test failed is the one to read.
            with contextlib.suppress(Exception):
                fixture.finish(request)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Give the reasons, which stand nowhere else."""
    for report in terminalreporter.stats.get("rerun", []):
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = crash.message if crash else report.longreprtext
        terminalreporter.write_line(f"{report.nodeid} ran again: {reason[:_LONGEST]}")
