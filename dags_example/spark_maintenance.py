"""An example: a DAG that removes what completed Spark jobs left, by age, and one that watches the servers of Spark.

``spark_maintenance`` only says at first what it would remove. It looks at lineage directories, event logs, YARN's
staging directories, and checkpoints of streams whose DAG is gone: those lie in directories that are called as the DAG
(``checkpoints/orders_stream/…``). All are params: paths, or URLs (``hdfs://``, ``s3a://``), of which nothing outside is
touched. ``conn_ids`` are the Spark connections of all clusters that write there, which are asked what runs. The
connection ``airflow_api`` is Airflow's own API server; without it no checkpoint is removed, for it is not known which
DAGs there are.

``spark_health`` sends gauges to Airflow's metrics, and waits for the History Server. Which queue of YARN a task may use
is no matter of a DAG: ``queue_policy`` is a line in ``airflow_local_settings.py`` (docs/maintenance.md).
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, Param, task

from spark_lineage.supervision.history_server import SparkHistoryServerSensor

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
        "atlas_conn_ids": Param([], type="array", description="Connections of type atlas, from which gone DAGs go"),
    },
    tags=["example", "spark"],
) as dag:

    @task
    def remove_leftovers(params: dict[str, Any] | None = None) -> None:
        """Say of each entry what is done with it, and why."""
        from spark_lineage.launch.retention import clean_up, old_launches
        from spark_lineage.supervision import leftovers
        from spark_lineage.supervision.health import endpoints_of, who_runs

        params = params or {}
        days, is_dry_run = float(params["older_than_days"]), bool(params["dry_run"])
        removed = "would be removed" if is_dry_run else "removed"
        for directory in map(Path, params["lineage"]):
            for launch in old_launches(directory, days):
                print(f"lineage: {launch}: {removed}: nothing was added for {days:g} days")
            if not is_dry_run:
                clean_up(directory, days, keep=directory)
        clusters = [endpoints_of(conn_id) for conn_id in params["conn_ids"]]
        for kind, path, is_removed, reason in leftovers.remove_leftovers(
            {kind: params[kind] for kind in ("event_logs", "staging", "checkpoints")},
            older_than_days=days,
            is_running=who_runs(clusters),
            dag_ids=all_dag_ids(days),
            webhdfs_urls=[cluster.webhdfs_urls for cluster in clusters if cluster.webhdfs_urls],
            is_dry_run=is_dry_run,
        ):
            print(f"{kind}: {path}: {removed if is_removed else 'stays'}: {reason}")

    @task
    def prune_atlas(params: dict[str, Any] | None = None) -> None:
        """Remove from Apache Atlas the DAGs that this Airflow has no more, with their tasks."""
        from airflow.providers.openlineage import conf

        from spark_lineage.atlas.command import prune
        from spark_lineage.atlas.hook import AtlasHook

        params = params or {}
        if not params["atlas_conn_ids"] or not (dag_ids := all_dag_ids(float(params["older_than_days"]))):
            return
        are_all_done = True
        for conn_id in params["atlas_conn_ids"]:
            with AtlasHook(conn_id).rest() as atlas:
                has_dag = lambda dag_id, _: dag_id in dag_ids  # noqa: E731
                for line, is_done in prune(atlas, has_dag, conf.namespace(), is_dry_run=bool(params["dry_run"])):
                    print(f"{conn_id}: {line}")
                    are_all_done &= is_done
        if not are_all_done:
            raise RuntimeError("Atlas has not deleted all; the log names the others.")

    remove_leftovers()
    prune_atlas()


with DAG(
    dag_id="spark_health",
    description="Sends the health of Spark's servers to Airflow's metrics, and fails while one is down.",
    schedule="*/5 * * * *",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    params={
        "conn_ids": Param(["spark_default"], type="array", description="Connections of the clusters"),
        "history_conn_id": Param("spark_default", type="string", description="Its History Server is waited for"),
    },
    tags=["example", "spark"],
) as health:

    @task
    def send_health(params: dict[str, Any] | None = None) -> None:
        """Send gauges of masters, ResourceManagers and History Servers, and name those that are down."""
        from spark_lineage.supervision.health import ask_servers, endpoints_of, send_gauges

        down = []
        for conn_id in (params or {})["conn_ids"]:
            servers = ask_servers(endpoints_of(conn_id), time.time())
            send_gauges(servers, conn_id)
            down += [f"{server.name} at {server.url}: {server.state}" for server in servers if not server.is_up]
        if down:
            raise RuntimeError("; ".join(down))

    # Whatever reads the history of an application comes after this.
    history = SparkHistoryServerSensor(
        task_id="history", conn_id="{{ params.history_conn_id }}", timeout=240, mode="reschedule"
    )
    send_health() >> history
