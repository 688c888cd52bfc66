"""Runs the checks, each in bounded time; one that fails does not end the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from spark_lineage.doctor.finding import Finding, problem, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.secrets.redaction import redact


@dataclass(frozen=True)
class Check:
    """One kind of check; ``seconds`` is how long it may take."""

    name: str
    run: Callable[[Setup], Iterable[Finding]]
    seconds: float = 20.0


def run_check(setup: Setup, check: Check) -> Iterator[Finding]:
    """Return what one check finds, secrets masked."""
    found: list[Finding] = []
    thread = threading.Thread(target=_run, args=(setup, check, found), name=check.name, daemon=True)
    thread.start()
    thread.join(check.seconds)
    if thread.is_alive():
        # It is left alone: nothing can end a call that hangs in the file system.
        found = [*found, problem(f"no answer within {check.seconds:g} s", "look whether what it asks is there at all")]
    for finding in found:
        yield Finding(finding.level, redact(finding.text), redact(finding.remedy))


def _run(setup: Setup, check: Check, found: list[Finding]) -> None:
    try:
        for finding in check.run(setup):
            found.append(finding)  # noqa: PERF402 - what was found before the time was over is told
    except BaseException as error:
        # SystemExit too: whoever waits would not learn that the check is gone.
        found.append(warning(f"could not be checked: {type(error).__name__}: {error}", "mend that, and ask again"))
