"""Junk in the directory of a spool, and in its files: what is good is delivered, and nothing of it is lost."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path

from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from spark_lineage.deliver.courier import Delivered, drain
from spark_lineage.deliver.outgoing import Outgoing, SpoolError
from spark_lineage.deliver.sender import Refused
from spark_lineage.deliver.spool import Spool
from spark_lineage.deliver.stored_event import restore_any
from spark_lineage.launch.bounded_run import Deadline

RUN = "0190a5b2-7c1e-7d5f-9d4b-{:012x}"
JUNK_FILES = st.dictionaries(
    st.sampled_from([
        ".used", ".later", ".x.part", "events.ndjson", "..x", "é", "x.json", "a-b-c-d.json",
        "20240131T120000.000000-r-START-2.json", "20240131T120000.000000-r-COMPLETE-999999999.json", "dead/x", "runs/r",
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


class Taking:
    """Takes all that is an event."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def send(self, event: Outgoing) -> None:
        try:
            restore_any(event.body)
        except ValueError as error:
            raise Refused(str(error)) from None
        self.taken.add(event.run_id)

    def close(self) -> None:
        pass


def put_all(spool: Spool, contents: list[int | bytes]) -> set[int]:
    good = set()
    for each in contents:
        # What is no event is not kept at all, which is an error.
        with suppress(SpoolError):
            spool.put(Outgoing.of(event(each) if isinstance(each, int) else each))
        if isinstance(each, int):
            good.add(each)
    return good


@fuzzed(15)
@given(JUNK_FILES, st.lists(st.integers(0, 3) | JUNK_CONTENT, max_size=8))
def test_drain_among_junk_delivers_the_good_events(files: dict[str, bytes], contents: list[int | bytes]) -> None:
    with tempfile.TemporaryDirectory() as home:
        spool = Spool(Path(home) / "outbox")
        for name, content in files.items():
            path = spool.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        good, sender = put_all(spool, contents), Taking()
        done = drain(spool, sender, Deadline(30))
        assert sender.taken >= {RUN.format(each) for each in good}
        assert (done.waiting, spool.waiting()) == (0, [])


@fuzzed(15)
@given(st.integers(1, 20), st.integers(0, 19), st.binary(max_size=50))
def test_drain_with_a_broken_file_delivers_the_others(count: int, which: int, junk: bytes) -> None:
    with tempfile.TemporaryDirectory() as home:
        spool = Spool(Path(home))
        put_all(spool, list(range(count)))
        broken = spool.waiting()[which % count]
        (spool.directory / broken.name).write_bytes(junk)
        sender = Taking()
        assert drain(spool, sender, Deadline(30)) == Delivered(count - 1, 0, 1)
        assert sender.taken == {RUN.format(each) for each in range(count)} - {broken.run_id}
