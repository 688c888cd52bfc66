"""Measures a whole task against two peers on the same Spark program; prints one line a figure, as ``pairs.py`` does.

The program makes tables for about 20 s on ``local[2]``: by SQL (``programs/warehouse.py``), or by long plans
(``programs/wide.py``, with ``--program wide``). It is run by

- ``ours``: ``LineageSparkSubmitOperator`` as it comes; Airflow's OpenLineage provider sends the task's events over
  HTTP. An earlier run found that the program's event log is enough, so that it goes without the listener
- ``ours_first``: the first run of a program, which has both the listener and the event log
- ``stock``: ``SparkSubmitOperator`` without any lineage, the OpenLineage provider switched off
- ``stock_http``: ``SparkSubmitOperator`` with the listener's jar, which sends each event over HTTP, as the provider
  does with the task's

A task is what holds a worker's slot, from the import of the DAG file to the last listener after the terminal event, in
a fresh Python process and a real Airflow on SQLite (``programs/worker.py``). Airflow's own start, scheduler and API
server are left out: they are the same for all, and would only bring the ratios closer to 1. Over HTTP listens a process
of its own that answers 201 at once (``programs/receiver.py``). The jar is resolved before, and is in our cache then.

- ``task_vs_stock``: wall time of ours, divided by that of stock (goal: at most 1.03)
- ``task_first_vs_stock``: the same of ours_first (goal: at most 1.15)
- ``task_vs_stock_http``: wall time of ours, divided by that of stock_http (goal: less than 0.9)
- ``…_cpu``: the same of the CPU time of all processes, Spark's too
- ``worker_cpu_vs_stock``: CPU time of the worker itself, which is the task's process and its forks, without Spark
- ``worker_core_share``: what ours takes of it more than stock, per second of the task; no ratio

With ``--long SECONDS`` the program does a step every three seconds, once for so long and once for a quarter of it, and
only this is measured, which has the costs of beginning and end cancelled:

- ``watch_core_share``: CPU seconds of the worker for each further second of the job, ours less stock (goal: less than
  0.005); no ratio
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from pairs import Round, Rounds, Taken, by_turns, parser

from spark_lineage.inject.installation import find_installation
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.settings.places import DEFAULT_JAR, jar_cache

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
WORKER = HERE / "programs" / "worker.py"
RECEIVER = HERE / "programs" / "receiver.py"
DAG_FILE = HERE / "dags" / "warehouse.py"
LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
OURS, STOCK = "LineageSparkSubmitOperator", "SparkSubmitOperator"
STEP_SECONDS = 3.0
TAIL_LINES = 40


@dataclass(frozen=True)
class Variant:
    """One way to run the program."""

    operator: str
    is_sending: bool
    """Whether Airflow's OpenLineage provider is on."""
    least_events: int
    """How many events must come, for the run to be what it is said to be."""
    has_listener: bool = False
    """Whether the DAG gives Spark the jar, the listener and the transport itself."""
    evidence: str | None = None


VARIANTS = {
    "ours": Variant(OURS, is_sending=True, least_events=2, evidence="auto"),
    "ours_first": Variant(OURS, is_sending=True, least_events=2, evidence="both"),
    "stock": Variant(STOCK, is_sending=False, least_events=0),
    "stock_http": Variant(STOCK, is_sending=True, least_events=8, has_listener=True),
    # Last, as it is in no goal: what the events of Airflow's own provider cost.
    "stock_sending": Variant(STOCK, is_sending=True, least_events=2),
}


@dataclass
class Laboratory:
    """An Airflow home, the inputs, the jar and the receiver."""

    folder: Path
    env: Mapping[str, str]
    jar: str
    url: str
    program: Path
    runs: int = field(default=0, init=False)

    def run(self, name: str, *, steps: int, seconds: float = 0.0) -> Taken:
        """Run the program once in a task of this variant, and give what it took."""
        variant = VARIANTS[name]
        self.runs += 1
        warehouse = self.folder / "warehouse"
        shutil.rmtree(warehouse, ignore_errors=True)
        conf = {"spark.sql.warehouse.dir": str(warehouse), "spark.sql.shuffle.partitions": "4"}
        arguments: dict[str, Any] = {
            "application": str(self.program),
            "application_args": ["run", str(self.folder / "inputs"), str(steps), str(seconds)],
            "conf": conf,
        }
        if variant.evidence:
            arguments["evidence"] = variant.evidence
        if variant.has_listener:
            arguments["jars"] = self.jar
            conf["spark.extraListeners"] = LISTENER
            conf["spark.openlineage.namespace"] = "benchmark"
            conf["spark.openlineage.transport.type"] = "http"
            conf["spark.openlineage.transport.url"] = self.url
        env = {
            **self.env,
            "BENCHMARK_OPERATOR": variant.operator,
            "BENCHMARK_ARGUMENTS": json.dumps(arguments),
            "AIRFLOW__OPENLINEAGE__DISABLED": str(not variant.is_sending),
            # What one variant learns of the program is none of another's.
            "AIRFLOW__SPARK_LINEAGE__RECORDS_DIR": str(self.folder / f"records-{name}"),
        }
        figures, log = self.folder / "figures.json", self.folder / f"{self.runs:03}-{name}.log"
        figures.unlink(missing_ok=True)
        events = self._events()
        run_logged([sys.executable, str(WORKER), str(DAG_FILE), str(figures)], env, log)
        came = self._events() - events
        if came < variant.least_events or (not variant.is_sending and came):
            fail(f"{name} sent {came} events, which is not what it stands for", log)
        if variant.operator == OURS and "Lineage: COMPLETE" not in log.read_text(errors="replace"):
            fail(f"{name} ran without lineage", log)
        if name == "ours" and self.runs > 1 and "listener added nothing" not in log.read_text(errors="replace"):
            fail("ours has the listener, though it ran before", log)
        # Part of the task → clock → seconds.
        parts = json.loads(figures.read_text())
        wall, cpu, children = (sum(part[clock] for part in parts.values()) for clock in ("wall", "cpu", "children"))
        spark = parts["execute"]["children"]
        walls = {name: part["wall"] for name, part in parts.items()}
        return {
            "wall": wall,
            "cpu": cpu + children,
            "worker_cpu": cpu + children - spark,
            "execute_cpu": parts["execute"]["cpu"],
            **walls,
        }

    def _events(self) -> int:
        with urllib.request.urlopen(self.url) as reply:  # noqa: S310  (our own receiver)
            return int(reply.read())


