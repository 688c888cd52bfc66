"""``SparkKubernetesOperator``: a ``SparkApplication``, whose driver a Spark operator runs (provider 10.25).

The operator creates that object, follows the pod of its driver, and deletes the object at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spark_lineage.adapters.adapter import AdaptedTask, OperatorAdapter, remote_submitter
from spark_lineage.adapters.spark_application import MASTER, end_of_object, end_of_pod
from spark_lineage.inject.preparation import PreparedArguments, Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import Launch
from spark_lineage.secrets.redaction import remember_values

_ADAPTED = ("find_spark_job", "get_or_create_spark_crd", "process_pod_deletion")


@dataclass(eq=False)
class SparkKubernetesAdapter(OperatorAdapter):
    """Adapts the operator itself: what is added goes into a copy of the object that it is about to create.

    The pod of the driver says how it ended, and where there is none, the status of the object. Both are read before
    the operator deletes them.
    """

    takes_listener = False
    is_service = True
    task: AdaptedTask = field(kw_only=True)

    def __post_init__(self) -> None:
        operator = self.hook
        # What the operator is going to create, as the user has written it.
        self._spec: Mapping[str, Any] = operator.template_body["spark"].get("spec") or {}
        self._added: Mapping[str, str] = {}
        self._launcher: Any = None
        self._end: DriverEnd | None = None
        # Of the class: the object may have those of an earlier execution.
        stock = (partial(getattr(type(operator), name), operator) for name in _ADAPTED)
        self._find_stock, self._create_stock, self._delete_stock = stock
        vars(operator).update(zip(_ADAPTED, (self._find, self._create, self._delete), strict=True))

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> SparkKubernetesAdapter:  # noqa: ARG003
        """Attach to an operator, which is its own hook."""
        return cls(operator, task.before_submit, task.is_killed, task=task)

    @property
    def submitter(self) -> Submitter:
        """The cluster, which runs the driver."""
        return remote_submitter(MASTER)

    @property
    def arguments(self) -> SubmitArguments:
        """The ``sparkConf`` of the object."""
        return SubmitArguments({str(key): str(value) for key, value in (self._spec.get("sparkConf") or {}).items()})

    def inject(self, prepared: PreparedArguments) -> None:
        """Keep what is added to ``sparkConf`` until the object is created."""
        self._added = self.added(prepared)

    def remember_secrets(self) -> None:
        """Learn the secrets of the job."""
        with self.task.guard("The secrets of the object are not known", can_fail=False):
            parts = (self._spec.get(name) or {} for name in ("driver", "executor"))
            env = {one["name"]: one.get("value", "") for part in parts for one in part.get("env") or ()}
            remember_values({**env, **(self._spec.get("hadoopConf") or {}), **self.arguments.conf})

    @property
    def has_driver_ended(self) -> bool:
        """Whether the API server has said that the driver ended."""
        return self._end is not None

    def end(self) -> DriverEnd | None:
        """Return what was seen before the object was deleted; where nothing was deleted, look now."""
        if self._end is None and not self.is_killed():
            self._look()
        return self._end

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
        if external_id == self.driver.driver_id:
            return
        self.driver.driver_id = external_id
        with self.task.guard("A retry will not find the driver", can_fail=False):
            if self.task.store is not None:
                self.task.store.set(self.task.external_id_key, external_id)
            if self.observer is not None:
                self.observer.submitted(external_id)

    def _create(self, launcher: Any, *arguments: Any, **keywords: Any) -> Any:
        """Create the object as the operator does, unless it finds a driver, with what is added for lineage."""
        start, is_waiting, self._launcher = launcher.start_spark_job, launcher.spark_job_not_running, launcher

        def start_job(**options: Any) -> Any:
            self._spec, body = launcher.body.get("spec") or {}, launcher.body
            self.begin()
            if self._added:
                conf = {**(self._spec.get("sparkConf") or {}), **self._added}
                launcher.body = {**body, "spec": {**self._spec, "sparkConf": conf}}
            try:
                return start(**options)
            except Exception:
                self._look()
                raise

        def is_job_waiting(created: Mapping[str, Any]) -> Any:
            self._know(launcher.namespace, f"{created['metadata']['name']}-driver")
            return is_waiting(created)

        vars(launcher).update(start_spark_job=start_job, spark_job_not_running=is_job_waiting)
        return self._create_stock(launcher, *arguments, **keywords)

    def _delete(self, pod: Any, *arguments: Any, **keywords: Any) -> Any:
        self.end()
        return self._delete_stock(pod, *arguments, **keywords)

    def _look(self) -> None:
        """Learn what the API server says of the driver, and of the object that stands for it."""
        operator, driver_id = self.hook, self.driver.driver_id
        with self.task.guard("The end of the driver is not known", can_fail=False):
            if driver_id is not None:
                error = self.output.error
                self._end, application_id = end_of_pod(operator.client, driver_id, error)
                self.driver.application_id = application_id or self.driver.application_id
                self._end = self._end or end_of_object(self._launcher or operator.launcher, driver_id, error)
