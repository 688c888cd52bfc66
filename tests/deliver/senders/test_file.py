"""The sender into a file: whole lines, whoever else appends."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap

import pytest

from spark_lineage.deliver.sender import Later, sender_of

pytestmark = pytest.mark.oldest


def test_a_line_an_event(tmp_path, event):
    path = tmp_path / "events.ndjson"
    sender = sender_of({"type": "file", "log_file_path": f"file://{path}", "append": True})
    sender.send(event)
    sender.send(event)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [json.loads(event.body)] * 2


def test_a_file_an_event_as_ever(tmp_path, event):
    sender_of({"type": "file", "log_file_path": str(tmp_path / "event")}).send(event)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("event-")


def test_no_directory(tmp_path, event):
    path = tmp_path / "missing" / "events.ndjson"
    with pytest.raises(Later, match=f"{path} cannot be written: No such file or directory"):
        sender_of({"type": "file", "log_file_path": str(path), "append": True}).send(event)


def test_processes_append_whole_lines(tmp_path):
    program = textwrap.dedent(
        """
        import sys
        from spark_lineage.deliver.sender import sender_of
        from spark_lineage.deliver.outgoing import Outgoing
        sender = sender_of({"type": "file", "log_file_path": sys.argv[1], "append": True})
        event = Outgoing.of(b'{"job":{"namespace":"d","name":"%s"}}' % (sys.argv[2].encode() * 100_000))
        for _ in range(20):
            sender.send(event)
        """
    )
    path = tmp_path / "events.ndjson"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [subprocess.Popen([sys.executable, "-c", program, path, letter], env=env) for letter in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    names = [json.loads(line)["job"]["name"] for line in path.read_text().splitlines()]
    assert sorted(names) == ["a" * 100_000] * 20 + ["b" * 100_000] * 20


def test_a_part_of_a_line_is_taken_back(tmp_path, event):
    path = tmp_path / "events.ndjson"
    sender = sender_of({"type": "file", "log_file_path": str(path), "append": True})
    sender.send(event)
    kept = path.read_bytes()
    # As on a full disk: no file of this process may grow past this.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept) + 10, limits[1]))
        with pytest.raises(Later, match="cannot be written: File too large"):
            sender.send(event)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == kept


def test_a_process_that_was_stopped_with_the_lock_is_not_waited_for_without_end(tmp_path, event, monkeypatch):
    monkeypatch.setattr("spark_lineage.launch.lock.APPENDING_SECONDS", 0.2)
    path = tmp_path / "events.ndjson"
    with path.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Later, match="cannot be written"):
            sender_of({"type": "file", "log_file_path": str(path), "append": True}).send(event)
    sender_of({"type": "file", "log_file_path": str(path), "append": True}).send(event)
