"""What all commands have in common: version, help, JSON for machines, and no word of Airflow's log."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.archive.on_executor import installed_version
from spark_lineage.cli import _parser, main
from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing

if TYPE_CHECKING:
    from warm_python import WarmPython

FIXTURE = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
EVENT = json.dumps({
    "eventTime": "2024-01-31T12:00:00Z", "eventType": "COMPLETE", "producer": "https://x", "inputs": [], "outputs": [],
    "run": {"runId": "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d60"}, "job": {"namespace": "prod", "name": "a https://me:hunter2@h"},
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
}).encode()  # fmt: skip
LOG_LINE = ("[info", "INFO", "[warning", "WARNING", "openlineage.client")


@pytest.fixture
def command(tmp_path: Path, warm_python: WarmPython) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in a process of its own, in an Airflow of its own without a database."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "OPENLINEAGE", "SPARK"))}

    def run(*arguments: str, env: Mapping[str, str] = {}, **how: Any) -> subprocess.CompletedProcess[str]:
        program = ("-m", "spark_lineage.cli", *arguments)
        env = {**clean, "AIRFLOW_HOME": str(tmp_path / "airflow"), **env}
        if not how:
            return warm_python.run(*program, env=env)
        return subprocess.run(
            [sys.executable, *program], env=env, capture_output=True, text=True, timeout=120, check=False, **how
        )

    return run


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def test_help_is_plain_text() -> None:
    found = list(parsers(_parser()))
    assert len(found) > 10
    assert [each.prog for each in found if "`" in each.format_help()] == []


def test_the_version_is_that_which_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"spark-lineage {installed_version()}\n"


def test_show_as_json(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["show", str(FIXTURE), "--exit-code", "0", "--json"]) == 0
    shown = json.loads(capfdbinary.readouterr().out)
    assert shown["job"] == {"namespace": "af", "name": "dag1.task1"}
    assert shown["lineage"]["state"] == "COMPLETE"
    assert {"namespace": "file", "name": "/data/lab/data/cust.csv"} in [
        one["dataset"] for one in shown["lineage"]["inputs"]
    ]
    assert shown["lines"] == {"read": 21, "set_aside": {}}


def test_the_outbox_as_json(command: Any, tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    outbox.spool("gone").put(Outgoing.of(EVENT))
    here = ("--dir", str(tmp_path / "outbox"), "--json")
    (listed,) = json.loads(command("outbox", "list", *here).stdout)["destinations"]
    assert (listed["destination"], listed["waiting"], listed["bytes"]) == ("gone", 1, len(EVENT))
    done = command("outbox", "list", "--waiting", *here)
    (event,) = json.loads(done.stdout)["events"]
    assert (event["event_type"], event["id"].endswith(event["run_id"])) == ("COMPLETE", True)
    assert "hunter2" not in done.stdout
    flushed = command("outbox", "flush", *here)
    assert flushed.returncode == 1
    assert json.loads(flushed.stdout)["destinations"] == [
        {"destination": "gone", "sent": 0, "waiting": 1, "refused": 0}
    ]


def test_the_doctor_as_json(command: Any) -> None:
    done = command("doctor", "--json")
    findings = json.loads(done.stdout)["findings"]
    assert {"check", "level", "text", "remedy"} == set(findings[0])
    assert done.returncode == int(any(one["level"] == "problem" for one in findings))
    assert not any(word in done.stderr for word in LOG_LINE)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("outbox", "list"), 0, "There are no events in"),
        (("outbox", "flush"), 0, "Nothing waits"),
        (("outbox", "list", "--dir", "/nope"), 2, "there is no outbox in /nope"),
        (("outbox", "flush", "--dir", "/nope"), 2, "there is no outbox in /nope"),
        (("outbox", "flush", "--destination", "nope"), 2, "'nope'"),
        (("outbox", "list", "--destination", "nope"), 2, "'nope'"),
        (("archive", "merge", "/nope", "--out", "never"), 2, "there is no file /nope"),
        (("archive", "merge", "file:///nope", "--out", "never"), 2, "there is no file file:///nope"),
        (("archive", "merge", "/nope", "--out", "never", "--naming", "hostnamePattern.a=("), 2, "hostnamePattern.a"),
    ],
)
def test_standard_error_has_one_line_of_the_command_itself(
    command: Any, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_in_place_of_the_outbox_is_an_error(command: Any, tmp_path: Path) -> None:
    file = tmp_path / "outbox"
    file.touch()
    done = command("outbox", "list", env={"AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(file)})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"spark-lineage: the outbox in {file}/{os.getuid()} cannot be read: Not a directory\n"


@pytest.mark.parametrize("arguments", [("merge", str(FIXTURE)), ("show", "--json", str(FIXTURE)), ("outbox", "list")])
def test_a_closed_standard_output_is_an_error(command: Any, arguments: tuple[str, ...]) -> None:
    done = command(*arguments, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (2, "spark-lineage: cannot write standard output: it is closed\n")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["docter"], "doctor"), (["outbox", "lst"], "list"), (["merge", "--granularity", "pth"], "path")],
)
def test_main_with_misspelt_command_suggests_the_nearest(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2
    assert capsys.readouterr().err.endswith(f"; did you mean '{meant}'?\n")


def test_main_with_unlike_command_suggests_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["zzz"])
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("spark-lineage out", {"outbox"}),
        ("spark-lineage outbox ", {"list", "flush", "retry", "drop"}),
        ("spark-lineage doctor --spark", {"--spark-conn-id"}),
        ("spark-lineage merge --granularity ", {"task", "path"}),
    ],
)
def test_bash_with_completion_completes_commands_and_options(line: str, completions: set[str]) -> None:
    program = """
    eval "$(register-python-argcomplete spark-lineage)"
    read -r _ _ function _ <<< "$(complete -p spark-lineage | sed 's/.*-F/- - /; s/ spark-lineage$//')"
    COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
    "$function" spark-lineage
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "--norc", "-c", program, "bash", line]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert {each.strip() for each in done.stdout.split()} - {"-h", "--help"} == completions, done.stderr
