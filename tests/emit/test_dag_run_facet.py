"""What is said of a DAG run, whatever its kind."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest

from spark_lineage.emit.task_event import dag_run_facet

MOMENT = datetime(2024, 1, 31, 5, tzinfo=UTC)


class RunType(Enum):
    """As a worker has it: an enumeration that is no text."""

    ASSET = "asset_triggered"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("scheduled", "scheduled"),
        ("manual", "manual"),
        ("backfill", "backfill"),
        ("asset_triggered", "dataset_triggered"),
        ("asset_materialization", "manual"),
        (RunType.ASSET, "dataset_triggered"),
        ("of a later Airflow", "of a later Airflow"),
    ],
)
def test_kinds(told: Any, expected: str) -> None:
    assert dag_run_facet({"run_type": told}, MOMENT)["run_type"] == expected


def test_intervals() -> None:
    moment = "2024-01-31T05:00:00+00:00"
    none = dag_run_facet({"data_interval_start": None, "run_id": "r"}, MOMENT)
    assert (none["data_interval_start"], none["data_interval_end"], none["run_id"]) == (moment, moment, "r")
    some = dag_run_facet({"data_interval_start": "a", "data_interval_end": "b"}, MOMENT)
    assert (some["data_interval_start"], some["data_interval_end"]) == ("a", "b")
