"""The launch handle: where the lineage of a running job will be, kept for a retry that re-attaches to that job."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

# Beside the provider's own key (`spark_job_id`) in Airflow's task state store, which outlives a try.
STORE_KEY = "spark_lineage_launch"


class Launch(Struct, frozen=True):
    """One submission: the directory of its lineage files and the application's run id in them.

    ``external_id`` is what the Spark provider stores to find the job again (driver id, YARN application id, pod).
    """

    directory: str
    application_run_id: str
    external_id: str | None = None


def store_launch(store: Any, launch: Launch) -> None:
    """Keep a launch in the task state store (Airflow 3.3 and newer); without a store there is no re-attachment."""
    if store is not None:
        store.set(STORE_KEY, msgspec.to_builtins(launch))


def find_launch(store: Any, external_id_key: str) -> Launch | None:
    """Give the launch of the job that the Spark provider re-attached to, None when there is none for that very job."""
    if store is None:
        return None
    stored = store.get(STORE_KEY)
    if not stored:
        return None
    launch = msgspec.convert(stored, Launch)
    return launch if launch.external_id == store.get(external_id_key) else None
