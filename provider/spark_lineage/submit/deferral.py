"""What a job that is waited for without a worker needs of the Spark provider's hook, which cannot be deferred (6.3)."""

from __future__ import annotations

from typing import Any

from spark_lineage.submit.hook import is_yarn_cluster


def follow_job(hook: Any, external_id: str) -> None:
    """Attach a hook that has submitted nothing to a running job, so that it kills that job."""
    namespace, _, pod = external_id.rpartition(":")
    if is_yarn_cluster(hook):
        hook._yarn_application_id = external_id
    elif hook._is_kubernetes:
        hook._kubernetes_driver_pod, hook._connection["namespace"] = pod, namespace or hook._connection["namespace"]
    else:
        hook._driver_id = external_id


def waits_elsewhere(operator: Any, hook: Any) -> bool:
    """Have a deferrable operator wait for its driver in a step of its own; whether it does: in cluster mode alone."""
    if hook._is_kubernetes and hook._connection["deploy_mode"] == "cluster" and hook._connection["namespace"]:
        operator._track_driver_via_k8s_api = hook._track_driver_via_k8s_api = True
        return hasattr(operator, "poll_until_complete")
    return bool(is_yarn_cluster(hook) or hook._should_track_driver_status)


def run_commands(hook: Any) -> None:
    """Run ``post_submit_commands``, unless that was done."""
    hook._run_post_submit_commands()
