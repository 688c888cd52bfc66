"""Fixture: Databricks' API of jobs, version 2.2, as far as Airflow's operators call it.

What it answers follows the public API. Each task of a run is a real ``spark-submit`` on this machine, with the
properties of its cluster; tasks run one after another.
"""

from __future__ import annotations

import base64
import itertools
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from submitted_program import SubmittedProgram

_API, _DBFS = "/api/2.2/jobs/", "/api/2.0/dbfs/"
_MOST_BYTES = 1 << 20
# What the event log of a cluster is called where it is delivered: cluster, node, context.
_NODE, _CONTEXT = "10_0_0_1", "7104568937"


class DatabricksServer:
    """``submitted`` are the payloads of runs, by id; ``jobs`` the definitions that ``run-now`` runs.

    :param env: what Spark needs in its environment
    :param delivery_seconds: how often the logs of a cluster are delivered; Databricks does it every five minutes, and
        when the cluster ends
    """

    def __init__(self, env: Mapping[str, str], home: Path, delivery_seconds: float = 300.0) -> None:
        self.submitted: dict[int, dict[str, Any]] = {}
        self.jobs: dict[int, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.delivery_seconds = delivery_seconds
        self.files: Any = None
        """Of ``fsspec``, or DBFS: where logs are delivered."""
        self._env, self._home = env, home
        self._numbers = itertools.count(1000)
        self._runs: dict[int, _Run] = {}

    @contextmanager
    def running(self, tls: ssl.SSLContext | None = None) -> Iterator[int]:
        """Run it; the value is its port on loopback."""
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
                # Triggers send them as a body.
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                self._answer(query or json.loads(body or b"{}"))

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}"))

            def _answer(self, given: dict[str, Any]) -> None:
                path = urlsplit(self.path).path
                name = path.removeprefix(_API)
                service.calls.append(name)
                try:
                    if path.startswith(_DBFS):
                        given["token"] = self.headers["Authorization"]
                        status, answer = 200, service.files.answer(path.removeprefix(_DBFS), **given)
                    else:
                        status, answer = 200, service.answer(name, given)
                except KeyError as unknown:
                    text = f"Run {unknown} does not exist."
                    status, answer = 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": text}
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
            for run in self._runs.values():
                run.close()

    def answer(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; a run that is not known raises ``KeyError``."""
        if name == "runs/submit":
            return self._begin(given)
        if name == "run-now":
            overrides = given.get("spark_submit_params")
            definition = self.jobs[int(given["job_id"])]
            if overrides is not None:
                tasks = [{**one, "spark_submit_task": {"parameters": overrides}} for one in definition["tasks"]]
                definition = {**definition, "tasks": tasks}
            return self._begin(definition)
        run_id = int(given["run_id"])
        # Of a run, or of a task in it.
        run = self._runs[run_id if run_id in self._runs else run_id // 100]
        if name == "runs/cancel":
            run.cancel()
            return {}
        if name == "runs/get-output":
            return {"error": run.why}
        return run.answer()

    def _begin(self, payload: dict[str, Any]) -> dict[str, Any]:
        run_id = next(self._numbers)
        self.submitted[run_id] = payload
        self._runs[run_id] = _Run(
            run_id,
            payload,
            self._env,
            self._home / str(run_id),
            delivery_seconds=self.delivery_seconds,
            files=self.files,
        )
        return {"run_id": run_id}


class Dbfs:
    """The file system of Databricks, as far as it is read, for one token; a part that is read has at most 1 MB."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._files: dict[str, bytes] = {}

    def pipe_file(self, place: str, content: bytes) -> None:
        """Put a file."""
        self._files[place.removeprefix("dbfs:")] = content

    def answer(self, name: str, path: str, token: str, offset: int = 0, length: int = _MOST_BYTES) -> dict[str, Any]:
        """Return the answer to a request; a path that is not known, or another token, raises ``KeyError``."""
        if token != f"Bearer {self._token}":
            raise KeyError(token)
        if name == "read":
            assert length <= _MOST_BYTES
            data = self._files[path][offset : offset + length]
            return {"bytes_read": len(data), "data": base64.b64encode(data).decode()}
        if path in self._files:
            return {"files": [{"path": path, "is_dir": False, "file_size": len(self._files[path])}]}
        below = [one.removeprefix(f"{path}/") for one in self._files if one.startswith(f"{path}/")]
        if not below:
            raise KeyError(path)
        found = {name: bool(rest) for name, _, rest in (one.partition("/") for one in below)}
        sizes = {name: len(self._files.get(f"{path}/{name}", b"")) for name in found}
        return {"files": [{"path": f"{path}/{one}", "is_dir": found[one], "file_size": sizes[one]} for one in found]}


class _Run:
    def __init__(
        self,
        run_id: int,
        payload: dict[str, Any],
        env: Mapping[str, str],
        home: Path,
        *,
        delivery_seconds: float,
        files: Any,
    ) -> None:
        home.mkdir(parents=True)
        self.run_id = run_id
        self.why = ""
        self._env, self._home, self._delivery_seconds, self._files = env, home, delivery_seconds, files
        self._clusters = {one["job_cluster_key"]: one["new_cluster"] for one in payload.get("job_clusters", ())}
        self._tasks = list(_tasks(payload))
        self._state: dict[str, str] = {"life_cycle_state": "PENDING", "state_message": ""}
        self._ended: list[dict[str, Any]] = []
        self._program: SubmittedProgram | None = None
        self._is_cancelled = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._state = {"life_cycle_state": "RUNNING", "state_message": "In run"}
        result = "SUCCESS"
        for number, task in enumerate(self._tasks):
            if not self._is_cancelled and result == "SUCCESS":
                result = self._run_task(number, task)
        message = {"SUCCESS": "", "CANCELED": "Run cancelled."}.get(result, "Workload failed, see run output.")
        self._state = {"life_cycle_state": "TERMINATED", "result_state": result, "state_message": message}

    def _run_task(self, number: int, task: dict[str, Any]) -> str:
        cluster = task.get("new_cluster") or self._clusters.get(task.get("job_cluster_key", "")) or {}
        conf, cluster_id = (
            dict(cluster.get("spark_conf") or {}),
            f"{time.strftime('%m%d-%H%M%S', time.gmtime())}-{self.run_id}x{number}",
        )
        logs = self._home / cluster_id
        logs.mkdir()
        own = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": str(logs)}
        # The service keeps a log of each cluster.
        own |= {"spark.eventLog.rolling.enabled": "false"}
        conf = conf if "spark.eventLog.dir" in conf else {**own, **conf}
        if python := task.get("spark_python_task"):
            program, arguments = python["python_file"], python.get("parameters", [])
        else:
            parameters = list(task["spark_submit_task"]["parameters"])
            while parameters[0] == "--conf":
                key, _, value = parameters[1].partition("=")
                conf[key], parameters = value, parameters[2:]
            program, *arguments = parameters
        self._program = SubmittedProgram(program, arguments, conf, self._env, self._home / f"{cluster_id}.log")
        destination = next(iter((cluster.get("cluster_log_conf") or {}).values()), {}).get("destination")
        due = time.monotonic() + self._delivery_seconds
        while self._program.exit_code is None:
            time.sleep(0.2)
            if time.monotonic() > due:
                self._deliver(logs, destination, cluster_id)
                due = time.monotonic() + self._delivery_seconds
        self._deliver(logs, destination, cluster_id)
        self.why = self._program.why
        result = "CANCELED" if self._is_cancelled else "FAILED" if self._program.exit_code else "SUCCESS"
        state = {"life_cycle_state": "TERMINATED", "result_state": result}
        instance = {"cluster_id": cluster_id, "spark_context_id": _CONTEXT}
        self._ended.append(
            {
                "task_key": task.get("task_key", "main"),
                "run_id": self.run_id * 100 + number,
                "start_time": number,
                "state": state,
                "cluster_instance": instance,
            }
        )
        return result

    def _deliver(self, logs: Path, destination: str | None, cluster_id: str) -> None:
        for log in logs.glob("*") if destination else ():
            place = f"{destination}/{cluster_id}/eventlog/{cluster_id}_{_NODE}/{_CONTEXT}/eventlog"
            self._files.pipe_file(place, log.read_bytes())

    def answer(self) -> dict[str, Any]:
        """Return the run as ``runs/get`` has it."""
        return {
            "run_id": self.run_id,
            "job_id": 1,
            "run_page_url": f"http://127.0.0.1/run/{self.run_id}",
            "state": self._state,
            "tasks": self._ended,
        }

    def cancel(self) -> None:
        """End the driver that runs."""
        self._is_cancelled = True
        if self._program is not None:
            self._program.cancel()

    def close(self) -> None:
        """Leave no process behind."""
        self._is_cancelled = True
        if self._program is not None:
            with suppress(ProcessLookupError):
                self._program.close()
        self._thread.join()


def _tasks(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the tasks of a payload; one of ``for_each_task`` for each of its inputs."""
    for task in payload.get("tasks") or [payload]:
        if (loop := task.get("for_each_task")) is None:
            yield task
            continue
        for value in json.loads(loop["inputs"]):
            nested = json.loads(json.dumps(loop["task"]).replace("{{input}}", str(value)))
            yield {**nested, "task_key": f"{task['task_key']}_{value}"}
