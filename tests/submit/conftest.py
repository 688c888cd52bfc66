"""A place for each test to run the operator in, with the real hook and a fake ``spark-submit``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "tests_submit_laboratory"


def _module() -> Any:
    # Tests are no package: a module that is shared between two folders is loaded by its path.
    if _NAME not in sys.modules:
        spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name("laboratory.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_NAME] = module
        spec.loader.exec_module(module)
    return sys.modules[_NAME]


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The process with Airflow in it."""
    laboratory = _module().Laboratory(tmp_path_factory.mktemp("airflow"))
    yield laboratory
    laboratory.close()


@pytest.fixture
def bench(laboratory: Any, tmp_path: Path) -> Any:
    """A place of this test's own."""
    return _module().Bench(laboratory, tmp_path)
