"""Compares what events count with what is wrong in them: each fault has to be counted, and few right events count.

``python tests/truth/truth_counts.py`` prints, for both sources together and for the event log alone, how many events of
the recordings are faulty or right and count something or nothing, and names those that ought to be otherwise.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from typing import Any

from truth_event import compare
from truth_file import EVIDENCE, VERSIONS, read_truth
from truth_recording import merged_recording, recordings

_FACETS = {"sparkLineage_unknownDatasets": "commands", "sparkLineage_unreadPlans": "parts"}
# A number that is missing is seen to be missing: it is no fault of the lineage, as a false one is.
_NUMBERS = "rows"


@dataclass(frozen=True)
class Counted:
    """An event of a recording: the facts that are wrong in it, and the names of what it counts.

    ``is_faulty``: a fact is wrong, or the truth says that something in the program has no name.
    """

    version: str
    job: str
    faults: tuple[str, ...]
    counts: tuple[str, ...]
    is_faulty: bool

    @property
    def is_silent(self) -> bool:
        """Whether something is wrong and nothing is counted."""
        return self.is_faulty and not self.counts


def counted_events(version: str, evidence: str) -> list[Counted]:
    """Return the events of all recordings of a Spark release."""
    with redirect_stderr(io.StringIO()):
        return [_counted(version, job, evidence) for each, job in recordings() if each == version]


def _counted(version: str, job: str, evidence: str) -> Counted:
    """Return one event; what the truth calls without evidence is missing in it as well."""
    application, event = merged_recording(job, version, evidence)
    truth = replace(read_truth(job), without_evidence=[])
    faults = [
        f"{measure}: {fact}"
        for measure, score in compare(truth, [event], application.work, evidence, application.snapshots).items()
        for fact in (*score.too_much, *(() if measure == _NUMBERS else score.missing))
    ]
    counts = tuple(_names(event))
    # The truth has all versions.
    lacks_version = any(count.endswith(": its version") for count in counts)
    return Counted(version, job, tuple(faults), counts, bool(faults) or lacks_version or evidence in truth.counted)


def _names(event: Mapping[str, Any]) -> Iterator[str]:
    facets = event["run"].get("facets", {})
    for facet, key in _FACETS.items():
        for each in facets.get(facet, {}).get(key, ()):
            yield str(each.get("command") or each["name"])


def main() -> None:
    """Print the numbers, then the faulty events that count nothing, and the right ones that count something."""
    for evidence in EVIDENCE:
        events = [event for version in VERSIONS for event in counted_events(version, evidence)]
        numbers = Counter((event.is_faulty, bool(event.counts)) for event in events)
        for is_faulty, is_counted in ((True, True), (True, False), (False, True), (False, False)):
            what = f"{'faulty' if is_faulty else 'right'}, {'counted' if is_counted else 'not counted'}"
            sys.stdout.write(f"{evidence}: {what}: {numbers[is_faulty, is_counted]}\n")
        for event in events:
            if event.is_faulty != bool(event.counts):
                sys.stdout.write(f"  {event.version} {event.job}: {event.faults[:3]} {event.counts}\n")


if __name__ == "__main__":
    main()
