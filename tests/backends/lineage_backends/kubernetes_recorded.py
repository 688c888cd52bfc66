"""Answers for one pod what a real API server and its kubelet answered: see ``tests/fixtures/kubernetes``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lineage_backends.processes import HOST

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[2] / "fixtures/kubernetes/recorded.json").read_text())
PODS = "/api/v1/namespaces/jobs/pods"
TOKEN = "of-the-operator"  # noqa: S105 - of a server on the loopback
STRANGER_TOKEN = "of-the-stranger"  # noqa: S105 - the same


@dataclass
class RecordedPod:
    """One recorded pod; each question for it gets its next state, the last one stays.

    ``pods`` are the states, None for a pod that is gone; ``log`` is what its container printed.
    """

    pods: list[dict[str, Any] | None]
    log: str
    name: str
    url: str = ""
    asked: list[str] = field(default_factory=list)
    """Method and path of each question."""
    refuses: list[int] = field(default_factory=list)
    """What the next questions are answered with, whoever asks."""

    def answer(self, method: str, path: str, query: str, token: str) -> tuple[int, str]:
        """Return status and body."""
        self.asked.append(f"{method} {path}")
        if self.refuses:
            return self.refuses.pop(0), ""
        if token != TOKEN:
            return self._refused(403 if token == STRANGER_TOKEN else 401)
        pod = self.pods[0]
        if len(self.pods) > 1 and method == "GET" and not path.endswith("/log"):
            del self.pods[0]
        if path == PODS:
            return 200, json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [pod] if pod else []})
        if pod is None or path.split("/")[6] != pod["metadata"]["name"]:
            return self._refused(404)
        if path.endswith("/log"):
            count = int(parse_qs(query)["tailLines"][0])
            return 200, "".join(self.log.splitlines(keepends=True)[-count:])
        return 200, json.dumps(pod)

    @staticmethod
    def _refused(status: int) -> tuple[int, str]:
        return status, json.dumps(RECORDED["refusals"][str(status)])


@contextmanager
def recorded_pod(name: str) -> Iterator[RecordedPod]:
    """Serve the pod of a recorded run."""
    run = RECORDED["runs"][name]
    found = RecordedPod(list(run["pods"]), run["log"], run["pods"][0]["metadata"]["name"])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, body = found.answer(self.command, url.path, url.query, token)
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if url.path.endswith("/log") else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    found.url = f"http://{HOST}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
