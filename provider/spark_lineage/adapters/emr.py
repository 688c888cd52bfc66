"""``EmrServerlessStartJobOperator`` and ``EmrContainerOperator``: a job run with ``spark-defaults`` (provider 9.39)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from spark_lineage.adapters.aws import AwsAdapter, as_arguments, properties_in
from spark_lineage.inject.properties import SubmitArguments

_DEFAULTS = "spark-defaults"
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

    @property
    def arguments(self) -> SubmitArguments:
        """The properties of the job, in either place."""
        driver = next(iter((self.request.get("jobDriver") or {}).values()), None) or {}
        return as_arguments({**self._defaults(), **properties_in(driver.get("sparkSubmitParameters") or "")})

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
        for one in parsed.get("application", {}).get("runtimeConfiguration") or ():
            if one.get("classification") == _DEFAULTS:
                self._of_application = one.get("properties") or {}

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
