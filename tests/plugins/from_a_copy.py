"""Runs an operator from a copy of the package alone, whatever else is installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from laboratory import _executed

import spark_lineage


def run(scenario: dict[str, Any]) -> dict[str, Any]:
    """Run one task; what the copy lacks is found nowhere else."""
    roots = os.environ["PYTHONPATH"].split(os.pathsep)
    spark_lineage.__path__ = [str(Path(root) / "spark_lineage") for root in roots]
    return _executed(scenario)
