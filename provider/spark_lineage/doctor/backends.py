"""Checks whether events reach each backend, through Airflow's OpenLineage provider or by connection, once each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from typing import Any

from spark_lineage.deliver.connections import (
    BY_CONNECTION,
    MissingConnectionError,
    airflow_connection,
    airflow_transport,
    all_of,
    backends_of,
    config_of,
    probe,
)
from spark_lineage.doctor.setup import Finding, Setup, make_connection, ok, problem, warning
from spark_lineage.launch.log import error_text
from spark_lineage.settings import SettingError

_OPERATOR = "spark_lineage.operators.lineage_spark_submit.LineageSparkSubmitOperator"
_INIT = "spark-lineage init prints the lines for a backend"
_LEAST_SECONDS = 5
# The default of openlineage-python, for each try of an HTTP transport.
_HTTP_SECONDS = 5.0
_KEY_IN_CLEAR = "; and the key of the transport stands in clear in Spark's properties, its UI and its event log"
_HERE = ("console", "file", "noop")


def check_airflow_openlineage(setup: Setup) -> Iterator[Finding]:
    """Read ``[openlineage]`` as the provider reads it."""
    from airflow.providers.common.compat.sdk import conf as airflow
    from airflow.providers.openlineage import conf

    # With connections of their own, tasks send their events themselves.
    bad = warning if setup.conn_ids else problem
    try:
        transport = airflow_transport()
        is_disabled = conf.is_disabled()
    except Exception as error:
        yield problem(
            f"[openlineage] cannot be read: {error_text(error)}",
            "correct the transport, or the connection that it names",
        )
        return
    if is_disabled:
        why = "[openlineage] disabled or OPENLINEAGE_DISABLED is set, or it has no transport"
        text = f"Airflow's OpenLineage provider is disabled: {why}"
        if setup.conn_ids:
            yield ok(f"{text}; tasks send their events by connection")
        else:
            yield bad(
                f"{text}. No event of a task is sent",
                f"give [openlineage] a transport ({_INIT}), or set lineage_conn_id",
            )
        return
    kinds = [str(each.get("type", "without a type")) for each in all_of(transport)]
    conn_id = airflow_connection()
    named = f"connection {conn_id}" if conn_id else f"transport {', '.join(kinds) or 'of its environment'}"
    yield ok(f"Airflow's OpenLineage provider is active, with the {named}")
    if "async_http" in kinds and not airflow.getboolean("openlineage", "execute_in_thread", fallback=False):
        yield bad(
            "the transport async_http loses the events of tasks: the process that sends them ends before they are sent",
            "use http",
        )
    if _OPERATOR in conf.disabled_operators():
        yield bad(f"[openlineage] disabled_for_operators names {_OPERATOR}", "remove it")
    if conf.selective_enable():
        yield warning(
            "[openlineage] selective_enable is set: only DAGs and tasks send events that ask for it",
            "call enable_lineage(dag) of airflow.providers.openlineage.utils.selective_enable in your DAGs",
        )
    # The provider takes nothing out of a transport that names a connection.
    if conf.spark_inject_transport_info() and not airflow_connection():
        has_key = any(each.get("auth") or each.get("custom_headers") for each in all_of(transport))
        yield warning(
            "[openlineage] spark_inject_transport_info is set: drivers send their raw events to that backend too. It "
            f"shows a job for each action beside that of the task{_KEY_IN_CLEAR if has_key else ''}",
            "remove it; a job that is to send raw events has a transport of its own in its Spark properties",
        )
    if not airflow_connection():
        # A connection keeps each event on disk before it is sent.
        yield from _time(conf.execution_timeout(), transport)


def _time(seconds: float, transport: Mapping[str, Any]) -> Iterator[Finding]:
    tries = [float(each.get("timeout", _HTTP_SECONDS)) for each in all_of(transport) if each.get("type") == "http"]
    longest = max(tries, default=0.0)
    if seconds < _LEAST_SECONDS or seconds <= longest:
        also = f", and one try of the transport may take {longest:g} s" if longest else ""
        yield warning(
            f"[openlineage] execution_timeout is {seconds:g} s, after which an event is given up{also}",
            "raise execution_timeout, or lower the timeout of the transport",
        )


def check_connections(setup: Setup) -> Iterator[Finding]:
    """Test the connections of the setup, as *Test connection* in Airflow's UI does."""
    for conn_id in setup.conn_ids:
        yield _tested(conn_id)
    if not setup.conn_ids:
        yield ok("no lineage_conn_id is set: events go where Airflow's OpenLineage provider sends its own")


def check_airflow_transport(setup: Setup) -> Iterator[Finding]:
    """Test the transport of Airflow's OpenLineage provider in the same way, unless it is one of these connections."""
    if conn_id := airflow_connection():
        if conn_id not in setup.conn_ids:
            yield _tested(conn_id)
        return
    transport = airflow_transport()
    if not transport:
        return
    # With connections of their own, tasks send their events themselves.
    may_lose = not setup.conn_ids
    is_good, text = probe(transport)
    text = f"the transport of Airflow's OpenLineage provider: {text}"
    if is_good:
        yield ok(text)
    else:
        yield (problem if may_lose else warning)(text, "correct it, or check the backend")
    if may_lose and transport.get("type") not in _HERE:
        yield warning(
            "an event that the backend does not accept at once is lost: the provider keeps none",
            f'make the transport {{"type": "{BY_CONNECTION}", "conn_id": ...}}: {_INIT}',
        )


def check_same_backend(setup: Setup) -> Iterator[Finding]:
    """Compare, without credentials, where connections and Airflow's own transport lead to."""
    backends = {f"the connection {conn_id}": _backends(config_of, conn_id) for conn_id in setup.conn_ids}
    with suppress(Exception):
        # One of them may be that transport.
        if airflow_connection() not in setup.conn_ids:
            backends["[openlineage] transport of Airflow"] = backends_of(airflow_transport())
    for one, other in combinations(backends, 2):
        if shared := ", ".join(sorted(backends[one] & backends[other])):
            text = f"{one} and {other} lead to the same backend ({shared}), which gets each event twice"
            yield warning(text, "remove one of the two")


def _backends(config: Callable[..., Mapping[str, Any]], *conn_id: str) -> frozenset[str]:
    """Return where a transport leads to; another check says what is wrong with it."""
    with suppress(Exception):
        return backends_of(config(*conn_id))
    return frozenset()


def _tested(conn_id: str) -> Finding:
    from spark_lineage.deliver.hooks import hook_of

    try:
        hook = hook_of(conn_id)
    except MissingConnectionError:
        return problem(f"Airflow has no connection {conn_id} here", f"{make_connection(conn_id)}; {_INIT}")
    except SettingError as error:
        return problem(str(error), "give a connection that lineage can be sent to")
    try:
        is_good, text = hook.test_connection()
    except Exception as error:
        return problem(f"the connection {conn_id}: {error_text(error)}", "correct the connection")
    if not is_good:
        return problem(f"the connection {conn_id}: {text}", "until that is mended, its events wait in the outbox")
    return ok(f"the connection {conn_id}: {text}")
