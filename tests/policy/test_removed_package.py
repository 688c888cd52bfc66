"""Airflow without the package, with what the documentation had its user write into ``airflow_local_settings.py``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from warm_python import WarmPython

PAGES = [(Path(__file__).parents[2] / "docs" / name).read_text() for name in ("policy.md", "maintenance.md")]
DOCUMENTED = re.findall(
    r"```python\n((?:(?!```).)*?import (?:task_policy|queue_policy)\b.*?)```", "\n".join(PAGES), re.DOTALL
)
UNGUARDED = "from spark_lineage.policy import task_policy\n"
# As if it were not installed.
WITHOUT = """
import importlib.metadata
import sys

import importlib_metadata

sys.modules["spark_lineage"] = None
for module in (importlib.metadata, importlib_metadata):
    def others(*given, found=module.distributions, **named):
        return (one for one in found(*given, **named) if one.metadata["Name"] != "airflow-provider-spark-lineage")

    module.distributions = others
import airflow.settings
"""


@pytest.mark.parametrize(("lines", "starts"), [*((each, True) for each in DOCUMENTED), (UNGUARDED, False)])
def test_airflow_without_the_package_starts_with_the_documented_lines(
    tmp_path: Path, warm_python: WarmPython, lines: str, starts: bool
) -> None:
    assert len(DOCUMENTED) == 3
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "airflow_local_settings.py").write_text(lines)
    done = warm_python.run("-c", WITHOUT, env={**os.environ, "AIRFLOW_HOME": str(tmp_path)}, is_one_stream=True)
    assert (done.returncode == 0) is starts, done.stdout
