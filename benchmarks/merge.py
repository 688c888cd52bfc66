"""Measures the merge against a peer on the same lines, and its memory; prints one line a figure, as ``pairs.py`` does.

The events are those of 200 small SQL actions (``tests/fixtures/events/i2_ol1.ndjson``), multiplied: each copy has run
ids and times of its own, as the next run of the same program would have.

- ``merge_vs_decode``: time of ``msgspec.json.decode`` into plain objects, divided by ours (goal: at least 1)
- ``memory_growth_mb``: peak memory at 1,000,000 events less that at 10,000, in MiB (goal: less than 64); no ratio
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from pairs import by_turns, parser, timed

from spark_lineage.launch.line import LineDecoder
from spark_lineage.merge.lineage import TaskLineage
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage

EVENTS = Path(__file__).parents[1] / "tests" / "fixtures" / "events" / "i2_ol1.ndjson"
RUN_ID = re.compile(r'"runId":"[0-9a-f]{8}(-[0-9a-f-]{27})"')
EVENT_TIME = re.compile(r'"eventTime":"([^"]+)"')


def copies(count: int) -> Iterator[bytes]:
    """Return ``count`` lines, copy after copy of the application, each with its own run ids and times."""
    text = EVENTS.read_text()
    given = 0
    copy = 0
    while given < count:
        for line in _copy(text, copy).splitlines()[: count - given]:
            yield line.encode()
            given += 1
        copy += 1


def _copy(text: str, copy: int) -> str:
    shift = timedelta(minutes=copy)

    def moved(match: re.Match[str]) -> str:
        moment = datetime.fromisoformat(match[1]) + shift
        return f'"eventTime":"{moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")}"'

    return EVENT_TIME.sub(moved, RUN_ID.sub(rf'"runId":"{copy:08x}\1"', text))


def merge(lines: Iterable[bytes]) -> TaskLineage:
    """Ours, from lines to lineage."""
    decode, state = LineDecoder().decode, LineageState()
    for line in lines:
        state.add(*decode(line))
    return task_lineage(state, "COMPLETE")


def decode_plain(lines: Iterable[bytes]) -> None:
    """Decode every line into dicts and lists, and do nothing with them."""
    decode = msgspec.json.decode
    for line in lines:
        decode(line)


def peak_memory(events: int) -> float:
    """Return the peak memory of a process that merges so many events, in MiB."""
    command = [sys.executable, __file__, "--peak-memory", str(events)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print the figures."""
    asking = parser(__doc__, rounds=10)
    asking.add_argument("--events", type=int, default=100_000)
    asking.add_argument("--peak-memory", type=int, help=argparse.SUPPRESS)
    asked = asking.parse_args()
    if asked.peak_memory:
        merge(copies(asked.peak_memory))
        # Linux gives kilobytes, macOS bytes.
        unit = 1024 if sys.platform == "linux" else 1024 * 1024
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
        return
    # Memory first: a process counts what its parent held when it was started as its own peak.
    print(f"memory_growth_mb {peak_memory(1_000_000) - peak_memory(10_000):.1f}")
    lines = list(copies(asked.events))
    found = by_turns({"merge": lambda: timed(merge, lines), "decode": lambda: timed(decode_plain, lines)}, asked)
    found.compare("merge_vs_decode", "decode", "merge")
    found.show_numbers()


if __name__ == "__main__":
    main()
