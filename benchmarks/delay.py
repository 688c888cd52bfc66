"""Measures the delay that lineage adds at the end of a task, when all around it goes wrong or is large.

Prints one line a case: its name, the seconds from the end of ``spark-submit`` to the end of ``execute``, the bound that
the documentation gives, and whether it was kept. The operator, the Spark provider's hook and Airflow are real;
``spark-submit`` is a program that leaves files at its end (``tests/plugins/laboratory.py``), so that nothing could be
read while it ran. A share that hangs is one whose system calls do not return (``tests/plugins/hanging_share.py``).

- ``stock``: ``lineage_enabled`` is off, the peer; ``plain``: nothing is wrong, and the lineage is that of a small job
- ``backend_down``, ``backend_hanging``: a connection whose backend refuses, or accepts and never answers
- ``listener_hanging``: a listener to the job's status that does not return
- ``share_hanging``: the lineage directory hangs from the end of the job on
- ``launches``: 50,000 launches are in the lineage directory, all of them too old, and nobody has cleaned up there
- ``lineage``: 300 MB of lineage files; ``event_log``: 1 GB of event log

The bound of a case is what it may wait for, and two seconds more for what a task does without waiting.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
EVENTS = FIXTURES / "events" / "a_414.ndjson"
EVENT_LOG = FIXTURES / "event_logs" / "stream"
APPLICATION = "local-1795215390665"
RUN_ID = "01890a5d-ac96-7dde-8a63-{:012x}"
DELIVERY, LISTENERS, SHARE, COLLECT, RETENTION, DOING = 5.0, 5.0, 5.0, 60.0, 0.5, 2.0
MEGABYTE = 1_000_000
LIMIT_SECONDS = "600"

ENDED = 'open(os.path.join(here, "..", "hangs"), "w").close()'
# Written by the driver as its last act; each copy of the events has run ids of its own.
LINEAGE = """
events = open({events!r}, "rb").read()
with open(location, "wb") as stream:
    for number in range({copies}):
        stream.write(events.replace(b'"runId":"01', b'"runId":"%02x' % (number % 256)))
"""
LOG = """
log = open({log!r}, "rb").read()
with open(os.path.join(os.path.dirname(location), "event-log", {application!r}), "wb") as stream:
    for _ in range({copies}):
        stream.write(log)
"""


def seconds(laboratory: Any, folder: Path, *, act: str = "", **arguments: Any) -> float:
    """Run a task in a folder of its own, and give how long it took after its driver had ended."""
    from laboratory import Bench  # type: ignore[import-not-found]

    folder.mkdir(exist_ok=True)
    bench = Bench(laboratory, folder, env=arguments.pop("env", {}))
    fake = bench.root / "bin" / "fake.py"
    fake.write_text(fake.read_text().replace("sys.exit(script", f"{act}\n{ENDED}\nsys.exit(script"))
    outcome = bench.run(lineage=[EVENTS], **arguments)
    if outcome.error is not None:
        raise SystemExit(f"{outcome.printed[-5000:]}\n{outcome.error}")
    return float((bench.root / "result.json").stat().st_mtime - bench.hangs.stat().st_mtime)


@contextmanager
def silent_server() -> Iterator[str]:
    """Return the address of a server that accepts connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def connection(url: str, conn_id: str) -> dict[str, Any]:
    """Return the arguments of a task that sends to a backend; each has a breaker of its own in the outbox."""
    config = json.dumps({"conn_type": "openlineage", "host": url})
    return {"env": {f"AIRFLOW_CONN_{conn_id.upper()}": config}, "lineage_conn_id": conn_id}


def fill(root: Path, launches: int) -> None:
    """Make a lineage directory of launches that are too old."""
    from spark_lineage.launch.directory import EVENTS_FILE, LAUNCH_FILE, RUN_EVENTS_FILE, launch_directory

    for number in range(launches):
        ids = {"dag_id": f"dag{number % 50}", "run_id": f"run{number // 50}", "task_id": "task"}
        launch = launch_directory(root, **ids, map_index=-1, try_number=1, application_run_id=RUN_ID.format(number))
        launch.mkdir(parents=True)
        for name in (EVENTS_FILE, LAUNCH_FILE, RUN_EVENTS_FILE):
            (launch / name).touch()
            os.utime(launch / name, (0, 0))


def cases(laboratory: Any, folder: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, float, float]]:
    """Return each case: its name, what it took, and how long it may wait."""

    def case(name: str, bound: float, **more: Any) -> tuple[str, float, float]:
        return name, seconds(laboratory, folder / name, **more), bound

    yield case("stock", 0.0, lineage_enabled=False)
    yield case("plain", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"http://127.0.0.1:{server.getsockname()[1]}"
    yield case("backend_down", DELIVERY, **connection(closed, "down"))
    with silent_server() as url:
        yield case("backend_hanging", DELIVERY, **connection(url, "hanging"))
    yield case("listener_hanging", LISTENERS, lineage_listeners="bad_listeners.Sleeping")
    yield case("share_hanging", SHARE, can_hang=True)
    (folder / "launches").mkdir()
    fill(folder / "launches" / "lineage", arguments.launches)
    yield case("launches", RETENTION)
    shutil.rmtree(folder / "launches")
    copies = arguments.lineage_mb * MEGABYTE // EVENTS.stat().st_size
    yield case("lineage", COLLECT, act=LINEAGE.format(events=str(EVENTS), copies=copies))
    shutil.rmtree(folder / "lineage")
    copies = arguments.event_log_mb * MEGABYTE // EVENT_LOG.stat().st_size
    yield case("event_log", COLLECT, act=LOG.format(log=str(EVENT_LOG), application=APPLICATION, copies=copies))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=50_000, help="default: %(default)s")
    parser.add_argument("--lineage-mb", type=int, default=300, help="default: %(default)s")
    parser.add_argument("--event-log-mb", type=int, default=1_000, help="default: %(default)s")
    parser.add_argument("--dir", help="where to write; default: the system's directory for temporary files")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests" / "plugins"))
    os.environ["LABORATORY_SECONDS"] = LIMIT_SECONDS
    from laboratory import Laboratory

    print(f"# load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-delay-", dir=arguments.dir) as name:
        folder = Path(name)
        (folder / "airflow").mkdir()
        laboratory = Laboratory(folder / "airflow")
        try:
            # The first task of a process takes longer, whatever it does.
            seconds(laboratory, folder / "warm")
            began = time.monotonic()
            for case, took, waiting in cases(laboratory, folder, arguments):
                bound = waiting + DOING
                verdict = "the peer" if case == "stock" else "kept" if took <= bound else "NOT KEPT"
                print(f"{case} {took:.2f} s, bound {bound:.1f} s: {verdict}", flush=True)
            print(f"# {time.monotonic() - began:.0f} s in all")
        finally:
            laboratory.close()


if __name__ == "__main__":
    main()
