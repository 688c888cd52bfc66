"""Whether Airflow's OpenLineage provider sends what tasks hand over, and gets in the way of nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_lineage.deliver.transports.airflow import airflow_connection, all_of
from spark_lineage.deliver.transports.opening import airflow_transport
from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.setup import Setup

_OPERATOR = "spark_lineage.operators.lineage_spark_submit.LineageSparkSubmitOperator"
_LEAST_SECONDS = 5
# Of openlineage-python, for each try of an HTTP transport.
_HTTP_SECONDS = 5.0


def check_airflow_openlineage(setup: Setup) -> Iterator[Finding]:
    """Read ``[openlineage]`` as the provider reads it."""
    from airflow.providers.openlineage import conf

    # With connections of their own, tasks send their events themselves.
    needs_provider = not setup.conn_ids
    try:
        transport = airflow_transport()
        is_disabled = conf.is_disabled()
    except Exception as error:
        yield problem(
            f"[openlineage] cannot be read: {type(error).__name__}: {error}", "correct the transport of [openlineage]"
        )
        return
    if is_disabled:
        yield from _disabled(needs_provider=needs_provider)
        return
    kinds = [str(each.get("type", "without a type")) for each in all_of(transport)]
    yield ok(f"Airflow's OpenLineage provider is active, with the transport {', '.join(kinds) or 'of its environment'}")
    yield from _losing(conf, kinds, needs_provider=needs_provider)
    yield from _switches(conf, setup)
    if not airflow_connection():
        # By a connection, an event is on disk before it is sent.
        yield from _time(conf, transport)


def _disabled(*, needs_provider: bool) -> Iterator[Finding]:
    from airflow.providers.common.compat.sdk import conf as airflow

    is_switched_off = airflow.getboolean("openlineage", "disabled", fallback=False)
    why = "[openlineage] disabled is set" if is_switched_off else "it has no transport, or OPENLINEAGE_DISABLED is set"
    if needs_provider:
        yield problem(
            f"Airflow's OpenLineage provider is disabled: {why}. No event of a task is sent",
            "give [openlineage] a transport (docs/delivery.md), or set openlineage_conn_id",
        )
    else:
        yield ok(f"Airflow's OpenLineage provider is disabled ({why}); tasks send their events by connection")


def _losing(conf: Any, kinds: list[str], *, needs_provider: bool) -> Iterator[Finding]:
    from airflow.providers.common.compat.sdk import conf as airflow

    bad = problem if needs_provider else warning
    if "async_http" in kinds and not airflow.getboolean("openlineage", "execute_in_thread", fallback=False):
        yield bad(
            "the transport async_http loses the events of tasks: the process that sends them ends before they are sent",
            "use http",
        )
    if _OPERATOR in conf.disabled_operators():
        yield bad(f"[openlineage] disabled_for_operators names {_OPERATOR}", "take it out")
    if conf.selective_enable():
        yield warning(
            "[openlineage] selective_enable is set: only DAGs and tasks send events that ask for it",
            "call enable_lineage(dag) of airflow.providers.openlineage.utils.selective_enable in your DAGs",
        )


def _switches(conf: Any, setup: Setup) -> Iterator[Finding]:
    if conf.spark_inject_transport_info():
        instead = "" if setup.driver_conn_id else "; if that is meant, set driver_openlineage_conn_id"
        yield warning(
            "[openlineage] spark_inject_transport_info is set: drivers send their raw events to that backend too: it "
            "shows a job for each action beside that of the task, and the Spark UI may show the key",
            f"take it out{instead}",
        )
    if conf.spark_inject_parent_job_info():
        yield ok("[openlineage] spark_inject_parent_job_info is set, and is not needed: tasks inject the same")


def _time(conf: Any, transport: Any) -> Iterator[Finding]:
    seconds = conf.execution_timeout()
    waits = [float(each.get("timeout", _HTTP_SECONDS)) for each in all_of(transport) if each.get("type") == "http"]
    longest = max(waits, default=0.0)
    if seconds < _LEAST_SECONDS or seconds <= longest:
        also = f", and one try of the transport may take {longest:g} s" if longest else ""
        yield warning(
            f"[openlineage] execution_timeout is {seconds:g} s, after which an event is given up{also}",
            "raise execution_timeout, or lower the timeout of the transport",
        )
