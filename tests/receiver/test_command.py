"""``spark-lineage receive``: it takes events until it is ended, and says what it cannot use."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from lineage_backends.certificates import make_certificates

pytest.importorskip("uvicorn")

from spark_lineage.cli import main
from spark_lineage.receiver.server import bound
from spark_lineage.submission.received_events import ENDPOINT, TOKEN_HEADER, token_of

SECRET = "planted-secret-of-the-service-019"  # noqa: S105
RUN = "0193a4b2-7c1d-7e3f-8a5b-1c2d3e4f5a6b"
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def receive(tmp_path: Path) -> Iterator[Start]:
    """Run the command in a process of its own."""
    running = []
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE", "SPARK"))}

    def start(*arguments: object, **connection: Any) -> subprocess.Popen[str]:
        told = {"conn_type": "http", "host": "127.0.0.1", "password": SECRET} | connection
        env = {**clean, "AIRFLOW_HOME": str(tmp_path / "airflow"), "AIRFLOW_CONN_RECEIVER": json.dumps(told)}
        command = ["-m", "spark_lineage.cli", "receive", "--root", tmp_path / "kept", "--conn-id", "receiver"]
        given = map(str, [sys.executable, *command, *arguments])
        process = subprocess.Popen([*given], env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait(10)
        assert process.stderr is not None
        process.stderr.close()


def listening(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if match := re.fullmatch(r"spark-lineage: listening on (?P<url>https://127\.0\.0\.1:\d+/\S+)\n", line):
            return match["url"]
    raise AssertionError("it does not listen")


def test_it_takes_events_until_it_is_ended(receive: Start, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    process = receive("--port", 0, "--certfile", certificates.server, "--keyfile", certificates.server_key)
    url = listening(process)
    assert url.endswith(ENDPOINT)
    verify = str(certificates.authority)
    headers = {TOKEN_HEADER: token_of(SECRET.encode(), RUN)}
    assert requests.post(url + RUN, data=b"{}", headers=headers, verify=verify, timeout=5).status_code == 201
    assert requests.post(url + RUN, data=b"{}", verify=verify, timeout=5).status_code == 401
    assert requests.get(url + RUN, headers=headers, verify=verify, timeout=5).content == b"{}\n"
    process.send_signal(signal.SIGTERM)
    # uvicorn ends its process by the signal, when it has ended its connections.
    assert process.wait(10) in {0, -signal.SIGTERM}
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert (tmp_path / "kept" / f"{RUN}.ndjson").read_bytes() == b"{}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "{taken}"], "in use"),
        (["--certfile", "{missing}"], "cannot be read"),
        (["--keyfile", "{text}"], "--keyfile is given without --certfile"),
        (["--root", "{text}"], "is not a directory"),
    ],
)
def test_what_cannot_be_used_is_an_error_of_one_line(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").touch()
    with bound("127.0.0.1", [0]) as taken:
        names = {"taken": taken.getsockname()[1], "missing": tmp_path / "missing", "text": tmp_path / "text"}
        given = [one.format(**names) for one in arguments]
        assert main(["receive", "--root", str(tmp_path / "kept"), "--conn-id", "receiver", *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("spark-lineage: ")
    assert said in line


def test_a_certificate_that_is_none_is_an_error(receive: Start, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")
    process = receive("--port", 0, "--certfile", tmp_path / "text")
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.count("\n")) == (2, 1)
    assert "the certificate cannot be used" in errors
