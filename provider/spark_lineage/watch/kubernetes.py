"""Kubernetes: the status of the pod of a driver in cluster mode, which is all that the API server knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from msgspec import Struct, field, json

from spark_lineage.http_client import NoAnswerError, Request
from spark_lineage.merge.transition import ENDED, AwareTime, Status, StatusReport, Subject
from spark_lineage.watch.dialect import LOG_LINES, PIECE_BYTES, Dialect, Dialogue, State, get, status_of

_DRIVER_CONTAINER = "spark-kubernetes-driver"
_APPLICATION_LABEL = "spark-app-selector"


class _ContainerState(Struct, rename="camel"):
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: AwareTime | None = None
    finished_at: AwareTime | None = None


class _Container(Struct):
    """``state`` has one of ``waiting``, ``running``, ``terminated``."""

    name: str | None = None
    state: dict[str, _ContainerState | None] | None = None


class _PodStatus(Struct, rename="camel"):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    container_statuses: list[_Container] | None = None


class _Metadata(Struct, rename="camel"):
    creation_timestamp: AwareTime | None = None
    deletion_timestamp: AwareTime | None = None
    labels: dict[str, Any] | None = None


class _Pod(Struct):
    """The ``Pod`` of core/v1."""

    metadata: _Metadata = field(default_factory=_Metadata)
    status: _PodStatus = field(default_factory=_PodStatus)


class Kubernetes(Dialect):
    """Asks ``/api/v1/namespaces/{namespace}/pods/{pod}`` of the API server.

    A driver is ``{namespace}:{pod}``, as the Spark provider has it, or the pod, in the namespace of the connection.
    """

    name = "Kubernetes"
    is_unknown_the_end = True
    _application_id: str | None = None
    _container: str | None = None
    _last_line = b""

    def poll(self) -> Dialogue[list[StatusReport]]:
        """Return what the pod says of the driver, and of the application where its labels name it.

        A pod that is gone, also one that was never seen, is ``UNKNOWN``, or ``KILLED`` if it was being deleted.

        :raises NoAnswerError: when the API server does not report it
        """
        driver_id = self.driver.driver_id
        if driver_id is None:
            return []
        asked = datetime.now(UTC)
        try:
            pod = yield from get(self._pod_url(driver_id), _Pod)
        except NoAnswerError as error:
            if error.http_status != HTTPStatus.NOT_FOUND:
                raise
            last = self.last.get(("DRIVER", driver_id))
            status = last.status if last is not None else "UNKNOWN"
            if status in ENDED:
                return []
            steps = [State("KILLED" if status == "KILLING" else "UNKNOWN", asked, "the pod is gone")]
        else:
            self._application_id = _application_id(pod)
            container = _driver_container(pod)
            self._container = container.name if container is not None else None
            steps = _steps(pod, asked)
        things: list[tuple[Subject, str | None]] = [("DRIVER", driver_id), ("APPLICATION", self._application_id)]
        return [new for subject, each in things if each is not None for new in self.news(subject, each, steps, asked)]

    def kill_requests(self, driver_id: str) -> list[Request]:
        """Return the ``DELETE`` of the pod."""
        return [Request(self._pod_url(driver_id), "DELETE")]

    def log_tail(self) -> Dialogue[Mapping[str, str]]:
        """Request ``…/log`` of the pod, while it exists."""
        if not (url := self._log_url):
            return {}
        answer = yield Request(f"{url}&tailLines={LOG_LINES}")
        return {"pod": answer.decode(errors="replace")}

    def log_files(self) -> Iterable[str]:
        """Return the address of the log of the driver's container."""
        if not (url := self._log_url):
            raise NoAnswerError("the API server does not say which container is the driver's")
        return [url]

    def lines_of(self, place: str, *, is_last: bool) -> Dialogue[tuple[list[bytes | None], bool]]:
        """Request the lines since the time of the last one, which comes again unless it was rotated away."""
        known = self._last_line
        since = f"&sinceTime={quote(known.partition(b' ')[0])}" if known else ""
        answer = yield Request(f"{place}&timestamps=true&limitBytes={PIECE_BYTES}{since}")
        *lines, torn = answer.split(b"\n")
        added: list[bytes | None] = [None] if known and known not in lines else []
        new = lines[lines.index(known) + 1 :] if known in lines else lines
        self._last_line = new[-1] if new else known
        is_end = len(answer) < PIECE_BYTES or not new
        new += [torn] if torn and is_last and is_end else []
        return [*added, *(line.partition(b" ")[2] for line in new)], is_end

    @property
    def _log_url(self) -> str:
        if self.driver.driver_id is None or self._container is None:
            return ""
        return f"{self._pod_url(self.driver.driver_id)}/log?container={quote(self._container, safe='')}"

    def _pod_url(self, driver_id: str) -> str:
        namespace, _, pod = driver_id.rpartition(":")
        path = f"{quote(namespace or self.endpoints.namespace, safe='')}/pods/{quote(pod, safe='')}"
        return f"{self.endpoints.kubernetes_api_url}/api/v1/namespaces/{path}"


