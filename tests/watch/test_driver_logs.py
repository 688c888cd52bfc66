"""The log of a driver, read while it grows, as NodeManagers, workers and kubelets give it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from dialogues import asked

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.driver import Driver
from spark_lineage.watch import standalone, yarn
from spark_lineage.watch.dialect import PIECE_BYTES
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDED = (Path(__file__).parents[1] / "fixtures" / "driver_logs" / "plain.log").read_bytes()
APPLICATION, CONTAINER = "application_1700000000000_0001", "container_1700000000000_0001_01_000001"
NODE_LOGS = f"/ws/v1/node/containers/{CONTAINER}/logs"
DRIVER = "driver-20261125035205-0000"
POD = "/api/v1/namespaces/data/pods/silver-driver"


@dataclass
class Printed:
    """What a driver has printed, in the ways that it is asked for; ``most`` is the largest answer so far."""

    content: bytes = b""
    by: str = ""
    removed: int = 0
    """Bytes at the front that are gone, where those that are left are counted from there on."""
    asked: list[dict[str, str]] = field(default_factory=list)
    grows_by: bytes = b""
    most: int = 0

    def parameters(self, path: str) -> dict[str, str]:
        found = {name: value for name, (value,) in parse_qs(urlsplit(path).query).items()}
        self.asked.append(found)
        self.content, self.grows_by = self.content + self.grows_by, b""
        return found

    def node(self, path: str) -> bytes:
        """As ``NMWebServices.getLogs`` of Hadoop 3.4.2 answers, recorded from it."""
        size = int(self.parameters(path)["size"])
        assert size < 0
        content = self.content[size:]
        self.most = max(self.most, len(content))
        head = (
            f"Container: {CONTAINER} on 127.0.0.1:42357\nLogAggregationType: LOCAL\n{'=' * 60}\n"
            f"LogType:stderr\nLogLastModifiedTime:Wed Nov 25 03:52:36 +0000 2026\nLogLength:{len(self.content)}\n"
            "LogContents:\n"
        )
        return head.encode() + content + f"\nEnd of LogType:stderr\n{'*' * 60}\n\n".encode()

    def worker(self, path: str) -> bytes:
        """As ``LogPage.renderLog`` of Spark 4.2 answers: text, of which it has decoded each piece by itself."""
        asked, content = self.parameters(path), self.content[self.removed :]
        start = min(int(asked["offset"]), len(content))
        piece = content[start : start + int(asked["byteLength"])]
        self.most = max(self.most, len(piece))
        head = f"==== Bytes {start}-{start + len(piece)} of {len(content)} of /opt/spark-works/{DRIVER}/stderr ====\n"
        return (head + piece.decode(errors="replace")).encode()

    def kubelet(self, path: str) -> bytes:
        """As the API server answers: from a time on, which comes again; whole lines, as far as the limit."""
        asked = self.parameters(path)
        lines = [
            b"2026-11-25T03:52:%02d.%09dZ %s" % (number // 10, number, line)
            for number, line in enumerate(self.content.splitlines(keepends=True))
        ]
        since = asked.get("sinceTime", "").encode()[:19]
        content = b"".join(line for line in lines[self.removed :] if line[:19] >= since)
        content = content[: int(asked["limitBytes"])]
        self.most = max(self.most, len(content))
        return content


@pytest.fixture(params=["yarn", "standalone", "kubernetes"])
def driver(request: pytest.FixtureRequest, loopback: Any) -> tuple[Printed, Sources]:
    """What a driver prints, and its log, of each cluster manager."""
    printed, url = Printed(by=request.param), loopback.url

    def replies(path: str, answer: Callable[[str], bytes], content_type: str = "text/plain") -> None:
        reply = type(loopback.replies["/"])
        loopback.replies[path] = lambda asked: reply(body=answer(asked), content_type=content_type)

    loopback.reply("/", json={})
    if request.param == "yarn":
        logs = f"{url}/node/containerlogs/{CONTAINER}/airflow"
        app = {"state": "RUNNING", "finalStatus": "UNDEFINED", "amContainerLogs": logs}
        loopback.reply(f"/ws/v1/cluster/apps/{APPLICATION}", json={"app": app})
        replies(f"{NODE_LOGS}/stderr", printed.node)
        replies(f"{NODE_LOGS}/stdout", Printed().node)
        return printed, Sources(Endpoints("yarn", "cluster", {}, yarn_urls=[url]), Driver(driver_id=APPLICATION))
    if request.param == "standalone":
        master = {
            "status": "ALIVE",
            "workers": [{"id": "worker-1", "webuiaddress": url}],
            "activedrivers": [{"id": DRIVER, "state": "RUNNING", "starttime": "1", "worker": "worker-1"}],
        }
        loopback.reply("/json/", json=master)
        stdout = Printed()
        replies("/log/", lambda path: (stdout if "logType=stdout" in path else printed).worker(path))
        extra = {"master_ui_url": url}
        return printed, Sources(Endpoints("spark://127.0.0.1:7077", "cluster", extra), Driver(driver_id=DRIVER))
    status = {"phase": "Running", "containerStatuses": [{"name": "spark-kubernetes-driver", "state": {"running": {}}}]}
    loopback.reply(POD, json={"metadata": {}, "status": status})
    replies(f"{POD}/log", printed.kubelet)
    return printed, Sources(Endpoints(f"k8s://{url}", "cluster", {}), Driver(driver_id="data:silver-driver"))


def added(log: Sources, *, is_last: bool = False) -> list[bytes | None]:
    return list(log.added(is_last=is_last))


def test_a_log_that_grows_is_read_once(driver: tuple[Printed, Sources]) -> None:
    printed, log = driver
    read: list[bytes | None] = []
    # Cut within lines, and within characters.
    for end in (0, 700, 701, 20_000, 20_000, len(RECORDED) - 5, len(RECORDED)):
        printed.content = RECORDED[:end]
        read += added(log)
        assert (
            b"".join(line + b"\n" for line in read if line is not None) == RECORDED[: RECORDED[:end].rfind(b"\n") + 1]
        )
    assert None not in read


def test_the_last_line_comes_at_the_end(driver: tuple[Printed, Sources]) -> None:
    printed, log = driver
    printed.content = b"one\ntorn"
    assert added(log) == [b"one"]
    assert added(log, is_last=True) == [b"torn"]


def test_pieces_are_bounded(driver: tuple[Printed, Sources], monkeypatch: pytest.MonkeyPatch) -> None:
    printed, log = driver
    for place in ("standalone._PIECE_BYTES", "kubernetes.PIECE_BYTES", "yarn.PIECE_BYTES"):
        monkeypatch.setattr(f"spark_lineage.watch.{place}", 20_000)
    monkeypatch.setattr(yarn, "LOG_BYTES", 1000)
    printed.content = RECORDED
    lines = added(log)
    assert printed.most <= 20_000
    if printed.by == "yarn":
        # A NodeManager counts from the end: what lies further back is lost, and that is said.
        assert lines == [None, *RECORDED[-20_000:].splitlines()]
    else:
        assert lines == RECORDED.splitlines()


def test_a_line_longer_than_a_piece_is_lost_and_no_other(loopback: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_lineage.watch.standalone._PIECE_BYTES", 50)
    printed = Printed(b"one\n" + b"x" * 240 + b"\ntwo\n")
    loopback.reply("/", json={})
    reply = type(loopback.replies["/"])
    loopback.replies["/log/"] = lambda path: reply(body=printed.worker(path))
    endpoints = Endpoints("spark://127.0.0.1:7077", "cluster", {})
    known = Driver(logs_url=f"{loopback.url}/logPage/?driverId={DRIVER}&logType=stderr")
    master = standalone.StandaloneMaster(endpoints, known)
    lines, is_end = list[bytes | None](), False
    while not is_end:
        added, is_end = asked(master.lines_of(f"{loopback.url}/log/?", is_last=False))
        lines += added
    assert (lines[0], lines[-1]) == (b"one", b"two")
    assert set(lines[1:-1]) - {None} == {b"x" * 40}, "the rest of the line"


def test_a_log_that_was_rotated_has_a_gap(driver: tuple[Printed, Sources]) -> None:
    printed, log = driver
    printed.content = b"".join(b"line %d\n" % number for number in range(40))
    assert len(added(log)) == 40
    if printed.by == "kubernetes":
        printed.content += b"new\n"
        printed.removed = 40
    else:
        printed.content = b"new\n"
    assert added(log) == [None, b"new"]
    assert added(log) == []


def test_what_is_not_known_or_not_there_is_an_error(driver: tuple[Printed, Sources], loopback: Any) -> None:
    printed, log = driver
    printed.content = b"one\n"
    assert added(log) == [b"one"]
    for path in [path for path in loopback.replies if re.search("/logs?(/|$)", path)]:
        loopback.reply(path, status=404, body=b"gone")
    with pytest.raises(NoAnswerError, match="404"):
        added(log)
    loopback.replies.clear()
    with pytest.raises(NoAnswerError):
        Sources(Endpoints("yarn", "cluster", {}, yarn_urls=[loopback.url]), Driver(driver_id=APPLICATION)).added(
            is_last=False
        ).__next__()


def test_a_file_that_grows_between_two_questions(loopback: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yarn, "LOG_BYTES", 10)
    printed = Printed(b"0123456789\n" * 5)
    loopback.reply("/log", json={})
    reply = type(loopback.replies["/log"])
    loopback.replies["/log"] = lambda path: reply(body=printed.node(path))
    endpoints = Endpoints("yarn", "cluster", {}, yarn_urls=[loopback.url])
    manager = yarn.YarnResourceManager(endpoints, Driver())
    printed.grows_by = b"added meanwhile\n" * 3
    piece = asked(manager.piece(f"{loopback.url}/log", 11))
    assert piece.start <= 11
    assert printed.content[piece.start : piece.end] == piece.content
    assert piece.size == len(printed.content)
    assert len(piece.content) < PIECE_BYTES


def test_files_of_events_are_read_instead_of_what_the_driver_prints(loopback: Any) -> None:
    def container(attempt: int) -> str:
        return f"container_1700000000000_0001_{attempt:02}_000001"

    def show(attempt: int) -> None:
        logs = f"{loopback.url}/node/containerlogs/{container(attempt)}/airflow"
        app = {"state": "RUNNING", "finalStatus": "UNDEFINED", "amContainerLogs": logs}
        loopback.reply(f"/ws/v1/cluster/apps/{APPLICATION}", json={"app": app})

    def keep(attempt: int, name: str, printed: Printed) -> None:
        reply = type(loopback.replies["/"])
        path = f"/ws/v1/node/containers/{container(attempt)}/logs/{name}"
        loopback.replies[path] = lambda asked: reply(body=printed.node(asked), content_type="text/plain")

    loopback.reply("/", status=404)
    first, second, declared = Printed(b"one\n"), Printed(b"three\n"), Printed(b"two\n")
    keep(1, "stderr", Printed(b"printed\n"))
    keep(1, "stdout", Printed())
    log = Sources(Endpoints("yarn", "cluster", {}, yarn_urls=[loopback.url]), Driver(driver_id=APPLICATION))
    show(1)
    assert added(log) == [b"printed"], "there is no file of events yet"
    keep(1, "openlineage-events.ndjson", first)
    keep(1, "declared.ndjson", declared)
    assert added(log) == [b"one", b"two"]
    keep(2, "openlineage-events.ndjson", second)
    first.content += b"late\n"
    show(2)
    assert added(log) == [b"late", b"three"]
