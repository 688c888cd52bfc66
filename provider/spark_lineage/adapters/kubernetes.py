"""Makes the Spark provider find the pod of a driver in every namespace, and delete it with the Spark connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

# Spark's KubernetesClientApplication logs this.
_SUBMISSION_ID = re.compile(r" submission ID ([a-z0-9-]+):([a-z0-9.-]+)")


def follow_pod(hook: Any, delete: Callable[[str], object]) -> None:
    """Settle how the pod of a driver is found and deleted, before it is submitted.

    Upstream faults (Spark provider 6.3): a driver is found in a namespace called "spark" alone, and its pod is deleted
    with the credentials of ``[kubernetes_executor]``, which may be those of another cluster.

    :param delete: deletes ``{namespace}:{pod}``, or raises: then the provider does it, with Airflow's own configuration
    """
    process, delete_as_airflow = hook._process_spark_submit_log, getattr(hook, "_delete_driver_pod", None)
    deleted: set[str] = set()

    def found(lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            if match := _SUBMISSION_ID.search(line):
                hook._connection["namespace"], hook._kubernetes_driver_pod = match.groups()
            yield line

    def delete_pod() -> None:
        external_id = f"{hook._connection['namespace']}:{hook._kubernetes_driver_pod}"
        if external_id in deleted:
            return
        try:
            delete(external_id)
            deleted.add(external_id)
        except Exception as error:
            hook.log.warning("The driver %s is not deleted as the connection says: %s", external_id, error)
            if delete_as_airflow is not None:
                delete_as_airflow()
        else:
            hook.log.info("Deleted the pod of the driver, %s", external_id)

    vars(hook).update(_process_spark_submit_log=lambda lines: process(found(lines)), _delete_driver_pod=delete_pod)
