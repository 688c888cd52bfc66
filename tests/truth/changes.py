"""Lists what a change does to the merged events of all recorded applications, as the JSON paths that differ.

``python tests/truth/changes.py --save DIR`` keeps the events of this tree; ``python tests/truth/changes.py DIR`` merges
again and prints a line for each path that is another one, with how many applications have it and the first of them.
``--shown N`` prints the values of the first N differences of each path.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from measure import recordings
from truth_file import EVIDENCE
from truth_recording import recorded

# What stands for a recording's own directory, and what is another at each merge.
_ALWAYS_OTHER = re.compile(r'"_producer": "[^"]*", |"mergedAt": "[^"]*"')
Event = dict[str, Any]


def merged(version: str, job: str, evidence: str) -> Event:
    """Return the merged event of a recorded application."""
    with tempfile.TemporaryDirectory(prefix="changes-") as home, redirect_stderr(io.StringIO()):
        event = recorded(job, version, Path(home)).merged(evidence=evidence)
        told: Event = json.loads(_ALWAYS_OTHER.sub("", json.dumps(event)).replace(str(Path(home).resolve()), "/data"))
        return told


def differences(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Return each path at which two values differ; items of lists are compared as sets."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from differences(f"{path}.{key}", before.get(key), after.get(key))
    elif isinstance(before, list) and isinstance(after, list):
        found, kept = ({_named(item): item for item in items} for items in (before, after))
        for key in sorted({*found, *kept}):
            yield from differences(f"{path}[]", found.get(key), kept.get(key))
    elif before != after:
        yield path, before, after


def _named(item: Any) -> str:
    """Return what an item of a list is known by, so that only what changed in it is a difference."""
    if isinstance(item, dict):
        known = {key: item[key] for key in ("namespace", "name", "field") if key in item}
        return json.dumps(known or item, sort_keys=True)
    return json.dumps(item, sort_keys=True)


def _merge(one: tuple[str, str, str]) -> tuple[str, Event]:
    version, job, evidence = one
    return f"{version} {job} {evidence}", merged(version, job, evidence)


def main() -> None:
    """Save the events of all recordings, or compare them with saved ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("saved", nargs="?", type=Path)
    parser.add_argument("--save", type=Path, metavar="DIR")
    parser.add_argument("--shown", type=int, default=1)
    asked = parser.parse_args()
    every = [(version, job, evidence) for version, job in recordings() for evidence in EVIDENCE]
    with ProcessPoolExecutor(2) as pool:
        events = dict(pool.map(_merge, every, chunksize=8))
    if asked.save:
        asked.save.mkdir(parents=True, exist_ok=True)
        (asked.save / "events.json").write_text(json.dumps(events, sort_keys=True))
        return
    before: dict[str, Event] = json.loads((asked.saved / "events.json").read_text())
    paths: dict[str, list[tuple[str, Any, Any]]] = {}
    for key in sorted(before.keys() & events.keys()):
        for path, old, new in differences("", before[key], events[key]):
            # The column of an edge is a value, not a part of the path.
            paths.setdefault(re.sub(r"(columnLineage\.fields)\..*", r"\1.*", path), []).append((key, old, new))
    lines: list[str] = []
    for path, found in sorted(paths.items()):
        keys = sorted({key for key, _, _ in found})
        lines.append(f"{path}: {len(keys)} events, first {keys[0]}")
        lines += (
            f"    {key}: {json.dumps(old)[:400]} -> {json.dumps(new)[:400]}" for key, old, new in found[: asked.shown]
        )
    differing = {key for found in paths.values() for key, _, _ in found}
    sys.stdout.write("\n".join([*lines, f"{len(differing)} of {len(events)} events differ", ""]))


if __name__ == "__main__":
    sys.exit(main())
