"""Jobs that a service runs: their program, what a task says of them, and the job that its task leaves."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fast_spark import LIMIT_SECONDS
from msgspec import structs

from spark_lineage.emit.task_event import AirflowTry
from spark_lineage.launch.launch import Launch, TaskKey, launches_below
from spark_lineage.launch.log import Log
from spark_lineage.recover.closing import end_child
from spark_lineage.recover.recovery import recover
from spark_lineage.recover.search import ChildEnd, LostTry
from spark_lineage.settings.places import Places

if TYPE_CHECKING:
    from laboratory import Bench, Outcome
    from real_spark import RealSpark

PROGRAM = Path(__file__).parents[1] / "operators" / "programs" / "batch.py"
NOBODY = AirflowTry(None, None, None)
_Events = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with orders in JSON, and one for event logs."""
    for name in ("orders", "logs"):
        (tmp_path / name).mkdir()
    (tmp_path / "orders" / "part.json").write_text('{"id": 1, "amount": 20}')
    return tmp_path


def state(outcome: Outcome) -> Any:
    """Return the state that the event of a task has."""
    assert outcome.lineage is not None, outcome.printed
    return outcome.lineage["run_facets"]["sparkLineage_status"]["state"]


def assert_complete(outcome: Outcome, folder: Path) -> None:
    """Assert that a task has succeeded, with the lineage of the program."""
    assert outcome.error is None, outcome.printed
    assert state(outcome) == "COMPLETE"
    assert outcome.names("inputs") == [str(folder / "orders")]
    assert outcome.names("outputs") == [str(folder / "doubled")]
    assert outcome.lineage is not None
    (output,) = outcome.lineage["outputs"]
    fields = output["facets"]["columnLineage"]["fields"]
    assert [one["field"] for one in fields["doubled"]["inputFields"]] == ["amount"]


def assert_lacking(outcome: Outcome, why: str) -> None:
    """Assert that START and end of a task say why no event log is read."""
    for event in (outcome.last["at_start"], outcome.lineage):
        assert event is not None, outcome.printed
        assert (event["inputs"], event["outputs"]) == ([], [])
        (counted,) = event["run_facets"]["sparkLineage_collection"]["setAside"]
        assert counted.startswith(f"no event log is read: {why}")


def lost_task(bench: Bench, run: Callable[[], object], begun: Path) -> Launch:
    """Kill the process of a task by SIGKILL while its job runs, and return the launch that it leaves."""
    with bench.laboratory.killing(begun, number=signal.SIGKILL), pytest.raises(AssertionError):
        run()
    (launch,) = launches_below(bench.lineage_dir)
    assert not launch.is_closed
    return launch


def assert_recovered(launch: Launch, outputs: list[str], end: str) -> None:
    """Assert that the scheduler reports a lost try as it is while its job runs, and has its lineage afterwards.

    :param end: of a try that no other follows; one that is retried has failed
    """
    logger, places, until = Log(__name__), Places.of(launch.conn_id, {}), time.monotonic() + LIMIT_SECONDS
    lost = LostTry(TaskKey("shop", "manual", "load"), launch, end="failed", error="the worker was lost")
    while "still runs" in (found := recover(lost, places, ended_processes=0, logger=logger).lineage).status.error:  # type: ignore[union-attr]
        assert found.state == "FAIL"
        assert time.monotonic() < until
        time.sleep(2)
    retried = recover(structs.replace(lost, is_retried=True), places, ended_processes=0, logger=logger).lineage
    assert (found.state, retried.state) == (end, "FAIL")
    for one in (found, retried):
        assert [each.dataset.name for each in one.outputs] == outputs


def left_child(
    run: Callable[..., Any], real_spark: RealSpark, folder: Path, monkeypatch: pytest.MonkeyPatch, *, child: str
) -> ChildEnd:
    """Run a task, which does not wait for its driver; return what the scheduler finds of the job that goes on.

    :param child: begins the name of its job
    """
    bench = real_spark.bench
    transport = {"transport": {"type": "file", "log_file_path": str(folder / "events.json"), "append": True}}
    events = {"AIRFLOW_CONN_EVENTS": json.dumps({"conn_type": "openlineage", "extra": transport})}
    events |= {"AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(folder / "outbox")}
    bench.env |= events
    outcome = run(lineage_conn_id="events")
    assert outcome.error is None, outcome.printed
    (launch,) = launches_below(bench.lineage_dir)
    assert (launch.child, launch.is_closed) == (child, False)
    for key, value in {**events, **bench.env}.items():
        monkeypatch.setenv(key, value)
    return ChildEnd(TaskKey("shop", "manual", "load"), launch)


def wait_for_child(left: ChildEnd) -> None:
    """End a job as the scheduler does, when it is over."""
    until = time.monotonic() + LIMIT_SECONDS
    # Nothing is sent while it runs.
    while not end_child(left, NOBODY, None):
        assert time.monotonic() < until
        time.sleep(1)


def assert_child(left: ChildEnd, folder: Path, end: str) -> None:
    """Assert that a job has ended once, and is a child of its task, which names no datasets."""
    assert not end_child(left, NOBODY, None)
    sent = [json.loads(line) for line in (folder / "events.json").read_text().splitlines()]
    of_task, of_child = (
        [one for one in sent if one["job"]["name"] == name] for name in ("shop.load", f"{left.launch.child}@shop.load")
    )
    assert [one["eventType"] for one in of_task] == ["START", "COMPLETE"]
    assert [one["outputs"] for one in of_task] == [[], []]
    assert [one["eventType"] for one in of_child] == ["START", end]
    assert {one["run"]["runId"] for one in of_child} == {left.launch.application_run_id}
    assert of_child[1]["run"]["facets"]["parent"]["run"]["runId"] == of_task[1]["run"]["runId"]
    assert [Path(one["name"]).name for one in of_child[1]["inputs"]] == ["orders"]
    assert [Path(one["name"]).name for one in of_child[1]["outputs"]] == ["doubled"]
