"""How the Spark provider follows a driver that runs in a cluster, whether it waits for it or a trigger does (6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import structs

from spark_lineage.adapters.spark_submit import environment, is_yarn_cluster, master_of
from spark_lineage.launch.driver import Driver
from spark_lineage.launch.launch import STORE_KEY, Launch, store_launch, stored_launch, without_login
from spark_lineage.settings.hadoop import resource_managers
from spark_lineage.watch.dialect import get_json
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.sources import Sources

if TYPE_CHECKING:
    from spark_lineage.adapters.adapter import AdaptedTask


def follow_driver(operator: Any, hook: Any, task: AdaptedTask) -> None:
    """Have the Spark provider follow an application of YARN or a pod of Kubernetes.

    ``track_on_yarn`` and ``follow_pod`` say which faults of it that works around.
    """
    places, store, external_id_key, guard = task.places, task.store, task.external_id_key, task.guard
    if getattr(operator, "deferrable", False) and not waits_elsewhere(operator, hook):
        guard.log.warning("deferrable has no effect: the driver runs on the worker, or no server reports its end.")

    def sources(**known: Any) -> Sources:
        launch = Launch("", "", master=master_of(hook), deploy_mode="cluster", **known)
        return Sources(endpoints_of(launch, places, guard), Driver())

    if master_of(hook).startswith("k8s"):
        from spark_lineage.adapters.kubernetes import follow_pod

        follow_pod(hook, lambda driver_id: sources().kill(driver_id))
    if not is_yarn_cluster(hook):
        return
    from spark_lineage.adapters.yarn import ResourceManagers, application_of, track_on_yarn

    def find(env: Mapping[str, str]) -> ResourceManagers:
        found = sources(yarn_urls=resource_managers(env))
        get, endpoints = partial(get_json, found.client), found.endpoints
        return ResourceManagers(endpoints.yarn_urls, get, found.kill, endpoints.access.is_anonymous)

    has_earlier_job = store is not None and bool(store.get(external_id_key))
    managers = track_on_yarn(operator, hook, find, has_earlier_job=has_earlier_job, log=guard.log)
    if store is None or managers is None or not getattr(operator, "durable", False):
        return
    earlier, known = stored_launch(store.get(STORE_KEY)), store.get(external_id_key)
    # The provider stores the id when spark-submit has ended: the worker of the earlier try was lost before.
    if earlier is None or earlier.deploy_mode != "cluster" or (known and earlier.external_id == known):
        return
    if external_id := application_of(managers, earlier.application_run_id):
        guard.log.info("%s was submitted by an earlier try, whose worker was lost.", external_id)
        store.set(external_id_key, external_id)
        store_launch(store, structs.replace(earlier, external_id=external_id))


def waits_elsewhere(operator: Any, hook: Any) -> bool:
    """Have a deferrable operator wait for its driver in a step of its own; whether it does: in cluster mode alone."""
    if hook._is_kubernetes and hook._connection["deploy_mode"] == "cluster" and hook._connection["namespace"]:
        operator._track_driver_via_k8s_api = hook._track_driver_via_k8s_api = True
        return hasattr(operator, "poll_until_complete")
    return bool(is_yarn_cluster(hook) or hook._should_track_driver_status)


def launch_of(hook: Any, conn_id: str, external_id: str) -> Launch:
    """Return what is known of a driver in a cluster, by which another process finds it again."""
    master = master_of(hook)
    yarn_urls = resource_managers(environment(hook)) if master.startswith("yarn") else ()
    return Launch(
        "",
        "",
        external_id=external_id,
        conn_id=conn_id,
        master=without_login(master),
        deploy_mode="cluster",
        yarn_urls=yarn_urls,
    )


def follow_job(hook: Any, external_id: str) -> None:
    """Attach a hook that has submitted nothing to a running job, so that it kills that job."""
    namespace, _, pod = external_id.rpartition(":")
    if is_yarn_cluster(hook):
        hook._yarn_application_id = external_id
    elif hook._is_kubernetes:
        hook._kubernetes_driver_pod, hook._connection["namespace"] = pod, namespace or hook._connection["namespace"]
    else:
        hook._driver_id = external_id


def run_commands(hook: Any) -> None:
    """Run ``post_submit_commands``, unless that was done."""
    hook._run_post_submit_commands()
