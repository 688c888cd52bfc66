"""``PySparkOperator`` and ``@task.pyspark``: a function of Python within the task's own process (provider 6.3).

PySpark starts the driver as a child of that process, with the properties that the operator gives it.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from spark_lineage import declare
from spark_lineage.adapters.adapter import GRACE_SECONDS, AdaptedTask, OperatorAdapter, local_submitter
from spark_lineage.inject.installation import pyspark_of_this_interpreter
from spark_lineage.inject.preparation import PreparedArguments, Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.bounded_run import ANSWER_SECONDS, TIMEOUT, BoundedRun, cut_off_by
from spark_lineage.launch.log import Guard, error_text
from spark_lineage.secrets.redaction import remember_values

REMOTE, _MASTER = "spark.remote", "spark.master"
# The scheme of the URL of a server of Spark Connect.
SERVER = "sc://"


@dataclass(eq=False)
class PySparkAdapter(OperatorAdapter):
    """Adapts the operator itself, which has no hook: what is added goes into its ``config_kwargs`` while it runs.

    The lineage is that of the event log. The class path of a JVM cannot be changed, and several tasks of
    ``airflow dags test`` share one.

    Upstream faults (6.3): a task that is killed leaves the JVM to work on until its own process ends. One whose time is
    over within a call of the JVM waits for the end of that call, and stops its session by a connection that is not in
    step any more.
    """

    takes_listener = False
    extra: Mapping[str, str] = field(kw_only=True, repr=False)
    """Of the connection: the operator takes it for Spark properties."""
    master: str = field(kw_only=True)
    remote: str = field(kw_only=True, repr=False)
    """The URL of a server of Spark Connect, which may hold a token; empty without one."""
    guard: Guard = field(kw_only=True)

    def __post_init__(self) -> None:
        self._has_ended = self._is_cut_off = False
        self._error = ""
        self._target: Mapping[str, str] = {}
        self._users, self._run_stock = self.hook.config_kwargs, self.hook.execute_callable
        vars(self.hook)["execute_callable"] = self._run

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> PySparkAdapter:  # noqa: ARG003
        """Attach to an operator, which is its own hook."""
        from spark_lineage.adapters.spark_connect import SparkConnectAdapter

        extra = {str(key): str(value) for key, value in task.places.extra.items()}
        has_master = task.places.has_connection and not task.places.master.endswith("://")
        master = task.places.master if has_master else "local[*]"
        remote = master if master.startswith(SERVER) else ""
        if master.startswith("spark_connect://"):
            # As the operator asks for it.
            from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

            remote = SparkConnectHook(operator.conn_id).get_connection_url()
        remote = str(operator.config_kwargs.get(REMOTE) or remote or extra.get(REMOTE, ""))
        # PySpark starts the server of any other URL itself, with the properties of a driver.
        kind = SparkConnectAdapter if remote.startswith(SERVER) else PySparkAdapter
        before, is_killed = task.before_submit, task.is_killed
        return kind(operator, before, is_killed, guard=task.guard, extra=extra, master=master, remote=remote)

    @property
    def submitter(self) -> Submitter:
        """How PySpark is going to start the driver."""
        env = dict(os.environ)
        if home := env.get("SPARK_HOME") or pyspark_of_this_interpreter():
            env["SPARK_HOME"] = str(home)
        master = self.remote.partition(";")[0] or self.arguments.conf.get(_MASTER) or self.master
        return local_submitter(master, "spark-submit", env)

    @property
    def arguments(self) -> SubmitArguments:
        """The extra of the connection, and above it ``config_kwargs``."""
        own = {str(key): str(value) for key, value in self._users.items()}
        return SubmitArguments({**self.extra, **own})

    def inject(self, prepared: PreparedArguments) -> None:
        """Add what was prepared to ``config_kwargs``."""
        self.hook.config_kwargs = {**self._users, **self.added(prepared)}
        self._target = prepared.declares

    def mark(self, launch_id: str, deploy_mode: str, tags: str) -> None:
        """Mark nothing: the environment of the task's process is the user's."""

    def remember_secrets(self) -> None:
        """Learn the secrets of the job, of which those that the function gets are texts."""
        given = {key: value for key, value in self.hook.op_kwargs.items() if isinstance(value, str)}
        remember_values({**os.environ, **given, **self.arguments.conf, REMOTE: self.remote})

    @property
    def has_driver_ended(self) -> bool:
        """Whether the function has returned, and its session was stopped."""
        return self._has_ended

    def explain(self) -> str:
        """Return the error of the function."""
        return self._error

    def kill(self) -> None:
        """End the JVM, whose event log is whole then."""
        process = _jvm()
        if process is not None and not (self._has_ended or self._is_cut_off):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            process.kill()

    def _run(self) -> Any:
        # Another execution of this object has an adapter of its own.
        vars(self.hook).pop("execute_callable", None)
        function = self.hook.python_callable
        self.hook.python_callable = self._observed(function)
        try:
            self.begin()
            if self.observer is not None:
                self.driver.process_id = os.getpid()
                self.observer.started(os.getpid())
            declare.set_target(self._target or None)
            return self._run_stock()
        except BaseException as error:
            # The function may have put more into the environment.
            self.remember_secrets()
            self._error = error_text(error)
            self._is_cut_off = bool(cut_off_by(error))
            raise
        finally:
            self._has_ended = not (self._is_cut_off or self.is_killed())
            declare.set_target(None)
            self.hook.config_kwargs, self.hook.python_callable = self._users, function

    def _observed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def observed(*arguments: Any, **keywords: Any) -> Any:
            with self._in_time(keywords.get("spark")):
                return function(*arguments, **keywords)

        @functools.wraps(function)
        def generating(*arguments: Any, **keywords: Any) -> Any:
            with self._in_time(keywords.get("spark")):
                return (yield from function(*arguments, **keywords))

        # Airflow runs the body of a generator, and takes what else returns one for its result.
        return generating if inspect.isgeneratorfunction(function) else observed

    @contextmanager
    def _in_time(self, spark: Any) -> Iterator[None]:
        """Run the function with its session, whose work ends with the time of the task.

        The function may catch the error of the time-out, and clean up or go on with its session. So what it waits for
        within PySpark is interrupted before that error is raised, and the rest of the work ends after the function.
        """
        self._learn_session(spark)
        raise_timeout = signal.getsignal(signal.SIGALRM)

        def end_in_time(number: int, frame: FrameType | None) -> None:
            if _is_in_pyspark(frame):
                # Each thread has a connection of its own.
                BoundedRun(self._interrupt, "spark-lineage-timeout").wait(ANSWER_SECONDS)
                self._leave_call()
            raise_timeout(number, frame)  # type: ignore[operator,misc]

        # Airflow sets a handler where the task has a time-out, which only the main thread can have.
        if callable(raise_timeout) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGALRM, end_in_time)
        try:
            yield
        except BaseException as error:
            if cut_off_by(error) == TIMEOUT:
                # The JVM goes on, and may run other functions.
                BoundedRun(self._end_work, "spark-lineage-timeout").wait(ANSWER_SECONDS)
            raise
        finally:
            if signal.getsignal(signal.SIGALRM) is end_in_time:
                signal.signal(signal.SIGALRM, raise_timeout)

    def _learn_session(self, spark: Any) -> None:
        """Learn the session of the function, where its driver is elsewhere."""

    def _interrupt(self) -> None:
        """Interrupt what the driver does, which PySpark's own ``finally`` waits for."""
        with suppress(Exception):
            sys.modules["pyspark"].SparkContext._active_spark_context.cancelAllJobs()

    def _leave_call(self) -> None:
        """Leave the call of the JVM that the time-out has cut off: its answer would be that of the next call."""
        with suppress(AttributeError):
            sys.modules["pyspark"].SparkContext._gateway._gateway_client.thread_connection.connection = None

    def _end_work(self) -> None:
        """End what the driver does for the function."""
        with suppress(Exception):
            sys.modules["pyspark"].SparkContext._active_spark_context.stop()


def _is_in_pyspark(frame: FrameType | None) -> bool:
    """Return whether PySpark, or its bridge to the JVM, is being called."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in ("pyspark", "py4j"):
            return True
        frame = frame.f_back
    return False


def _jvm() -> subprocess.Popen[bytes] | None:
    """Return the process that PySpark has started in this one; None where there is none."""
    with suppress(AttributeError):
        return sys.modules["pyspark"].SparkContext._gateway.proc  # type: ignore[no-any-return]
    return None
