"""Measures what it costs to wait for a thousand jobs in one process: the trigger's share of a core.

Prints ``trigger_cores`` and ``requests_cores``: seconds of CPU a second, of triggers in one event loop, and of the
peer: as many threads that ask with ``requests``, as the Spark provider's hook does in as many workers; ``trigger_cpu``
is the ratio. All are printed as ``pairs.py`` does. The ResourceManager is a process of its own that answers as YARN 3.4
does while a job runs; each job asks every ten seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import requests
from pairs import by_turns, parser

from spark_lineage.launch.launch import Launch, storable
from spark_lineage.triggers.spark_application import SparkApplicationTrigger

POLL_SECONDS = 10.0
SERVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json
APP = {"state": "RUNNING", "finalStatus": "UNDEFINED", "diagnostics": "", "startedTime": 1, "launchTime": 2,
       "finishedTime": 0, "trackingUrl": "http://rm:8088/proxy/", "amContainerLogs": "http://nm:8042/",
       "user": "airflow", "name": "silver", "queue": "root.default", "applicationType": "SPARK", "allocatedMB": 2048}
BODY = json.dumps({"app": APP}).encode()
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)
    def log_message(self, *_): ...
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
"""


def application(number: int) -> str:
    """Return the id of a job."""
    return f"application_1700000000000_{number:04}"


async def wait_with_triggers(url: str, count: int, seconds: float) -> float:
    """Return the CPU that the triggers take in so many seconds, once all of them have begun."""
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"yarn_resourcemanager_webapp_address": url}}
    os.environ["AIRFLOW_CONN_MY_SPARK"] = json.dumps(connection)

    async def one(number: int) -> None:
        await asyncio.sleep(number * POLL_SECONDS / count)
        launch = Launch(
            "", "", external_id=application(number), conn_id="my_spark", master="yarn", deploy_mode="cluster"
        )
        async for _ in SparkApplicationTrigger({"launch": storable(launch)}, POLL_SECONDS).run():
            pass

    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    await asyncio.sleep(POLL_SECONDS * 1.5)
    before = time.process_time()
    await asyncio.sleep(seconds)
    taken = time.process_time() - before
    if any(task.done() for task in tasks):
        raise RuntimeError("a trigger has ended, though no job has")
    for task in tasks:
        task.cancel()
    return taken


def wait_with_requests(url: str, count: int, seconds: float) -> float:
    """Return the CPU that as many threads take."""
    is_over = threading.Event()

    def one(number: int) -> None:
        is_over.wait(number * POLL_SECONDS / count)
        while not is_over.is_set():
            with suppress(requests.RequestException):
                requests.get(f"{url}/ws/v1/cluster/apps/{application(number)}", timeout=30).json()
            is_over.wait(POLL_SECONDS)

    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(POLL_SECONDS * 1.5)
    before = time.process_time()
    time.sleep(seconds)
    taken = time.process_time() - before
    is_over.set()
    for thread in threads:
        thread.join()
    return taken


def main() -> None:
    """Measure both against one server."""
    asking = parser(__doc__, rounds=6)
    asking.add_argument("--jobs", type=int, default=1000)
    asking.add_argument("--seconds", type=float, default=POLL_SECONDS)
    asked = asking.parse_args()
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{(server.stdout or sys.stdin).readline().strip()}"
        given = url, asked.jobs, asked.seconds
        runs = {
            "trigger": lambda: {"cpu": asyncio.run(wait_with_triggers(*given))},
            "requests": lambda: {"cpu": wait_with_requests(*given)},
        }
        found = by_turns(runs, asked, is_warm=True)
    finally:
        server.kill()
        server.wait()
    for name in runs:
        found.show(f"{name}_cores", (one[name]["cpu"] / asked.seconds for one in found.rounds))
    found.compare("trigger", "trigger", "requests")
    found.show_numbers()


if __name__ == "__main__":
    main()
