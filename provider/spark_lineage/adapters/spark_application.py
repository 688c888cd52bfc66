"""What the API server says of a ``SparkApplication``, and of the pod of its driver, by the client of the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Literal

from spark_lineage.adapters.driver_output import DriverError
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.watch.kubernetes import driver_state

MASTER = "kubernetes"
# Of each request; a task that is being killed makes none.
_ANSWER_SECONDS = 3.0
_LOG_LINES = 100
_ENDS: Mapping[str, Literal["FINISHED", "FAILED"]] = {
    "COMPLETED": "FINISHED",
    "FAILED": "FAILED",
    "SUBMISSION_FAILED": "FAILED",
}


def end_of_pod(client: Any, external_id: str, error: DriverError | None = None) -> tuple[DriverEnd | None, str | None]:
    """Return the end of a driver, and the id of its application, as its pod has them; None for what it has not.

    :param error: reads why the driver failed
    """
    namespace, _, name = external_id.rpartition(":")
    asked: dict[str, Any] = {"_preload_content": False, "_request_timeout": _ANSWER_SECONDS}
    answer = _found(client.read_namespaced_pod, name=name, namespace=namespace, **asked)
    if answer is None:
        return None, None
    state, application_id = driver_state(answer.data)
    if state.status not in {"FINISHED", "FAILED", "KILLED"}:
        return None, application_id
    detail = state.exception or state.detail
    if error is not None and state.status != "FINISHED":
        with suppress(Exception):
            log = client.read_namespaced_pod_log(name, namespace, tail_lines=_LOG_LINES, **asked).data
            for line in log.decode(errors="replace").splitlines():
                error.feed(line)
        detail = error.explain(None, detail)
    return DriverEnd(state.status, "Kubernetes", detail), application_id


def end_of_object(launcher: Any, external_id: str, error: DriverError) -> DriverEnd | None:
    """Return the end that a ``SparkApplication`` has without a pod: its driver was not submitted, or is gone.

    :param error: reads why ``spark-submit`` failed, all of whose output the status may hold
    """
    namespace, _, pod = external_id.rpartition(":")
    found = _found(
        launcher.custom_obj_api.get_namespaced_custom_object_status,
        group=launcher.api_group,
        version=launcher.api_version,
        namespace=namespace,
        plural=launcher.plural,
        name=pod.removesuffix("-driver"),
        _request_timeout=_ANSWER_SECONDS,
    )
    state = (found or {}).get("status", {}).get("applicationState", {})
    word, message = str(state.get("state")), str(state.get("errorMessage") or "").strip()
    if (end := _ENDS.get(word)) is None:
        return None
    for line in message.splitlines():
        error.feed(line)
    how = word if "\n" in message or not message else message
    return DriverEnd(end, "SparkApplication", "" if end == "FINISHED" else error.explain(None, how))


def _found(ask: Callable[..., Any], **what: Any) -> Any:
    """Return an answer, None for an object that is gone."""
    try:
        return ask(**what)
    except Exception as refusal:
        if getattr(refusal, "status", None) != HTTPStatus.NOT_FOUND:
            raise
        return None
