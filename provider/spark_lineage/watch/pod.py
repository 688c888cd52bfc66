"""What the pod of a driver says of the driver; pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct

from spark_lineage.merge.transition import ENDED, Status
from spark_lineage.watch.progress import from_text, translated

# core/v1 PodPhase.
_PHASE: dict[str, Status] = {
    "Pending": "WAITING",
    "Running": "RUNNING",
    "Succeeded": "FINISHED",
    "Failed": "FAILED",
    "Unknown": "UNKNOWN",
}
_DRIVER_CONTAINER = "spark-kubernetes-driver"
_APPLICATION_LABEL = "spark-app-selector"


class _Terminated(Struct, rename="camel"):
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class _Waiting(Struct):
    reason: str | None = None
    message: str | None = None


class _Running(Struct, rename="camel"):
    started_at: str | None = None


class _State(Struct):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _Container(Struct):
    name: str | None = None
    state: _State | None = None


class _PodStatus(Struct, rename="camel"):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    container_statuses: list[_Container] | None = None


class _Metadata(Struct, rename="camel"):
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, Any] | None = None


class Pod(Struct):
    """Of core/v1 ``Pod``; times are RFC 3339 texts."""

    metadata: _Metadata | None = None
    status: _PodStatus | None = None

    @property
    def application_id(self) -> str | None:
        """The application that its labels name."""
        labels = (self.metadata or _Metadata()).labels or {}
        return str(labels[_APPLICATION_LABEL]) if labels.get(_APPLICATION_LABEL) else None


class Told(NamedTuple):
    """One state of the driver; ``exception`` is why it failed."""

    status: Status
    time: datetime
    detail: str = ""
    exception: str = ""


def way_of(pod: Pod, asked: datetime) -> list[Told]:
    """Return the states that a pod tells, the present one last.

    The container of the driver counts, not the phase alone: with a sidecar beside it, the pod goes on ``Running``.

    :param asked: the time of what has none
    """
    metadata, status = pod.metadata or _Metadata(), pod.status or _PodStatus()
    state = _driver_state(status.container_statuses or [])
    created = from_text(metadata.creation_timestamp)
    way = [] if created is None else [Told("WAITING", created, "Pending")]
    is_deleted = metadata.deletion_timestamp is not None
    if state.terminated is not None:
        return [*way, *_end_of(state.terminated, status, asked, is_deleted=is_deleted)]
    present = translated(status.phase, _PHASE)
    if present in ENDED:  # without a container: evicted before it began, or its node is gone
        return [*way, Told(present, asked, _words(status.phase, status.reason), _words(status.reason, status.message))]
    if state.running is not None:
        way.append(Told("RUNNING", from_text(state.running.started_at) or asked, "Running"))
    if is_deleted:
        # Not at the time of the timestamp, by which it has to be gone.
        return [*way, Told("KILLING", asked, "the pod is being deleted")]
    waiting = state.waiting or _Waiting()
    detail = _words(status.phase, waiting.reason or status.reason, waiting.message or status.message)
    if present == "WAITING":
        return [Told("WAITING", created or asked, detail)]
    return way if way and way[-1].status == present else [*way, Told(present, asked, detail)]


def _end_of(terminated: _Terminated, status: _PodStatus, asked: datetime, *, is_deleted: bool) -> Iterator[Told]:
    if (started := from_text(terminated.started_at)) is not None:
        yield Told("RUNNING", started, "Running")
    ended = from_text(terminated.finished_at) or asked
    detail = _words(status.phase, f"exit code {terminated.exit_code}", terminated.reason)
    if terminated.exit_code == 0:
        yield Told("FINISHED", ended, detail)
    else:
        cause = _words(terminated.reason, terminated.message, status.reason, status.message)
        yield Told("KILLED" if is_deleted else "FAILED", ended, detail, cause)


def _driver_state(containers: list[_Container]) -> _State:
    # A pod template may give the container another name; Spark puts it first.
    named = [container for container in containers if container.name == _DRIVER_CONTAINER] or containers
    return (named[0].state if named else None) or _State()


def _words(*words: str | None) -> str:
    return ", ".join(filter(None, words))
