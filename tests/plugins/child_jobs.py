"""A task that does not wait for its driver, until the job that goes on has ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fast_spark import LIMIT_SECONDS

from spark_lineage.emit.task_event import AirflowTry
from spark_lineage.launch.launch import TaskKey, launches_below
from spark_lineage.recover.closing import end_child
from spark_lineage.recover.search import ChildEnd

if TYPE_CHECKING:
    import pytest
    from real_spark import RealSpark

_Events = list[dict[str, Any]]


def ended_child(
    run: Callable[..., Any], real_spark: RealSpark, folder: Path, monkeypatch: pytest.MonkeyPatch, *, child: str
) -> tuple[_Events, _Events]:
    """Run a task, and end its child as the scheduler does; return the events of both.

    :param child: begins the name of its job
    """
    file, bench = folder / "events.json", real_spark.bench
    transport = {"transport": {"type": "file", "log_file_path": str(file), "append": True}}
    events = {"AIRFLOW_CONN_EVENTS": json.dumps({"conn_type": "openlineage", "extra": transport})}
    events |= {"AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR": str(folder / "outbox")}
    bench.env |= events
    outcome = run(lineage_conn_id="events")
    assert outcome.error is None, outcome.printed
    (launch,) = launches_below(bench.lineage_dir)
    assert (launch.child, launch.is_closed) == (child, False)

    for key, value in {**events, **bench.env}.items():
        monkeypatch.setenv(key, value)
    lost, airflow = ChildEnd(TaskKey("shop", "manual", "load"), launch, 0.0), AirflowTry(None, None)
    until = time.monotonic() + LIMIT_SECONDS
    # Nothing is sent while it runs.
    while not end_child(lost, airflow, None):
        assert time.monotonic() < until
        time.sleep(1)
    assert not end_child(lost, airflow, None)
    sent = [json.loads(line) for line in file.read_text().splitlines()]
    of_task, of_child = (
        [one for one in sent if one["job"]["name"] == name] for name in ("shop.load", f"{child}@shop.load")
    )
    assert {one["run"]["runId"] for one in of_child} == {launch.application_run_id}
    return of_task, of_child
