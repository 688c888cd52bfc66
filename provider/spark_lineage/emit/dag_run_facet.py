"""What the facet ``airflow`` says of a DAG run, in words that its readers have known since Airflow 2."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

# As Airflow 2 called them; Data.Rentgen (0.3 to 0.7) refuses an event with another word.
_RUN_TYPES = {
    "asset_triggered": "dataset_triggered",
    "asset_materialization": "manual",
    "operator_triggered": "manual",
}


def dag_run_words(told: Mapping[str, Any], date: datetime) -> dict[str, Any]:
    """The part ``dagRun`` of the facet, with a data interval and a run type that a reader of Airflow 2's facet takes.

    A run without a data interval has one of no length, at ``date`` (logical date, or when the run was to start), as
    Airflow 2 had it. ``run_id`` still tells the kind of the run in Airflow 3's word.
    """
    moment = date.isoformat()
    run_type = told.get("run_type")
    run_type = getattr(run_type, "value", run_type)  # an enumeration, which is no text in a worker
    return {
        **told,
        "run_type": _RUN_TYPES.get(str(run_type), run_type),
        "data_interval_start": told.get("data_interval_start") or moment,
        "data_interval_end": told.get("data_interval_end") or moment,
    }
