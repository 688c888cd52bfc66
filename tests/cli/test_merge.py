"""The command on real lineage files: what it prints where, what it takes as input, and how it refuses."""

from __future__ import annotations

import io
import json
import os
import random
import re
import resource
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from recordings import recorded

from spark_lineage.cli import main

ROOT = Path(__file__).parents[2]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "events"
ALL = sorted(path.stem for path in FIXTURES.glob("*.ndjson"))
EVENTS = str(FIXTURES / "a_414.ndjson")
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e"


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command in this process; gives exit code, standard output and standard error."""

    def run(*arguments: object, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exited:
            code = int(exited.code or 0)
        captured = capsysbinary.readouterr()
        return code, captured.out, captured.err.decode()

    return run


def command(*arguments: object, env: dict[str, str] | None = None, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a user does, in a process of its own."""
    how = {"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL} | how
    clean = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "spark_lineage.cli",
            *(os.fspath(one) if isinstance(one, Path) else one for one in arguments),
        ],
        stderr=subprocess.PIPE,
        env={**clean, "PYTHONPATH": str(ROOT / "provider"), **(env or {})},
        timeout=120,
        check=False,
        **how,
    )


def names(datasets: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in datasets]


# ---- one event, whatever the way it is given ----


@pytest.mark.parametrize("fixture", ALL)
def test_one_event_on_standard_output_and_all_else_on_standard_error(run: Any, fixture: str) -> None:
    file = FIXTURES / f"{fixture}.ndjson"
    code, out, err = run("merge", file, "--exit-code", 0)
    assert code == 0
    assert out.endswith(b"\n")
    assert out.count(b"\n") == 1
    event = json.loads(out)
    assert event["eventType"] == "COMPLETE"
    assert {"eventTime", "producer", "schemaURL", "run", "job", "inputs", "outputs"} <= event.keys()
    assert uuid.UUID(event["run"]["runId"]).int
    lines = file.read_bytes().count(b"\n")
    assert re.search(rf"^{lines} events of \d+ runs read, 0 lines set aside$", err, re.MULTILINE)


@pytest.mark.parametrize("fixture", ALL)
def test_order_repetition_and_split_change_no_byte(run: Any, fixture: str, tmp_path: Path) -> None:
    file = FIXTURES / f"{fixture}.ndjson"
    lines = file.read_bytes().splitlines(keepends=True)
    randomness = random.Random(fixture)  # noqa: S311 - the same shuffle each time
    shuffled, doubled = tmp_path / "shuffled.ndjson", tmp_path / "doubled.ndjson"
    shuffled.write_bytes(b"".join(randomness.sample(lines, len(lines))))
    doubled.write_bytes(b"".join(randomness.sample(lines * 2, len(lines) * 2)))
    parts = tmp_path / "parts"
    (parts / "below").mkdir(parents=True)
    split = [parts / "1.ndjson", parts / "2.ndjson", parts / "below" / "3.ndjson"]
    for at, part in enumerate(split):
        # Without the newline at the end, as a driver that was killed leaves it.
        part.write_bytes(b"".join(lines[at::3]).rstrip(b"\n"))
    for exit_code in (0, 1):
        expected = run("merge", file, "--exit-code", exit_code)[1]
        assert expected
        ways: dict[str, tuple[list[object], bytes]] = {
            "shuffled": ([shuffled], b""),
            "doubled": ([doubled], b""),
            "twice": ([file, file, f"{FIXTURES}/../events/{file.name}"], b""),
            "split": (list(split), b""),
            "split, the other way round": (list(reversed(split)), b""),
            "directory": ([parts], b""),
            "glob": ([f"{parts}/**/*.ndjson"], b""),
            "mixed": ([parts / "below", f"{parts}/[1-2].ndjson", shuffled], b""),
            "standard input": (["-"], b"".join(reversed(lines))),
            "file and standard input": ([split[0], "-", split[1]], split[2].read_bytes()),
        }
        for way, (arguments, stdin) in ways.items():
            code, out, _ = run("merge", *arguments, "--exit-code", exit_code, stdin=stdin)
            assert (code, out) == (0, expected), way


@pytest.mark.parametrize("fixture", ["gtask_414", "i2_ol1"])
def test_a_process_of_its_own_prints_the_same(run: Any, fixture: str) -> None:
    file = FIXTURES / f"{fixture}.ndjson"
    done = command("merge", "-", "--exit-code", "1", stdin=None, input=file.read_bytes())
    assert done.returncode == 0
    assert done.stdout == run("merge", file, "--exit-code", 1)[1]
    assert b"Traceback" not in done.stderr


