"""Compressed lineage files say the same as plain ones, and torn ones what is left of them."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
import zstandard

from spark_lineage.launch.line import LineError
from spark_lineage.submission.collector import Collector
from spark_lineage.submission.lineage_files import (
    application_of_launch,
    chunks,
    is_lineage_file,
    is_status_file,
    plain_name,
)

PLAIN = (Path(__file__).parents[1] / "fixtures" / "events" / "b_414.ndjson").read_bytes()
FORMS = {
    "events.ndjson": PLAIN,
    "events.ndjson.gz": gzip.compress(PLAIN),
    "events.ndjson.zst": zstandard.compress(PLAIN),
    "events.ndjson.zstd": zstandard.compress(PLAIN),
    "twice.ndjson.gz": gzip.compress(PLAIN[:1000]) + gzip.compress(PLAIN[1000:]),
    "twice.ndjson.zst": zstandard.compress(PLAIN[:1000]) + zstandard.compress(PLAIN[1000:]),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_a_file_holds(name: str) -> None:
    assert b"".join(chunks(io.BytesIO(FORMS[name]), name)) == PLAIN
    collector = Collector()
    collector.read(io.BytesIO(FORMS[name]), source=name)
    assert (collector.counts.read, collector.counts.set_aside) == (PLAIN.count(b"\n"), {})


@pytest.mark.parametrize("name", ["events.ndjson.gz", "events.ndjson.zst"])
def test_a_file_that_was_cut_off_gives_what_is_there(name: str) -> None:
    # Random bytes between, or all of it would be in one block of the compression.
    collector = Collector()
    content = FORMS[name]
    collector.read(io.BytesIO(content[: len(content) // 2]), source=name)
    assert collector.counts.set_aside_total >= (1 if name.endswith(".gz") else 0)
    assert collector.counts.read < PLAIN.count(b"\n")


@pytest.mark.parametrize("name", ["garbage.gz", "garbage.zst"])
def test_what_was_never_compressed_is_set_aside(name: str) -> None:
    with pytest.raises(LineError, match="torn file"):
        list(chunks(io.BytesIO(b"no such thing at all"), name))
    collector = Collector()
    collector.read(io.BytesIO(b"no such thing at all"), source=name)
    assert collector.counts.set_aside == {"torn file": 1}


def test_a_damaged_file_gives_what_stands_before() -> None:
    content = bytearray(gzip.compress(PLAIN, compresslevel=0))
    content[-4_000] ^= 0xFF
    # Stored blocks: only the checksum at the end can tell.
    collector = Collector()
    collector.read(io.BytesIO(bytes(content)), source="events.ndjson.gz")
    assert collector.counts.read >= PLAIN.count(b"\n") - 1
    assert "torn file" in collector.counts.set_aside


def test_names() -> None:
    assert plain_name("a/b.ndjson.zst") == plain_name("a/b.ndjson.gz") == plain_name("a/b.ndjson") == "a/b.ndjson"
    assert [is_lineage_file(name) for name in ("a.ndjson", "b.ndjson.gz", "c.jsonl", "run-events.jsonl")] == [
        True,
        True,
        False,
        False,
    ]
    assert is_lineage_file("x/status-transitions.jsonl")
    assert is_status_file("file:/x/status-transitions.jsonl.gz")
    assert not is_status_file("my-status-transitions.jsonl")
    run_id = "01941f29-7c00-7b00-8000-0123456789ab"
    assert application_of_launch(f"hdfs://n/dag/run/task/-1/2-{run_id}/status-transitions.jsonl") == run_id
    assert application_of_launch(f"/dag/{run_id}/status-transitions.jsonl") is None
    assert application_of_launch("status-transitions.jsonl") is None
