"""How far the operators of cloud services were tried, for the providers that are installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from spark_lineage.doctor.setup import Finding, Setup, ok

_CLIENT = "the provider's real client and a server that answers as the public API documents say"
_TRIED = {
    "apache-airflow-providers-amazon": "operators of EMR and Glue: tried against moto; not seen on the service itself",
    "apache-airflow-providers-databricks": (
        f"operators of Databricks: tried against {_CLIENT}; not seen on the service itself"
    ),
    "apache-airflow-providers-google": (
        f"operators of Dataproc: tried against {_CLIENT}; not seen on the service itself. "
        "A job with start_from_trigger has no lineage"
    ),
}


def check_clouds(setup: Setup) -> Iterator[Finding]:  # noqa: ARG001
    """Report it for each provider."""
    for provider, tried in _TRIED.items():
        try:
            yield ok(f"{tried} ({provider} {version(provider)})")
        except PackageNotFoundError:
            continue
