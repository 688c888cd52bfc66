"""Measures the outbox against a bare fsynced append of the same bytes; prints one line a figure, ``name ratio``.

The events are those of a small job (``tests/fixtures/events/a_414.ndjson``, 2 to 7 kB each), multiplied: each copy has
run ids of its own.

- ``outbox_vs_append``: events a second that ``Outbox.put`` has on disk, divided by those that are written to a plain
  file, each followed by ``fsync`` (goal: at least 0.5)

Both are measured in turn, many short rounds in one process, on the same file system; the ratio is the median of those
of the pairs. ``--details`` prints events a second too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from spark_lineage.deliver.outbox.outbox import Outbox

EVENTS = Path(__file__).parents[1] / "tests" / "fixtures" / "events" / "a_414.ndjson"
DISK = "/var/tmp"  # noqa: S108 - a directory of our own is made there
RUN_ID = re.compile(rb'"runId":"[0-9a-f]{8}(-[0-9a-f-]{27})"')


def copies(count: int, first: int) -> list[bytes]:
    """Return ``count`` events that are in no other round."""
    lines = EVENTS.read_bytes().splitlines()
    return [
        RUN_ID.sub(rb'"runId":"%08x\1"' % ((first + number) // len(lines)), lines[(first + number) % len(lines)])
        for number in range(count)
    ]


def append(path: Path, events: Sequence[bytes]) -> float:
    """Append each event to a file and sync it; give the seconds."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        start = time.perf_counter()
        for event in events:
            os.write(descriptor, event + b"\n")
            os.fsync(descriptor)
        return time.perf_counter() - start
    finally:
        os.close(descriptor)


def put(outbox: Outbox, events: Sequence[bytes]) -> float:
    """Put each event into the outbox; give the seconds."""
    start = time.perf_counter()
    for event in events:
        outbox.put("marquez", event)
    return time.perf_counter() - start


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100, help="in each round; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=30, help="default: %(default)s")
    parser.add_argument("--dir", default=DISK, help="where to write; default: %(default)s, which is a disk")
    parser.add_argument("--details", action="store_true", help="also print events a second")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="outbox-", dir=arguments.dir))
    try:
        outbox = Outbox(directory / "outbox")
        pairs = []
        # The first one makes the files.
        for number in range(arguments.rounds + 1):
            events = copies(arguments.events, number * arguments.events)
            pairs.append((append(directory / "appended", events), put(outbox, events)))
        outbox.close()
    finally:
        shutil.rmtree(directory)
    pairs = pairs[1:]
    if arguments.details:
        for name, times in zip(("append", "outbox"), zip(*pairs, strict=True), strict=True):
            print(f"{name}_events_per_second {arguments.events / statistics.median(times):.0f}")
    print(f"outbox_vs_append {statistics.median(bare / ours for bare, ours in pairs):.2f}")


if __name__ == "__main__":
    main()