def test_a_file_whose_name_looks_like_a_glob_is_that_file(run: Any, tmp_path: Path) -> None:
    odd = tmp_path / "a[1]*.ndjson"
    odd.write_bytes(Path(EVENTS).read_bytes())
    (tmp_path / "a1.ndjson").write_text("garbage\n")
    code, out, err = run("merge", odd)
    assert code == 0
    assert out == run("merge", EVENTS)[1]
    assert "0 lines set aside" in err


# ---- the truth about some programs ----


@pytest.mark.parametrize(
    ("fixture", "attempted"), [("gtask_414", "/data/lab/out/g_bad"), ("gkillmid_414", "/data/lab/out/g_slow")]
)
def test_a_failed_write_is_attempted_and_no_output(run: Any, fixture: str, attempted: str) -> None:
    for exit_code in (1, 137, -9):
        event = json.loads(run("merge", FIXTURES / f"{fixture}.ndjson", "--exit-code", exit_code)[1])
        assert event["eventType"] == "FAIL"
        facet = event["run"]["facets"]["sparkLineage_attemptedOutputs"]
        assert names(facet["outputs"]) == [attempted]
        assert attempted not in names(event["outputs"])


def test_there_is_no_phantom_of_a_dropped_table(run: Any) -> None:
    out = run("merge", FIXTURES / "b_414.ndjson")[1]
    assert b"db1.db/db1.db" in (FIXTURES / "b_414.ndjson").read_bytes()
    assert b"db1.db/db1.db" not in out
    assert b"db1.db/db1.db" not in run("show", FIXTURES / "b_414.ndjson")[1].replace(b"\n", b"")


def test_two_inputs_and_one_output(run: Any) -> None:
    event = json.loads(run("merge", EVENTS)[1])
    assert names(event["inputs"]) == ["/data/lab/data/cust.csv", "/data/lab/data/orders.csv"]
    assert names(event["outputs"]) == ["/data/lab/out/a_parquet"]
    assert event["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 2


# ---- arguments ----


def test_job_and_run_are_those_of_the_airflow_task_unless_given(run: Any) -> None:
    event = json.loads(run("merge", EVENTS)[1])
    application = json.loads(Path(EVENTS).read_text().splitlines()[0])
    parent = application["run"]["facets"]["parent"]
    assert event["run"]["runId"] == parent["run"]["runId"]
    assert (event["job"]["namespace"], event["job"]["name"]) == ("af", "dag1.task1")
    given = json.loads(run("merge", EVENTS, "--job-namespace", "ns", "--job-name", "name", "--run-id", RUN_ID)[1])
    assert (given["job"]["namespace"], given["job"]["name"], given["run"]["runId"]) == ("ns", "name", RUN_ID)
    given["job"], given["run"]["runId"] = event["job"], event["run"]["runId"]
    assert given == event


def test_a_run_id_is_a_uuid(run: Any) -> None:
    code, out, err = run("merge", EVENTS, "--run-id", "yesterday")
    assert (code, out) == (2, b"")
    assert "--run-id" in err
    assert "'yesterday'" in err
    assert "_uuid" not in err, "a name of the program's inside is no explanation"
    assert json.loads(run("merge", EVENTS, "--run-id", RUN_ID.upper())[1])["run"]["runId"] == RUN_ID


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate", EVENTS],
        ["merge", EVENTS, "--exit-code", "bad"],
        ["merge", EVENTS, "--what"],
    ],
)
def test_arguments_that_make_no_sense(run: Any, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, b"")
    assert err.startswith("usage: spark-lineage")


def test_without_an_exit_code_the_assumption_is_told(run: Any) -> None:
    ended, killed = run("merge", EVENTS)[2], run("merge", FIXTURES / "gkillmid_414.ndjson")[2]
    for err in (ended, killed):
        assert "no --exit-code given, 0 assumed" in err
    assert "never reported an end" not in ended
    assert "the application never reported an end" in killed
    with_code = run("merge", FIXTURES / "gkillmid_414.ndjson", "--exit-code", 1)[2]
    assert "assumed" not in with_code


