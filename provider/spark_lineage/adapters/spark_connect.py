"""``PySparkOperator`` over Spark Connect: the driver is a server that runs the sessions of others as well."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spark_lineage.adapters.spark_pyspark import REMOTE, PySparkAdapter
from spark_lineage.inject.preparation import PreparedArguments
from spark_lineage.launch.directory import local_directory

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
        users = [part for part in self.remote.split(";") if part.startswith("session_id=")]
        self.session_id = users[0].partition("=")[2] if users else launch_id

    def inject(self, prepared: PreparedArguments) -> None:
        """Add the id of the session to the URL of the server."""
        remote, address = self.remote, f";session_id={self.session_id}"
        if address not in remote:
            # The parameters of the URL begin behind "/;".
            has_path = "/" in remote.removeprefix("sc://")
            self.hook.config_kwargs = {**self._users, REMOTE: f"{remote}{'' if has_path else '/'}{address}"}
        self._target = prepared.declares

    def kill(self) -> None:
        """Interrupt what the server does for the session."""
        if self._client is not None and not self._has_ended:
            with suppress(Exception):
                self._client.interruptAll()

    def _run(self) -> Any:
        function = self.hook.python_callable
        self.hook.python_callable = self._observed(function)
        try:
            return super()._run()
        finally:
            self.hook.python_callable = function

    def _observed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def observed(*arguments: Any, **keywords: Any) -> Any:
            self._client = keywords.get("spark")
            with self.guard("The lineage of the session is not collected"):
                self._find_log()
            return function(*arguments, **keywords)

        return observed

    def _find_log(self) -> None:
        """Ask the server for its event log, and have it read.

        :raises FileNotFoundError: where there is none that can be read here
        """
        conf = self._client.conf
        is_enabled = conf.get("spark.eventLog.enabled", "false") == "true"
        given = conf.get("spark.eventLog.dir", _DEFAULT_DIRECTORY)
        directory = local_directory(given) if is_enabled else None
        if directory is None or not os.access(directory, os.R_OK | os.X_OK):
            why = f"its spark.eventLog.dir {given} cannot be read here" if is_enabled else "it writes no event log"
            raise FileNotFoundError(
                f"Nothing is known of what the Spark Connect server does: {why}. Set spark.eventLog.enabled=true for "
                "the server, and a spark.eventLog.dir that the worker can read."
            )
        self.driver.application_id = conf.get("spark.app.id")
        self.driver.logged_ids, self.driver.event_logs = (self.driver.application_id,), (directory,)
        if self.observer is not None:
            self.observer.started(os.getpid())
