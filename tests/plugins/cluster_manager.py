"""A cluster manager that answers as it is told, and tasks in deploy mode cluster that are submitted to it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from spark_lineage.launch.directory import EVENTS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DRIVER_ID = "driver-20240131120000-0042"
APPLICATION_ID = "application_1706702400000_0042"
CONTAINER_ID = "container_1706702400000_0042_01_000001"
DRIVER_LINE = f"INFO ClientEndpoint: Driver successfully submitted as {DRIVER_ID}"


class Cluster:
    """The REST server of a cluster manager; answers each question for the job with the next of its states.

    :param on_kill: called before it answers that it will kill the driver
    """

    def __init__(
        self,
        states: list[str],
        on_question: Callable[[], object] = lambda: None,
        on_kill: Callable[[], object] = lambda: None,
    ) -> None:
        self.states = states
        self.questions: list[str] = []
        self.kills: list[str] = []
        self.programs: set[str] = set()
        """The names by which those have introduced themselves who asked."""
        self.info: dict[str, Any] = {"clusterInfo": {"state": "STARTED", "haState": "ACTIVE"}}
        """What a ResourceManager says of itself."""
        self.tags: set[str] = set()
        """Of the application of YARN."""
        self.log: bytes | None = None
        """What the driver prints in its container, where a NodeManager is there to give it."""
        self.events: bytes | None = None
        """What it writes into a file of events beside that."""
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/ws/v1/cluster/info" and "STANDBY" in str(cluster.info):
                    self.send_error(307)
                elif self.path.startswith("/ws/v1/node/"):
                    self._send_log()
                else:
                    self._send(cluster.answer(self.path, on_question))

            def do_POST(self) -> None:
                cluster.kills.append(self.path)
                on_kill()
                self._send({"action": "KillSubmissionResponse", "submissionId": DRIVER_ID, "success": True})

            def do_PUT(self) -> None:
                cluster.kills.append(self.path)
                self._send({"state": "KILLED"})

            def _send(self, answer: dict[str, Any]) -> None:
                # As Spark writes it: the hook reads it line by line.
                cluster.programs.add(self.headers["User-Agent"])
                self._send_bytes(json.dumps(answer, indent=2, separators=(",", " : ")).encode())

            def _send_log(self) -> None:
                files = {"stdout": b"", "stderr": cluster.log or b"", EVENTS_FILE: cluster.events}
                content = files.get(self.path.partition("?")[0].rpartition("/")[2])
                whole = content or b""
                last = whole[int(self.path.partition("size=")[2]) :]
                text = b"LogLength:%d\nLogContents:\n%s\nEnd of LogType:stderr\n" % (len(whole), last)
                self._send_bytes(text, 404 if content is None else 200)

            def _send_bytes(self, body: bytes, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]

    def answer(self, path: str, on_question: Callable[[], object]) -> dict[str, Any]:
        """Return what the cluster manager says of itself, of the applications with a tag, or of the job now."""
        if path == "/ws/v1/cluster/info":
            return self.info
        applications, _, tag = path.partition("?applicationTags=")
        if applications == "/ws/v1/cluster/apps":
            return {"apps": {"app": [{"id": APPLICATION_ID}]} if tag in self.tags else None}
        self.questions.append(path)
        on_question()
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if "/apps/" not in path:
            return standalone_answer(state)
        answer = yarn_answer(state)
        if self.log is not None:
            place = f"http://127.0.0.1:{self.port}/node/containerlogs/{CONTAINER_ID}/airflow"
            answer["app"]["amContainerLogs"] = place
        return answer

    @contextmanager
    def serving(self) -> Iterator[Cluster]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def standalone_answer(state: str) -> dict[str, Any]:
    """Return what a standalone master's ``/v1/submissions/status`` says."""
    return {"action": "SubmissionStatusResponse", "driverState": state, "submissionId": DRIVER_ID, "success": True}


def yarn_answer(state: str) -> dict[str, Any]:
    """Return what a ResourceManager's ``/ws/v1/cluster/apps`` says of an application, by its final status."""
    if state == "RUNNING":
        return {"app": {"state": state, "finalStatus": "UNDEFINED", "diagnostics": ""}}
    said = "Cannot log in with apiKey=hunter2 as me/pl41n-S3cret"
    return {"app": {"state": "FINISHED", "finalStatus": state, "diagnostics": said}}


def standalone(
    bench: Any,
    states: list[str],
    on_question: Callable[[], object] = lambda: None,
    on_kill: Callable[[], object] = lambda: None,
    *,
    status_poll_interval: float = 0,
    unknown_seconds: float = 1e-9,
    **arguments: Any,
) -> Any:
    """Run the operator in deploy mode cluster of a standalone master."""
    with Cluster(states, on_question, on_kill).serving() as cluster:
        # A driver that nobody knows is given up at once, as far as a test does not say otherwise.
        extra = {"deploy-mode": "cluster", "rest-port": cluster.port, "driver_unknown_seconds": unknown_seconds}
        bench.connection = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077, "extra": extra}
        outcome = bench.run(log=[DRIVER_LINE], status_poll_interval=status_poll_interval, **arguments)
        assert cluster.questions
        assert not [name for name in cluster.programs if "curl" in name], "images of Airflow may lack it"
        assert all(DRIVER_ID in question for question in cluster.questions)
        return outcome


def yarn(
    bench: Any, state: str, on_question: Callable[[], object] = lambda: None, *, tags: str = "", **arguments: Any
) -> Any:
    """Run the operator in deploy mode cluster of YARN, watched through the ResourceManager."""
    with Cluster([state], on_question).serving() as cluster:
        cluster.tags.update(tags.split(","))
        extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": f"http://127.0.0.1:{cluster.port}"}
        bench.connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
        outcome = bench.run(
            log=[f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"],
            yarn_track_via_rm_api=True,
            **arguments,
        )
        assert cluster.questions
        assert all(APPLICATION_ID in question for question in cluster.questions)
        return outcome
