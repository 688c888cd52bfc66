"""Kubernetes: what becomes of the pod of a driver in cluster mode, which is all that the API server knows of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

from spark_lineage.merge.transition import ENDED, Status, StatusReport, Subject
from spark_lineage.watch.pod import Pod, Told, way_of
from spark_lineage.watch.progress import StatusProgress, now
from spark_lineage.watch.rest import NoAnswerError, RestClient

_GONE = "the pod is gone"


class Kubernetes:
    """Asks ``/api/v1/namespaces/{namespace}/pods/{pod}`` of the API server.

    :param api_url: of the API server, without ``/`` at its end
    :param namespace: for a pod without one
    :param driver_id: gives ``{namespace}:{pod}``, as the Spark provider has it, or the pod; None while it is not known
    """

    name = "Kubernetes"
    first_seconds = 1.0

    def __init__(self, client: RestClient, api_url: str, namespace: str, driver_id: Callable[[], str | None]) -> None:
        self._client = client
        self._api_url = api_url
        self._namespace = namespace
        self._driver_id = driver_id
        self._progress = StatusProgress()
        self._application_id: str | None = None

    def poll(self) -> list[StatusReport]:
        """Return what the pod says of the driver, and of the application where its labels name it.

        A pod that was seen and is gone is ``UNKNOWN``, or ``KILLED`` if it was being deleted while it ran.

        :raises NoAnswerError: when there is no such pod (yet), or the API server does not tell; nothing else
        """
        driver_id = self._driver_id()
        if driver_id is None:
            return []
        namespace, _, pod_name = driver_id.rpartition(":")
        path = f"namespaces/{quote(namespace or self._namespace, safe='')}/pods/{quote(pod_name, safe='')}"
        asked = now()
        try:
            pod = self._client.get_json(f"{self._api_url}/api/v1/{path}", Pod)
        except NoAnswerError as error:
            last = self._progress.last("DRIVER", driver_id)
            if error.http_status != HTTPStatus.NOT_FOUND or last is None:
                raise
            return self._gone(last, asked)
        self._application_id = pod.application_id
        return self._reports(driver_id, way_of(pod, asked), asked)

    def _gone(self, last: StatusReport, asked: datetime) -> list[StatusReport]:
        if last.status in ENDED:
            return []
        status: Status = "KILLED" if last.status == "KILLING" else "UNKNOWN"
        return self._reports(last.subject_id, [Told(status, asked, _GONE)], asked)

    def _reports(self, driver_id: str, way: list[Told], asked: datetime) -> list[StatusReport]:
        subjects: list[tuple[Subject, str | None]] = [("DRIVER", driver_id), ("APPLICATION", self._application_id)]
        reports: list[StatusReport] = []
        for subject, subject_id in subjects:
            if subject_id is not None:
                whole = [
                    StatusReport(
                        subject=subject,
                        subject_id=subject_id,
                        status=told.status,
                        time=told.time,
                        source=self.name,
                        detail=told.detail,
                        exception=told.exception,
                    )
                    for told in way
                ]
                reports += self._progress.tell(*whole, asked=asked)
        return reports
