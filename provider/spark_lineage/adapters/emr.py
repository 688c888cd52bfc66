"""``EmrServerlessStartJobOperator`` and ``EmrContainerOperator``: a job run with ``spark-defaults`` (provider 9.39)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from spark_lineage.adapters.aws import AwsAdapter, as_arguments
from spark_lineage.adapters.service import properties_in
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.directory import DELIVERED_JOB

_DEFAULTS = "spark-defaults"
_ENABLED, _DIRECTORY, _DELIVERY_SECONDS = "spark.eventLog.enabled", "spark.eventLog.dir", 40
# Of properties of a classification.
_MOST_PROPERTIES, _LONGEST_VALUE = 100, 1024


@dataclass(eq=False)
class _JobRunAdapter(AwsAdapter):
    """Adds to the classification ``spark-defaults`` of a job run; options of ``spark-submit`` win over it."""

    start = "StartJobRun"
    look = "DescribeJobRun"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.request = {
            "jobDriver": self.operator.job_driver,
            "configurationOverrides": self.operator.configuration_overrides,
        }
        self._of_application: Mapping[str, str] = {}
        self._monitoring: Mapping[str, Any] = {}

    @property
    def arguments(self) -> SubmitArguments:
        """The properties of the job, in either place."""
        driver = next(iter((self.request.get("jobDriver") or {}).values()), None) or {}
        given = driver.get("sparkSubmitParameters") or driver.get("sparkSqlParameters") or ""
        return as_arguments({**self._defaults(), **properties_in(given)})

    @property
    def has_spark(self) -> bool:
        """Whether the job is not one of Hive, which EMR Serverless runs, too."""
        return "hive" not in (self.request.get("jobDriver") or {})

    def _defaults(self) -> Mapping[str, str]:
        """Return ``spark-defaults`` of the job, or of its application, which the job's would replace as a whole."""
        found = [
            one.get("properties") or {} for one in self._configurations() if one.get("classification") == _DEFAULTS
        ]
        return {key: value for one in found for key, value in one.items()} if found else self._of_application

    def _configurations(self) -> list[Mapping[str, Any]]:
        overrides = self.request.get("configurationOverrides") or {}
        return list(overrides.get("applicationConfiguration") or ())

    def changed(self, request: Mapping[str, Any], added: Mapping[str, str]) -> Mapping[str, Any]:
        """Return a request with one classification of both, unless that is more than the service takes."""
        properties = {**self._defaults(), **{key: text for key, text in added.items() if len(text) <= _LONGEST_VALUE}}
        if len(properties) > _MOST_PROPERTIES:
            return self.refuse(request, f"its {_DEFAULTS} have no room for {len(added)} properties more")
        mine = [one for one in self._configurations() if one.get("classification") == _DEFAULTS]
        others = [one for one in self._configurations() if one not in mine]
        ours = {**(mine[0] if mine else {}), "classification": _DEFAULTS, "properties": properties}
        overrides = {**(request.get("configurationOverrides") or {}), "applicationConfiguration": [*others, ours]}
        return {**request, "configurationOverrides": overrides}


@dataclass(eq=False)
class EmrServerlessAdapter(_JobRunAdapter):
    """Adapts a job run of EMR Serverless.

    A job with ``spark-defaults`` has none of those of its application (``runtimeConfiguration``), of which the operator
    is told before it submits: what is added comes on top of them.
    """

    service, source, look = "emr-serverless", "EMR Serverless", "GetJobRun"
    status_of: ClassVar[Mapping[str, Any]] = {"SUCCESS": "FINISHED", "FAILED": "FAILED", "CANCELLED": "KILLED"}

    @classmethod
    def waits(cls, operator: Any) -> bool:
        """Whether an operator waits for its job; to defer is another question."""
        return bool(operator.wait_for_completion)

    def connect(self, client: Any) -> None:
        """Listen to the description of the application, too."""
        super().connect(client)
        client.meta.events.register("after-call.emr-serverless.GetApplication", self._learn)

    def _learn(self, parsed: Mapping[str, Any], **_: Any) -> None:
        application = parsed.get("application") or {}
        self._monitoring = application.get("monitoringConfiguration") or {}
        for one in application.get("runtimeConfiguration") or ():
            if one.get("classification") == _DEFAULTS:
                self._of_application = one.get("properties") or {}

    @property
    def arguments(self) -> SubmitArguments:
        """The properties of the job; where EMR delivers the log to, and no other directory is set, that is its own."""
        conf = super().arguments.conf
        overrides = (self.request.get("configurationOverrides") or {}).get("monitoringConfiguration") or {}
        s3 = {**self._monitoring, **overrides}.get("s3MonitoringConfiguration") or {}
        scheme, _, rest = str(s3.get("logUri") or "").rstrip("/").partition("://")
        if not rest or _DIRECTORY in conf or self.task.places.settings().event_log_dir:
            return SubmitArguments(conf)
        user = f"{self.operator.aws_conn_id}@" if self.operator.aws_conn_id else ""
        directory = f"{scheme}://{user}{rest}/applications/{self.place}/jobs{DELIVERED_JOB}"
        return SubmitArguments({_ENABLED: "true", _DIRECTORY: directory, **conf})

    @property
    def log_delay(self) -> int:  # type: ignore[override]
        """The rhythm in which EMR delivers logs, where it does."""
        return _DELIVERY_SECONDS if self.arguments.conf.get(_DIRECTORY, "").endswith(DELIVERED_JOB) else 0

    @property
    def place(self) -> str:
        """The id of the application."""
        return str(self.operator.application_id)

    @staticmethod
    def job_id(answer: Mapping[str, Any]) -> str:
        """Return the id of the job run."""
        return str(answer["jobRunId"])

    @staticmethod
    def state(answer: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return what the service says of a job run."""
        run = answer["jobRun"]
        return run["jobRunId"], run["state"], run.get("stateDetails") or ""

    @staticmethod
    def answer(client: Any, place: str, job_id: str) -> Mapping[str, Any]:
        """Ask for a job run."""
        return client.get_job_run(applicationId=place, jobRunId=job_id)  # type: ignore[no-any-return]


@dataclass(eq=False)
class EmrContainerAdapter(_JobRunAdapter):
    """Adapts a job run of EMR on EKS."""

    service, source = "emr-containers", "EMR on EKS"
    status_of: ClassVar[Mapping[str, Any]] = {"COMPLETED": "FINISHED", "FAILED": "FAILED", "CANCELLED": "KILLED"}

    @property
    def place(self) -> str:
        """The id of the virtual cluster."""
        return str(self.operator.virtual_cluster_id)

    @staticmethod
    def job_id(answer: Mapping[str, Any]) -> str:
        """Return the id of the job run."""
        return str(answer["id"])

    @staticmethod
    def state(answer: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return what the service says of a job run."""
        run = answer["jobRun"]
        why = ": ".join(filter(None, (run.get("failureReason"), run.get("stateDetails"))))
        return run["id"], run["state"], why

    @staticmethod
    def answer(client: Any, place: str, job_id: str) -> Mapping[str, Any]:
        """Ask for a job run."""
        return client.describe_job_run(virtualClusterId=place, id=job_id)  # type: ignore[no-any-return]
