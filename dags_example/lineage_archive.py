"""An example: each night the lineage files that the Spark drivers have left are merged, all of them, on Spark.

``SPARK_LINEAGE_EXAMPLE_FILES`` is where the drivers write (``lineage_dir``), ``SPARK_LINEAGE_EXAMPLE_ARCHIVE`` where
events and tables go to. By default, they are directories beside this file. It needs the connection ``spark_default``,
whose executors need nothing of this package. What a former night has read, and has not changed, is not read again.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.providers.common.compat.sdk import DAG

from spark_lineage.operators.lineage_archive import LineageArchiveOperator

HERE = Path(__file__).resolve().parent
FILES = os.environ.get("SPARK_LINEAGE_EXAMPLE_FILES", str(HERE / "lake" / "lineage"))
ARCHIVE = os.environ.get("SPARK_LINEAGE_EXAMPLE_ARCHIVE", str(HERE / "lake" / "archive"))

with DAG(
    dag_id="lineage_archive",
    description="Merges lineage files into one event for each task, and tables.",
    schedule="@daily",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["example", "lineage"],
) as dag:
    LineageArchiveOperator(
        task_id="merge",
        conn_id="spark_default",
        sources=[FILES],
        destination=ARCHIVE,
        conf={"spark.sql.shuffle.partitions": "4"},
    )