@contextlib.contextmanager
def laboratory(program: Path, rows: int) -> Iterator[Laboratory]:
    """Set all up, once, untimed."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-task-")))
        receiver = stack.enter_context(subprocess.Popen([sys.executable, str(RECEIVER)], stdout=subprocess.PIPE))
        stack.callback(receiver.terminate)
        if receiver.stdout is None:
            raise RuntimeError("The receiver has no output")
        url = f"http://127.0.0.1:{int(receiver.stdout.readline())}"
        cache = folder.joinpath("caches")
        env = environment(folder, url, cache)
        jar = resolve_jar(
            DEFAULT_JAR,
            installation=lambda: find_installation("spark-submit", env),
            cache_dir=jar_cache({"XDG_CACHE_HOME": str(cache)}),
            timeout_seconds=300,
        )
        run_logged([sys.executable, "-m", "airflow", "db", "migrate"], env, folder / "airflow.log")
        inputs = ["prepare", str(folder / "inputs"), str(rows)]
        run_logged(["spark-submit", "--master", "local[2]", str(program), *inputs], env, folder / "inputs.log")
        yield Laboratory(folder, env, jar, url, program)


def environment(folder: Path, url: str, cache: Path) -> dict[str, str]:
    """Return the environment of an Airflow in this folder, with the Spark of this interpreter."""
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE", "SPARK"))
    }
    # A worker compiles its modules once.
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    return inherited | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAG_FILE.parent),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "benchmark",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "http", "url": url}),
        "XDG_CACHE_HOME": str(cache),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }


def run_logged(command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
    """Run a command with its output in a file; ends the benchmark with the file's tail when it fails."""
    with log.open("wb") as stream:
        done = subprocess.run(
            command, env=env, cwd=log.parent, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False
        )
    if done.returncode:
        fail(f"{command[0]} failed with exit code {done.returncode}", log)


def fail(what: str, log: Path) -> None:
    """End the benchmark."""
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
    raise SystemExit(f"{tail}\n{what}")


def show_whole(found: Rounds) -> None:
    """Print the figures of whole tasks."""
    runs = sorted(found.rounds[0])
    for ours, peer in product(*([name for name in runs if name.startswith("ours") == is_ours] for is_ours in (1, 0))):
        found.compare(f"{ours.replace('ours', 'task')}_vs_{peer}", ours, peer)
    pairs = [(one["ours"], one["stock"]) for one in found.rounds]
    found.show("worker_cpu_vs_stock", (ours["worker_cpu"] / stock["worker_cpu"] for ours, stock in pairs))
    shares = ((ours["worker_cpu"] - stock["worker_cpu"]) / ours["wall"] for ours, stock in pairs)
    found.show("worker_core_share", shares)


def show_watch(found: Rounds) -> None:
    """Print what a further second of a job costs the worker, from jobs of two lengths."""

    def growth(one: Round, name: str) -> float:
        cpu, seconds = (
            one[f"{name}_long"][clock] - one[f"{name}_short"][clock] for clock in ("execute_cpu", "execute")
        )
        return cpu / seconds

    found.show("watch_core_share", (growth(one, "ours") - growth(one, "stock") for one in found.rounds))


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=6)
    asking.add_argument("--program", choices=("warehouse", "wide"), default="warehouse", help="default: %(default)s")
    asking.add_argument("--rows", type=int, default=200_000, help="of the larger input")
    asking.add_argument("--steps", type=int, default=6, help="of the program")
    asking.add_argument("--variants", nargs="+", choices=VARIANTS, default=[*VARIANTS][:-1])
    asking.add_argument("--long", type=float, metavar="SECONDS", help="measure only what watching a job costs")
    asking.add_argument("--json", type=Path, help="file for every number measured")
    asked = asking.parse_args()
    if not {"ours", "stock"} <= {*asked.variants}:
        asking.error("ours is compared to stock: both must be among the variants")
    with laboratory(PROGRAMS / f"{asked.program}.py", asked.rows if asked.long is None else 10_000) as place:
        place.run("ours", steps=asked.steps)
        if asked.long is None:
            runs = {name: partial(place.run, name, steps=asked.steps) for name in asked.variants}
        else:
            runs = {
                f"{name}_{length}": partial(place.run, name, steps=round(seconds / STEP_SECONDS), seconds=STEP_SECONDS)
                for name in ("ours", "stock")
                for length, seconds in {"long": asked.long, "short": asked.long / 4}.items()
            }
        found = by_turns(runs, asked, is_warm=True)
    (show_whole if asked.long is None else show_watch)(found)
    found.show_numbers()
    if asked.json is not None:
        asked.json.write_text(json.dumps(found.rounds, indent=1))


if __name__ == "__main__":
    main()
