"""The command on the directory of a launch: what is kept beside the lineage tells how the task ended."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from spark_lineage.cli import main
from spark_lineage.launch.directory import EVENTS_FILE, TRANSITIONS_FILE
from spark_lineage.merge.transition import StatusTransition

EVENTS = (Path(__file__).parents[1] / "fixtures" / "events" / "gpyexc_414.ndjson").read_bytes()


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    """The files of a driver that failed with a Python exception, which its listener did not notice."""
    transitions = [
        StatusTransition("DRIVER", "17", None, "SUBMITTED", datetime(2026, 1, 1, tzinfo=UTC), "spark-submit"),
        StatusTransition(
            "DRIVER",
            "17",
            "SUBMITTED",
            "FAILED",
            datetime(2026, 1, 1, 0, 1, tzinfo=UTC),
            "spark-submit",
            detail="exit code 1",
            exception="ValueError: no such day",
        ),
    ]
    (tmp_path / EVENTS_FILE).write_bytes(EVENTS)
    (tmp_path / TRANSITIONS_FILE).write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in transitions))
    return tmp_path


def merged(capsysbinary: pytest.CaptureFixture[bytes], *arguments: object) -> tuple[dict[str, Any], str]:
    assert main(["merge", *map(str, arguments)]) == 0
    captured = capsysbinary.readouterr()
    return json.loads(captured.out), captured.err.decode()


def test_the_status_tells_the_end(launch: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    event, said = merged(capsysbinary, launch)
    assert event["eventType"] == "FAIL"
    assert event["run"]["facets"]["errorMessage"]["message"] == "ValueError: no such day"
    statuses = [one["newStatus"] for one in event["run"]["facets"]["sparkLineage_status"]["transitions"]]
    assert statuses == ["SUBMITTED", "FAILED"]
    assert "--exit-code" not in said


def test_the_file_of_the_driver_alone_finds_the_status_beside_it(
    launch: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert merged(capsysbinary, launch / EVENTS_FILE) == merged(capsysbinary, launch)


def test_what_airflow_tells_backends_is_no_lineage_of_a_driver(
    launch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = json.loads(EVENTS.splitlines()[0])
    event["job"]["facets"]["jobType"]["integration"] = "AIRFLOW"
    delivered = tmp_path / "events.ndjson"
    delivered.write_text(json.dumps(event) + "\n")
    assert main(["show", str(delivered)]) == 2
    assert f"no lineage of a driver in the 1 lines of {delivered}, 1 not of Spark" in capsys.readouterr().err


def test_an_exit_code_that_is_given_counts_more(launch: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert merged(capsysbinary, launch, "--exit-code", "0")[0]["eventType"] == "COMPLETE"


def test_compressed_files_say_the_same(launch: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    expected = merged(capsysbinary, launch)
    for name, compress in ((EVENTS_FILE, zstandard.compress), (TRANSITIONS_FILE, gzip.compress)):
        plain = launch / name
        plain.with_name(name + (".zst" if compress is zstandard.compress else ".gz")).write_bytes(
            compress(plain.read_bytes())
        )
        plain.unlink()
    assert merged(capsysbinary, launch) == expected


def test_a_status_alone_is_no_lineage(launch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (launch / EVENTS_FILE).unlink()
    assert main(["merge", str(launch)]) == 2
    assert "no *.ndjson file in the directory" in capsys.readouterr().err


def test_a_line_that_is_no_transition_is_set_aside(launch: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with (launch / TRANSITIONS_FILE).open("ab") as file:
        file.write(b'{"subject":"DRIVER"}\n{"subject":"DRI')
    event, said = merged(capsysbinary, launch)
    assert event["eventType"] == "FAIL"
    assert "1 not a StatusTransition" in said
    assert "1 not JSON" in said
