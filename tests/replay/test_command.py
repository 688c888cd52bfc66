"""``spark-lineage replay`` as a user runs it: Airflow's connections, a backend, files, a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.cli import main
from spark_lineage.deliver.outgoing import append_event

if TYPE_CHECKING:
    from warm_python import WarmPython

Replay = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]
RAW = ROOT / "tests" / "fixtures" / "events" / "a_414.ndjson"
RUN_ID = "0190e6e0-0000-7000-8000-000000000000"


class Backend(ThreadingHTTPServer):
    """Takes events; those of a job that is called ``refused`` it does not."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken: list[dict[str, Any]] = []
        self.headers: list[Any] = []


class Handler(BaseHTTPRequestHandler):
    server: Backend

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.headers.append(self.headers)
        is_refused = event["job"]["name"] == "refused"
        if not is_refused:
            self.server.taken.append(event)
        self.send_response(422 if is_refused else 201)
        self.end_headers()
        self.wfile.write(b"password=hunter2" if is_refused else b"")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as backend:
        threading.Thread(target=backend.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield backend
        backend.shutdown()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


def env_of(home: Path, backend: Backend, **connection: Any) -> dict[str, str]:
    address = {"conn_type": "openlineage", "host": f"http://127.0.0.1:{backend.server_port}", "password": "k3y"}
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")}
    return kept | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_CONN_MARQUEZ": json.dumps(address | connection),
        "AIRFLOW_CONN_AWAY": json.dumps({"conn_type": "openlineage", "host": "http://127.0.0.1:1"}),
        "PYTHONPATH": os.pathsep.join(str(ROOT / root) for root in ("provider", "operators", "listeners")),
    }


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "spark_lineage.cli", "replay", *map(str, arguments)]


