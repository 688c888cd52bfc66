"""Whether one backend is told a thing twice: by two connections, or by one and by Airflow's own transport."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from spark_lineage.deliver.transports.airflow import backends_of
from spark_lineage.deliver.transports.opening import airflow_transport
from spark_lineage.doctor.finding import Finding, warning
from spark_lineage.doctor.setup import Setup

_AIRFLOW = "[openlineage] transport of Airflow"


def check_same_backend(setup: Setup) -> Iterator[Finding]:
    """Compare where all of them lead to, without credentials."""
    ours = {f"the connection {conn_id}": _config(conn_id) for conn_id in setup.conn_ids}
    backends = {name: backends_of(config) for name, config in ours.items()}
    try:
        backends[_AIRFLOW] = backends_of(airflow_transport())
    except Exception:
        # What is wrong with it, the check of Airflow's settings tells.
        backends[_AIRFLOW] = frozenset()
    for one, other in combinations(backends, 2):
        if shared := sorted(backends[one] & backends[other]):
            yield warning(
                f"{one} and {other} lead to the same backend ({', '.join(shared)}), which gets each event twice",
                _remedy(other),
            )
    if setup.driver_conn_id:
        raw = backends_of(_config(setup.driver_conn_id))
        for name, merged in backends.items():
            if shared := sorted(raw & merged):
                yield warning(
                    f"the driver sends its raw events to {', '.join(shared)} by {setup.driver_conn_id}, where {name} "
                    "leads to as well: its jobs of single actions stand beside the one job of the task there",
                    "give driver_openlineage_conn_id a backend of its own",
                )


def _remedy(other: str) -> str:
    if other == _AIRFLOW:
        return "take one of them out: openlineage_conn_id, or the transport"
    return "take one of them out of openlineage_conn_id"


def _config(conn_id: str) -> Mapping[str, Any]:
    from spark_lineage.deliver.hooks.openlineage import OpenLineageHook

    try:
        config: Mapping[str, Any] = OpenLineageHook(conn_id).transport_config()
    except Exception:
        # What is wrong with it, the check of connections tells.
        return {}
    return config
