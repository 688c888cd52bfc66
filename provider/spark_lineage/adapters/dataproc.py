"""Jobs and batches of Dataproc, whose drivers run at Google (provider 22.8).

The operators repeat a request that fails; what is asked here is asked once, within a few seconds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from spark_lineage.adapters.adapter import AdaptedTask, remote_submitter
from spark_lineage.adapters.service import ANSWER_SECONDS, ServiceAdapter
from spark_lineage.inject.preparation import Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import Launch

_SOURCE, _SCHEME = "Dataproc", "dataproc:"
# ``JobStatus.State`` and ``Batch.State``.
_STATUS_OF: Mapping[str, Any] = {
    **dict.fromkeys(("DONE", "SUCCEEDED"), "FINISHED"),
    **dict.fromkeys(("ERROR", "FAILED"), "FAILED"),
    "CANCELLED": "KILLED",
}
ONCE: Mapping[str, Any] = {"retry": None, "timeout": ANSWER_SECONDS}


@dataclass(eq=False)
class DataprocAdapter(ServiceAdapter):
    """Adapts the hook of Dataproc: what is added goes into the properties of a copy of what is submitted.

    A task that does not wait (``asynchronous``) ends before its driver.
    """

    submit_method: ClassVar[str]
    get_method: ClassVar[str]
    noun: ClassVar[str]
    """What the API, the operator and the hook call it."""

    def __post_init__(self) -> None:
        methods = self.submit_method, self.get_method
        self._submit_stock, self.get_stock = (getattr(self.hook, name) for name in methods)
        vars(self.hook).update(zip(methods, (self._submit, self._get), strict=True))

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> Self:
        """Attach to a hook."""
        child = cls.noun if operator.asynchronous and not operator.deferrable else ""
        return cls(hook, task.before_submit, task.is_killed, operator=operator, task=task, child=child)

    @staticmethod
    @abstractmethod
    def message(given: Any) -> Any:
        """Return a copy of what is submitted, as the client makes it of a mapping."""

    @staticmethod
    @abstractmethod
    def properties(message: Any) -> Any:
        """Return the Spark properties of a message, which may be changed."""

    @staticmethod
    @abstractmethod
    def state(answer: Any) -> tuple[str, str]:
        """Return the name of a state, and what is said of it."""

    @staticmethod
    @abstractmethod
    def id_of(answer: Any) -> str:
        """Return the id of what was submitted."""

    def is_there(self, given: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether the operator is going to attach to what was submitted before."""
        return False

    @property
    def submitter(self) -> Submitter:
        """The region, by what it is asked with: project, region, and the accounts that are impersonated."""
        operator = self.operator
        chain = operator.impersonation_chain or ()
        accounts = ",".join([chain] if isinstance(chain, str) else chain)
        return remote_submitter(f"{_SCHEME}{operator.project_id or ''}/{operator.region}/{accounts}")

    @property
    def arguments(self) -> SubmitArguments:
        """The properties that the user has set."""
        return SubmitArguments(dict(self.properties(self.message(getattr(self.operator, self.noun)))))

    def ask(self, external_id: str) -> DriverEnd | None:
        """Ask as the operator does."""
        asked = {f"{self.noun}_id": external_id, "project_id": self.operator.project_id}
        return self._end_in(self.get_stock(**asked, region=self.operator.region, **ONCE))

    @classmethod
    def end_of(cls, launch: Launch) -> DriverEnd | None:
        """Ask Dataproc for a job or batch; one that it does not know any more has an unknown end."""
        from airflow.providers.google.cloud.hooks.dataproc import DataprocHook
        from google.api_core.exceptions import NotFound

        project, region, accounts = launch.master.removeprefix(_SCHEME).split("/")
        hook = DataprocHook(gcp_conn_id=launch.conn_id, impersonation_chain=accounts.split(",") if accounts else None)
        asked = {f"{cls.noun}_id": launch.external_id, "project_id": project or hook.project_id}
        try:
            return cls._end_in(getattr(hook, cls.get_method)(**asked, region=region, **ONCE))
        except NotFound:
            return DriverEnd("UNKNOWN", _SOURCE, f"Dataproc does not know the {cls.noun} any more")

    @classmethod
    def _end_in(cls, answer: Any) -> DriverEnd | None:
        state, detail = cls.state(answer)
        if (status := _STATUS_OF.get(state)) is None:
            return None
        return DriverEnd(status, _SOURCE, "" if status == "FINISHED" else detail or f"the {cls.noun} is {state}")

    def _submit(self, *arguments: Any, **given: Any) -> Any:
        if self.is_there(given):
            self.driver.driver_id = given[f"{self.noun}_id"]
            return self._submit_stock(*arguments, **given)
        if not self.driver.is_submitted:
            self.begin()
        if self.injected:
            message = self.message(given[self.noun])
            self.properties(message).update(self.injected)
            given[self.noun] = message
        answer = self._submit_stock(*arguments, **given)
        self.know(self.id_of(answer))
        return answer

    def _get(self, *arguments: Any, **given: Any) -> Any:
        answer = self.get_stock(*arguments, **given)
        self.note(self._end_in(answer))
        return answer