def driver_state(pod: bytes) -> tuple[State, str | None]:
    """Return the last state of the driver in a pod, and the id of its application, None where no label names it.

    :param pod: its JSON
    :raises msgspec.DecodeError: for anything else
    """
    found = json.decode(pod, type=_Pod)
    return _steps(found, datetime.now(UTC))[-1], _application_id(found)


def _application_id(pod: _Pod) -> str | None:
    label = (pod.metadata.labels or {}).get(_APPLICATION_LABEL)
    return str(label) if label else None


def _steps(pod: _Pod, asked: datetime) -> list[State]:
    """Return the states that a pod reports, the present one last.

    The container of the driver counts, not the phase alone: with a sidecar beside it, the pod goes on ``Running``.
    """
    status, created = pod.status, pod.metadata.creation_timestamp
    is_deleted = pod.metadata.deletion_timestamp is not None
    container = _driver_container(pod)
    state = (container.state if container is not None else None) or {}
    steps = [] if created is None else [State("WAITING", created, "Pending")]
    ran, end = state.get("terminated") or state.get("running"), state.get("terminated")
    if ran is not None and ran.started_at is not None:
        steps.append(State("RUNNING", ran.started_at, "Running"))
    if end is not None:
        detail = _reason(status.phase, f"exit code {end.exit_code}", end.reason)
        parts = (f"exit code {end.exit_code}", end.reason, end.message, status.reason, status.message)
        cause = _reason(*parts) if end.exit_code != 0 else ""
        how: Status = "FINISHED" if end.exit_code == 0 else "KILLED" if is_deleted else "FAILED"
        return [*steps, State(how, end.finished_at or asked, detail, cause)]
    present = status_of(status.phase)
    if present in ENDED:  # without a container: evicted before it began, or its node is gone
        return [
            *steps,
            State(present, asked, _reason(status.phase, status.reason), _reason(status.reason, status.message)),
        ]
    if is_deleted:
        # The timestamp is the time by which the pod has to be gone.
        return [*steps, State("KILLING", asked, "the pod is being deleted")]
    waiting = state.get("waiting") or _ContainerState()
    detail = _reason(status.phase, waiting.reason or status.reason, waiting.message or status.message)
    if present == "WAITING":
        return [State("WAITING", created or asked, detail)]
    return steps if steps and steps[-1].status == present else [*steps, State(present, asked, detail)]


def _driver_container(pod: _Pod) -> _Container | None:
    containers = pod.status.container_statuses or []
    # A pod template may give the container another name; Spark puts it first.
    return next(iter([one for one in containers if one.name == _DRIVER_CONTAINER] or containers), None)


def _reason(*parts: str | None) -> str:
    return ", ".join(filter(None, parts))
