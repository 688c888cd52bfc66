"""The boundary between a task and its operator: what ``task/`` needs of a kind of Spark operator, and knows of it.

The adapter of an operator is found by the stock operator that it derives from, and imported when a task runs.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from spark_lineage.adapters.driver_output import DriverOutput
from spark_lineage.adapters.processes import LAUNCH_VARIABLE, end_processes
from spark_lineage.launch.driver import Driver, DriverEnd
from spark_lineage.launch.launch import Part
from spark_lineage.secrets.redaction import remember_values

if TYPE_CHECKING:
    from spark_lineage.inject.preparation import PreparedArguments, Submitter
    from spark_lineage.inject.properties import SubmitArguments
    from spark_lineage.launch.launch import Launch
    from spark_lineage.launch.log import Guard
    from spark_lineage.settings.places import Places

_EMR = "airflow.providers.amazon.aws.operators.emr"
_ADAPTERS = {
    "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator": "spark_submit.SparkSubmitAdapter",
    "airflow.providers.apache.spark.operators.spark_sql.SparkSqlOperator": "spark_sql.SparkSqlAdapter",
    "airflow.providers.apache.spark.operators.spark_pipelines.SparkPipelinesOperator": (
        "spark_pipelines.SparkPipelinesAdapter"
    ),
    "airflow.providers.apache.livy.operators.livy.LivyOperator": "livy.LivyAdapter",
    "airflow.providers.apache.spark.operators.spark_pyspark.PySparkOperator": "spark_pyspark.PySparkAdapter",
    "airflow.providers.standard.operators.bash.BashOperator": "bash.BashAdapter",
    "airflow.providers.cncf.kubernetes.operators.spark_kubernetes.SparkKubernetesOperator": (
        "spark_kubernetes.SparkKubernetesAdapter"
    ),
    "airflow.providers.databricks.operators.databricks.DatabricksSubmitRunOperator": "databricks.DatabricksAdapter",
    "airflow.providers.databricks.operators.databricks.DatabricksRunNowOperator": "databricks.DatabricksAdapter",
    "airflow.providers.google.cloud.operators.dataproc.DataprocSubmitJobOperator": "dataproc_job.DataprocJobAdapter",
    "airflow.providers.google.cloud.operators.dataproc.DataprocCreateBatchOperator": (
        "dataproc_batch.DataprocBatchAdapter"
    ),
    f"{_EMR}.EmrServerlessStartJobOperator": "emr.EmrServerlessAdapter",
    f"{_EMR}.EmrContainerOperator": "emr.EmrContainerAdapter",
    f"{_EMR}.EmrAddStepsOperator": "emr_steps.EmrStepsAdapter",
    "airflow.providers.amazon.aws.operators.glue.GlueJobOperator": "glue.GlueAdapter",
}
# The properties of the flags of spark-submit, for a job that has properties alone.
_PROPERTY_OF = {
    "jars": "spark.jars",
    "packages": "spark.jars.packages",
    "driver_class_path": "spark.driver.extraClassPath",
    "py_files": "spark.submit.pyFiles",
}
# The reason of a job without Spark, which is not counted as a loss.
NO_SPARK = "the job has no Spark"
# The time between the request to end and the kill of the processes of a killed job.
GRACE_SECONDS = 1.0


class Observer(Protocol):
    """Learns what an adapter sees of its job; called by the task's own thread."""

    def started(self, process_id: int) -> None:
        """Learn that the process of the job runs on this machine."""

    def driver_changed(self) -> None:
        """Learn that ``driver`` has changed by a line of the log."""

    def submitted(self, external_id: str) -> None:
        """Learn the id by which the provider finds the running job again."""

    def waiting(self) -> None:
        """Learn that the task still waits; called often."""

    @property
    def has_finished(self) -> bool:
        """Whether the driver was seen to succeed where it runs."""


@dataclass(frozen=True)
class AdaptedTask:
    """A task as its adapter knows it.

    :param before_submit: called once, right before the job is submitted; returns who observes it, if anybody
    :param is_killed: whether the task is being killed: then nothing is submitted any more
    :param places: of the settings, with the connection
    :param store: Airflow's task state store; None where there is none
    :param external_id_key: by which the provider of the operator keeps the id of the job there
    """

    before_submit: Callable[[], Observer | None]
    is_killed: Callable[[], bool]
    places: Places
    store: Any
    external_id_key: str
    guard: Guard


