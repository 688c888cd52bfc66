"""What the Spark provider makes of a ``spark`` connection, without making its hook, which may write a keytab file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of airflow.providers.apache.spark.hooks.spark_submit.SparkSubmitHook, where the connection does not tell.
_MASTER, _BINARY = "yarn", "spark-submit"


@dataclass(frozen=True)
class SparkConnection:
    """How spark-submit is run for a connection; ``deploy_mode`` is empty where the connection has none."""

    conn_id: str
    exists: bool
    master: str = _MASTER
    deploy_mode: str = ""
    spark_binary: str = _BINARY

    @classmethod
    def of(cls, conn_id: str) -> SparkConnection:
        """Read the connection, which may not exist.

        :raises Exception: what Airflow raises where it cannot tell
        """
        from airflow.providers.common.compat.sdk import AirflowException, BaseHook

        try:
            connection = BaseHook.get_connection(conn_id)
        except AirflowException:
            return cls(conn_id, exists=False)
        extra: Mapping[str, Any] = connection.extra_dejson
        return cls(
            conn_id,
            exists=True,
            master=_master(connection),
            deploy_mode=str(extra.get("deploy-mode") or ""),
            spark_binary=str(extra.get("spark-binary") or _BINARY),
        )

    @property
    def is_local(self) -> bool:
        """Whether driver and executors are one process here."""
        return self.master.startswith("local")


def elsewhere(conn_id: str) -> str:
    """Say where else a connection may be: a worker of Airflow 3 asks the API server, which answers to tasks alone."""
    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    return f"make it; where this machine does not reach Airflow's database, give it in the variable {variable}"


def _master(connection: Any) -> str:
    host, port = connection.host or "", connection.port
    is_whole = connection.conn_type == "spark" and host and ("://" in host or not port)
    # From a URI, the scheme is the type of the connection.
    master = host if is_whole else f"{connection.conn_type}://{host}"
    return f"{master}:{port}" if port else master
