"""An executor whose tasks run as on another host: processes with their own environment, which outlive a scheduler.

Each workload is handed to ``airflow.sdk.execution_time.execute_workload``, as by the executors of Kubernetes and ECS.
What runs is known by files, as Celery knows it by its result backend: a scheduler that starts again adopts its tasks.
``REMOTE_WORKERS`` names their directory; ``env.json`` in it is the whole environment of a worker.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from airflow.executors.base_executor import BaseExecutor

# A host of its own, as far as a worker sees: a name, and a disk that the servers find empty.
_ELSEWHERE = 'mount --bind "$WORKER_DISK" "$AIRFLOW_HOME" && hostname "$WORKER_NAME" && exec "$@"'
_MAY = "mount --bind /tmp /tmp && hostname worker"
# The exit code is there as a whole or not at all.
_RUN = '"$@"; echo $? > "$EXIT.part"; mv "$EXIT.part" "$EXIT"'


class RemoteExecutor(BaseExecutor):
    """Starts each workload in a session of its own, whose leader's process id is in ``TASK_INSTANCE_ID.pid``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._folder = Path(os.environ["REMOTE_WORKERS"])
        self._env: dict[str, str] = json.loads((self._folder / "env.json").read_text())
        self._ids: dict[Any, str] = {}
        self._children: list[subprocess.Popen[bytes]] = []

    def _process_workloads(self, workload_items: Sequence[Any]) -> None:
        for workload in workload_items:
            del self.queued_tasks[workload.ti.key]
            self.running.add(workload.ti.key)
            self._ids[workload.ti.key] = str(workload.ti.id)
            self._start(str(workload.ti.id), workload.model_dump_json())

    def _start(self, task_id: str, workload: str) -> None:
        exit_code = self._folder / f"{task_id}.exit"
        exit_code.unlink(missing_ok=True)  # that of the same task, before it was deferred
        command = [sys.executable, "-m", "airflow.sdk.execution_time.execute_workload", "--json-string", workload]
        with (self._folder / f"{task_id}.log").open("ab") as log:
            child = subprocess.Popen(
                [*elsewhere(), "/bin/sh", "-c", _RUN, "sh", *command],
                env=self._env | {"EXIT": str(exit_code)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        (self._folder / f"{task_id}.pid").write_text(str(child.pid))
        self._children.append(child)

    def sync(self) -> None:
        """Report the tasks whose processes have ended, and those whose processes are gone."""
        self._children = [each for each in self._children if each.poll() is None]
        for key, task_id in list(self._ids.items()):
            exit_code = self._folder / f"{task_id}.exit"
            if exit_code.exists():
                report = self.success if exit_code.read_text().strip() == "0" else self.fail
            elif not psutil.pid_exists(int((self._folder / f"{task_id}.pid").read_text())):
                report = self.fail
            else:
                continue
            del self._ids[key]
            report(key)

    def try_adopt_task_instances(self, tis: Sequence[Any]) -> Sequence[Any]:
        """Go on with the tasks that a former scheduler has started; give the others back."""
        unknown_settings = []
        for each in tis:
            if (self._folder / f"{each.id}.pid").exists():
                self.running.add(each.key)
                self._ids[each.key] = str(each.id)
            else:
                unknown_settings.append(each)
        return unknown_settings

    def end(self) -> None:
        """Leave the workers as they are: they are no part of the scheduler."""

    def terminate(self) -> None:
        """Leave the workers as they are."""


@cache
def elsewhere() -> tuple[str, ...]:
    """What to put before a command of a worker; nothing where the tests may not make namespaces of Linux."""
    for rights in ((), ("--user", "--map-root-user")):
        command = ("unshare", *rights, "--mount", "--uts", "/bin/sh", "-c")
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, _MAY], capture_output=True, check=False).returncode
        ):
            return (*command, _ELSEWHERE, "sh")
    return ()


def processes(folder: Path) -> Iterator[psutil.Process]:
    """All processes of all workers, with the drivers that they have started."""
    sessions = {int(each.read_text()) for each in folder.glob("*.pid")}
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) in sessions:
                yield process
        except (OSError, psutil.Error):
            continue
