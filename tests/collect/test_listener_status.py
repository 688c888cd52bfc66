from __future__ import annotations

from pathlib import Path

import pytest

from spark_lineage.collect.collector import Collector
from spark_lineage.task.watching import begun_applications

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
