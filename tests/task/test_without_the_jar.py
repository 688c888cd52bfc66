"""A job that runs without the listener: all that needs no listener is there, and nothing is said of datasets."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from cluster_manager import DRIVER_ID, standalone
from launches import is_running, launches
from notified import notified

# As a Python driver does whose JVM is gone.
LEAVES_A_PROCESS = """
import subprocess
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(50)"], start_new_session=True)
open(os.path.join(here, "left"), "w").write(str(left.pid))
"""


def without(bench: Any, what: str) -> dict[str, Any]:
    """Return the arguments of a task that has no jar, or no lineage directory."""
    return {
        "jar": {"openlineage_jar": "/nowhere/openlineage-spark.jar", "evidence": "listener"},
        "directory": {"lineage_dir": str(bench.file("in-the-way", b""))},
        "path": {"lineage_dir": "s3://bucket/lineage"},
    }[what]


WITHOUT = ["jar", "directory", "path"]


@pytest.mark.parametrize("what", WITHOUT)
def test_the_status_is_told(bench: Any, what: str) -> None:
    outcome, told = notified(bench, **without(bench, what), conf={"spark.my.apiKey": "hunter2", "spark.my.day": "1"})
    assert outcome.error is None
    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    driver = [one["newStatus"] for one in status["transitions"] if one["subject"] == "DRIVER"]
    assert (status["state"], driver) == ("COMPLETE", ["SUBMITTED", "FINISHED"])
    assert "SPARK_LINEAGE_LAUNCH" in outcome.command["env"], "its processes could not be found"
    assert (outcome.lineage["inputs"], outcome.lineage["outputs"]) == ([], [])
    before, _, after = outcome.printed.partition("The driver wrote no lineage: it ran without the listener")
    assert "The job runs without lineage" in before
    assert after
    assert "No lineage came from the driver" not in outcome.printed, "the cause is known"
    created, submitted, *_, last = told
    assert created["configuration"] == {"spark.my.apiKey": "***", "spark.my.day": "1"}
    assert (submitted["subject"], submitted["new_status"]) == ("DRIVER", "SUBMITTED")
    assert (last["subject"], last["new_status"]) == ("TASK", "FINISHED")


def test_event_says_why_no_event_log_is_read(bench: Any) -> None:
    own = {"spark.eventLog.enabled": "false", "spark.my.password": "hunter2"}
    outcome = bench.run(openlineage_jar="/nowhere/openlineage-spark.jar", conf=own)
    assert outcome.error is None
    facet = outcome.lineage["run_facets"]["sparkLineage_collection"]
    assert facet["setAside"] == {"no event log is read: spark.eventLog.enabled is false": 1}
    assert (facet["evidence"], facet["linesRead"]) == ([], 0)


@pytest.mark.parametrize("what", WITHOUT)
def test_why_the_program_failed_is_told(bench: Any, what: str) -> None:
    log = ["Traceback (most recent call last):", '  File "job.py", line 1', "ValueError: no such day"]
    outcome, told = notified(bench, **without(bench, what), log=log, exit_code=1)
    assert outcome.error.startswith("AirflowException: ValueError: no such day (exit code 1)\n")
    assert outcome.lineage["run_facets"]["errorMessage"]["message"] == "ValueError: no such day (exit code 1)"
    assert told[-1]["new_status"] == "FAILED"
    assert told[-1]["exception"].startswith("ValueError: no such day (exit code 1)")


@pytest.mark.parametrize("what", WITHOUT)
def test_no_process_is_left_of_a_task_that_is_killed(bench: Any, what: str) -> None:
    fake = bench.root / "bin" / "fake.py"
    fake.write_text(fake.read_text().replace('if script["signal"]', LEAVES_A_PROCESS + 'if script["signal"]'))
    outcome, told = notified(bench, **without(bench, what), signal_parent=int(signal.SIGUSR1))
    assert not is_running(int((bench.root / "bin" / "left").read_text()))
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "ABORT"
    assert told[-1]["new_status"] == "KILLED"


def test_what_the_dag_declares_is_all_that_is_known_of_datasets(bench: Any) -> None:
    declared = {"inlets": ["file:///data/asked"], "outlets": ["file:///data/promised"]}
    outcome = bench.run(**without(bench, "jar"), context=declared)
    assert (outcome.names("inputs"), outcome.names("outputs")) == (["/data/asked"], ["/data/promised"])


def test_the_launch_can_be_found_by_whoever_comes_after_the_try(bench: Any) -> None:
    outcome = standalone(bench, ["RUNNING", "FINISHED"], **without(bench, "jar"), store={})
    assert outcome.error is None
    (directory,) = launches(bench.lineage_dir)
    handle = json.loads((directory / "launch.json").read_text())
    assert handle == outcome.store["spark_lineage_launch"]
    assert handle["external_id"] == DRIVER_ID
    assert "FINISHED" in (directory / "status-transitions.jsonl").read_text()
    assert "SPARK_LINEAGE_LAUNCH" not in outcome.command["env"], "a driver elsewhere is for its cluster to end"


def test_where_no_directory_can_be_made_none_is_made_elsewhere(bench: Any, laboratory: Any) -> None:
    before = sorted(laboratory.home.rglob("*"))
    outcome = bench.run(**without(bench, "path"), store={})
    assert outcome.error is None
    assert not bench.lineage_dir.exists()
    assert [one for one in laboratory.home.rglob("*") if one not in before and "spark_lineage" in one.parts] == []


@pytest.mark.parametrize("what", WITHOUT)
def test_where_lineage_is_required_listeners_are_told_that_the_task_failed(bench: Any, what: str) -> None:
    outcome, told = notified(bench, **without(bench, what), lineage_required=True)
    assert outcome.told == [], "it was submitted"
    assert [one["event"] for one in told] == ["JobCreatedEvent", "JobExecutionStatusEvent"]
    assert (told[-1]["subject"], told[-1]["new_status"]) == ("TASK", "FAILED")
    assert told[-1]["exception"].startswith("lineage_required is set, and there is no lineage: ")
    assert outcome.threads == ["MainThread"]
