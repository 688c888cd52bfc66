"""``EmrAddStepsOperator``: steps of an EMR cluster, which are commands (provider 9.39)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from pathlib import PurePosixPath
from typing import Any, ClassVar

from msgspec import structs
from openlineage.client.uuid import generate_new_uuid

from spark_lineage.adapters.aws import AwsAdapter, as_arguments
from spark_lineage.adapters.service import properties_in
from spark_lineage.inject.properties import APP_RUN_ID, SubmitArguments
from spark_lineage.launch.directory import remote_directory
from spark_lineage.launch.launch import Part
from spark_lineage.launch.line import no_event_log
from spark_lineage.secrets.redaction import remember_values

_ENABLED, _DIRECTORY = "spark.eventLog.enabled", "spark.eventLog.dir"
# The file systems of a cluster that workers read.
_STORES = ("s3://", "s3a://", "s3n://")
_COMMANDS = frozenset({"spark-submit", "spark-sql", "run-example"})
_IN_TEXT = re.compile(rf"""(?:^|[\s/;&|("'`])(?:{"|".join(_COMMANDS)})(?:\s|$)""")


@dataclass(eq=False)
class EmrStepsAdapter(AwsAdapter):
    """Adds ``--conf`` to the steps that run ``spark-submit``, before the user's own, which win.

    All steps of a task that waits for them are one job. A task that does not wait (Airflow's default) has a job for
    each: its steps have runs of their own.
    """

    service, source, start, look = "emr", "EMR", "AddJobFlowSteps", "DescribeStep"
    status_of: ClassVar[Mapping[str, Any]] = {
        "COMPLETED": "FINISHED",
        "FAILED": "FAILED",
        "CANCELLED": "KILLED",
        "INTERRUPTED": "KILLED",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        # A text is read when the request is made.
        self.request = {"Steps": self.operator.steps} if isinstance(self.operator.steps, list) else {}

    @property
    def place(self) -> str:
        """The id of the cluster."""
        return str(self.request.get("JobFlowId") or self.operator.job_flow_id or "")

    @property
    def arguments(self) -> SubmitArguments:
        """The properties that all steps of Spark have."""
        first, *others = [properties_in(_arguments(step)) for step, _ in self._spark_steps()] or [{}]
        return as_arguments(
            {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}
        )

    @property
    def lacking(self) -> str:
        """The steps whose command of Spark is in a text, and those that alone log where no worker reads."""
        steps, known = self.request.get("Steps") or (), [step for step, _ in self._spark_steps()]
        hidden = (one for one in steps if one not in known and _IN_TEXT.search(" ".join(map(str, _arguments(one)))))
        common = self.arguments.conf
        unread = (one for one, _ in self._spark_steps() if _is_unread({**common, **properties_in(_arguments(one))}))
        is_known = _is_unread(common)
        reasons = {
            "the command of %s is in a text": hidden,
            "%s logs where no worker reads": () if is_known else unread,
        }
        named = {why: ", ".join(str(one.get("Name") or "step") for one in found) for why, found in reasons.items()}
        return no_event_log("; ".join(why % names for why, names in named.items() if names))

    @property
    def has_spark(self) -> bool:
        """Whether a step runs Spark by a command that is known."""
        return any(self._spark_steps())

    def remember_secrets(self) -> None:
        """Learn the secrets of each step."""
        for step, _ in self._spark_steps():
            remember_values(properties_in(_arguments(step)))

    def _spark_steps(self) -> Iterator[tuple[Mapping[str, Any], int]]:
        """Return the steps of a request that run Spark, and where their command is among their arguments."""
        for step in self.request.get("Steps") or ():
            names = [PurePosixPath(str(each)).name for each in _arguments(step)]
            position = next((at for at, name in enumerate(names) if name in _COMMANDS), None)
            if position is not None:
                yield step, position

    def _provide(self, params: Mapping[str, Any], **others: Any) -> Mapping[str, Any]:
        self.request = params
        own = (properties_in(_arguments(step)).get(_DIRECTORY, "") for step, _ in self._spark_steps())
        found = (remote_directory(one) for one in own if one.startswith(_STORES))
        self.log_places = tuple(dict.fromkeys(filter(None, found)))
        return super()._provide(params, **others)

    def changed(self, request: Mapping[str, Any], added: Mapping[str, str]) -> Mapping[str, Any]:
        """Return a request with options right after each command."""
        steps, parts = list(request["Steps"]), list[Part]()
        for step, position in self._spark_steps():
            properties, at = dict(added), steps.index(step)
            if self.child:
                properties[APP_RUN_ID] = str(generate_new_uuid())
                parts.append(Part(_unique(str(step.get("Name") or "step"), parts), properties[APP_RUN_ID], str(at)))
            options = [word for key, value in properties.items() for word in ("--conf", f"{key}={value}")]
            given = _arguments(step)
            jar = {**step["HadoopJarStep"], "Args": [*given[: position + 1], *options, *given[position + 1 :]]}
            steps[at] = {**step, "HadoopJarStep": jar}
        self.parts = tuple(parts)
        return {**request, "Steps": steps}

    def _submitted(self, parsed: Mapping[str, Any], http_response: Any, **others: Any) -> None:
        if ids := parsed.get("StepIds"):
            self.parts = tuple(structs.replace(one, external_id=ids[int(one.external_id)]) for one in self.parts)
        super()._submitted(parsed, http_response, **others)

    @staticmethod
    def job_id(answer: Mapping[str, Any]) -> str:
        """Return the ids of all steps, also of those that are not of Spark: the task fails with them."""
        return ",".join(answer["StepIds"])

    @staticmethod
    def state(answer: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return what the service says of a step."""
        step = answer["Step"]
        status = step["Status"]
        failure, change = status.get("FailureDetails") or {}, status.get("StateChangeReason") or {}
        return (
            step["Id"],
            status["State"],
            failure.get("Message") or failure.get("Reason") or change.get("Message") or "",
        )

    @staticmethod
    def answer(client: Any, place: str, job_id: str) -> Mapping[str, Any]:
        """Ask for a step."""
        return client.describe_step(ClusterId=place, StepId=job_id)  # type: ignore[no-any-return]


def _arguments(step: Mapping[str, Any]) -> list[str]:
    given = (step.get("HadoopJarStep") or {}).get("Args")
    return list(given) if isinstance(given, list | tuple) else []


def _is_unread(conf: Mapping[str, str]) -> bool:
    is_off = conf.get(_ENABLED, "true").lower() != "true"
    return is_off or not conf.get(_DIRECTORY, _STORES[0]).startswith(_STORES)


def _unique(name: str, parts: list[Part]) -> str:
    """Return a name that no other part has."""
    taken, names = {one.child for one in parts}, (f"{name}_{number}" for number in count(2))
    return next((each for each in (name, *islice(names, len(parts) + 1)) if each not in taken), name)
