"""Spark's standalone master: what its REST server says of a driver that was submitted in cluster mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote

from msgspec import Struct

from spark_lineage.merge.transition import StatusReport
from spark_lineage.watch.address import place_of
from spark_lineage.watch.failover import first_answer
from spark_lineage.watch.progress import now, translated
from spark_lineage.watch.rest import NoAnswerError, RestClient
from spark_lineage.watch.standalone import DRIVER_STATE


class _Submission(Struct, rename="camel"):
    """Of ``org.apache.spark.deploy.rest.SubmissionStatusResponse``."""

    success: bool | None = None
    driver_state: str | None = None
    message: str | None = None


class StandaloneSubmissions:
    """Asks ``/v1/submissions/status/{driverId}`` of the masters' REST servers (6066), which tell errors too.

    :param urls: of all masters, without ``/`` at their ends; a standby one has no driver
    :param driver_id: gives the id, None while it is not known
    """

    name = "standalone REST server"
    first_seconds = 1.0

    def __init__(self, client: RestClient, urls: Sequence[str], driver_id: Callable[[], str | None]) -> None:
        self._client = client
        self._urls = urls
        self._driver_id = driver_id

    def poll(self) -> list[StatusReport]:
        """Return what the first master that knows the driver says of it; it tells no times.

        :raises NoAnswerError: when no master knows it; nothing else
        """
        driver_id = self._driver_id()
        if driver_id is None:
            return []
        answer = first_answer(self._urls, lambda url: self._ask(url, driver_id))
        return [self._report(driver_id, answer)]

    def _ask(self, url: str, driver_id: str) -> _Submission:
        answer = self._client.get_json(f"{url}/v1/submissions/status/{quote(driver_id, safe='')}", _Submission)
        if not answer.success or not answer.driver_state:
            raise NoAnswerError(f"{place_of(url)} does not know {driver_id}")
        return answer

    def _report(self, driver_id: str, answer: _Submission) -> StatusReport:
        return StatusReport(
            subject="DRIVER",
            subject_id=driver_id,
            status=translated(answer.driver_state, DRIVER_STATE),
            time=now(),
            source=self.name,
            detail=answer.driver_state or "",
            exception=answer.message or "",
        )
