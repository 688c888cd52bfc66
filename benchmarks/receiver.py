"""Measures the receiver on the loopback; prints one line a figure, as ``pairs.py`` does.

- ``receiver_events_a_second``: events that are in the files of their runs, from a client of ``--connections``
  connections. Each sends one event a request, gzip, ``--depth`` before it waits for their answers (goal: 10,000)
- ``receiver_events_a_second_one_by_one``: the same where each connection waits for each answer, as a driver does
- ``receiver_events_a_second_ndjson``: the same with 100 events a request
- ``receiver_cpu_microseconds``: CPU time of the receiver for each event of the first; what it can take on a core of its
  own is a million divided by that, whatever else the machine does
- ``receiver_vs_file``: seconds that a real driver takes for ``--actions`` small writes with the receiver, divided by
  those with the file transport (goal: at most 1.05)
- ``receiver_vs_file_cpu``: the same of the CPU time of driver and receiver, from the start of the JVM to its end

The event is a real one, of the median size of the fixtures.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from uuid import uuid4

from pairs import Taken, by_turns, parser

from spark_lineage.inject.installation import find_installation
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.inject.properties import LISTENER, PREFIX, UNUSED_FACETS
from spark_lineage.receiver.server import bound, server_of
from spark_lineage.receiver.service import Limits, Receiver
from spark_lineage.settings.places import DEFAULT_JAR
from spark_lineage.submission.received_events import ENDPOINT, TOKEN_HEADER, listener_transport, token_of

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "events"
# argv: directory, actions. The first writes are not counted: the JVM learns then.
PROGRAM = """
import sys, time
from pyspark.sql import SparkSession
home, actions = sys.argv[1], int(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
def write(number):
    spark.range(1000).selectExpr("id", f"id % 7 AS day_{abs(number)}").write.parquet(f"{home}/out/{number}")
for number in range(10):
    write(-number - 1)
began = time.perf_counter()
for number in range(actions):
    write(number)
print("SECONDS", time.perf_counter() - began)
spark.stop()
"""
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Service:
    """A receiver in a thread of this process, which keeps the events of a run in ``folder/<run id>.ndjson``."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        self.secret = secrets.token_bytes(32)
        self.receiver = Receiver(self.secret, lambda run_id: folder / f"{run_id}.ndjson", limits)
        self._server, listening = server_of(self.receiver), bound("127.0.0.1", [0])
        self.port = listening.getsockname()[1]
        self._thread = threading.Thread(target=partial(self._server.run, sockets=[listening]), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._server.should_exit = True
        self._thread.join()


def request(receiver: Service, run_id: str, body: bytes, *, is_ndjson: bool) -> bytes:
    """Return a whole request."""
    kind = "application/x-ndjson" if is_ndjson else "application/json"
    head = (
        f"POST {ENDPOINT}{run_id} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Encoding: gzip\r\n"
        f"{TOKEN_HEADER}: {token_of(receiver.secret, run_id)}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def send(port: int, content: bytes, requests: int, depth: int, ready: Barrier) -> None:
    """Send a request so many times over one connection."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ready.wait()
        for begun in range(0, requests, depth):
            waiting = min(depth, requests - begun)
            connection.sendall(content * waiting)
            answers = b""
            while answers.count(b"HTTP/1.1 ") < waiting or not answers.endswith(b"\r\n\r\n"):
                answers += connection.recv(65536)
            if answers.count(b"HTTP/1.1 201") != waiting:
                raise RuntimeError(answers.decode(errors="replace"))


def throughput(folder: Path, connections: int, requests: int, depth: int, *, lines: int = 1) -> Taken:
    """Return the seconds for each event that is taken, and the receiver's CPU seconds."""
    known = sorted((line for file in FIXTURES.glob("*.ndjson") for line in file.read_bytes().splitlines()), key=len)
    body = gzip.compress(b"\n".join([known[len(known) // 2]] * lines))
    # No driver sends as much: it waits for each answer.
    receiver = Service(folder, Limits(requests_a_second=sys.maxsize))
    runs = [str(uuid4()) for _ in range(connections)]
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(connections + 1)
    each = requests // connections
    clients = []
    for run_id in runs:
        content = request(receiver, run_id, body, is_ndjson=lines > 1)
        clients.append(context.Process(target=send, args=(receiver.port, content, each, depth, ready)))
        clients[-1].start()
    ready.wait()
    began, cpu = time.perf_counter(), time.process_time()
    for client in clients:
        client.join()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    receiver.close()
    taken = sum((folder / f"{run_id}.ndjson").read_bytes().count(b"\n") for run_id in runs)
    if taken != each * connections * lines:
        raise RuntimeError(f"{taken} events were taken")
    for run_id in runs:
        (folder / f"{run_id}.ndjson").unlink()
    return {"wall": seconds / taken, "cpu": cpu / taken}


def driver_figures(folder: Path, env: Mapping[str, str], jar: str, actions: int, *, is_received: bool) -> Taken:
    """Run the program in a driver, and return how long its writes took, and the CPU time of all."""
    run_id, receiver = str(uuid4()), None
    home = folder / run_id
    home.mkdir()
    events = home / f"{run_id}.ndjson"
    transport = {"type": "file", "location": str(events)}
    if is_received:
        receiver = Service(home)
        transport = listener_transport(f"http://127.0.0.1:{receiver.port}", receiver.secret, run_id)
    conf = {
        "spark.ui.enabled": "false",
        "spark.extraListeners": LISTENER,
        "spark.openlineage.namespace": "benchmark",
        **{f"spark.openlineage.facets.{name}.disabled": "true" for name in UNUSED_FACETS},
        **{f"{PREFIX}{key}": value for key, value in transport.items()},
    }
    program = home / "program.py"
    program.write_text(PROGRAM)
    given = [argument for key, value in conf.items() for argument in ("--conf", f"{key}={value}")]
    command = ["spark-submit", "--master", "local[1]", "--driver-class-path", jar, *given]
    before = os.times()
    done = subprocess.run(
        [*command, str(program), str(home), str(actions)], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{done.stderr[-4000:]}\nthe driver failed")
    if receiver is not None and receiver.receiver.refused[run_id]:
        raise SystemExit("the receiver has refused events")
    if receiver is not None:
        receiver.close()
    lines = events.read_bytes().count(b"\n")
    shutil.rmtree(home)
    cpu = sum(os.times()[:4]) - sum(before[:4])
    return {"wall": float(done.stdout.rpartition("SECONDS ")[2]), "cpu": cpu, "events": lines}


def environment() -> dict[str, str]:
    """Return the environment of the drivers."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "SPARK"))}
    return kept | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": JAVA_OPTIONS,
    }


def show_throughput(folder: Path, arguments: argparse.Namespace) -> None:
    """Print what is taken a second."""
    kinds = {
        "": {"depth": arguments.depth},
        "_one_by_one": {"depth": 1},
        "_ndjson": {"depth": arguments.depth, "lines": 100},
    }
    runs: dict[str, Callable[[], Taken]] = {}
    for name, given in kinds.items():
        requests = arguments.requests // given.get("lines", 1)
        runs[f"event{name}"] = partial(throughput, folder, arguments.connections, requests, **given)
    found = by_turns(runs, arguments, is_warm=True)
    for name in kinds:
        found.show(f"receiver_events_a_second{name}", (1 / one[f"event{name}"]["wall"] for one in found.rounds))
    found.show("receiver_cpu_microseconds", (one["event"]["cpu"] * 1e6 for one in found.rounds))
    found.show_numbers()


def show_driver(folder: Path, arguments: argparse.Namespace) -> None:
    """Print what the receiver costs a driver."""
    env = environment()
    jar = resolve_jar(
        DEFAULT_JAR,
        installation=lambda: find_installation("spark-submit", env),
        cache_dir=Path("~/.cache/airflow-provider-spark-lineage").expanduser(),
        timeout_seconds=300,
    )
    run = partial(driver_figures, folder, env, jar, arguments.actions)
    runs = {name: partial(run, is_received=name == "receiver") for name in ("receiver", "file")}
    found = by_turns(runs, arguments, is_warm=True)
    found.compare("receiver_vs_file", "receiver", "file")
    found.show_numbers()


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=6)
    asking.add_argument("--requests", type=int, default=40_000, help="in each round; default: %(default)s")
    asking.add_argument("--connections", type=int, default=4, help="default: %(default)s")
    asking.add_argument("--depth", type=int, default=16, help="requests at once on a connection; default: %(default)s")
    asking.add_argument("--actions", type=int, default=100, help="of the driver; 0 leaves it out; default: %(default)s")
    arguments = asking.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchmark-receiver-") as directory:
        show_throughput(Path(directory), arguments)
        if arguments.actions:
            show_driver(Path(directory), arguments)


if __name__ == "__main__":
    main()
