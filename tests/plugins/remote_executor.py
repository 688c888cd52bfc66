"""An executor whose tasks run as on another host: processes with their own environment, which outlive a scheduler.

Each workload is handed to ``airflow.sdk.execution_time.execute_workload``, as by the executors of Kubernetes and ECS,
in a process of ``remote_worker.py``. What runs is known by files, as Celery knows it by its result backend: a scheduler
that starts again adopts its tasks. ``REMOTE_WORKERS`` names their directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from airflow.executors.base_executor import BaseExecutor


def put(path: Path, content: str) -> None:
    """Write a file that is there as a whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(content)
    part.rename(path)


class RemoteExecutor(BaseExecutor):
    """Leaves each workload for the host of the workers, as ``TASK_INSTANCE_ID.workload``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._folder = Path(os.environ["REMOTE_WORKERS"])
        self._ids: dict[Any, str] = {}

    def _process_workloads(self, workload_items: Sequence[Any]) -> None:
        for workload in workload_items:
            del self.queued_tasks[workload.ti.key]
            self.running.add(workload.ti.key)
            self._ids[workload.ti.key] = str(workload.ti.id)
            self._start(str(workload.ti.id), workload.model_dump_json())

    def _start(self, task_id: str, workload: str) -> None:
        for kind in ("exit", "pid"):
            # That of the same task, before it was deferred.
            (self._folder / f"{task_id}.{kind}").unlink(missing_ok=True)
        put(self._folder / f"{task_id}.workload", workload)

    def sync(self) -> None:
        """Report the tasks whose processes have ended, and those whose processes are gone."""
        for key, task_id in list(self._ids.items()):
            exit_code, pid = (self._folder / f"{task_id}.{kind}" for kind in ("exit", "pid"))
            if exit_code.exists():
                report = self.success if exit_code.read_text().strip() == "0" else self.fail
            elif pid.exists() and not psutil.pid_exists(int(pid.read_text())):
                report = self.fail
            else:
                continue
            del self._ids[key]
            report(key)

    def try_adopt_task_instances(self, tis: Sequence[Any]) -> Sequence[Any]:
        """Go on with the tasks that a former scheduler has started; give the others back."""
        unknown_settings = []
        for each in tis:
            if any(self._folder.glob(f"{each.id}.*")):
                self.running.add(each.key)
                self._ids[each.key] = str(each.id)
            else:
                unknown_settings.append(each)
        return unknown_settings

    def end(self) -> None:
        """Leave the workers as they are: they are no part of the scheduler."""

    def terminate(self) -> None:
        """Leave the workers as they are."""


def processes(folder: Path) -> Iterator[psutil.Process]:
    """All processes of all workers, with the drivers that they have started."""
    sessions = {int(each.read_text()) for each in folder.glob("*.pid")}
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) in sessions:
                yield process
        except (OSError, psutil.Error):
            continue
