"""``SparkSubmitOperator`` and its hook: what they submit, spark-submit's arguments, and its log (provider 6.3)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Self

from spark_lineage.adapters.adapter import GRACE_SECONDS, AdaptedTask, OperatorAdapter
from spark_lineage.adapters.driver_output import in_bursts
from spark_lineage.adapters.processes import end_processes
from spark_lineage.inject.preparation import NO_PYTHON, PreparedArguments, Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BoundedRun
from spark_lineage.launch.log import Log
from spark_lineage.secrets.redaction import redact, redact_command, redact_name, remember_values
from spark_lineage.watch.endpoints import unknown_seconds

_FLAGS = ("jars", "driver_class_path", "packages", "py_files")
_ARGUMENTS = ("_conf", "_properties_file", *(f"_{name}" for name in _FLAGS))
_CURL = "/usr/bin/curl"
# Prints an answer as curl does: of the URL, to the method. Of too many failures the hook would make an end.
_ASK = """
import sys
from urllib.request import Request, urlopen
url, method = sys.argv[1:]
try:
    with urlopen(Request(url, b"" if method == "POST" else None, method=method), timeout=30) as answer:
        print(answer.read().decode())
except OSError as error:
    print(error)
    sys.exit(method == "POST")
"""


@dataclass(eq=False)
class SparkSubmitAdapter(OperatorAdapter):
    """Adapts the hook of spark-submit.

    Upstream faults (6.3) besides those of single methods: a killed job may leave its Python driver running
    (``end_processes``), one that is killed before ``Popen`` is submitted all the same (``_submit``, ``_process_log``),
    and values of secret keys are printed from their first space on (``_mask``).

    :param unknown_seconds: for how long nobody may know what a remote driver does
    """

    unknown_seconds: float = 600.0

    def __post_init__(self) -> None:
        hook = self.hook
        self._application = ""
        self._added: frozenset[str] = frozenset()
        self._added_env: Mapping[str, str] = {}
        self._injected: Mapping[str, tuple[Any, Any]] = {}
        self._log = hook._log = Log(hook.log, redact_name)
        self._original_submit: Callable[..., str | None] = hook.submit
        self._original_log = hook._process_spark_submit_log
        self._original_mask = hook._mask_cmd
        self._original_build = hook._build_spark_submit_command
        for name in ("_build_track_driver_status_command", "_build_spark_driver_kill_command"):
            vars(hook)[name] = partial(_without_curl, getattr(hook, name))
        if hasattr(hook, "_poll_k8s_driver_via_api"):
            hook._poll_k8s_driver_via_api = partial(self._poll_pod, hook._poll_k8s_driver_via_api)
        self._unknown_since: float | None = None
        for name, ask in (
            ("_process_spark_status_log", self._status_of_driver),
            ("_query_yarn_application_status", self._answer_of_yarn),
        ):
            if hasattr(hook, name):
                vars(hook)[name] = partial(ask, getattr(hook, name))
        vars(hook).update(submit=self._submit, _process_spark_submit_log=self._process_log)
        vars(hook).update(_mask_cmd=self._mask, _build_spark_submit_command=self._build)

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> Self:
        """Attach to a hook, and have the Spark provider follow a driver that runs in a cluster."""
        with task.guard("The Spark provider alone follows the driver", can_fail=False):
            if is_followed(operator, hook):
                from spark_lineage.adapters.cluster import follow_driver

                follow_driver(operator, hook, task)
        seconds = unknown_seconds(task.places.extra)
        return cls(hook, task.before_submit, task.is_killed, unknown_seconds=seconds)

    @property
    def submitter(self) -> Submitter:
        """How spark-submit is going to be run."""
        hook = self.hook
        return Submitter(
            master=str(hook._connection["master"]),
            spark_binary=str(hook._connection["spark_binary"]),
            env=environment(hook),
            properties_file=hook._properties_file,
            repositories=[name for name in (hook._repositories or "").split(",") if name],
            deploy_mode=self._deploy_mode,
            application=self._application,
            named=[*map(str, hook._application_args or ()), *(hook._files or "").split(",")],
        )

    @property
    def arguments(self) -> SubmitArguments:
        """The arguments of spark-submit that concern lineage."""
        hook = self.hook
        return SubmitArguments(
            conf={str(key): str(value) for key, value in hook._conf.items()},
            **{name: getattr(hook, f"_{name}") for name in _FLAGS},
        )

    def mark(self, launch_id: str, deploy_mode: str, tags: str) -> None:
        """Mark the processes on this machine, and tag the YARN application, beside the tags of the user."""
        is_on_yarn = master_of(self.hook).startswith("yarn")
        if deploy_mode == "client" or is_on_yarn:
            self.launch_id = launch_id
        if deploy_mode == "cluster" and is_on_yarn:
            self.hook._conf = {**self.hook._conf, "spark.yarn.tags": ",".join(filter(None, (tags, launch_id)))}

    def inject(self, prepared: PreparedArguments) -> None:
        """Pass what was prepared to spark-submit."""
        hook, arguments = self.hook, prepared.arguments
        user = self.arguments
        values = [f"{key}={value}" for key, value in arguments.conf.items() if key not in user.conf]
        values += [getattr(arguments, name) or "" for name in _FLAGS if not getattr(user, name)]
        if not hook._properties_file:
            values.append(str(prepared.properties_file or ""))
        self._added = frozenset(filter(None, values))
        self._log.debug("Added for lineage: %s", values)
        # A new dict: the operator's own must not change, and backends of the provider add to the hook's afterwards.
        hook._conf = dict(arguments.conf)
        for name in _FLAGS:
            setattr(hook, f"_{name}", getattr(arguments, name))
        if prepared.properties_file is not None:
            hook._properties_file = str(prepared.properties_file)

    def _deploy_mode(self, file_properties: Mapping[str, str]) -> str:
        """``client`` or ``cluster``: of the connection, then ``spark.submit.deployMode``, then Spark's default."""
        remember_values(file_properties)
        properties = {**file_properties, **self.hook._conf}
        return str(self.hook._connection["deploy_mode"] or properties.get("spark.submit.deployMode") or "client")

    @property
    def has_driver_ended(self) -> bool:
        """Whether spark-submit has ended; the user's post-submit commands may still run."""
        process: subprocess.Popen[str] | None = self.hook._submit_sp
        return process is not None and process.returncode is not None

    def remember_secrets(self) -> None:
        """Learn the secrets of the job: whoever prints one of them later prints it without its key."""
        remember_values(self.submitter.env)
        remember_values(self.hook._conf)
        arguments = [str(argument) for argument in self.hook._application_args or ()]
        remember_values(dict(pairwise(arguments)))
        remember_values(dict(argument.split("=", 1) for argument in arguments if "=" in argument))

    def _submit(self, application: str = "", **kwargs: Any) -> str | None:
        self._application = application
        self._restore()
        users = {name: getattr(self.hook, name) for name in _ARGUMENTS}
        self._added_env = self.begin()
        self._injected = {name: (users[name], copy(getattr(self.hook, name))) for name in _ARGUMENTS}
        if self._added_env:
            kwargs["env"] = {**(kwargs.get("env") or os.environ), **self._added_env}
        self.output.host = self.submitter.env.get("SPARK_LOCAL_IP") or self.output.host
        is_standalone = master_of(self.hook).startswith("spark://")
        if is_standalone and application.endswith(".py") and self._deploy_mode({}) == "cluster":
            self._log.warning("Spark refuses this job: %s. %s", *NO_PYTHON)
        try:
            return self._original_submit(application, **kwargs)
        except Exception:
            # Upstream fault: whatever fails in this process leaves the driver writing beside the retry.
            self._end_driver()
            raise
        finally:
            self._learn_external_id()
            if self.is_killed() and getattr(self.hook, "_kubernetes_driver_pod", None):
                # Its name may have come after on_kill had looked for it.
                BoundedRun(self.hook._delete_driver_pod, "spark-lineage-kill").wait(ANSWER_SECONDS)
            process: subprocess.Popen[str] | None = self.hook._submit_sp
            self.driver.exit_code = process.returncode if process is not None else None
            if self.driver.exit_code and self.launch_id:
                # A Python driver may not see that its JVM is gone, and would go on as long as it likes. What the
                # program leaves behind besides is its own affair.
                program = [application, *map(str, self.hook._application_args or ())]
                end_processes(self.launch_id, GRACE_SECONDS, program=program)

    def _restore(self) -> None:
        """Take out what an earlier submission by this hook has added: its files are removed."""
        for name, (users, injected) in self._injected.items():
            if (present := getattr(self.hook, name)) == injected:
                setattr(self.hook, name, users)
            elif name == "_conf":
                # The user has changed it since.
                own = {key: value for key, value in present.items() if value != injected.get(key)}
                self.hook._conf = {**{key: users[key] for key in users if key in present}, **own}

    def _end_driver(self) -> None:
        """End a driver in client mode that still runs."""
        process: subprocess.Popen[str] | None = self.hook._submit_sp
        if process is not None and process.poll() is None and self._deploy_mode({}) == "client":
            self._log.warning("The task fails while its driver still runs: the driver is ended.")
            end_processes(self.launch_id, GRACE_SECONDS)
            # The error that ends the task is told, not that of its driver.
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)

    def _build(self, application: str) -> list[str]:
        command: list[str] = self._original_build(application)
        if self.hook._env:
            # The hook makes an environment of these alone. Beside env_vars, ours would be on YARN's command line, too.
            self.hook._env = {**self.hook._env, **self._added_env}
        return command

    def _process_log(self, lines: Iterator[Any]) -> None:
        process: subprocess.Popen[str] = self.hook._submit_sp
        self.driver.process_id = process.pid
        if self.is_killed():
            # on_kill came before there was a process.
            process.kill()
        if self.observer is not None:
            self.observer.started(process.pid)
        if isinstance(process.stdout, io.TextIOWrapper):
            # Upstream fault: a byte that is not UTF-8 fails the task.
            process.stdout.reconfigure(errors="replace")
        self._original_log(self._tapped(in_bursts(lines, process.stdout)))

    def _tapped(self, lines: Iterator[Any]) -> Iterator[str]:
        for line in lines:
            masked = self.observe(line)
            self._log.masked_line = masked.strip()
            yield masked
            if self.driver.driver_id is None:
                self._learn_external_id()

    def _status_of_driver(self, process: Callable[[Iterator[Any]], None], lines: Iterator[Any]) -> None:
        """Take what a standalone master says of a driver.

        Upstream fault (6.3): a master that is away for some seconds, or does not know yet what it has recovered, fails
        the task, while the driver goes on.
        """
        self.hook._driver_status = None
        process(lines)
        if self.hook._driver_status in {None, "UNKNOWN"}:
            self._note_unknown(self.hook._driver_status or "its master does not answer")
            self.hook._driver_status = None
        else:
            self._note_known()

    def _answer_of_yarn(self, ask: Callable[[str], Any], application_id: str) -> Any:
        """Return what YARN says; the same fault, of a ResourceManager that is away for two minutes."""
        while True:
            try:
                answer = ask(application_id)
            except RuntimeError as error:
                self._note_unknown(error)
                time.sleep(self.hook._status_poll_interval)
            else:
                self._note_known()
                return answer

    def _note_known(self) -> None:
        self._unknown_since = None
        self._wait()

    def _wait(self) -> None:
        if self.observer is not None:
            self.observer.waiting()

    def _note_unknown(self, problem: object) -> None:
        """Note that nobody knows what a remote driver does.

        :raises LookupError: when that has lasted for too long
        """
        self._wait()
        now = time.monotonic()
        log = self._log.warning if self._unknown_since is None else self._log.debug
        log("It is not known what the driver does: %s", problem)
        self._unknown_since = self._unknown_since or now
        if now - self._unknown_since >= self.unknown_seconds:
            text = f"Nobody has known for {self.unknown_seconds:g} s what the driver does ({problem})"
            raise LookupError(f"{text}: its end is not known; it may still run")

    def _poll_pod(self, poll: Callable[[], str | None]) -> str | None:
        """Wait for a pod as the hook does.

        Upstream fault (6.3): a pod that is gone counts as a success, also where it was evicted or deleted.
        """
        phase = poll()
        if phase is None and not (self.observer is not None and self.observer.has_finished):
            raise RuntimeError(f"{self.driver.driver_id} is gone, and was not seen to succeed")
        return phase

    def _learn_external_id(self) -> None:
        """Ask the hook for the id that its operator stores: driver id, YARN application id, or namespace and pod."""
        hook = self.hook
        try:
            pod, namespace = hook._kubernetes_driver_pod, hook._connection["namespace"]
            driver_pod = f"{namespace}:{pod}" if pod and namespace else None
            external_id = hook._driver_id or hook._yarn_application_id or driver_pod
        except (AttributeError, KeyError):
            # Another version of the provider: no re-attachment then, but the job goes on.
            return
        if external_id and external_id != self.driver.driver_id:
            self.driver.driver_id = external_id
            if self.observer is not None:
                self.observer.submitted(external_id)

    def _mask(self, connection_cmd: str | list[str]) -> str:
        # The hook's own masking knows the words "secret" and "password" only, and takes a value to end at a space.
        if isinstance(connection_cmd, list) and len(connection_cmd) > 1:
            # As the user knows it: thirty more properties would hide theirs.
            following = (*connection_cmd[1:], "")
            shown = [
                argument
                for argument, value in zip(connection_cmd, following, strict=True)
                if argument not in self._added and not (argument.startswith("--") and value in self._added)
            ]
            connection_cmd = redact_command(shown)
        return redact(self._original_mask(connection_cmd))


def _without_curl(build_command: Callable[[], list[str]]) -> list[str]:
    """Return a command that asks a standalone master without curl.

    Upstream fault (6.3): the task fails where ``/usr/bin/curl`` is missing, as in slim images of Airflow.
    """
    command = build_command()
    if command[0] != _CURL:
        return command
    return [sys.executable, "-I", "-c", _ASK, command[-1], "POST" if "POST" in command else "GET"]


def master_of(hook: Any) -> str:
    """Return the master that a hook submits to."""
    return str(hook._connection["master"])


def is_followed(operator: Any, hook: Any) -> bool:
    """Whether the provider, or a trigger, may follow a driver in a cluster after spark-submit has ended."""
    is_elsewhere = is_yarn_cluster(hook) or master_of(hook).startswith("k8s")
    return is_elsewhere or bool(getattr(operator, "deferrable", False))


def is_yarn_cluster(hook: Any) -> bool:
    """Whether the driver is going to run in a container of YARN."""
    return bool(getattr(hook, "_is_yarn_cluster_mode", False))


def environment(hook: Any) -> dict[str, str]:
    """Return the environment of spark-submit."""
    return {**os.environ, **{key: str(value) for key, value in (hook._env_vars or {}).items()}}
