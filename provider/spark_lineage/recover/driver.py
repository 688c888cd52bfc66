"""What has become of the driver of a lost try, and how that is told in the timeline and in the error."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spark_lineage.merge.transition import ENDED, Status, StatusReport

if TYPE_CHECKING:
    from spark_lineage.launch.launch import Launch
    from spark_lineage.watch.task_watch import TaskWatch

_AIRFLOW = "Airflow"


class LostDriver:
    """The driver of a launch whose try is over.

    :param is_ended_here: whether processes of it were found on this host, and ended
    """

    def __init__(self, launch: Launch, watch: TaskWatch, *, is_ended_here: bool) -> None:
        self._launch = launch
        self._watch = watch
        self._is_ended_here = is_ended_here
        self._is_client = launch.deploy_mode == "client"
        # As the session calls it.
        process = "?" if launch.process_id is None else launch.process_id
        self._name = f"{launch.host}:{process}" if self._is_client else launch.external_id or ""
        watch.driver_id = self._name
        self._detail = ""

    def conclude(self, applications: Iterable[str]) -> None:
        """Tell the end of what nobody has told the end of, as far as that is certain.

        In cluster mode the end of the driver is for the cluster manager to tell.
        """
        known = self._watch.applications(applications)
        if self._is_client:
            status, self._detail = self._in_client_mode(has_application_ended=self._have_ended(known))
            self._tell_driver(status)
        else:
            status, self._detail = self._watch.driver_status or "UNKNOWN", "the driver has ended"
        if status in ENDED:
            self._watch.end_applications(status, _AIRFLOW, self._detail, known)

    def error(self, words: str) -> str:
        """Say why the try did not succeed.

        :param words: Airflow's own, which come first
        """
        return "\n".join(filter(None, (words, self._sentence())))

    def _in_client_mode(self, *, has_application_ended: bool) -> tuple[Status, str]:
        if self._is_ended_here:
            return "KILLED", "its task was lost, and it was ended"
        if self._launch.host != socket.gethostname():
            return "UNKNOWN", f"its task was lost; it may still run on {self._launch.host}"
        if has_application_ended:
            return "UNKNOWN", "its task was lost; nobody saw its exit code"
        return "FAILED", "its task was lost, and it is gone without having told an end"

    def _sentence(self) -> str:
        if not self._name:
            return "The task was lost before its driver was submitted."
        if self._is_client:
            return f"The driver {self._name}: {self._detail}."
        driver = self._watch.driver_status
        if driver in ENDED:
            return f"The task was lost; its driver ended as {driver}: {self._watch.driver_error}"
        if driver in (None, "UNKNOWN"):
            return f"The task was lost; what has become of its driver {self._name} is not known."
        return f"The task was lost; its driver {self._name} goes on ({driver})."

    def _have_ended(self, applications: Iterable[str]) -> bool:
        statuses = [self._watch.log.status("APPLICATION", each) for each in applications]
        return bool(statuses) and all(status in ENDED for status in statuses)

    def _tell_driver(self, status: Status) -> None:
        self._watch.log.tell(
            StatusReport(
                subject="DRIVER",
                subject_id=self._name,
                status=status,
                time=datetime.now(UTC),
                source=_AIRFLOW,
                detail=self._detail,
            )
        )
