"""Junk in the directory of an outbox, and in its file: what is good is delivered, and nothing of it is lost."""

from __future__ import annotations

import json
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from fuzzing import fuzzed
from hypothesis import example, given
from hypothesis import strategies as st
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport

from spark_lineage.deliver.outbox.database import FILE
from spark_lineage.deliver.outbox.outbox import Outbox, OutboxError

RUN = "0190a5b2-7c1e-7d5f-9d4b-{:012x}"
JUNK_FILES = st.dictionaries(
    st.sampled_from([
        "outbox.lock", "outbox.db.corrupt-1", "outbox.db.corrupt-1-wal", "events.ndjson",
        "junk.db", "..x", "é",
        "outbox.db-shm", "outbox.db-journal",
    ]),
    st.binary(max_size=200), max_size=5,
)  # fmt: skip
JUNK_CONTENT = st.binary(max_size=60) | st.sampled_from(
    [b"null", b"[]", b"{}", b'{"run": 3}', b'{"eventTime": 1}', b"\xff{"]
)


def event(number: int) -> bytes:
    document = {
        "eventTime": f"2024-01-31T12:{number // 60:02}:{number % 60:02}Z",
        "eventType": "COMPLETE",
        "job": {"name": "dag.task", "namespace": "airflow"},
        "producer": "https://github.com/spark-lineage",
        "run": {"runId": RUN.format(number)},
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


class Taking(Transport):
    """Takes all that comes."""

    kind = "taking"

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def emit(self, event: Any) -> None:
        self.taken.add(json.loads(Serde.to_json(event))["run"]["runId"])


def delivered(directory: Path) -> tuple[set[str], int, int]:
    """Deliver all, and give the runs that were taken, and how many events wait and were refused."""
    taken: set[str] = set()
    with closing(Outbox(directory)) as outbox:
        done = outbox.deliver(["here"], lambda _: Taking(taken), 30)
    return taken, done.waiting, done.refused


@fuzzed(15)
@given(JUNK_FILES, st.lists(st.integers(0, 3) | JUNK_CONTENT, max_size=8))
def test_among_junk_the_good_events_are_delivered(files: dict[str, bytes], contents: list[int | bytes]) -> None:
    with tempfile.TemporaryDirectory() as home:
        directory = Path(home) / "outbox"
        directory.mkdir()
        for name, content in files.items():
            (directory / name).write_bytes(content)
        kept = set()
        with closing(Outbox(directory)) as outbox:
            for one in contents:
                # What is no JSON object is not kept at all, which is said.
                with suppress(OutboxError):
                    outbox.put("here", event(one) if isinstance(one, int) else one)
                    kept.add(one)
        good = {one for one in contents if isinstance(one, int)}
        assert kept >= good
        assert delivered(directory) == ({RUN.format(one) for one in good}, 0, len(kept - good))


@fuzzed(15)
@given(st.integers(1, 40), st.floats(0, 1), st.binary(min_size=1, max_size=50), st.booleans())
@example(14, 0.96484375, b"\x80", False)  # in the text of a column
@example(1, 0.0625, b"\x80", False)  # in the schema, which SQLite quotes
@example(28, 0.0390625, b" ", False)  # in the name of a column
@example(1, 0.9375, b"\x00", True)  # where the sum of all bytes is kept
def test_a_broken_file_stands_in_nobodys_way(count: int, place: float, junk: bytes, is_cut: bool) -> None:
    with tempfile.TemporaryDirectory() as home:
        directory = Path(home)
        with closing(Outbox(directory)) as outbox:
            for number in range(count):
                outbox.put("here", event(number))
        file = directory / FILE
        content = file.read_bytes()
        at = int(place * len(content))
        broken = content[:at] if is_cut else content[:at] + junk + content[at + len(junk) :]
        file.write_bytes(broken)
        with closing(Outbox(directory)) as outbox:
            outbox.put("here", event(1000))
        taken, waiting, refused = delivered(directory)
        assert RUN.format(1000) in taken
        # What can be read of the others is sent, or is a dead letter where bytes within it are others now.
        assert waiting == 0
        assert len(taken) + refused <= count + 1
        if broken == content:
            assert len(taken) == count + 1
