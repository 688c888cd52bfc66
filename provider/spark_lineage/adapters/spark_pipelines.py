"""``SparkPipelinesOperator`` over Spark Connect: a client on this machine, and a server that others use (provider 6.3).

With a classic master the operator cannot run: its hook passes ``--master``, which ``spark-pipelines`` refuses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from spark_lineage.adapters.adapter import AdaptedTask, OperatorAdapter, local_submitter
from spark_lineage.adapters.spark_connect import ASKED, follow_session, session_of, with_session
from spark_lineage.inject.preparation import PreparedArguments, Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.bounded_run import ANSWER_SECONDS
from spark_lineage.launch.log import Guard, Log
from spark_lineage.secrets.redaction import redact_name, remember_values

_REMOTE = "SPARK_REMOTE"
# In a session of its own, which it closes: that of the pipeline is its client's.
_ASK = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(json.dumps({key: spark.conf.get(key, "") for key in sys.argv[1:]}))
spark.stop()
"""


@dataclass(eq=False)
class SparkPipelinesAdapter(OperatorAdapter):
    """Adapts the hook of spark-pipelines: the session has an id, by which its flows are found in the server's log.

    Upstream faults (6.3): ``conf`` does not reach the server, and its flows go on where the task is killed. They are
    not interrupted: Spark 4.2 cancels by the tag of an operation, and threads with it run flows of other pipelines.
    """

    takes_listener = False
    guard: Guard = field(kw_only=True)

    def __post_init__(self) -> None:
        hook = self.hook
        self._log = hook._log = Log(hook.log, redact_name)
        self._run_stock, self._read_stock = hook.submit_pipeline, hook._process_spark_submit_log
        self._users = dict(hook._env_vars or {})
        self._remote = str(self._users.get(_REMOTE) or hook._connection.get("spark_remote") or "")
        vars(hook).update(submit_pipeline=self._run, _process_spark_submit_log=self._read)

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> Self:  # noqa: ARG003
        """Attach to a hook.

        :raises NotImplementedError: for a classic master
        """
        adapter = cls(hook, task.before_submit, task.is_killed, guard=task.guard)
        if not adapter._remote:
            raise NotImplementedError("spark-pipelines refuses the --master of its operator; use Spark Connect")
        return adapter

    @property
    def submitter(self) -> Submitter:
        """How the client is going to be run."""
        env = {**os.environ, **{key: str(value) for key, value in self._users.items()}}
        return local_submitter(self._remote.partition(";")[0], "spark-pipelines", env)

    @property
    def arguments(self) -> SubmitArguments:
        """Return nothing: the server has its properties."""
        return SubmitArguments({})

    def mark(self, launch_id: str, deploy_mode: str, tags: str) -> None:
        """Mark the client, and choose the id of the session, unless the user has one."""
        super().mark(launch_id, deploy_mode, tags)
        self.session_id = session_of(self._remote) or launch_id

    def inject(self, prepared: PreparedArguments) -> None:  # noqa: ARG002
        """Add the id of the session to the URL of the server."""
        self.env = {_REMOTE: with_session(self._remote, self.session_id)}

    def remember_secrets(self) -> None:
        """Learn the secrets of the job."""
        remember_values({**self.submitter.env, _REMOTE: self._remote})

    @property
    def has_driver_ended(self) -> bool:
        """Whether the client has ended."""
        process: subprocess.Popen[str] | None = self.hook._submit_sp
        return process is not None and process.returncode is not None

    def _run(self, **popen: Any) -> None:
        self.hook._env_vars = {**self._users, **self.begin()}
        asking = self._asking()
        try:
            self._run_stock(**popen)
        finally:
            if (process := self.hook._submit_sp) is not None:
                self.driver.exit_code = process.poll()
            with self.guard("The lineage of the pipeline is not collected", can_fail=False):
                self._find_log(asking)

    def _read(self, lines: Iterator[str]) -> None:
        process: subprocess.Popen[str] = self.hook._submit_sp
        self.driver.process_id = process.pid
        if self.is_killed():
            # on_kill came before there was a process.
            process.kill()
        if self.observer is not None:
            self.observer.started(process.pid)
        self._read_stock(self.observe(line) for line in lines)

    def _asking(self) -> subprocess.Popen[bytes]:
        remote = self._remote.replace(f";session_id={session_of(self._remote)}", "")
        env = {**self.submitter.env, _REMOTE: remote}
        command = [sys.executable, "-W", "ignore", "-c", _ASK, *ASKED]
        return subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def _find_log(self, asking: subprocess.Popen[bytes]) -> None:
        found: Mapping[str, str] = {}
        with suppress(ValueError):
            found = json.loads(_answer(asking))
        follow_session(self.driver, found)
        if self.observer is not None and self.driver.process_id is not None:
            self.observer.started(self.driver.process_id)


def _answer(asking: subprocess.Popen[bytes]) -> bytes:
    """Return what a process prints; empty where it takes too long, and is ended."""
    with asking, suppress(subprocess.TimeoutExpired):
        try:
            return asking.communicate(timeout=ANSWER_SECONDS)[0]
        finally:
            asking.kill()
    return b""
