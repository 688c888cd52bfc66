"""An example: a DAG that sends the events in the outbox, and fails if some are left, so that you are alerted.

Tasks send what earlier tasks left; this DAG is for hosts where tasks are rare. An outbox is a directory of one host:
if workers do not share it, run a task on each of them (``queue``). ``SPARK_LINEAGE_EXAMPLE_SECONDS`` is how long it
may take.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from airflow.providers.common.compat.sdk import DAG, task

SECONDS = float(os.environ.get("SPARK_LINEAGE_EXAMPLE_SECONDS", "240"))

with DAG(
    dag_id="outbox_maintenance",
    description="Sends lineage events that a backend did not take when they were made.",
    schedule="*/10 * * * *",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["example", "lineage"],
) as dag:

    @task
    def flush_outbox() -> None:
        """Send what waits, with the connections that the events name."""
        from spark_lineage.deliver.outbox import flush

        left = []
        for destination, done in flush(seconds=SECONDS).items():
            print(f"{destination}: {done.sent} sent, {done.waiting} wait, {done.refused} refused")
            if done.waiting or done.refused:
                left.append(destination)
        if left:
            raise RuntimeError(f"events are left for {', '.join(left)}: see `spark-lineage outbox list` on this host")

    flush_outbox()
