"""Whether each backend is there that events are sent to by connection, and takes us; each is really asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from spark_lineage.deliver.transports.airflow import BY_CONNECTION, airflow_connection
from spark_lineage.deliver.transports.opening import airflow_transport
from spark_lineage.deliver.transports.probe import probe
from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.doctor.spark_connection import elsewhere
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from collections.abc import Sequence

_AIRFLOW = "the transport of Airflow's OpenLineage provider"
_HERE = ("console", "file", "noop")
_TYPES = ("openlineage", "atlas")


def check_connections(setup: Setup) -> Iterator[Finding]:
    """Test the connections of the setup, as *Test connection* in Airflow's UI does."""
    conn_ids = _all(setup)
    if not conn_ids:
        yield ok("no openlineage_conn_id is set: events go where Airflow's OpenLineage provider sends its own")
    for conn_id in conn_ids:
        yield _tested(conn_id)


def check_airflow_transport(setup: Setup) -> Iterator[Finding]:
    """Test the transport of Airflow's OpenLineage provider in the same way."""
    if conn_id := airflow_connection():
        yield _tested(conn_id)
        return
    transport = airflow_transport()
    if not transport:
        return
    # With connections of their own, tasks send their events themselves.
    needs_provider = not setup.conn_ids
    is_good, text = probe(transport)
    if not is_good:
        bad = problem if needs_provider else warning
        yield bad(f"{_AIRFLOW}: {text}", "correct it, or look at the backend")
    else:
        yield ok(f"{_AIRFLOW}: {text}")
    if needs_provider and transport.get("type") not in _HERE:
        yield warning(
            "what that backend does not take at once is lost: the provider does not keep it",
            f'make the transport {{"type": "{BY_CONNECTION}", "conn_id": ...}} (docs/delivery.md)',
        )


def _all(setup: Setup) -> Sequence[str]:
    drivers = [setup.driver_conn_id] if setup.driver_conn_id else []
    return tuple(dict.fromkeys([*setup.conn_ids, *drivers]))


def _tested(conn_id: str) -> Finding:
    from airflow.providers.common.compat.sdk import AirflowException, BaseHook

    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowException:
        return problem(f"Airflow gives no connection {conn_id} here", elsewhere(conn_id))
    if connection.conn_type not in _TYPES:
        return problem(
            f"the connection {conn_id} is of type {connection.conn_type!r}", "make it one of type openlineage"
        )
    return _asked(connection.conn_type, conn_id)


def _asked(conn_type: str, conn_id: str) -> Finding:
    try:
        is_good, text = _hook(conn_type, conn_id).test_connection()
    except SettingError as error:
        return problem(str(error), "correct the connection")
    except Exception as error:
        return problem(f"the connection {conn_id}: {type(error).__name__}: {error}", "correct the connection")
    if not is_good:
        return problem(f"the connection {conn_id}: {text}", "until then its events wait in the outbox")
    if conn_type == "atlas":
        return warning(f"the connection {conn_id} answers ({text}), and is no backend of OpenLineage", "name another")
    return ok(f"the connection {conn_id}: {text}")


def _hook(conn_type: str, conn_id: str) -> Any:
    if conn_type == "atlas":
        from spark_lineage.deliver.hooks.atlas import AtlasHook

        return AtlasHook(conn_id)
    from spark_lineage.deliver.hooks.openlineage import OpenLineageHook

    return OpenLineageHook(conn_id)
