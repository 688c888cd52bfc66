"""Measures the merge against two peers on the same lines, and its memory; prints one line a figure, ``name ratio``.

The events are those of 200 small SQL actions (``tests/fixtures/events/i2_ol1.ndjson``), multiplied: each copy has run
ids and times of its own, as the next run of the same program would have.

- ``merge_vs_decode``: time of ``msgspec.json.decode`` into plain objects, divided by ours (goal: at least 1)
- ``merge_vs_naive_union``: time of a union with ``json.loads`` and plain dicts, divided by ours (goal: at least 10)
- ``memory_growth_mb``: peak memory at 1,000,000 events less that at 10,000, in MiB (goal: less than 64); no ratio

The three times are taken in turn, several rounds in one process; the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

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


def merge(lines: Sequence[bytes]) -> TaskLineage:
    """Ours, from lines to lineage."""
    decode, state = LineDecoder().decode, LineageState()
    for line in lines:
        state.add(*decode(line))
    return task_lineage(state, "COMPLETE")


def decode_plain(lines: Sequence[bytes]) -> None:
    """Peer (a): decode every line into dicts and lists, and do nothing with them."""
    decode = msgspec.json.decode
    for line in lines:
        decode(line)


def naive_union(lines: Sequence[bytes]) -> dict[str, Any]:
    """Peer (b): what one writes first: union the datasets of all events by name, facets over facets."""
    task: dict[str, Any] = {"inputs": {}, "outputs": {}, "runs": {}}
    for line in lines:
        event = json.loads(line)
        run = task["runs"].setdefault(event["run"]["runId"], {"facets": {}, "types": set(), "times": []})
        run["types"].add(event["eventType"])
        run["times"].append(event["eventTime"])
        _union(run["facets"], event["run"]["facets"])
        for side in ("inputs", "outputs"):
            for dataset in event[side]:
                _union(task[side].setdefault((dataset["namespace"], dataset["name"]), {}), dataset)
    return task


def _union(into: dict[str, Any], new: dict[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _union(into[key], value)
        else:
            into[key] = value


def ratios(events: int, rounds: int) -> dict[str, float]:
    """Return the two time ratios, peer over ours."""
    lines = list(copies(events))
    peers: dict[str, Callable[[Sequence[bytes]], object]] = {
        "merge": merge,
        "decode": decode_plain,
        "naive_union": naive_union,
    }
    times: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, run in peers.items():
            start = time.perf_counter()
            run(lines)
            times[name].append(time.perf_counter() - start)
    ours = statistics.median(times.pop("merge"))
    return {f"merge_vs_{name}": statistics.median(taken) / ours for name, taken in times.items()}


def peak_memory(events: int) -> float:
    """Return the peak memory of a process that merges so many events, in MiB."""
    command = [sys.executable, __file__, "--peak-memory", str(events)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak-memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak_memory:
        decode, state = LineDecoder().decode, LineageState()
        for line in copies(arguments.peak_memory):
            state.add(*decode(line))
        task_lineage(state, "COMPLETE")
        # Linux gives kilobytes, macOS bytes.
        unit = 1024 if sys.platform == "linux" else 1024 * 1024
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
        return
    # Memory first: a process counts what its parent held when it was started as its own peak.
    print(f"memory_growth_mb {peak_memory(1_000_000) - peak_memory(10_000):.1f}")
    for name, ratio in ratios(arguments.events, arguments.rounds).items():
        print(f"{name} {ratio:.2f}")


if __name__ == "__main__":
    main()