@dataclass(eq=False)
class OperatorAdapter(ABC):
    """Stands between a task and the hook of its operator, which is changed in place; without lineage there is none.

    An adapter imports neither ``task`` nor ``submission``. It writes what identifies the job, and how its process has
    ended, into ``driver``.
    """

    job_type: ClassVar[Literal["BATCH", "STREAMING"] | None] = None
    """The type of each job of the operator, None where they differ."""
    takes_listener: ClassVar[bool] = True
    """Whether OpenLineage's listener can be added to its driver; else the event log is all there is."""
    is_service: ClassVar[bool] = False
    """Whether a service runs the driver, which ``end_of`` asks."""
    log_delay: ClassVar[int] = 0
    """How many seconds the service takes to copy an event log to where it is read."""
    hook: Any
    before_submit: Callable[[], Observer | None]
    is_killed: Callable[[], bool]
    observer: Observer | None = None
    driver: Driver = field(default_factory=Driver)
    launch_id: str = ""
    """The mark of all processes of a driver on this machine, which are ended by it; empty without one."""
    output: DriverOutput = field(default_factory=DriverOutput)
    session_id: str = ""
    """The session whose executions are the job's, where a driver runs those of others as well."""
    child: str = ""
    """The beginning of the name of the job of a driver that its task does not wait for; empty for any other."""
    parts: tuple[Part, ...] = ()
    """The drivers that its task does not wait for, where there may be several."""
    log_places: tuple[str, ...] = ()
    """The directories of event logs, as paths and URLs, of a job whose programs have several."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables that were prepared for a driver on this machine."""

    @classmethod
    @abstractmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> OperatorAdapter:
        """Attach to the hook that an operator has made for its job."""

    @property
    def lacking(self) -> str:
        """Why the log of a part of the job is not read; empty where all of it is."""
        return ""

    @property
    @abstractmethod
    def submitter(self) -> Submitter:
        """How the job is submitted: its master, the deploy mode of its driver, the environment, the program."""

    @property
    @abstractmethod
    def arguments(self) -> SubmitArguments:
        """The user's own Spark properties and what else of the submission concerns lineage."""

    @abstractmethod
    def inject(self, prepared: PreparedArguments) -> None:
        """Pass what was prepared on to the job that is about to be submitted."""

    def added(self, prepared: PreparedArguments) -> dict[str, str]:
        """Return what was prepared, also the jar of the listener, as properties; without those that the user set so."""
        arguments, users = prepared.arguments, self.arguments.conf
        flags = {key: getattr(arguments, name) for name, key in _PROPERTY_OF.items()}
        return {key: value for key, value in {**arguments.conf, **flags}.items() if value not in (None, users.get(key))}

    def begin(self) -> Mapping[str, str]:
        """Have lineage injected into the job that is about to be submitted; return what its environment gets here.

        :raises RuntimeError: when the task is being killed: nothing is submitted any more
        """
        self.driver.is_submitted = True
        self.observer = self.before_submit()
        self.remember_secrets()
        if self.is_killed():
            raise RuntimeError("the task was killed before its job was submitted")
        return {**self.env, **({LAUNCH_VARIABLE: self.launch_id} if self.launch_id else {})}

    def mark(self, launch_id: str, deploy_mode: str, tags: str) -> None:  # noqa: ARG002
        """Mark the job with the id of its launch, by which it is found again; what stays elsewhere has other marks.

        :param tags: of the user for YARN
        """
        self.launch_id = "" if self.is_service else launch_id

    @abstractmethod
    def remember_secrets(self) -> None:
        """Learn the secrets of the job, which may be printed later without their keys."""

    @property
    @abstractmethod
    def has_driver_ended(self) -> bool:
        """Whether the job has ended by itself, as far as this process knows."""

    def explain(self) -> str:
        """Return why the driver failed, by what it has printed and its exit code; empty for a success."""
        return self.output.error.explain(self.driver.exit_code)

    def end(self) -> DriverEnd | None:
        """Return how the service that runs the driver has said that it ended, None where it has not.

        The task waits for it: it is what the operator itself was answered, and nobody is asked again.
        """
        return None

    @classmethod
    def end_of(cls, launch: Launch) -> DriverEnd | None:  # noqa: ARG003
        """Ask the service for the end of a driver, in a process that has no operator; None while it runs.

        :raises Exception: when it does not answer
        """
        return None

    def kill(self) -> None:
        """End what is left on this machine of a job that was killed, within about a second."""
        if self.launch_id:
            end_processes(self.launch_id, GRACE_SECONDS)

    def observe(self, line: str) -> str:
        """Read a line of the driver's output, and return it without secrets."""
        is_news = self.output.read(line, self.driver)
        if self.observer is not None:
            if is_news:
                self.observer.driver_changed()
            self.observer.waiting()
        return self.output.redact(line)


def local_submitter(master: str, spark_binary: str, env: Mapping[str, str]) -> Submitter:
    """Return how a program is run whose driver, or client, is on this machine always."""
    from spark_lineage.inject.preparation import Submitter

    def deploy_mode(file_properties: Mapping[str, str]) -> str:
        remember_values(file_properties)
        return "client"

    return Submitter(master, spark_binary, env, properties_file=None, repositories=[], deploy_mode=deploy_mode)


def remote_submitter(master: str) -> Submitter:
    """Return how a program is submitted whose driver a service runs, with properties that this machine has not.

    :param master: names the service
    """
    from spark_lineage.inject.preparation import Submitter

    # The spark-defaults.conf of this machine is not that of the service.
    env = {"SPARK_CONF_DIR": os.devnull}
    return Submitter(
        master, "spark-submit", env, properties_file=None, repositories=[], deploy_mode=lambda _: "cluster"
    )


def attach(operator: Any, hook: Any, task: AdaptedTask) -> OperatorAdapter:
    """Return the adapter of an operator, attached to its hook.

    :raises LookupError: for an operator of no kind that is known
    """
    for kind in type(operator).__mro__:
        if name := _ADAPTERS.get(f"{kind.__module__}.{kind.__qualname__}"):
            return _adapter(name).of(operator, hook, task)
    raise LookupError(f"no adapter is known for {type(operator).__qualname__}")


def service_end(launch: Launch) -> DriverEnd | None:
    """Return what the service of a launch says of the end of its driver; None while it runs, and without a service.

    :raises Exception: when it does not answer
    """
    if launch.service not in _ADAPTERS.values() or not launch.external_id:
        return None
    return _adapter(launch.service).end_of(launch)


def adapter_name(adapter: type[OperatorAdapter]) -> str:
    """Return the name by which a later process finds an adapter, as the table has it."""
    return f"{adapter.__module__.rpartition('.')[2]}.{adapter.__qualname__}"


def _adapter(name: str) -> type[OperatorAdapter]:
    module, _, adapter = name.partition(".")
    return getattr(import_module(f"{__package__}.{module}"), adapter)  # type: ignore[no-any-return]
