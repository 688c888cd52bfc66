"""Fixtures: a place for each test to run the operator in, with the real hook and a fake ``spark-submit``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from laboratory import Bench, Laboratory


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """The process with Airflow in it."""
    laboratory = Laboratory(tmp_path_factory.mktemp("airflow"))
    yield laboratory
    laboratory.close()


@pytest.fixture
def bench(laboratory: Laboratory, tmp_path: Path) -> Bench:
    """A place of this test's own."""
    return Bench(laboratory, tmp_path)
