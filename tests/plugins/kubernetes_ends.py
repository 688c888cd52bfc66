"""How programs end in pods, and what their tasks say then: on a real cluster, and on one that was recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from laboratory import Outcome

FAILED = "RuntimeError: failed after the write, password=*** (exit code 1, Error (Kubernetes))"
EVICTED = "Evicted, The node was low on resource: memory."
GONE = ("KILLED", "UNKNOWN")  # it is deleted while it is looked at, or between two looks


@dataclass(frozen=True)
class Case:
    """How a program ends, by itself or because of what is done to its pod, and what its task says then.

    ``act`` is what is done to its pod when the program has written, ``arguments`` are those of the operator.
    """

    state: str
    driver: tuple[str, ...]
    error: str = ""
    end: str = "success"
    act: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    def check(self, outcome: Outcome, statuses: Callable[..., Any]) -> None:
        """Task, event and log say the same."""
        assert (outcome.error is None) == (self.state == "COMPLETE"), (outcome.error, outcome.printed)
        assert outcome.lineage is not None, outcome.printed
        status = outcome.lineage["run_facets"]["sparkLineage_status"]
        assert status["state"] == self.state, outcome.printed
        last, source = statuses(outcome, "DRIVER")[-1]
        assert last in self.driver
        assert source == "Kubernetes"
        assert self.error in status.get("error", "")
        assert self.error in (outcome.error or "")
        assert "hunter2" not in outcome.printed
        assert outcome.lineage["inputs"]
        assert len(outcome.lineage["outputs"]) == 1, outcome.printed


TRACKED, DEFERRED = {"track_driver_via_k8s_api": True}, {"deferrable": True}
CASES = {
    "success": Case("COMPLETE", ("FINISHED",)),
    "exception": Case("FAIL", ("FAILED",), FAILED, "exception"),
    "sys_exit": Case("FAIL", ("FAILED",), "exit code 1, Error (Kubernetes)", "sys_exit"),
    "killed": Case("FAIL", ("FAILED",), "exit code 137, Error (Kubernetes)", "killed", "kill"),
    "evicted": Case("FAIL", ("FAILED",), EVICTED, "killed", "evict"),
    "deleted": Case("FAIL", GONE, "", "killed", "delete"),
    "tracked success": Case("COMPLETE", ("FINISHED",), arguments=TRACKED),
    "tracked deleted": Case("FAIL", GONE, "the pod is gone (Kubernetes)", "killed", "delete", TRACKED),
    "deferred success": Case("COMPLETE", ("FINISHED",), arguments=DEFERRED),
    "deferred exception": Case("FAIL", ("FAILED",), FAILED, "exception", arguments=DEFERRED),
    "deferred evicted": Case("FAIL", ("FAILED",), EVICTED, "killed", "evict", DEFERRED),
    "deferred deleted": Case("FAIL", GONE, "the pod is gone (Kubernetes)", "killed", "delete", DEFERRED),
}
