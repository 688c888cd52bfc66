"""What the adapters of AWS share: the client of the operator reports each request, and each answer (provider 9.39).

A request is changed right before botocore checks it, as an event of the client; nothing of the operator is replaced.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from spark_lineage.adapters.adapter import AdaptedTask, remote_submitter
from spark_lineage.adapters.service import ANSWER_SECONDS, ServiceAdapter
from spark_lineage.inject.preparation import PreparedArguments, Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.line import no_event_log

_OK = 300
# What a service answers of a job that it does not know any more.
_GONE = frozenset({"ResourceNotFoundException", "EntityNotFoundException", "InvalidRequestException"})
# ``uuid4``, which an operator makes where it is given none.
_GENERATED = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_REPEATED = (
    "it has a client_request_token of its own: then each try has to make the same request, and what is added differs"
)


@dataclass(eq=False)
class AwsAdapter(ServiceAdapter):
    """Adapts the client of an operator, which tells its service and the names of two operations.

    :param operator: has ``lineage_connect`` called with the client when it makes one
    """

    service: ClassVar[str]
    """As boto3 names its client."""
    source: ClassVar[str]
    start: ClassVar[str]
    """The operation that submits a job."""
    look: ClassVar[str]
    """The operation whose answer has its state."""
    status_of: ClassVar[Mapping[str, Any]]

    def __post_init__(self) -> None:
        self.request: Mapping[str, Any] = {}
        self.refused = ""
        self.region = ""
        self.clients: list[Any] = []
        self.found: dict[str, tuple[str, str]] = {}
        """The states of jobs, and why they have them, by id."""
        vars(self.operator)["lineage_connect"] = self.connect

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> Self:  # noqa: ARG003
        """Attach to an operator, whose hook is made later."""
        child = "" if cls.waits(operator) else "job_run"
        return cls(None, task.before_submit, task.is_killed, operator=operator, task=task, child=child)

    @classmethod
    def waits(cls, operator: Any) -> bool:
        """Whether an operator waits for its job."""
        return bool(operator.wait_for_completion or operator.deferrable)

    def connect(self, client: Any) -> None:
        """Listen to the requests and answers of a client, once: the hook of a subclass may be that of its base."""
        if client in self.clients:
            return
        self.clients.append(client)
        events, name = client.meta.events, client.meta.service_model.service_id.hyphenize()
        self.region = client.meta.region_name or ""
        events.register(f"provide-client-params.{name}.{self.start}", self._provide)
        events.register(f"after-call.{name}.{self.start}", self._submitted)
        events.register(f"after-call.{name}.{self.look}", self._looked)

    @property
    @abstractmethod
    def place(self) -> str:
        """What the service calls the place of its jobs, with which it is asked for one."""

    @abstractmethod
    def changed(self, request: Mapping[str, Any], added: Mapping[str, str]) -> Mapping[str, Any]:
        """Return a request with what is added to the properties of the job."""

    @staticmethod
    @abstractmethod
    def job_id(answer: Mapping[str, Any]) -> str:
        """Return the id of the job that an answer says to be submitted."""

    @staticmethod
    @abstractmethod
    def state(answer: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return id, state, and why the job has it, of an answer to the request for a job."""

    @staticmethod
    @abstractmethod
    def answer(client: Any, place: str, job_id: str) -> Mapping[str, Any]:
        """Ask for a job."""

    @property
    def lacking(self) -> str:
        """Why nothing is added to the job."""
        return no_event_log(self.refused)

    @property
    def submitter(self) -> Submitter:
        """How the service submits a job, of which nothing is known here."""
        return remote_submitter(f"{self.service}:{self.region}:{self.place}")

    def inject(self, prepared: PreparedArguments) -> None:
        """Keep what is added until the request is made; services refuse empty values."""
        self.injected = {key: value for key, value in self.added(prepared).items() if value}

    @property
    def has_driver_ended(self) -> bool:
        """Whether the service has said that the job is over."""
        return self._known() is not None

    def end(self) -> DriverEnd | None:
        """Return the end that the operator was answered; where it was answered none, ask once."""
        self.seen_end = self._known()
        return super().end()

    def ask(self, external_id: str) -> DriverEnd | None:
        """Ask for the jobs as a later process does."""
        conn_id, master = self.operator.aws_conn_id or "", self.submitter.master
        return self.end_of(Launch("", "", external_id=external_id, conn_id=conn_id, master=master))

    def _known(self) -> DriverEnd | None:
        ids = (self.driver.driver_id or "").split(",")
        return self.worst([self.found[each] for each in ids]) if all(each in self.found for each in ids) else None

    @classmethod
    def end_of(cls, launch: Launch) -> DriverEnd | None:
        """Ask the service for the jobs of a launch; what it does not know any more has an unknown end."""
        from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
        from botocore.config import Config

        _, region, place = launch.master.split(":", 2)
        hook = AwsBaseHook(launch.conn_id or None, client_type=cls.service, region_name=region or None)
        # By default it asks five times, for a minute each.
        once = Config(connect_timeout=ANSWER_SECONDS, read_timeout=ANSWER_SECONDS, retries={"total_max_attempts": 1})
        client = hook.get_client_type(config=hook.config.merge(once))
        found = []
        for job_id in str(launch.external_id).split(","):
            try:
                found.append(cls.state(cls.answer(client, place, job_id))[1:])
            except Exception as error:
                if (getattr(error, "response", None) or {}).get("Error", {}).get("Code") not in _GONE:
                    raise
                return DriverEnd("UNKNOWN", cls.source, f"the service does not know {job_id} any more")
        return cls.worst(found)

    @classmethod
    def worst(cls, found: Sequence[tuple[str, str]]) -> DriverEnd | None:
        """Return the end of several jobs: that of the first which did not succeed; None while one goes on."""
        if any(state not in cls.status_of for state, _ in found):
            return None
        ends = [DriverEnd(cls.status_of[state], cls.source, why or f"it is {state}") for state, why in found]
        return next((end for end in ends if end.status != "FINISHED"), DriverEnd("FINISHED", cls.source))

    @property
    def has_spark(self) -> bool:
        """Whether the request is for a job of Spark; others are left as they are."""
        return True

    @property
    def why_fixed(self) -> str:
        """Why the request must not change; empty where it may."""
        given = self.request.get("clientToken")
        return _REPEATED if given and _GENERATED.fullmatch(given) is None else ""

    def _provide(self, params: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        self.request = params
        if not self.has_spark:
            self.driver.is_submitted = True
            return params
        if why := self.why_fixed:
            self.driver.is_submitted = True
            return self.refuse(params, why)
        self.begin()
        return self.changed(params, self.injected) if self.injected else params

    def refuse(self, params: Mapping[str, Any], why: str) -> Mapping[str, Any]:
        """Return a request as it is, and report why nothing is added to it."""
        self.refused = why
        with self.task.guard("The job runs without lineage"):
            raise NotImplementedError(why)
        return params

    def _submitted(self, parsed: Mapping[str, Any], http_response: Any, **_: Any) -> None:
        if http_response.status_code < _OK:
            self.know(self.job_id(parsed), is_kept=False)

    def _looked(self, parsed: Mapping[str, Any], http_response: Any, **_: Any) -> None:
        if http_response.status_code < _OK:
            job_id, *known = self.state(parsed)
            self.found[job_id] = (known[0], known[1])
            if self.observer is not None:
                self.observer.waiting()


def as_arguments(conf: Mapping[str, Any]) -> SubmitArguments:
    """Return properties as those of a submission."""
    return SubmitArguments({str(key): str(value) for key, value in conf.items()})
