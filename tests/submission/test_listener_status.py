from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from spark_lineage.merge.state import LineageState
from spark_lineage.submission.collector import Collector
from spark_lineage.submission.submission import begun_applications

EVENTS = Path(__file__).parents[1] / "fixtures" / "events"


@pytest.mark.parametrize("name", ["a_414", "gpyexc_414", "gkilljvm_414", "a_359"])
def test_an_application_has_begun_and_its_own_word_on_its_end_is_not_told(name: str) -> None:
    collector = Collector()
    with (EVENTS / f"{name}.ndjson").open("rb") as stream:
        collector.read(stream, source=name)
    (report,) = begun_applications(collector.state)
    assert (report.subject, report.status, report.source) == ("APPLICATION", "RUNNING", "OpenLineage listener")
    assert report.subject_id in collector.application_ids
    first = min(run.first for run in collector.state.runs.values())
    assert report.time.timestamp() == pytest.approx(first)


def test_second_application_of_a_run_has_not_begun_with_the_first() -> None:
    collector, other = Collector(), LineageState()
    with (EVENTS / "a_414.ndjson").open("rb") as stream:
        collector.read(stream, source="a")
    ((run_id, first),) = [key for key in collector.state.applications if key[1]]
    (application,) = (one for key, one in collector.state.applications.items() if key[1])
    other.applications[run_id, f"{first}0"] = structs.replace(application, application_id=f"{first}0")
    collector.state.merge(other)
    asked = datetime.now(UTC)
    times = {report.subject_id: report.time for report in begun_applications(collector.state)}
    assert times[first] < asked <= times[f"{first}0"]
