"""Runs the one task of a DAG file in a real Airflow, as a worker does, and prints what it took, as JSON.

``airflow.sdk``'s own task runner runs the task: START event, templates, ``execute``, terminal event. Measured are

- ``import``: plugins, which bring listeners, and the DAG file, which brings its operator; Airflow itself is there
- ``before``, ``execute``, ``after``: the task runner, up to ``execute``, in it, and from it to its last listener
- of each the wall time, the CPU time of this process, and that of the processes it made, in seconds; outside of
  ``execute`` these are the forks that send Airflow's own OpenLineage events, in it they are Spark

Not measured are Airflow's start, its scheduler and its API server, which run elsewhere in an installation.

Usage: ``worker.py DAG_FILE FIGURES``: the JSON goes to the file ``FIGURES``, and the task's log to the output.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from airflow.listeners import hookimpl
from airflow.sdk.execution_time import task_runner
from airflow.sdk.listener import get_listener_manager


class Laps:
    """Wall, own CPU and children's CPU of named parts, one after the other."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}
        self._last = _clocks()

    def skip(self) -> None:
        """Begin anew here."""
        self._last = _clocks()

    def lap(self, name: str) -> None:
        """End a part, which began where the one before ended."""
        now = _clocks()
        self.parts[name] = {clock: now[clock] - self._last[clock] for clock in now}
        self._last = now


class LastListener:
    """Told by the task runner when everything else is done."""

    def __init__(self, laps: Laps) -> None:
        self._laps = laps

    @hookimpl(trylast=True)
    def before_stopping(self, component: object) -> None:  # noqa: ARG002
        """End the last part."""
        self._laps.lap("after")


def _clocks() -> dict[str, float]:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "wall": time.perf_counter(),
        "cpu": own.ru_utime + own.ru_stime,
        "children": children.ru_utime + children.ru_stime,
    }


def load(file: Path) -> Any:
    """Import a DAG file."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(dag_file: str, figures: str) -> None:
    """Run the task."""
    laps = Laps()
    listeners = get_listener_manager()
    module = load(Path(dag_file))
    laps.lap("import")
    module.make_tables.pre_execute = lambda *_, **__: laps.lap("before")
    module.make_tables.post_execute = lambda *_, **__: laps.lap("execute")
    run = task_runner.run

    def measured_run(*arguments: Any, **keywords: Any) -> Any:
        laps.skip()
        return run(*arguments, **keywords)

    task_runner.run = measured_run
    listeners.add_listener(LastListener(laps))  # type: ignore[no-untyped-call]
    state = str(module.dag.test().state)
    if state != "success":
        raise SystemExit(f"The task is {state}")
    Path(figures).write_text(json.dumps(laps.parts))


if __name__ == "__main__":
    main(*sys.argv[1:])
