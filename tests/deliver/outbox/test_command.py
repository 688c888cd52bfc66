"""``spark-lineage outbox``."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.cli import main
from spark_lineage.deliver.courier import drain
from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import sender_of
from spark_lineage.launch.bounded_run import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def connection(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    value = json.dumps({"conn_type": "openlineage", "host": backend.url, "password": "hunter2-the-key"})
    monkeypatch.setenv("AIRFLOW_CONN_MARQUEZ", value)


@pytest.fixture
def run(outbox: Outbox, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["outbox", *arguments, "--dir", str(outbox.directory)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def refused(outbox: Outbox, backend: Any, *contents: bytes) -> list[str]:
    """Have the backend refuse some events, and give their ids."""
    for content in contents:
        outbox.spool("marquez").put(Outgoing.of(content))
    backend.answer = lambda _: (422, {}, "no schemaURL")
    sender = sender_of(backend.config)
    drain(outbox.spool("marquez"), sender, Deadline(20))
    backend.answer = lambda _: (201, {}, "")
    return [entry.id for entry in outbox.spool("marquez").dead()]


def test_list_without_an_outbox_makes_none(run: Any, outbox: Outbox) -> None:
    code, out, err = run("list")
    assert (code, out, err) == (2, "", f"spark-lineage: there is no outbox in {outbox.directory}\n")
    assert not outbox.directory.exists()


def test_list(run: Any, outbox: Outbox, backend: Any, event: Any) -> None:
    refused(outbox, backend, event())
    outbox.spool("marquez").put(Outgoing.of(event(1, "RUNNING")))
    outbox.spool("other").put(Outgoing.of(event(2)))
    lines = [line.split("\t") for line in run("list")[1].splitlines()]
    assert [(line[0], line[1], line[3]) for line in lines] == [("marquez", "1", "1"), ("other", "1", "0")]
    assert [line.split("\t")[0] for line in run("list", "--destination", "other")[1].splitlines()] == ["other"]
    ((_, destination, kind, job, _, _, _, answer),) = [
        line.split("\t") for line in run("list", "--dead")[1].splitlines()
    ]
    assert (destination, kind, job) == ("marquez", "START", "airflow dag.task")
    assert "422" in answer
    assert "no schemaURL" in answer
    assert [line.split("\t")[2] for line in run("list", "--waiting")[1].splitlines()] == ["RUNNING", "START"]


def test_flush_by_the_ids_of_connections(run: Any, outbox: Outbox, backend: Any, event: Any) -> None:
    outbox.spool("marquez").put(Outgoing.of(event()))
    outbox.spool("gone").put(Outgoing.of(event(1)))
    code, out, err = run("flush")
    assert code == 1
    assert out.splitlines() == ["gone\t0\t1\t0", "marquez\t1\t0\t0"]
    assert backend.taken == [event()]
    assert "hunter2" not in out + err
    assert run("flush", "--destination", "marquez") == (0, "", "Nothing waits.\n")
    # Ids are all that is kept of connections.
    assert all(b"hunter2" not in path.read_bytes() for path in outbox.directory.rglob("*") if path.is_file())


def test_flush_is_over_for_all_destinations_at_the_same_time(
    run: Any, outbox: Outbox, backend: Any, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", os.environ["AIRFLOW_CONN_MARQUEZ"])
    outbox.spool("marquez").put(Outgoing.of(event()))
    outbox.spool("other").put(Outgoing.of(event(1)))
    backend.hangs.set()
    code, out, _ = run("flush", "--seconds", "1")
    assert (code, out.splitlines()) == (1, ["marquez\t1\t0\t0", "other\t0\t1\t0"])


def test_retry_sends_again(run: Any, outbox: Outbox, backend: Any, event: Any) -> None:
    ids = refused(outbox, backend, event(), event(1), event(2))
    code, out, err = run("retry", ids[1])
    assert (code, out.splitlines()) == (0, ["marquez\t1\t0\t0"])
    assert "1 events are tried again" in err
    assert backend.taken == [event(1)]
    assert run("retry", ids[1])[0] == 1
    assert run("retry", "--all")[0] == 0
    assert backend.taken == [event(1), event(), event(2)]


def test_retry_throws_away_what_would_open_an_ended_run(run: Any, outbox: Outbox, backend: Any, event: Any) -> None:
    (start,) = refused(outbox, backend, event(0, "START", 1))
    outbox.spool("marquez").put(Outgoing.of(event(0, "COMPLETE", 2)))
    assert run("flush")[0] == 0
    code, out, err = run("retry", start)
    assert (code, out, err) == (0, "", "0 events are tried again\n")
    assert [json.loads(one)["eventType"] for one in backend.taken] == ["COMPLETE"]


def test_drop(run: Any, outbox: Outbox, backend: Any, event: Any) -> None:
    refused(outbox, backend, event())
    for number in (1, 2):
        outbox.spool("marquez").put(Outgoing.of(event(number)))
    spool = outbox.spool("marquez")
    first, second = spool.waiting()
    assert run("drop", first.id)[0] == 0
    assert run("drop", first.id)[0] == 1
    assert "1 events are deleted" in run("drop", "--dead")[2]
    outbox.spool("other").put(Outgoing.of(event(3)))
    run("drop", "--all", "--destination", "other")
    assert (spool.waiting(), outbox.spool("other").waiting()) == ([second], [])
    run("drop", "--all")
    assert outbox.destinations() == []


@pytest.mark.parametrize(
    "wrong",
    [("retry",), ("drop",), ("drop", "1", "--all"), ("retry", "1", "--all"), ("flush", "--seconds", "soon"), ()],
)
def test_what_makes_no_sense_is_refused(run: Any, wrong: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*wrong)
    assert ended.value.code == 2


def test_an_outbox_that_cannot_be_read_is_said(run: Any, outbox: Outbox, event: Any) -> None:
    outbox.spool("marquez").put(Outgoing.of(event()))
    (outbox.directory / "marquez" / "dead").write_text("no directory")
    outbox.spool("other").put(Outgoing.of(event()))
    code, out, _ = run("list")
    assert code == 0
    broken, other = out.splitlines()
    assert "cannot be used: Not a directory" in broken
    assert other.startswith("other\t1\t")
    code, out, err = run("list", "--dead")
    assert (code, out) == (0, "")
    assert "cannot be used: Not a directory" in err


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    roots = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
    clean = {key: value for key, value in os.environ.items() if key == "AIRFLOW_CONN_MARQUEZ" or "AIRFLOW" not in key}
    return clean | {"PYTHONPATH": os.pathsep.join(roots), "AIRFLOW_HOME": str(tmp_path), **more}


def test_the_directory_is_that_of_airflow(tmp_path: Path, backend: Any, event: Any, warm_python: Any) -> None:
    default = Outbox(tmp_path / "spark_lineage_outbox" / str(os.getuid()))
    default.spool("marquez").put(Outgoing.of(event()))
    done = warm_python.run("-m", "spark_lineage.cli", "outbox", "flush", env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["marquez\t1\t0\t0"]
    assert backend.taken == [event()]


def test_a_person_gets_a_table(tmp_path: Path, event: Any) -> None:
    outbox = Outbox(tmp_path / "outbox")
    outbox.spool("marquez").put(Outgoing.of(event()))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "spark_lineage.cli", "outbox", "list", "--dir", str(outbox.directory)]
    done = subprocess.run(
        command,
        env=environment(tmp_path, COLUMNS="120"),
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
        timeout=120,
    )
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0, done.stderr
    assert "destination" in shown
    assert "marquez" in shown
