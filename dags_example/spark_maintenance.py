"""An example: a DAG that removes what completed Spark jobs left, by age; at first it only says what it would remove.

It looks at lineage directories, event logs, YARN's staging directories, and checkpoints of streams whose DAG is gone:
those lie in directories that are called as the DAG (``checkpoints/orders_stream/…``). All are params: paths, or URLs
(``hdfs://``, ``s3a://``), of which nothing outside is touched. ``conn_ids`` are the Spark connections of all clusters
that write there, which are asked what runs. The connection ``airflow_api`` is Airflow's own API server; without it no
checkpoint is removed, for it is not known which DAGs there are.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, Param, task

HERE = Path(__file__).resolve().parent
LAKE = os.environ.get("SPARK_LINEAGE_EXAMPLE_LAKE", str(HERE / "lake"))


def all_dag_ids(days: float) -> set[str] | None:
    """Return the ids of all DAGs, paused ones too; None where there is no connection to Airflow's API.

    Airflow calls a DAG stale as soon as its file cannot be read: it counts as gone when that was so for these days.
    """
    import requests
    from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

    try:
        api = BaseHook.get_connection("airflow_api")
    except AirflowNotFoundException:
        return None
    url = f"{api.schema or 'http'}://{api.host}:{api.port or 8080}"
    login = {"username": api.login, "password": api.password} if api.login else None
    # Where all are admins, a token is there for the asking.
    token = requests.request("POST" if login else "GET", f"{url}/auth/token", json=login, timeout=30)
    token.raise_for_status()
    headers = {"Authorization": f"Bearer {token.json()['access_token']}"}
    oldest = datetime.now(UTC) - timedelta(days=days)
    found: list[dict[str, Any]] = []
    while True:
        asked = {"limit": "100", "offset": str(len(found)), "exclude_stale": "false"}
        page = requests.get(f"{url}/api/v2/dags", asked, headers=headers, timeout=30)
        page.raise_for_status()
        if not (dags := page.json()["dags"]):
            break
        found += dags
    return {
        dag["dag_id"]
        for dag in found
        if not dag["is_stale"]
        or not dag["last_parsed_time"]
        or datetime.fromisoformat(dag["last_parsed_time"]) > oldest
    }


with DAG(
    dag_id="spark_maintenance",
    description="Removes what completed Spark jobs left.",
    schedule="@daily",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    params={
        "dry_run": Param(default=True, type="boolean", description="Only say what would be removed"),
        "older_than_days": Param(30, type="number", minimum=1, description="Since the last change"),
        "conn_ids": Param(["spark_default"], type="array", description="Connections of all clusters that write there"),
        "lineage": Param([f"{LAKE}/lineage"], type="array", description="Lineage directories (lineage_dir)"),
        "event_logs": Param([f"{LAKE}/event_logs"], type="array", description="spark.eventLog.dir"),
        "staging": Param([], type="array", description="hdfs:///user/spark/.sparkStaging"),
        "checkpoints": Param([f"{LAKE}/checkpoints"], type="array", description="Holds a directory for each DAG"),
    },
    tags=["example", "spark"],
) as dag:

    @task
    def remove_leftovers(params: dict[str, Any] | None = None) -> None:
        """Say of each entry what is done with it, and why."""
        from spark_lineage.collect import leftovers
        from spark_lineage.doctor.health import who_runs
        from spark_lineage.doctor.setup import Setup
        from spark_lineage.doctor.status_endpoints import endpoints_of
        from spark_lineage.launch.retention import clean_up, old_launches

        params = params or {}
        days, is_dry_run = float(params["older_than_days"]), bool(params["dry_run"])
        removed = "would be removed" if is_dry_run else "removed"
        for directory in map(Path, params["lineage"]):
            for launch in old_launches(directory, days):
                print(f"lineage: {launch}: {removed}: nothing was added for {days:g} days")
            if not is_dry_run:
                clean_up(directory, days, keep=directory)
        clusters = [endpoints_of(Setup.of(conn_id, ())) for conn_id in params["conn_ids"]]
        for kind, path, is_removed, reason in leftovers.remove_leftovers(
            {kind: params[kind] for kind in ("event_logs", "staging", "checkpoints")},
            older_than_days=days,
            is_running=who_runs(clusters),
            dag_ids=all_dag_ids(days),
            webhdfs_urls=[cluster.webhdfs_urls for cluster in clusters if cluster.webhdfs_urls],
            is_dry_run=is_dry_run,
        ):
            print(f"{kind}: {path}: {removed if is_removed else 'stays'}: {reason}")

    remove_leftovers()
