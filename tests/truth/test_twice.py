"""Each program whose event log is enough, run again without the listener on a fresh copy of its data."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spark_lineage.launch.directory import EVENTS_FILE
from spark_lineage.merge.conclusion import EndFacts, conclude
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.log_alone import Lent, lacking_in_log
from spark_lineage.merge.task import task_lineage
from spark_lineage.submission.collector import Collector

# Tests are no package, and the tool is a program: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
measure = importlib.import_module("measure")
truth_run = importlib.import_module("truth_run")
truth_file = importlib.import_module("truth_file")

EACH_CHANGE = frozenset({"append_tables"})
TO_RUN = [pytest.param(job, marks=[pytest.mark.nightly] * (job not in EACH_CHANGE)) for job in measure.jobs_to_run()]


def collected(application: Any) -> Collector:
    collector = Collector()
    collector.read_event_log(application.home / "eventlog")
    if (file := application.home / "lineage" / EVENTS_FILE).exists():
        with file.open("rb") as stream:
            collector.read(stream, source="")
    return collector


def reported(lineage: TaskLineage) -> dict[str, Any]:
    """Return what a lineage says of datasets and catalogs, without the times of changes."""
    parts: dict[str, Any] = json.loads(msgspec.json.encode(lineage))
    changes = [{key: value for key, value in each.items() if key != "time"} for each in parts["catalog_changes"]]
    return {name: parts[name] for name in ("inputs", "outputs", "attempted", "unconfirmed")} | {"changes": changes}


@pytest.mark.truth
@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("job", TO_RUN)
def test_the_second_run_of_a_program_whose_log_is_enough_has_the_lineage_of_the_first(job: str, tmp_path: Path) -> None:
    truth, version = truth_file.read_truth(job), measure.own_version()
    first = truth_run.run_job(truth, version, tmp_path / "run")
    state = collected(first).state
    end = conclude(EndFacts(exit_code=first.exit_code))
    both = task_lineage(state, end)
    if lacking_in_log(state, both):
        return
    second = truth_run.run_job(truth, version, tmp_path / "run", has_listener=False)
    alone = task_lineage(collected(second).state, end)
    assert alone.evidence == ("event_log",)
    assert reported(Lent.of(both).to(alone)) == reported(both)
