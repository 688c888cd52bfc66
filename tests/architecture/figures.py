"""Prints how big the package is, and how much of it two tasks enter; compares that with limits.

``python tests/architecture/figures.py`` ends with 1 where a figure is above its limit. ``figures.json`` has for each
the limit and the goal. A commit that needs more raises the limit, and its message names the functions; one that needs
less lowers it.

The shortest task has no connection and no event log of Spark. The recommended one has both, and sends START, RUNNING
and COMPLETE over HTTP. Functions are those with a ``def``, in all processes that the task starts, on one Python.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMITS = Path(__file__).with_name("figures.json")
ROOTS = ("provider", "operators", "listeners")
# The packages and modules without which no task has lineage. A test compares both lists with the directories.
CORE = {
    *(
        "__init__",
        "add_ons",
        "submission",
        "declare",
        "deliver",
        "emit",
        "http_client",
        "inject",
        "launch",
        "listeners",
        "merge",
        "naming",
    ),
    *("operators", "plans", "policy", "provider_info", "recover", "secrets", "settings", "adapters", "task"),
    *("triggers", "watch"),
}
# Adapters of further operators, which a reader of the core need not know.
FURTHER_ADAPTERS = (
    "spark_sql",
    "spark_pyspark",
    "spark_connect",
    "spark_pipelines",
    "livy",
    "bash",
    "spark_kubernetes",
    "spark_application",
    "service",
    *("dataproc", "dataproc_job", "dataproc_batch", "databricks", "databricks_run"),
    "aws",
    "emr",
    "emr_steps",
    "glue",
)
ADD_ONS = {"archive", "atlas", "cli", "coverage", "doctor", "notify", "receiver", "replay", "supervision", "view"}
# A program of the truth that appends to tables, on Spark 4.2.
JOB = "append_tables"
for folder in ("tests/plugins", "tests/truth", *ROOTS):
    sys.path.insert(0, str(ROOT / folder))

from entered import Entered, entered  # noqa: E402
from http_server import Handler, serving  # noqa: E402
from laboratory import Bench, Laboratory  # noqa: E402
from truth_recording import recorded  # noqa: E402

from spark_lineage.settings import Settings  # noqa: E402


def lines() -> Mapping[str, int]:
    """Return how many lines each package and top-level module has, in all roots."""
    found: dict[str, int] = {}
    for root in ROOTS:
        for path in (ROOT / root / "spark_lineage").rglob("*.py"):
            name = path.relative_to(ROOT / root / "spark_lineage").with_suffix("").parts[0]
            found[name] = found.get(name, 0) + len(path.read_text().splitlines())
    return found


def figures() -> Mapping[str, int]:
    """Return the figures by name."""
    sizes = lines()
    adapters = ROOT / "provider" / "spark_lineage" / "adapters"
    further = sum(len((adapters / f"{name}.py").read_text().splitlines()) for name in FURTHER_ADAPTERS)
    # A courier may outlive its task.
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        _laboratory(Path(directory)) as laboratory,
    ):
        # Any path may look as if it held a secret ("/tmp/tmpw0x:"), and is read more closely then: these always do.
        shortest = _shortest(laboratory, Path(directory) / "shortest_pw")
        recommended = _recommended(laboratory, Path(directory) / "recommended_pw")
    return {
        "shortest task: modules": len(shortest.modules),
        "shortest task: functions": len(shortest.functions),
        "shortest task: thread starts": shortest.thread_starts,
        "recommended task: modules": len(recommended.modules),
        "recommended task: functions": len(recommended.functions),
        "settings of the section": len(fields(Settings)),
        "lines of the core": sum(sizes[name] for name in CORE) - further,
        "lines of the three roots": sum(sizes.values()),
    }


def too_big() -> list[str]:
    """Return a line for each figure that is above its limit; all are printed."""
    limits = json.loads(LIMITS.read_text())
    found = figures()
    # A slow machine enters functions that wait: the least of three counts.
    for _ in range(2):
        if _above(found, limits):
            found = {name: min(number, found[name]) for name, number in figures().items()}
    print(" found   limit    goal")  # noqa: T201
    for name, number in found.items():
        print(f"{number:6}  {limits[name]['limit']:6}  {limits[name]['goal']:6}  {name}")  # noqa: T201
    return _above(found, limits)


def _above(found: Mapping[str, int], limits: Mapping[str, Mapping[str, int]]) -> list[str]:
    return [
        f"{name}: {number}, the limit is {limits[name]['limit']}"
        for name, number in found.items()
        if number > limits[name]["limit"]
    ]


def _shortest(laboratory: Laboratory, home: Path) -> Entered:
    return _traced(laboratory, home, lineage=[ROOT / "tests" / "fixtures" / "events" / "a_414.ndjson"])


def _recommended(laboratory: Laboratory, home: Path) -> Entered:
    application = recorded(JOB, "4.2", home / "recorded")
    (event_log,) = (application.home / "eventlog").iterdir()
    told, has_run = [], home / "has_run"

    class Backend(Handler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.append(event["eventType"])
            if event["eventType"] == "RUNNING":
                has_run.touch()
            self.answer(status=201)

    with serving(Backend) as url:
        found = _traced(
            laboratory,
            home,
            {"AIRFLOW_CONN_BACKEND": json.dumps({"conn_type": "openlineage", "host": url})},
            lineage=list((application.home / "lineage").iterdir()),
            event_log=event_log,
            until=has_run,
            lineage_conn_id="backend",
            poll_interval_seconds=0.05,
            tracking_interval_seconds=0.05,
        )
    assert (told[0], told[-1], set(told[1:-1])) == ("START", "COMPLETE", {"RUNNING"}), told
    return found


def _traced(laboratory: Laboratory, home: Path, env: Mapping[str, str] = {}, **scenario: Any) -> Entered:
    home.mkdir(exist_ok=True)
    file = home / "entered"
    outcome = Bench(laboratory, home, env={**env}).run(traced=file, **scenario)
    assert outcome.error is None, outcome.printed
    return entered(file)


@contextmanager
def _laboratory(home: Path) -> Iterator[Laboratory]:
    (home / "airflow").mkdir()
    laboratory = Laboratory(home / "airflow")
    try:
        yield laboratory
    finally:
        laboratory.close()


if __name__ == "__main__":
    sys.exit(1 if too_big() else 0)
