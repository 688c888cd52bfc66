"""``SparkSqlOperator`` and its hook: the command that it runs, ``spark-sql``, and its log (provider 6.3).

``spark-sql`` is spark-submit with a program of its own, whose driver runs on this machine always.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from spark_lineage.adapters.adapter import AdaptedTask, OperatorAdapter, local_submitter
from spark_lineage.inject.preparation import PreparedArguments, Submitter
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.launch.directory import read_small
from spark_lineage.launch.log import Log
from spark_lineage.secrets.redaction import redact_name, remember_query, remember_values

# The condition of an error, as the shell prints it (``SparkSQLDriver``); before 3.4 also with words before it.
_FAILURE = re.compile(r"(?:Error in query: )?(?P<text>\[[A-Z0-9]*_[A-Z0-9_.]+\] .+)")


@dataclass(eq=False)
class SparkSqlAdapter(OperatorAdapter):
    """Adapts the hook of spark-sql.

    What is added comes last on the command line, where it counts, so that the user's ``conf`` stays as they wrote it.

    Upstream faults (6.3): a byte that is not UTF-8 fails the task, whatever else fails it leaves the driver writing
    beside the retry, and a task that is killed before ``Popen`` runs its job all the same.
    """

    # The shell refuses a query that reads a stream.
    job_type = "BATCH"

    def __post_init__(self) -> None:
        hook = self.hook
        self._added: list[str] = []
        self._run_stock, self._build_stock = hook.run_query, hook._prepare_command
        self._log = hook._log = Log(hook.log, redact_name)
        self._log_line = self._log.info
        vars(self._log)["info"] = self._take_line
        vars(hook).update(run_query=self._run, _prepare_command=self._build)

    @classmethod
    def of(cls, operator: Any, hook: Any, task: AdaptedTask) -> Self:  # noqa: ARG003
        """Attach to a hook."""
        return cls(hook, task.before_submit, task.is_killed)

    @property
    def submitter(self) -> Submitter:
        """How spark-sql is going to be run."""
        master = str(self.hook._master or self.arguments.conf.get("spark.master") or "local[*]")
        return local_submitter(master, "spark-sql", dict(os.environ))

    @property
    def arguments(self) -> SubmitArguments:
        """The user's ``conf``; the hook splits a text at each comma, and passes over other types."""
        conf = self.hook._conf
        if isinstance(conf, str):
            conf = dict(one.split("=", 1) for one in conf.split(",") if "=" in one)
        return SubmitArguments({str(key): str(conf[key]) for key in conf} if isinstance(conf, dict) else {})

    def inject(self, prepared: PreparedArguments) -> None:
        """Pass what was prepared to spark-sql."""
        self._added = [part for key, value in self.added(prepared).items() for part in ("--conf", f"{key}={value}")]
        if prepared.properties_file is not None:
            self._added += ["--properties-file", str(prepared.properties_file)]
        self._log.debug("Added for lineage: %s", self._added)

    def remember_secrets(self) -> None:
        """Learn the secrets of the job."""
        remember_values({**os.environ, **self.arguments.conf})
        query = str(self.hook._sql or "").strip()
        with suppress(OSError, ValueError):
            query = read_small(Path(query)).decode(errors="replace") if query.endswith((".sql", ".hql")) else query
        remember_query(query)

    @property
    def has_driver_ended(self) -> bool:
        """Whether spark-sql has ended."""
        return self.hook._sp is not None and self.hook._sp.returncode is not None

    def _build(self, cmd: str | list[str]) -> list[str]:
        return [*self._build_stock(cmd), *self._added]

    def _run(self, cmd: str | list[str] = "", **popen: Any) -> None:
        self._thread = threading.get_ident()
        added = self.begin()
        popen["env"] = {**(popen.get("env") or os.environ), **added}
        self.output.host = popen["env"].get("SPARK_LOCAL_IP") or self.output.host
        try:
            self._run_stock(cmd, **{"errors": "replace", **popen})
        except Exception:
            self.kill()
            raise
        finally:
            if self.hook._sp is not None:
                self._note_start(self.hook._sp)
                self.driver.exit_code = self.hook._sp.poll()

    def _note_start(self, process: subprocess.Popen[str]) -> None:
        # The hook gives no sign of it but the first line.
        if self.driver.process_id is None:
            self.driver.process_id = process.pid
            if self.observer is not None:
                self.observer.started(process.pid)

    def _take_line(self, line: str, *values: Any, **keywords: Any) -> None:
        """Take what the hook logs: in the thread that waits for its process, that are the driver's lines."""
        process: subprocess.Popen[str] | None = self.hook._sp
        if process is None or process.returncode is not None or threading.get_ident() != self._thread:
            self._log_line(line, *values, **keywords)
            return
        self._note_start(process)
        if self.is_killed():
            # on_kill came before there was a process.
            process.kill()
        self._log.masked_line = self.observe(line)
        if failure := _FAILURE.match(line):
            self.output.error.feed(f'Exception in thread "main" {failure["text"]}')
        self._log_line(self._log.masked_line)
