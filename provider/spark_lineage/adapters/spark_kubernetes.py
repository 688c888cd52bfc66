"""``SparkKubernetesOperator``: a ``SparkApplication``, whose driver a Spark operator runs (provider 10.25).

The operator creates that object, follows the pod of its driver, and deletes the object at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_lineage.adapters.adapter import AdaptedTask, remote_submitter
from spark_lineage.adapters.service import ServiceAdapter
from spark_lineage.adapters.spark_application import MASTER, end_of_object, end_of_pod
from spark_lineage.inject.preparation import Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import Launch
from spark_lineage.secrets.redaction import remember_values

_ADAPTED = ("find_spark_job", "get_or_create_spark_crd", "process_pod_deletion")


@dataclass(eq=False)
class SparkKubernetesAdapter(ServiceAdapter):
    """Adapts the operator itself: what is added goes into a copy of the object that it is about to create.

    The pod of the driver says how it ended, and where there is none, the status of the object. Both are read before
    the operator deletes them.
    """

    def __post_init__(self) -> None:
        operator = self.operator
        # What the operator is going to create, as the user has written it.
        self._spec: Mapping[str, Any] = operator.template_body["spark"].get("spec") or {}
        self._launcher: Any = None
        # Of the class: the object may have those of an earlier execution.
        stock = (partial(getattr(type(operator), name), operator) for name in _ADAPTED)
        self._find_stock, self._create_stock, self._delete_stock = stock
        vars(operator).update(zip(_ADAPTED, (self._find, self._create, self._delete), strict=True))

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> SparkKubernetesAdapter:  # noqa: ARG003
        """Attach to an operator, which is its own hook."""
        return cls(None, task.before_submit, task.is_killed, operator=operator, task=task)

    @property
    def submitter(self) -> Submitter:
        """The cluster, which runs the driver."""
        return remote_submitter(MASTER)

    @property
    def arguments(self) -> SubmitArguments:
        """The ``sparkConf`` of the object."""
        return SubmitArguments({str(key): str(value) for key, value in (self._spec.get("sparkConf") or {}).items()})

    def remember_secrets(self) -> None:
        """Learn the secrets of the job."""
        with self.task.guard("The secrets of the object are not known", can_fail=False):
            parts = (self._spec.get(name) or {} for name in ("driver", "executor"))
            env = {one["name"]: one.get("value", "") for part in parts for one in part.get("env") or ()}
            remember_values({**env, **(self._spec.get("hadoopConf") or {}), **self.arguments.conf})

    def ask(self, external_id: str) -> DriverEnd | None:
        """Return what the API server says of the driver, and of the object that stands for it."""
        error = self.output.error
        end, application_id = end_of_pod(self.operator.client, external_id, error)
        self.driver.application_id = application_id or self.driver.application_id
        return end or end_of_object(self._launcher or self.operator.launcher, external_id, error)

    @classmethod
    def end_of(cls, launch: Launch) -> DriverEnd | None:
        """Ask the API server of the connection for the pod of the driver."""
        from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook

        client = KubernetesHook(conn_id=launch.conn_id or None).core_v1_client
        return end_of_pod(client, launch.external_id or "")[0]

    def _find(self, *arguments: Any, **keywords: Any) -> Any:
        """Find the pod of a driver as the operator does: of this try, or of an earlier one."""
        pod = self._find_stock(*arguments, **keywords)
        if pod is not None:
            self._know(pod.metadata.namespace, pod.metadata.name)
        return pod

    def _know(self, namespace: str, pod: str) -> None:
        external_id = f"{namespace}:{pod}"
        if external_id != self.driver.driver_id:
            self.know(external_id)

    def _create(self, launcher: Any, *arguments: Any, **keywords: Any) -> Any:
        """Create the object as the operator does, unless it finds a driver, with what is added for lineage."""
        start, is_waiting, self._launcher = launcher.start_spark_job, launcher.spark_job_not_running, launcher

        def start_job(**options: Any) -> Any:
            self._spec, body = launcher.body.get("spec") or {}, launcher.body
            self.begin()
            if self.injected:
                conf = {**(self._spec.get("sparkConf") or {}), **self.injected}
                launcher.body = {**body, "spec": {**self._spec, "sparkConf": conf}}
            try:
                return start(**options)
            except Exception:
                self.find_end()
                raise

        def is_job_waiting(created: Mapping[str, Any]) -> Any:
            self._know(launcher.namespace, f"{created['metadata']['name']}-driver")
            return is_waiting(created)

        vars(launcher).update(start_spark_job=start_job, spark_job_not_running=is_job_waiting)
        return self._create_stock(launcher, *arguments, **keywords)

    def _delete(self, pod: Any, *arguments: Any, **keywords: Any) -> Any:
        self.end()
        return self._delete_stock(pod, *arguments, **keywords)
