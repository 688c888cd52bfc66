"""Runs of Databricks, whose drivers run on its clusters (provider 7.23, API of jobs 2.2)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from spark_lineage.adapters.adapter import NO_SPARK, AdaptedTask, remote_submitter
from spark_lineage.adapters.databricks_run import places_of, unreached
from spark_lineage.adapters.service import ANSWER_SECONDS, ServiceAdapter
from spark_lineage.inject.preparation import Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.directory import DELIVERED, local_directory, remote_directory
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.line import no_event_log
from spark_lineage.secrets.redaction import remember_values

_SOURCE = "Databricks"
_DELIVERY_SECONDS, _EVENT_LOG, _DIRECTORY = 330, "spark.eventLog.", "spark.eventLog.dir"
# The directories that workers read; one of a path is for clusters on a disk that is shared.
_STORES = ("s3://", "s3a://", "gs://", "abfss://", "dbfs://", "hdfs://", "file:", "/")
# ``RunLifeCycleState`` and ``RunResultState``.
_OVER = frozenset({"TERMINATED", "SKIPPED", "INTERNAL_ERROR"})
_STATUS_OF: Mapping[str, Any] = {"SUCCESS": "FINISHED", "CANCELED": "KILLED"}
_UNREACHED = "nothing is added to %s, because an existing cluster and serverless compute have properties of their own"
_GONE = "does not exist"


def why_unreached(operator: Any) -> str:
    """Return why nothing can be added to what an operator is going to run; empty where something can.

    :raises Exception: for a payload that the operator refuses, too
    """
    payload = _payload(operator)
    if places_of(payload):
        return ""
    if payload.get("job_id") or payload.get("job_name"):
        return "the clusters of its job have the Spark properties of the job"
    if names := unreached(payload):
        return _UNREACHED % ", ".join(names)
    return NO_SPARK


@dataclass(eq=False)
class DatabricksAdapter(ServiceAdapter):
    """Adapts the hook of Databricks: what is added goes into a copy of the payload, wherever that has new clusters.

    A run with several clusters has a log of each. A task that does not wait (``wait_for_termination=False``) ends
    before its run.
    """

    def __post_init__(self) -> None:
        hook = self.hook
        self._get_stock = hook.get_run
        submitting = {name: partial(self._submit, getattr(hook, name)) for name in ("submit_run", "run_now")}
        vars(hook).update(submitting, get_run=self._get)

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> Self:
        """Attach to a hook."""
        child = "" if operator.wait_for_termination else "run"
        return cls(hook, task.before_submit, task.is_killed, operator=operator, task=task, child=child)

    @property
    def submitter(self) -> Submitter:
        """How Databricks runs a driver, of which nothing is known here."""
        return remote_submitter("databricks")

    @property
    def arguments(self) -> SubmitArguments:
        """The properties of the first cluster; others have what they have set otherwise.

        Where its log is delivered, that is its directory. If clusters log in several, each has its own, or the setting.
        """
        first, *others = self._confs or [{}]
        if any(one.get(_DIRECTORY) != first.get(_DIRECTORY) for one in others) and self._shared_directory:
            first = {key: value for key, value in first.items() if not key.startswith(_EVENT_LOG)}
        return SubmitArguments(first)

    @property
    def _confs(self) -> list[dict[str, str]]:
        """The properties of each cluster, with the directory from which its log is read."""
        confs = [{**one.delivered, **one.conf} for one in places_of(_payload(self.operator))]
        for conf in confs:
            place = conf.get(_DIRECTORY, "")
            if place.startswith("dbfs:/") and place.endswith(DELIVERED):
                # It is read with the connection of the task.
                user = self.operator.databricks_conn_id
                conf[_DIRECTORY] = f"dbfs://{user}@/{place.removeprefix('dbfs:').lstrip('/')}"
        return confs

    @property
    def _shared_directory(self) -> str:
        return self.task.places.settings().event_log_dir

    @property
    def lacking(self) -> str:
        """The tasks of the run to whose clusters nothing is added, and whether a cluster alone is not read."""
        names, confs = unreached(_payload(self.operator)), self._confs
        reasons = [_UNREACHED % ", ".join(names)] if names else []
        if len(confs) > 1 and any(map(self._is_read, confs)) and not all(map(self._is_read, confs)):
            reasons.append("a cluster of the run logs where no worker reads")
        return no_event_log("; ".join(reasons))

    def _is_read(self, conf: Mapping[str, str]) -> bool:
        is_off = conf.get(f"{_EVENT_LOG}enabled", "true").lower() != "true"
        own = conf.get(_DIRECTORY)
        return not is_off and (bool(self._shared_directory) if own is None else own.startswith(_STORES))

    def remember_secrets(self) -> None:
        """Learn the secrets of all clusters."""
        for place in places_of(_payload(self.operator)):
            remember_values({**(place.owner.get("spark_env_vars") or {}), **place.conf})

    @property
    def log_delay(self) -> int:  # type: ignore[override]
        """The rhythm in which Databricks delivers logs, where it does."""
        return _DELIVERY_SECONDS if any(one.get(_DIRECTORY, "").endswith(DELIVERED) for one in self._confs) else 0

    def ask(self, external_id: str) -> DriverEnd | None:
        """Ask for the run."""
        return _asked(self.operator.databricks_conn_id, external_id)

    @classmethod
    def end_of(cls, launch: Launch) -> DriverEnd | None:
        """Ask for a run; one that Databricks does not know any more has an unknown end."""
        try:
            return _asked(launch.conn_id, launch.external_id or "")
        except Exception as error:
            if _GONE not in str(error):
                raise
            return DriverEnd("UNKNOWN", _SOURCE, "Databricks does not know the run any more")

    def _submit(self, submit: Any, json: dict[str, Any]) -> Any:
        with self.task.guard("The logs of some clusters are not read", can_fail=False):
            own = [one[_DIRECTORY] for one in self._confs if _DIRECTORY in one and self._is_read(one)]
            found = (remote_directory(one) or local_directory(one) for one in own)
            self.log_places = tuple(dict.fromkeys(filter(None, found)))
        self.begin()
        payload = json
        with self.task.guard("Nothing is added to the run", can_fail=False):
            payload = copy.deepcopy(json)
            for place in places_of(payload):
                place.add(self.injected)
            if names := unreached(payload):
                self.task.guard.log.info(_UNREACHED, ", ".join(names))
        run_id = submit(payload)
        self.know(str(run_id), is_kept=False)
        return run_id

    def _get(self, run_id: Any) -> Any:
        run = self._get_stock(run_id)
        # A retry asks for the run of the earlier try first, and may submit another one then.
        if str(run_id) == self.driver.driver_id:
            self.note(_end_in(run, self.hook))
        return run


def _payload(operator: Any) -> dict[str, Any]:
    return operator._get_merged_json()  # type: ignore[no-any-return]


def _asked(conn_id: str, run_id: str) -> DriverEnd | None:
    from airflow.providers.databricks.hooks.databricks import DatabricksHook

    hook = DatabricksHook(conn_id, timeout_seconds=int(ANSWER_SECONDS), retry_limit=1)
    return _end_in(hook.get_run(int(run_id)), hook)


def _end_in(run: Mapping[str, Any], hook: Any) -> DriverEnd | None:
    state = run.get("state") or {}
    if state.get("life_cycle_state") not in _OVER:
        return None
    result = state.get("result_state") or state["life_cycle_state"]
    status = _STATUS_OF.get(result, "FAILED")
    if status == "FINISHED":
        return DriverEnd(status, _SOURCE)
    detail = state.get("state_message") or f"the run is {result}"
    failed = (one for one in run.get("tasks") or () if (one.get("state") or {}).get("result_state") == "FAILED")
    # Its own word is that the run has failed.
    with suppress(Exception):
        detail = hook.get_run_output(next(failed)["run_id"])["error"] or detail
    return DriverEnd(status, _SOURCE, detail)
