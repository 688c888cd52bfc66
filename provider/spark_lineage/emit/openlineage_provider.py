"""Airflow's OpenLineage provider: whether it is on, what it lets leave, and sending over its transport.

It has an API for these from 2.16 on, and the emission policy from 2.19: what older ones have as well is used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from openlineage.client.generated.base import RunEvent


class Emission(NamedTuple):
    """What the provider lets leave of a task: any event at all, and its lineage in it."""

    is_sent: bool
    has_lineage: bool


def is_active() -> bool:
    """Whether the provider sends anything."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    return not conf.is_disabled() and get_openlineage_listener() is not None


def send(event: RunEvent) -> bool:
    """Send an event over the provider's transport; False where that is switched off."""
    if not is_active():
        return False
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    get_openlineage_listener().adapter.emit(event)
    return True


def emission(task: Any, dag_id: str, task_id: str) -> Emission:
    """Return what the provider's configuration, and the task's own, say of a task."""
    try:
        from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy
    except ImportError:
        return _older_emission(task)
    policy = resolve_task_emission_policy(task, dag_id, task_id)
    return Emission(policy.emit, policy.extract_operator_metadata)


def _older_emission(task: Any) -> Emission:
    """Decide as the listener of a provider without emission policy does."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.utils.selective_enable import is_task_lineage_enabled
    from airflow.providers.openlineage.utils.utils import is_operator_disabled

    is_wanted = not conf.selective_enable() or is_task_lineage_enabled(task)
    return Emission(is_wanted and not is_operator_disabled(task), has_lineage=True)
