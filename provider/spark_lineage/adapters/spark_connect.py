"""``PySparkOperator`` over Spark Connect: the driver is a server that runs the sessions of others as well."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_lineage.adapters.spark_pyspark import REMOTE, PySparkAdapter
from spark_lineage.inject.preparation import PreparedArguments

if TYPE_CHECKING:
    from spark_lineage.launch.driver import Driver

ASKED = ("spark.app.id", "spark.eventLog.enabled", "spark.eventLog.dir")
# Spark's own default.
_DEFAULT_DIRECTORY = "/tmp/spark-events"  # noqa: S108


@dataclass(eq=False)
class SparkConnectAdapter(PySparkAdapter):
    """Gives the session an id, by which its executions are found in the event log of the server.

    No property is added: those of a session are not those of the application, and the server writes its log or not.

    Upstream fault (6.3): the server goes on with what a task was doing that is killed.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._client: Any = None

    def mark(self, launch_id: str, deploy_mode: str, tags: str) -> None:  # noqa: ARG002
        """Choose the id of the session, unless the user has one."""
        self.session_id = session_of(self.remote) or launch_id

    def inject(self, prepared: PreparedArguments) -> None:
        """Add the id of the session to the URL of the server."""
        self.hook.config_kwargs = {**self._users, REMOTE: with_session(self.remote, self.session_id)}
        self._target = prepared.declares

    def kill(self) -> None:
        """Interrupt what the server does for the session."""
        if not self._has_ended:
            self._end_work()

    def _interrupt(self) -> None:
        self._end_work()

    def _leave_call(self) -> None:
        """Leave nothing: each call of a server is by itself."""

    def _end_work(self) -> None:
        if self._client is not None:
            with suppress(Exception):
                self._client.interruptAll()

    def _learn_session(self, spark: Any) -> None:
        """Ask the server for its event log, and have it read."""
        self._client = spark
        with self.guard("The lineage of the session is not collected"):
            follow_session(self.driver, {key: spark.conf.get(key, "") for key in ASKED})
            if self.observer is not None:
                self.observer.started(os.getpid())


def session_of(remote: str) -> str:
    """Return the id of the session that a URL names; empty for none."""
    named = [part for part in remote.split(";") if part.startswith("session_id=")]
    return named[0].partition("=")[2] if named else ""


def with_session(remote: str, session_id: str) -> str:
    """Return the URL of a server with the id of a session (``ChannelBuilder``: its parameters begin behind ``/;``)."""
    if session_of(remote):
        return remote
    has_path = "/" in remote.removeprefix("sc://")
    return f"{remote.rstrip(';')}{'' if has_path else '/'};session_id={session_id}"


def follow_session(driver: Driver, conf: Mapping[str, str]) -> None:
    """Note which application a server is, and where it logs.

    :param conf: what the server says of ``ASKED``, empty where it has nothing
    """
    application_id, enabled, given = (conf.get(key, "") for key in ASKED)
    driver.application_id, driver.logged_ids = application_id or None, (application_id,)
    # An empty place is that of no log.
    driver.event_logs = (given or _DEFAULT_DIRECTORY if enabled == "true" else "",)
