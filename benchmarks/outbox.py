"""Measures the outbox while many events wait, against the least that could do the same; prints one line a figure.

The events are those of a small job (``tests/fixtures/events/a_414.ndjson``, 2 to 7 kB each), multiplied: each copy has
run ids of its own. A backend that takes everything (``programs/receiver.py``) runs in a process of its own.

- ``outbox_put_vs_files``: time of ``Spool.put`` while so many events wait, divided by that of writing a file, syncing
  and renaming it, and syncing its directory (goal: at most 2.5)
- ``outbox_flush_vs_posts``: time of sending what waits, divided by that of posting the same bytes over one kept
  connection with the same library (goal: at most 1.5)
- ``outbox_list_vs_scandir``: time of ``Outbox.destinations``, divided by that of listing the directory with the sizes
  of its files (goal: at most 3)
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import httpx
from pairs import Taken, by_turns, parser, timed

from spark_lineage.deliver.courier import drain
from spark_lineage.deliver.outbox import Outbox
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import sender_of
from spark_lineage.deliver.spool import Spool
from spark_lineage.launch.bounded_run import Deadline

HERE = Path(__file__).resolve().parent
EVENTS = HERE.parent / "tests" / "fixtures" / "events" / "a_414.ndjson"
DISK = "/var/tmp"  # noqa: S108 - a directory of our own is made there
RUN_ID = re.compile(rb'"runId":"[0-9a-f]{8}(-[0-9a-f-]{27})"')
ENDPOINT = "/api/v1/lineage"


def copies(count: int, first: int) -> list[bytes]:
    """Return ``count`` events that are in no other round, each of a run of its own."""
    lines = EVENTS.read_bytes().splitlines()
    return [RUN_ID.sub(rb'"runId":"%08x\1"' % (first + number), lines[number % len(lines)]) for number in range(count)]


def write_files(directory: Path, events: Sequence[bytes], first: int) -> None:
    """Write each event to a file of its own, as durably as the spool does."""
    for number, event in enumerate(events, first):
        part, place = directory / f".{number}.part", directory / f"{number}.json"
        part.write_bytes(event)
        part.rename(place)
        for path in (place, directory):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def put(spool: Spool, events: Sequence[bytes]) -> None:
    """Put each event into the spool."""
    for event in events:
        spool.put(Outgoing.of(event))


def post(url: str, events: Sequence[bytes]) -> None:
    """Post each event over one connection."""
    with httpx.Client() as client:
        for event in events:
            client.post(url + ENDPOINT, content=event, headers={"Content-Type": "application/json"}).raise_for_status()


def list_sizes(directory: Path) -> int:
    """Return the size of all files of a directory."""
    return sum(each.stat().st_size for each in os.scandir(directory))


@contextlib.contextmanager
def backend() -> Iterator[str]:
    """Run a server that takes everything; yields its address."""
    command = [sys.executable, str(HERE / "programs" / "receiver.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("The server has no output")
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=10)
    asking.add_argument("--events", type=int, default=200, help="in each round; default: %(default)s")
    asking.add_argument("--waiting", type=int, default=100_000, help="events that wait; default: %(default)s")
    asking.add_argument("--dir", default=DISK, help="where to write; default: %(default)s, which is a disk")
    asked = asking.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="outbox-", dir=asked.dir))
    first = count(step=asked.events)
    try:
        with backend() as url:
            outbox = Outbox(directory / "outbox")
            full, empty, plain = outbox.spool("full"), Spool(directory / "empty"), directory / "plain"
            fill(full, asked.waiting)
            plain.mkdir()

            def files() -> Taken:
                begin = next(first)
                return timed(write_files, plain, copies(asked.events, begin), begin)

            def kept() -> Taken:
                return timed(put, full, copies(asked.events, next(first)))

            def posted() -> Taken:
                return timed(post, url, copies(asked.events, next(first)))

            def flushed() -> Taken:
                put(empty, copies(asked.events, next(first)))
                sender = sender_of({"type": "http", "url": url})
                return timed(drain, empty, sender, Deadline(300))

            runs = {"files": files, "put": kept, "posts": posted, "flush": flushed}
            runs |= {"list": lambda: timed(outbox.destinations), "scandir": lambda: timed(list_sizes, full.directory)}
            found = by_turns(runs, asked)
    finally:
        shutil.rmtree(directory)
    found.compare("outbox_put_vs_files", "put", "files")
    found.compare("outbox_flush_vs_posts", "flush", "posts")
    found.compare("outbox_list_vs_scandir", "list", "scandir")
    found.show_numbers()


def fill(spool: Spool, waiting: int) -> None:
    """Have so many events wait; not each of them is synced, which is nothing that is measured."""
    (event,) = copies(1, 0)
    put(spool, [event])
    for number in range(waiting):
        name = f"20240131T120000.{number:06}-0190a5b2-7c1e-7d5f-9d4b-{number:012}-COMPLETE-{len(event)}.json"
        (spool.directory / name).write_bytes(event)


if __name__ == "__main__":
    main()