@pytest.fixture
def replay(warm_python: WarmPython) -> Replay:
    """Run the command in a process of its own: its environment, and its arguments."""

    def run(env: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
        return warm_python.run("-m", "spark_lineage.cli", "replay", *arguments, env=env)

    return run


def event(day: int, name: str = "etl.load", **values: Any) -> dict[str, Any]:
    time = f"2026-01-{day:02}T00:00:00Z"
    return {
        "eventType": "COMPLETE", "eventTime": time, "producer": "https://example.com", "run": {"runId": RUN_ID},
        "job": {"namespace": "shop", "name": name}, **values,
    }  # fmt: skip


@pytest.fixture
def lineage_dir(tmp_path: Path) -> Path:
    """Three launches, of which one is there twice, and one that is raw."""
    for place, day in (("c", 3), ("a", 1), ("b", 2), ("b", 2)):
        (tmp_path / "lineage" / place).mkdir(parents=True, exist_ok=True)
        append_event(tmp_path / "lineage" / place, json.dumps(event(day)).encode())
    (tmp_path / "lineage" / "a" / "openlineage-events.ndjson").write_bytes(RAW.read_bytes())
    return tmp_path / "lineage"


def test_a_lineage_directory_is_sent_again(home: Path, backend: Backend, lineage_dir: Path, replay: Replay) -> None:
    done = replay(env_of(home, backend), lineage_dir, "--conn-id", "marquez")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "marquez: 3 sent, 0 refused, 0 left\n"
    assert "4 events read, 0 lines set aside, 3 to send" in done.stderr
    assert "3/3" in done.stderr
    assert backend.taken == [event(day) for day in (1, 2, 3)]
    assert backend.headers[0]["Authorization"] == "Bearer k3y"


def test_what_is_not_taken_is_named_and_counted(
    home: Path, backend: Backend, lineage_dir: Path, replay: Replay
) -> None:
    (lineage_dir / "d").mkdir(parents=True, exist_ok=True)
    append_event(lineage_dir / "d", json.dumps(event(2, "refused")).encode())
    env = env_of(home, backend, extra={"namespace": "prod"})
    done = replay(env, lineage_dir, "--conn-id", "marquez", "--conn-id", "away", "--rate", 1000)
    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert first == "marquez: 3 sent, 1 refused, 0 left"
    assert second.startswith("away: 0 sent, 0 refused, 4 left (")
    assert f"marquez refused the COMPLETE of shop refused, run {RUN_ID}: http://127.0.0.1:" in done.stderr
    assert "answered 422 " in done.stderr
    assert "nothing more is sent to away" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert [each["job"]["namespace"] for each in backend.taken] == ["prod"] * 3


def test_output_of_merge_is_sent(home: Path, backend: Backend, tmp_path: Path, replay: Replay) -> None:
    merged = tmp_path / "merged.ndjson"
    assert main(["merge", str(RAW), "-o", str(merged), "--exit-code", "0"]) == 0
    done = replay(env_of(home, backend), merged, "--conn-id", "marquez")
    assert done.returncode == 0, done.stderr
    assert backend.taken == [json.loads(merged.read_bytes())]


@pytest.fixture
def can_be_interrupted() -> Iterator[None]:
    """Whoever runs the tests in the background has SIGINT ignored, in the processes that they start as well."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("can_be_interrupted")
def test_a_terminal_shows_a_bar_and_an_interruption_leaves_a_count(
    home: Path, backend: Backend, tmp_path: Path
) -> None:
    file = tmp_path / "merged.ndjson"
    file.write_text("".join(json.dumps(event(1, number=number)) + "\n" for number in range(500)))
    parent, child = pty.openpty()
    process = subprocess.Popen(
        command(file, "--conn-id", "marquez", "--rate", 5),
        env=env_of(home, backend) | {"TERM": "xterm", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=child,
        start_new_session=True,
    )
    os.close(child)
    shown: list[bytes] = []

    def look() -> None:
        # While it runs: a terminal that nobody reads takes 4 kB, and then the bar waits.
        with contextlib.suppress(OSError):  # the end, on Linux
            while chunk := os.read(parent, 4096):
                shown.append(chunk)

    looking = threading.Thread(target=look)
    looking.start()
    with process:
        deadline = time.monotonic() + 90
        while len(backend.taken) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        out = process.stdout.read().decode()
    assert process.returncode == 130
    looking.join(10)
    os.close(parent)
    sent = int(out.split()[1])
    # The one that was under way may have been taken all the same.
    assert sent <= len(backend.taken) <= sent + 1
    assert (
        out == f"marquez: {sent} sent, 0 refused, {500 - sent} left (interrupted; the same command sends all again)\n"
    )
    seen = b"".join(shown)
    assert f"{sent}/500".encode() in seen
    assert b"Sending" in seen
    assert b"Traceback" not in seen


def test_a_connection_that_does_not_fit_sends_nothing(
    home: Path, backend: Backend, lineage_dir: Path, replay: Replay
) -> None:
    done = replay(env_of(home, backend), lineage_dir, "--conn-id", "marquez", "--conn-id", "nowhere")
    assert done.returncode == 2
    assert "the connection 'nowhere' cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
    assert backend.taken == []


# ---- without a backend ----


def test_a_dry_run_lists_what_would_be_sent(lineage_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lineage_dir / "d").mkdir(parents=True, exist_ok=True)
    append_event(lineage_dir / "d", json.dumps(event(2, "x?password=hunter2\ty")).encode())
    assert main(["replay", str(lineage_dir), "--dry-run", "--since", "2026-01-02"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        f"2026-01-02T00:00:00Z\tCOMPLETE\t{RUN_ID}\tshop etl.load",
        f"2026-01-02T00:00:00Z\tCOMPLETE\t{RUN_ID}\tshop x?password=*** y",
        f"2026-01-03T00:00:00Z\tCOMPLETE\t{RUN_ID}\tshop etl.load",
    ]
    assert "5 events read, 0 lines set aside, 3 to send" in captured.err


@pytest.mark.parametrize(
    ("since", "number"),
    [("2026-01-03", 1), ("2026-01-02T23:59Z", 1), ("2026-01-03T00:30+01:00", 1), ("1m", 0), ("99999w", 3)],
)
def test_since(since: str, number: int, lineage_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(lineage_dir), "--dry-run", "--since", since]) == 0
    assert capsys.readouterr().out.count("\n") == number


def test_raw_lineage_is_to_be_merged_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(RAW), "--dry-run"]) == 2
    assert f"merge them first (spark-lineage merge {RAW} " in capsys.readouterr().err


def test_lines_that_hold_no_event_are_counted(
    lineage_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (broken := tmp_path / "broken.ndjson").write_text('{"password": "hunter2"}\n{"torn')
    assert main(["replay", str(broken), "--dry-run"]) == 2
    assert "no event in the 2 lines of" in capsys.readouterr().err
    assert main(["replay", str(broken), str(lineage_dir), "--dry-run"]) == 0
    err = capsys.readouterr().err
    assert "4 events read, 2 lines set aside, 3 to send" in err
    assert "  1 not JSON (torn?)" in err
    assert "hunter2" not in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give the connections to send to"),
        (["--conn-id", "a", "--rate", "0"], "'0' is not a number above 0"),
        (["--conn-id", "a", "--rate", "nan"], "'nan' is not a number above 0"),
        (["--conn-id", "a", "--since", "yesterday"], "'yesterday' is not a time"),
    ],
)
def test_arguments_that_do_not_fit(
    arguments: list[str], told: str, lineage_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["replay", str(lineage_dir), *arguments])
    assert refused.value.code == 2
    assert told in capsys.readouterr().err


def test_a_place_where_nothing_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path), "--dry-run"]) == 2
    assert "no run-events.jsonl and no NDJSON file in the directory" in capsys.readouterr().err


def test_an_archive_is_read_by_its_pointer(
    lineage_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = next(lineage_dir.rglob("run-events.jsonl")).read_text()
    for version in ("v1", "v2"):
        (directory := tmp_path / "events" / f"version={version}" / "day=2026-01-31").mkdir(parents=True)
        (directory / "part-0.txt").write_text(kept)
    pointer = {"format": 1, "version": "v2", "days": {"2026-01-31": "v2"}}
    (tmp_path / "_current.json").write_text(json.dumps(pointer))
    assert main(["replay", str(tmp_path), "--dry-run"]) == 0
    captured = capsys.readouterr()
    lines = len(kept.splitlines())
    assert f"{lines} events read, 0 lines set aside" in captured.err
