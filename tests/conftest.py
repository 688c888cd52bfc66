"""For every test: the fixtures that several packages use, what may run at once, and CI's rule that a skip is a failure.

The rule is ``SPARK_LINEAGE_NO_SKIP=1``.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from xdist.remote import Producer

# Modules of tests/plugins and tests/backends, which are on pytest's ``pythonpath``.
pytest_plugins = [
    "airflow_home",
    "fast_spark",
    "http_server",
    "lineage_backends.fixtures",
    "listener_task",
    "new_attempts",
    "operator_bench",
    "real_spark",
    "rich_lineage",
    "service_jobs",
    "warm_python",
]

_SHARES = re.compile(r"""pytest\.mark\.shares\("(\w+)"\)""")
NO_SKIP = os.environ.get("SPARK_LINEAGE_NO_SKIP") == "1"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Refuse a skip of one test; an expected failure also counts as skipped, and stays."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse a skip of a whole module (``pytest.importorskip``)."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.fixture(scope="module", autouse=True)
def no_secret_stays() -> Iterator[None]:
    """Forget the secrets that a file has registered or used: the texts of the next one may hold the same words."""
    yield
    if own := sys.modules.get("spark_lineage.secrets.redaction"):
        own._owner.remembered = frozenset()
    if masker := sys.modules.get("airflow.sdk._shared.secrets_masker"):
        masker.reset_secrets_masker()


class ByServers(LoadScopeScheduling):
    """The tests of a file share what they start, and so do the files with one mark ``shares``."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return _shared(self.config.rootpath / file) or file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServers:
    """Say what may run at once (``pytest -n 2``)."""
    config.option.loadscopereorder = False
    return ByServers(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest: the files that have a mark ``long``, then those that share a server or run Spark."""
    ranks = {
        name: {item.path for item in items if item.get_closest_marker(name)} for name in ("long", "shares", "spark")
    }
    items.sort(key=lambda item: [item.path not in paths for paths in ranks.values()])


@cache
def _shared(file: Path) -> str:
    # The scheduler knows no marks, as only the workers import the files.
    found = _SHARES.search(file.read_text())
    return found[1] if found else ""


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if NO_SKIP and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, which SPARK_LINEAGE_NO_SKIP=1 forbids: {report.longrepr}"