def test_two_applications_in_one_event_are_told(run: Any) -> None:
    err = run("merge", EVENTS, FIXTURES / "b_414.ndjson")[2]
    assert "2 applications were merged into one event" in err
    assert "applications were merged" not in run("merge", EVENTS)[2]


# ---- output file ----


def test_the_event_goes_to_a_file(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "event.json"
    target.write_text("what was there before")
    code, out, err = run("merge", EVENTS, "-o", target)
    assert (code, out) == (0, b"")
    assert "21 events" in err
    assert target.read_bytes() == run("merge", EVENTS)[1]
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_in_the_working_directory(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("merge", EVENTS, "--output", "event.json")[:2] == (0, b"")
    assert json.loads((tmp_path / "event.json").read_bytes())["eventType"] == "COMPLETE"


def test_input_that_cannot_be_read_leaves_the_file_as_it_was(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "event.json"
    target.write_text("what was there before")
    assert run("merge", tmp_path / "none.ndjson", "-o", target)[0] == 2
    assert target.read_text() == "what was there before"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("target", ["missing/event.json", "directory", "file/event.json", "/proc/event.json"])
def test_a_file_that_cannot_be_written(run: Any, tmp_path: Path, target: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    code, out, err = run("merge", EVENTS, "-o", tmp_path / target)
    assert (code, out) == (2, b"")
    assert f"spark-lineage: cannot write {tmp_path / target}: " in err
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["directory", "file"]


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "event.json"
    target.write_text("before")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        code, _, err = run("merge", EVENTS, "-o", target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (code, target.read_text()) == (2, "before")
    assert "cannot write" in err
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_is_none_is_written_to_and_not_replaced(run: Any, tmp_path: Path) -> None:
    # As /dev/null is, or /dev/stdout.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    received: list[bytes] = []

    def read() -> None:
        os.set_blocking(reader, True)
        while chunk := os.read(reader, 65536):
            received.append(chunk)

    try:
        # Held open, so that the reader does not see the end before the command has begun.
        writer = os.open(pipe, os.O_WRONLY)
        thread = threading.Thread(target=read)
        thread.start()
        code, _, _ = run("merge", EVENTS, "-o", pipe)
        os.close(writer)
        thread.join(timeout=30)
    finally:
        os.close(reader)
    assert code == 0
    assert pipe.is_fifo()
    assert b"".join(received) == run("merge", EVENTS)[1]


# ---- input that cannot be used ----


@pytest.mark.parametrize("subcommand", ["merge", "show"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("missing.ndjson", "there is no file {}"),
        ("long" * 100, "cannot read {}: File name too long"),
        ("missing/*.ndjson", "there is no file {}"),
        ("empty", "no *.ndjson file in the directory {}"),
        ("other", "no *.ndjson file in the directory {}"),
        ("unreadable.ndjson", "cannot read {}: "),
        ("garbage.ndjson", "no lineage of a driver in the 3 lines of {}"),
        ("zero.ndjson", "no lineage of a driver in the 0 lines of {}"),
        ("binary.ndjson", "no lineage of a driver in the "),
    ],
)
def test_input_that_cannot_be_used(run: Any, tmp_path: Path, subcommand: str, given: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "events.json").write_bytes(Path(EVENTS).read_bytes())
    (tmp_path / "unreadable.ndjson").symlink_to("/proc/self/mem")  # not even root can read its beginning
    (tmp_path / "garbage.ndjson").write_bytes(b"hello\n{}\n\xff")
    (tmp_path / "zero.ndjson").touch()
    (tmp_path / "binary.ndjson").write_bytes(random.Random(3).randbytes(3_000_000))  # noqa: S311 - any bytes do
    code, out, err = run(subcommand, tmp_path / given)
    assert (code, out) == (2, b"")
    assert f"spark-lineage: {said.format(tmp_path / given)}" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("subcommand", ["merge", "show"])
def test_one_bad_input_among_good_ones_is_not_passed_over(run: Any, tmp_path: Path, subcommand: str) -> None:
    code, out, err = run(subcommand, EVENTS, tmp_path / "missing.ndjson")
    assert (code, out) == (2, b"")
    assert "missing.ndjson" in err


def test_empty_standard_input(run: Any) -> None:
    code, out, err = run("merge", "-")
    assert (code, out) == (2, b"")
    assert "no lineage of a driver in the 0 lines of -" in err


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    done = command("merge", os.fsencode(tmp_path) + b"/\xff.ndjson")
    assert done.returncode == 2
    assert b"there is no file" in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_unreadable_file_in_a_process_of_its_own() -> None:
    done = command("merge", "/proc/self/mem")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"spark-lineage: cannot read /proc/self/mem: ")
    assert done.stderr.count(b"\n") == 1


def test_garbage_between_good_lines_is_named_by_file_and_line(tmp_path: Path) -> None:
    lines = Path(EVENTS).read_bytes().splitlines()
    lines[3:3] = [b"password=hunter2 is no JSON", b""]
    lines[10:10] = [b"\xff\xfe"]
    mixed = tmp_path / "mixed.ndjson"
    mixed.write_bytes(b"\n".join([*lines, lines[0][:50]]))
    done = command("merge", mixed, "--exit-code", "0")
    assert done.returncode == 0
    assert done.stdout == command("merge", EVENTS, "--exit-code", "0").stdout
    err = done.stderr.decode()
    for number, reason in ((4, "not JSON"), (5, "empty"), (11, "not UTF-8"), (25, "not JSON")):
        assert f"Set aside {mixed}:{number}: {reason}" in err
    assert "21 events of 7 runs read, 4 lines set aside" in err
    assert "2 not JSON" in err
    assert "hunter2" not in err


def test_a_huge_line_costs_only_itself(run: Any, tmp_path: Path) -> None:
    huge = tmp_path / "huge.ndjson"
    with huge.open("wb") as stream:
        stream.write(b'{"eventTime": "')
        for _ in range(70):
            stream.write(b"x" * 1024 * 1024)
        stream.write(b'"}\n' + Path(EVENTS).read_bytes())
    code, out, err = run("merge", huge, "--exit-code", 0)
    assert code == 0
    assert out == run("merge", EVENTS, "--exit-code", 0)[1]
    assert "1 oversized" in err


def test_deep_nesting_costs_only_itself(run: Any, tmp_path: Path) -> None:
    deep = tmp_path / "deep.ndjson"
    nested = b'{"eventTime":"2024-01-31T12:00:00Z","run":' + b'{"facets":' * 200_000
    deep.write_bytes(nested + b"\n" + b"[" * 200_000 + b"\n" + Path(EVENTS).read_bytes())
    code, out, err = run("merge", deep)
    assert code == 0
    assert out == run("merge", EVENTS)[1]
    assert "2 lines set aside" in err


# ---- standard output that is not what it seems ----


@pytest.mark.parametrize("subcommand", ["merge", "show"])
def test_a_reader_that_goes_away_is_no_error_worth_a_traceback(subcommand: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = command(subcommand, FIXTURES / "i2_ol1.ndjson", "--exit-code", "0", stdout=closed)
    err = done.stderr.decode()
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert "BrokenPipe" not in err
    assert err.startswith("802 events")


@pytest.mark.parametrize("subcommand", ["merge", "show"])
def test_a_full_disk_is_told_without_a_traceback(subcommand: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = command(subcommand, EVENTS, "--exit-code", "0", stdout=full)
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_terminal_that_knows_only_ascii(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.ndjson"
    foreign.write_text(Path(EVENTS).read_text().replace("a_parquet", "bücher_日本"), encoding="utf-8")
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    shown = command("show", foreign, env=ascii_only)
    assert b"Traceback" not in shown.stderr
    assert shown.returncode == 0
    assert b"/data/lab/out/b" in shown.stdout
    # JSON is UTF-8, whatever the terminal is.
    assert "bücher_日本" in command("merge", foreign, env=ascii_only).stdout.decode()


# ---- for a person ----


@pytest.mark.parametrize("fixture", ALL)
@pytest.mark.parametrize("width", [80, 120])
def test_what_is_shown_fits_the_width(run: Any, monkeypatch: pytest.MonkeyPatch, fixture: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = run("show", FIXTURES / f"{fixture}.ndjson", "--exit-code", 1)
    text = out.decode()
    assert code == 0
    assert text.startswith("FAIL  af ")
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "…" not in text
    assert "0 lines set aside" in err


@pytest.mark.parametrize("width", [80, 120])
def test_a_pipe_gets_the_whole_story_without_colours(width: int) -> None:
    file = FIXTURES / "gtask_414.ndjson"
    done = command(
        "show",
        file,
        "--exit-code",
        "1",
        env={"COLUMNS": str(width), "TERM": "xterm-256color", "COLORTERM": "truecolor"},
    )
    text = done.stdout.decode()
    words = " ".join(text.split())
    assert done.returncode == 0
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width
    assert text.startswith("FAIL  af dag1.task1\n")
    assert "/data/lab/data/orders.csv - 3" in words
    assert "/data/lab/out/g_ok_task - overwrite 2,000" in words
    assert "failed: /data/lab/out/g_bad" in words
    assert "amount <- /data/lab/data/orders.csv: amount (IDENTITY)" in words
    assert words.endswith("10 lines read, 0 set aside, 3 Spark runs merged, evidence: listener")


def test_show_names_the_job_that_it_is_told(run: Any) -> None:
    out = run("show", EVENTS, "--job-namespace", "ns", "--job-name", "name")[1]
    assert out.decode().startswith("COMPLETE  ns name\n")


def test_help_tells_every_argument(run: Any) -> None:
    code, out, _ = run("merge", "--help")
    assert code == 0
    for argument in ("--exit-code", "--job-namespace", "--job-name", "--run-id", "--output"):
        assert argument in out.decode()
    assert "standard input" in out.decode()


LOGS = FIXTURES.parent / "event_logs"


class TestEventLog:
    def test_it_is_told_from_lineage_files_wherever_it_stands(self, run: Any) -> None:
        home = recorded("iceberg_tables", "3.5")
        file, log = next((home / "lineage").glob("*.ndjson")), home / "eventlog"
        first = run("merge", file, "--exit-code", 0, "--event-log", log)
        assert first[0] == 0
        assert run("merge", "--exit-code", 0, "--event-log", log, file)[1] == first[1]
        assert run("merge", file, "--exit-code", 0)[1] != first[1]

    def test_one_of_another_application_is_said_to_be_of_no_use(self, run: Any) -> None:
        code, out, err = run("merge", EVENTS, "--exit-code", 0, "--event-log", LOGS / "ddl.zstd")
        assert "no SQL execution of this application is in the event logs" in err
        assert (code, out) == (0, run("merge", EVENTS, "--exit-code", 0)[1])

    @pytest.mark.parametrize("scheme", ["file:", "file://", "file://localhost"])
    def test_it_may_be_a_uri(self, run: Any, tmp_path: Path, scheme: str) -> None:
        log = tmp_path / "all logs" / "local-1.zstd"
        log.parent.mkdir()
        log.write_bytes((LOGS / "written.zstd").read_bytes())
        for place in (log, log.parent):
            uri = scheme + str(place).replace(" ", "%20")
            for subcommand in ("merge", "show"):
                code, out, _ = run(subcommand, "--event-log", uri)
                assert (code, out) == (0, run(subcommand, "--event-log", place)[1])

    def test_a_file_that_is_called_like_a_uri_is_that_file(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file:log.zstd").write_bytes((LOGS / "written.zstd").read_bytes())
        assert run("merge", "--event-log", "file:log.zstd")[0] == 0

    def test_a_write_that_the_next_attempt_has_cut_off_is_unfinished(self, run: Any) -> None:
        code, out, _ = run("merge", "--event-log", LOGS / "attempts", "--exit-code", 0, "--granularity", "path")
        assert code == 0
        task, *children = map(json.loads, out.splitlines())
        assert (task["eventType"], names(task["outputs"])) == (
            "COMPLETE",
            ["/data/lab/attempts/a", "/data/lab/attempts/b"],
        )
        key, slow = "sparkLineage_attemptedOutputs", "/data/lab/attempts/slow"
        attempted = [{"namespace": "file", "name": slow, "reason": "unfinished"}]
        assert task["run"]["facets"][key]["outputs"] == attempted
        ends = [one for one in children if one["eventType"] != "START"]
        tried = [one for one in ends if key in one["run"]["facets"]]
        assert [one["eventType"] for one in ends].count("COMPLETE") == len(ends) - len(tried) == 2
        assert [(one["eventType"], one["run"]["facets"][key]["outputs"]) for one in tried] == [("FAIL", attempted)]

    def test_one_that_is_not_there_is_an_error(self, run: Any, tmp_path: Path) -> None:
        code, out, err = run("merge", EVENTS, "--event-log", tmp_path / "none")
        assert (code, out) == (2, b"")
        assert "there is no event log at" in err


class TestGranularity:
    def test_child_runs_come_one_a_line_after_the_task(self, run: Any) -> None:
        out = run("merge", EVENTS, "--exit-code", 0, "--granularity", "path")[1]
        task, *children = map(json.loads, out.splitlines())
        assert out.startswith(run("merge", EVENTS, "--exit-code", 0)[1])
        assert {child["job"]["facets"]["jobType"]["jobType"] for child in children} == {"PATH"}
        assert {child["run"]["facets"]["parent"]["run"]["runId"] for child in children} == {task["run"]["runId"]}


def test_an_event_over_the_limit_says_what_it_lost_and_keeps_its_datasets(run: Any) -> None:
    whole = json.loads(run("merge", EVENTS, "--exit-code", 0)[1])
    code, out, err = run("merge", EVENTS, "--exit-code", 0, "--max-event-bytes", 6000)
    event = json.loads(out)
    assert (code, len(out) <= 6000) == (0, True)
    assert "over the limit of 6,000" in err
    assert event["run"]["facets"]["sparkLineage_reduced"]["fullBytes"] > 6000
    for side in ("inputs", "outputs"):
        assert [one["name"] for one in event[side]] == [one["name"] for one in whole[side]]


def test_datasets_are_named_as_asked_for(run: Any) -> None:
    file = FIXTURES / "c_414.ndjson"
    named = json.loads(run("merge", file, "--exit-code", 0, "--naming", r"hostnamePattern.prod=127\.0\.0\.1")[1])
    assert "prod" in "".join(one["namespace"] for one in named["outputs"])
    assert run("merge", file, "--naming", "nonsense")[0] == 2
    code, _, err = run("merge", file, "--naming", "hostnamePattern.prod=(")
    assert (code, "hostnamePattern.prod" in err) == (2, True)


def test_an_event_log_is_enough(run: Any) -> None:
    code, out, err = run("merge", "--event-log", LOGS / "written.zstd", "--exit-code", 0)
    assert (code, err) == (0, "45 lines of event logs read, 0 set aside or read in part\n")
    event = json.loads(out)
    assert (event["job"]["namespace"], event["job"]["name"]) == ("airflow", "shop.load")
    assert event["run"]["runId"] == "01890a5d-ac96-7dde-8a63-0123456789ab"
    rows = {
        one["name"]: one.get("outputFacets", {}).get("outputStatistics", {}).get("rowCount") for one in event["outputs"]
    }
    assert rows["/data/lab/out/a"] == rows["/data/lab/out/b"] == 100
    (application,) = event["run"]["facets"]["sparkLineage_application"]["applications"]
    assert (application["applicationId"], application["name"]) == ("local-1795452749174", "shop_load_spark")
    assert application["isEnded"]
    assert event["eventTime"].startswith("2026-11-23T16:53")
    shown = run("show", "--event-log", LOGS / "written.zstd")[1]
    assert b"shop.load" in shown
    assert b"evidence: event log" in shown


def test_neither_files_nor_event_logs_make_no_event(run: Any) -> None:
    assert run("merge")[::2] == (2, "spark-lineage: give a lineage FILE, an --event-log, or both\n")


def test_what_the_listener_says_of_an_application_wins_over_its_event_log(run: Any) -> None:
    recording = recorded("append_tables", "4.2")
    files, log = recording / "lineage", recording / "eventlog"
    both = json.loads(run("merge", files, "--event-log", log)[1])
    alone = json.loads(run("merge", files)[1])
    applications = [one["run"]["facets"]["sparkLineage_application"]["applications"] for one in (both, alone)]
    assert applications[0] == applications[1]


@pytest.mark.parametrize(
    ("has_listener", "has_log", "evidence"),
    [(True, False, ["listener"]), (False, True, ["event_log"]), (True, True, ["listener", "event_log"])],
)
def test_an_event_says_what_told_of_the_job(run: Any, has_listener: bool, has_log: bool, evidence: list[str]) -> None:
    recording = recorded("append_tables", "4.2")
    given = [recording / "lineage"] * has_listener + ["--event-log", recording / "eventlog"] * has_log
    collection = json.loads(run("merge", *given)[1])["run"]["facets"]["sparkLineage_collection"]
    assert collection["evidence"] == evidence
    assert collection["runs"] > 0
    # The same lines, given twice, make the same event.
    assert collection.keys() == {"runs", "evidence", "_producer", "_schemaURL"}
    assert json.loads(run("show", *given, "--json")[1])["lineage"]["evidence"] == evidence
