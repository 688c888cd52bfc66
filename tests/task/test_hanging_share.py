"""A lineage directory on a share that hangs costs the task a bounded time, and lineage; never the task."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
# What the package waits for a file of the directory, once.
FILE_SECONDS = 5.0
# What everything else takes in this process, on a machine that others use too.
REST_SECONDS = 15.0


def driver_ends_with(bench: Any, does: str) -> None:
    """Have the fake driver do something as the last thing of all."""
    fake = bench.root / "bin" / "fake.py"
    fake.write_text(fake.read_text().replace("sys.exit(script", f"{does}\nsys.exit(script"))


def seconds_of_end(bench: Any) -> float:
    """Return how long the task took after its driver had ended."""
    return float((bench.root / "result.json").stat().st_mtime - bench.hangs.stat().st_mtime)


HANGS = 'open(os.path.join(here, "..", "hangs"), "w").close()'


@pytest.mark.parametrize("is_required", [False, True])
def test_reading_at_the_end_is_over_in_time(bench: Any, is_required: bool) -> None:
    driver_ends_with(bench, HANGS)
    outcome = bench.run(lineage=[EVENTS], can_hang=True, lineage_timeout=2, lineage_required=is_required, store={})
    assert seconds_of_end(bench) < 2 + REST_SECONDS
    assert (outcome.error is not None) is is_required
    if is_required:
        assert "not all was read in time" in outcome.error
    else:
        assert "Some lineage is missing, because a file cannot be read: " in outcome.printed
        facet = outcome.lineage["run_facets"]["sparkLineage_collection"]
        assert facet["setAside"] == {"not read in time": 1}
        assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "COMPLETE"


def test_what_was_read_before_is_told(bench: Any) -> None:
    driver_ends_with(bench, f"time.sleep(2); {HANGS}")
    outcome = bench.run(lineage=[EVENTS], can_hang=True, lineage_timeout=1, poll_interval_seconds=0.1)
    assert outcome.error is None
    assert outcome.names("outputs") == ["/data/lab/out/a_parquet"]
    assert seconds_of_end(bench) < 1 + REST_SECONDS


def test_a_share_that_hangs_before_the_job_holds_it_up_for_a_moment(bench: Any) -> None:
    bench.lineage_dir.mkdir()
    bench.hangs.touch()
    began = time.time()
    outcome = bench.run(can_hang=True, log=["done"], store={})
    assert outcome.error is None
    assert "done" in outcome.printed
    assert "The job runs without lineage: the lineage directory" in outcome.printed
    assert not any("OpenLineageSparkListener" in argument for argument in outcome.command["argv"])
    assert time.time() - began < FILE_SECONDS + REST_SECONDS


def test_a_share_that_hangs_while_the_job_runs_holds_it_up_for_a_moment(bench: Any) -> None:
    fake = bench.root / "bin" / "fake.py"
    # It does not look into the directory: it would hang there, too.
    text = fake.read_text().replace("told = {", f"{HANGS}\ntold = {{", 1).replace("if location and", "if False and")
    fake.write_text(text)
    outcome = bench.run(can_hang=True, log=["driver-20260101000000-0001", "done"], lineage_timeout=1, store={})
    assert outcome.error is None
    assert "done" in outcome.printed
    assert seconds_of_end(bench) < FILE_SECONDS + 1 + REST_SECONDS
