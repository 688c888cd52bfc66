"""The fixtures of tests/notify, which pytest offers only below that folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "tests_notify_conftest", Path(__file__).parents[1] / "notify" / "conftest.py"
)
assert _spec is not None
assert _spec.loader is not None
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)
task = _fixtures.task
job_events = _fixtures.job_events
context = _fixtures.context
logged = _fixtures.logged
