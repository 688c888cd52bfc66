"""An example: a DAG that runs when a Spark task has really written a table.

``orders_daily`` names no outlets. With ``emit_assets`` each output that its lineage names makes an asset event;
``orders_report`` waits for one of them.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, Asset, AssetAlias, Param, task

from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator

HERE = Path(__file__).resolve().parent
LAKE = os.environ.get("SPARK_LINEAGE_EXAMPLE_LAKE", str(HERE / "lake"))
DATA = os.environ.get("SPARK_LINEAGE_EXAMPLE_DATA", str(HERE / "data"))

with DAG(
    dag_id="orders_daily",
    description="Orders by day; a day without orders writes no table, and triggers nothing.",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    params={"lake": Param(LAKE, type="string", description="Directory below which the task writes")},
    tags=["example", "spark", "lineage"],
):
    LineageSparkSubmitOperator(
        task_id="count_orders",
        conn_id="spark_default",
        application=str(HERE / "spark_jobs" / "orders_daily.py"),
        application_args=[f"{DATA}/orders.csv", "{{ params.lake }}"],
        emit_assets=True,
    )

with DAG(
    dag_id="orders_report",
    description="Runs when orders by day have been written.",
    schedule=[Asset(name="orders_by_day", uri=f"file://{LAKE}/daily/orders")],
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    tags=["example", "lineage"],
):

    @task
    def report(triggering_asset_events: dict[Asset | AssetAlias, list[Any]] | None = None) -> None:
        """Say what has come."""
        for asset, events in (triggering_asset_events or {}).items():
            # The alias that it came through is there too.
            if isinstance(asset, Asset):
                print(f"{asset.uri}: {len(events)} times written, {events[-1].extra['row_count']} rows")

    report()
