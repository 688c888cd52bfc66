"""Measures the outbox against a bare fsynced append of the same bytes; prints one line a figure, as ``pairs.py`` does.

The events are those of a small job (``tests/fixtures/events/a_414.ndjson``, 2 to 7 kB each), multiplied: each copy has
run ids of its own.

- ``outbox_vs_append``: events a second that ``Outbox.put`` has on disk, divided by those that are written to a plain
  file, each followed by ``fsync``, on the same file system (goal: at least 0.5). Of CPU time there is no goal: that of
  an append is next to none
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from pairs import Taken, by_turns, parser, timed

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


def append(descriptor: int, events: Sequence[bytes]) -> None:
    """Append each event to a file and sync it."""
    for event in events:
        os.write(descriptor, event + b"\n")
        os.fsync(descriptor)


def put(outbox: Outbox, events: Sequence[bytes]) -> None:
    """Put each event into the outbox."""
    for event in events:
        outbox.put("marquez", event)


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=30)
    asking.add_argument("--events", type=int, default=100, help="in each round; default: %(default)s")
    asking.add_argument("--dir", default=DISK, help="where to write; default: %(default)s, which is a disk")
    asked = asking.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="outbox-", dir=asked.dir))
    outbox = Outbox(directory / "outbox")
    first = count(step=asked.events)
    try:
        with (directory / "appended").open("wb") as appended:

            def written() -> Taken:
                return timed(append, appended.fileno(), copies(asked.events, next(first)))

            def kept() -> Taken:
                return timed(put, outbox, copies(asked.events, next(first)))

            found = by_turns({"append": written, "outbox": kept}, asked)
        outbox.close()
    finally:
        shutil.rmtree(directory)
    found.compare("outbox_vs_append", "append", "outbox")
    found.show_numbers()


if __name__ == "__main__":
    main()
