"""``GlueJobOperator``: a run of a Glue job, whose arguments hold its Spark properties (provider 9.39)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from spark_lineage.adapters.aws import AwsAdapter, as_arguments
from spark_lineage.inject.properties import SubmitArguments

_CONF, _SEPARATOR = "--conf", " --conf "
_LOG_PATH, _UI, _LEGACY = "--spark-event-logs-path", "--enable-spark-ui", "--enable-spark-ui-legacy-path"
_EVENT_LOG = "spark.eventLog."
# The ``Command`` of a definition.
_WITHOUT_SPARK = frozenset({"pythonshell", "glueray"})


@dataclass(eq=False)
class GlueAdapter(AwsAdapter):
    """Adds to ``--conf`` of a job run, and has Glue copy the event log, if the job does not have that already.

    An argument of a run replaces that of the job's definition, of which the hook is told before it starts the run: what
    the definition has in ``--conf`` stays in front. Glue's own format of event logs is for its console; that for a
    History Server (``--enable-spark-ui-legacy-path``) is read.
    """

    service, source, start, look = "glue", "Glue", "StartJobRun", "GetJobRun"
    status_of: ClassVar[Mapping[str, Any]] = {
        "SUCCEEDED": "FINISHED",
        "STOPPED": "KILLED",
        **dict.fromkeys(("FAILED", "ERROR", "TIMEOUT", "EXPIRED"), "FAILED"),
    }
    # It copies each 30 s.
    log_delay = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        self.request = {"Arguments": self.operator.script_args}
        self._defined: Mapping[str, str] = {}
        self._fixed: Mapping[str, str] = {}
        self._command = ""
        # In place of an attribute that it sets: whoever finds a run of an earlier try sets it, too.
        stock = type(self.operator)._set_job_run_id

        def set_job_run_id(context: Any, job_run_id: str) -> None:
            stock(self.operator, context, job_run_id)
            self.driver.driver_id = job_run_id

        vars(self.operator)["_set_job_run_id"] = set_job_run_id

    def connect(self, client: Any) -> None:
        """Listen to the definition of the job, too."""
        super().connect(client)
        client.meta.events.register("after-call.glue.GetJob", self._learn)
        for operation in ("CreateJob", "UpdateJob"):
            client.meta.events.register(f"before-parameter-build.glue.{operation}", self._learn_new)

    def _learn(self, parsed: Mapping[str, Any], **_: Any) -> None:
        if job := parsed.get("Job"):
            self._learn_new(job)

    def _learn_new(self, params: Mapping[str, Any], **_: Any) -> None:
        # An update removes what it does not have.
        job = params.get("JobUpdate") or params
        self._defined = job.get("DefaultArguments") or {}
        self._fixed = job.get("NonOverridableArguments") or {}
        self._command = (job.get("Command") or {}).get("Name", "")

    @property
    def why_fixed(self) -> str:
        """Why nothing can be added to a run."""
        is_fixed = _CONF in self._fixed
        return f"its definition has {_CONF} among the arguments that no run may change" if is_fixed else ""

    @property
    def has_spark(self) -> bool:
        """Whether the job is neither a shell of Python nor one of Ray."""
        return self._command not in _WITHOUT_SPARK

    @property
    def place(self) -> str:
        """The name of the job."""
        return str(self.operator.job_name)

    @property
    def _effective(self) -> Mapping[str, str]:
        return {**self._defined, **(self.request.get("Arguments") or {}), **self._fixed}

    @property
    def arguments(self) -> SubmitArguments:
        """The properties of the run; where Glue copies the log to is that of an event log."""
        effective = self._effective
        pairs = [pair.split("=", 1) for pair in str(effective.get(_CONF) or "").split(_SEPARATOR) if "=" in pair]
        conf = {key.strip(): value.strip() for key, value in pairs}
        # Glue overwrites these.
        conf = {key: value for key, value in conf.items() if not key.startswith(_EVENT_LOG)}
        log = {f"{_EVENT_LOG}enabled": "true", f"{_EVENT_LOG}dir": path} if (path := effective.get(_LOG_PATH)) else {}
        # Of the format for its console, files and names are not documented.
        for key in (_LEGACY, _UI):
            if str(effective.get(key, "true")).lower() != "true":
                log = {f"{_EVENT_LOG}enabled": f"false by {key}"}
        return as_arguments({**conf, **log})

    def changed(self, request: Mapping[str, Any], added: Mapping[str, str]) -> Mapping[str, Any]:
        """Return a request whose arguments have what is added, and a place for the event log."""
        path = added.get(f"{_EVENT_LOG}dir") or self.arguments.conf.get(f"{_EVENT_LOG}dir", "")
        log = {_LOG_PATH: path, _UI: "true", _LEGACY: "true"}
        effective = self._effective
        missing = {key: value for key, value in log.items() if path and key not in effective}
        ours = [f"{key}={value}" for key, value in added.items() if not key.startswith(_EVENT_LOG)]
        conf = _SEPARATOR.join([*filter(None, (effective.get(_CONF),)), *ours])
        return {**request, "Arguments": {**(request.get("Arguments") or {}), **missing, _CONF: conf}}

    @staticmethod
    def job_id(answer: Mapping[str, Any]) -> str:
        """Return the id of the job run."""
        return str(answer["JobRunId"])

    @staticmethod
    def state(answer: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return what the service says of a job run."""
        run = answer["JobRun"]
        return run["Id"], run["JobRunState"], run.get("ErrorMessage") or ""

    @staticmethod
    def answer(client: Any, place: str, job_id: str) -> Mapping[str, Any]:
        """Ask for a job run."""
        return client.get_job_run(JobName=place, RunId=job_id)  # type: ignore[no-any-return]
