"""Waits for a Spark History Server, or until it shows that an application has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseSensorOperator

from spark_lineage.launch.log import Log
from spark_lineage.secrets.redaction import clean_errors

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class SparkHistoryServerSensor(BaseSensorOperator):
    """Wait until the History Server of a Spark connection answers, or has the whole event log of an application.

    The end of the log says nothing about success. The log of a driver that was killed has no end: give a ``timeout``.

    :param conn_id: the Spark connection, whose extra has ``history_server_url`` and ``status_conn_id``
        (templated)
    :param application_id: of the application, such as ``application_1700000000000_0001``; without one, the sensor
        waits for the server itself (templated)
    """

    template_fields: Sequence[str] = ("conn_id", "application_id")

    def __init__(self, *, conn_id: str = "spark_default", application_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id
        self.application_id = application_id

    @clean_errors()
    def poke(self, context: Context) -> bool:  # noqa: ARG002
        """Ask once; ``/api/v1/version``, or ``/api/v1/applications/{id}``.

        :raises SettingError: when the connection names no History Server, or in a way that does not fit
        """
        # A scheduler that only reads the DAG needs none of them.
        from spark_lineage.http_client import NoAnswerError
        from spark_lineage.settings import SettingError
        from spark_lineage.submission.history_log import HistoryLogs
        from spark_lineage.supervision.health import endpoints_of

        endpoints = endpoints_of(self.conn_id)
        if not endpoints.history_server_url:
            raise SettingError(f"the extra of the connection {self.conn_id} has no history_server_url; set it")
        if self.application_id == "":
            raise SettingError("application_id is empty: its template gave nothing; name one, or leave it out")
        server = HistoryLogs(endpoints)
        try:
            if self.application_id is not None:
                return server.is_over(self.application_id)
            Log(self.log).info("The History Server is up: Spark %s", server.version())
        except NoAnswerError as error:
            Log(self.log).info("No answer: %s", error)
            return False
        return True
