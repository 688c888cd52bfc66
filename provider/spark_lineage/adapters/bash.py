"""``BashOperator``: a command of the user's, which runs spark-submit itself, once or several times (standard provider).

The drivers, or their clients, are among the processes of the command.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from spark_lineage.adapters.adapter import GRACE_SECONDS, AdaptedTask, OperatorAdapter, local_submitter
from spark_lineage.adapters.processes import live_after
from spark_lineage.inject.installation import PropertiesFileError, default_properties_file, read_properties_file
from spark_lineage.inject.preparation import PreparedArguments, Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.inject.task_injection import is_in_program
from spark_lineage.launch.bounded_run import ANSWER_SECONDS, BoundedPlace
from spark_lineage.launch.directory import local_directory, remote_directory
from spark_lineage.launch.line import no_event_log
from spark_lineage.launch.log import Log
from spark_lineage.secrets.redaction import redact_name, remember_values

OPTIONS = "SPARK_SUBMIT_OPTS"
_CONF = re.compile(r"""(?:--conf|-c)[ =]+["']?(?P<key>spark\.[\w.]+)=(?P<value>[^\s"']*)""")
_FLAGS = ("--conf", "-c")
_PROGRAM = re.compile(r"""(?:^|(?<=[\s/"'(`;&|]))(?:spark[23]?-(?:submit|sql|shell)|pyspark)(?=[\s"'])""")
_FILE = re.compile(r"""--properties-file[ =]+["']?(?P<path>[^\s"']+)""")
_LOG, _ENABLED, _DIRECTORY = "spark.eventLog.", "spark.eventLog.enabled", "spark.eventLog.dir"
_USERS_FILES = BoundedPlace("the files of the command", ANSWER_SECONDS)
_OWN_OPTIONS = re.compile(rf"""\b{OPTIONS}=(?P<value>"[^"]*"|'[^']*'|\S*)""")
_RUNS_ON = "a process that the command left in the background runs on"
_CLUSTER = (b"deploy-mode cluster", b"deploy-mode=cluster", b"submit.deployMode=cluster")


@dataclass(eq=False)
class BashAdapter(OperatorAdapter):
    """Adapts the hook that runs the command.

    What is added are system properties of the JVM of spark-submit (``SPARK_SUBMIT_OPTS``). Spark uses them where
    neither the command line nor ``spark-defaults.conf`` has a value, and the user's directory of both stays.
    """

    takes_listener = False
    operator: Any = field(kw_only=True)
    _env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    _unlogged: str = field(default="", init=False)

    def __post_init__(self) -> None:
        hook = self.hook
        self._run_stock = hook.run_command
        self._log = hook._log = Log(hook.log, redact_name)
        self._log_line = self._log.info
        vars(self._log)["info"] = self._take_line
        vars(hook)["run_command"] = self._run

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> Self:  # noqa: ARG003
        """Attach to an operator, whose hook is its own from now on."""
        # An earlier execution of this object has adapted its hook.
        vars(operator).pop("subprocess_hook", None)
        return cls(operator.subprocess_hook, task.before_submit, task.is_killed, operator=operator)

    @property
    def _command(self) -> str:
        # A script is run from a file, and the decorator makes the command when it runs. A comment is no command.
        return re.sub(r"(?m)(?:^|\s)#.*$", "", str(self.operator.bash_command))

    @property
    def submitter(self) -> Submitter:
        """How spark-submit is going to be run, as far as the environment says it."""
        return local_submitter(self.arguments.conf.get("spark.master") or "local[*]", "spark-submit", self._env)

    @property
    def arguments(self) -> SubmitArguments:
        """The properties that the text of the command has; its event logs are off if each of its programs says so."""
        conf = _properties(self._command)
        if conf.get(_ENABLED) == "false" and any(_properties(one).get(_ENABLED) != "false" for one in self._programs):
            del conf[_ENABLED]
        return SubmitArguments(conf)

    @property
    def _programs(self) -> list[str]:
        """The text of each program of Spark that the command runs, with what is before the first."""
        before, *programs = _PROGRAM.split(self._command)
        return [before + program for program in programs] or [before]

    def inject(self, prepared: PreparedArguments) -> None:
        """Add what was prepared to the options of spark-submit.

        :raises NotImplementedError: for a driver in a cluster, which could not begin its event log, and for one whose
            event log would go into a directory that is not there
        """
        texts = [self._command]
        with suppress(ValueError):
            texts += shlex.split(self._command)
        if prepared.properties.get("spark.submit.deployMode") == "cluster" or any(
            is_in_program(mode, "", texts) for mode in _CLUSTER
        ):
            raise NotImplementedError("the command submits to a cluster; use LineageSparkSubmitOperator for that")
        # Programs without settings of the log have those of the others, also where the text hides a program.
        log = self.arguments.conf.items()
        shared = {key: value for key, value in log if key.startswith(_LOG) and (key, value) != (_ENABLED, "false")}
        added = {**shared, **self.added(prepared)}
        effective = [{**self._of_file(program), **_properties(program)} for program in self._programs]
        self._follow_logs(effective, is_on=_ENABLED in added)
        if any(OPTIONS not in one["value"] for one in _OWN_OPTIONS.finditer(self._command)):
            self._unlogged = f"the command sets {OPTIONS} itself"
        elif any(program.get(_ENABLED) == "false" for program in effective):
            self._unlogged = "a program of the command turns it off"
        # The last one of a name counts: that of the user.
        options = [*(_option(key, value) for key, value in added.items()), self._env.get(OPTIONS, "")]
        self.env = {OPTIONS: " ".join(options).strip()}

    def _of_file(self, program: str) -> Mapping[str, str]:
        """Return the properties of the file of a program, which win over the options."""
        found = _FILE.search(program)
        file = Path(found["path"]) if found is not None else default_properties_file(self.submitter.home, self._env)
        # Others are refused by Spark, or found by the shell alone.
        with suppress(PropertiesFileError):
            return {} if file is None else _USERS_FILES.use(lambda: read_properties_file(file))
        return {}

    def _follow_logs(self, programs: Sequence[Mapping[str, str]], *, is_on: bool) -> None:
        """Have the event log of each program read where the user has it.

        :param is_on: whether the logs are turned on of programs that say nothing
        :raises NotImplementedError: for one that would fail, because Spark makes no directory for its log
        """
        for program in programs:
            directory = program.get(_DIRECTORY, "")
            path = local_directory(directory)
            if is_on and _ENABLED not in program and path is not None and not _USERS_FILES.use(Path(path).is_dir):
                raise NotImplementedError(f"{_DIRECTORY} is {path}, which is no directory; make it, or name another")
            place = path or remote_directory(directory)
            self.log_places = tuple(dict.fromkeys((*self.log_places, *([place] if place else ()))))

    def remember_secrets(self) -> None:
        """Learn the secrets of the job."""
        remember_values({**self._env, **_properties(self._command)})

    @property
    def lacking(self) -> str:
        """Why a program of the command has no event log, or a log that goes on."""
        return no_event_log(_RUNS_ON if self.driver.runs_on else self._unlogged)

    @property
    def has_driver_ended(self) -> bool:
        """Whether the command has ended."""
        return self.hook.sub_process is not None and self.hook.sub_process.returncode is not None

    def _run(self, command: list[str], env: dict[str, str] | None = None, **others: Any) -> Any:
        self._env = env or dict(os.environ)
        try:
            result = self._run_stock(command, env={**self._env, **self.begin()}, **others)
            # Workers of Python end shortly after their driver.
            self._look_for_processes(0.0 if self.is_killed() else GRACE_SECONDS)
            return result
        finally:
            if self.hook.sub_process is not None:
                code = self.hook.sub_process.poll()
                # The operator skips the task for such a code.
                self.driver.exit_code = None if code in (self.operator.skip_on_exit_code or ()) else code

    def kill(self) -> None:
        """Wait for the end of the processes that got the signal of the stock operator, which are those of its group.

        The command may clean up, and leave a driver to itself, as without lineage.
        """
        self._look_for_processes(GRACE_SECONDS)

    def _look_for_processes(self, grace_seconds: float) -> None:
        self.driver.runs_on = bool(live_after(self.launch_id, grace_seconds))

    def _take_line(self, line: str, *values: Any, **keywords: Any) -> None:
        """Take what the hook logs: while its process runs, a line without a text of its own is the command's."""
        process = self.hook.sub_process
        if process is not None and self.driver.process_id is None:
            self.driver.process_id = process.pid
            if self.observer is not None:
                self.observer.started(process.pid)
            if self.is_killed():
                # on_kill came before there was a process. The hook logs the signal, by this method.
                self.hook.send_sigterm()
        if line == "%s":
            values = (self.observe(str(values[0])),)
        self._log_line(line, *values, **keywords)


def _properties(text: str) -> dict[str, str]:
    """Return the properties that a command has: as a shell takes it apart, and in the texts that another one gets."""
    found = {one["key"]: one["value"] for one in _CONF.finditer(text)}
    with suppress(ValueError):
        given = (part for flag, part in pairwise(shlex.split(text)) if flag in _FLAGS)
        found |= dict(part.split("=", 1) for part in given if part.startswith("spark.") and "=" in part)
    return found


def _option(key: str, value: str) -> str:
    """Return a system property as Spark's launcher takes options apart (``CommandBuilderUtils.parseOptionString``)."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"-D{key}={escaped}"'
