"""Whether events can wait until a backend takes them, and whether some wait for somebody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from spark_lineage.deliver.outbox.database import FILE
from spark_lineage.deliver.outbox.kept_event import Waiting
from spark_lineage.deliver.outbox.outbox import Outbox
from spark_lineage.doctor.disk import check_room, disk_of
from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.settings.defaults import outbox_directory

_DAY_SECONDS = 24 * 60 * 60
_NEARLY_FULL = 0.8
_LOSS = "events that a backend does not take at once are lost"


def check_outbox(setup: Setup) -> Iterator[Finding]:
    """Look at the directory that the settings name, and at what is in it."""
    try:
        path = outbox_directory(setup.settings.outbox_dir)
    except ValueError as error:
        yield problem(str(error), "give an absolute path")
        return
    bad = list(check_room(path, "outbox_dir", _LOSS))
    yield from bad
    if any(finding.level == "problem" for finding in bad):
        return
    disk = disk_of(path)
    if disk.is_network:
        yield warning(
            f"{path} is on a network file system ({disk.kind}), whose locks SQLite cannot rely on",
            "set outbox_dir to a local disk",
        )
    is_there = "" if path.exists() else ", not there yet, and can be made"
    yield ok(f"{path} can be written ({disk.kind or 'unknown file system'}{is_there})")
    if (path / FILE).exists():
        yield from _contents(path, setup.settings.outbox_max_bytes)


def _contents(path: Path, max_bytes: float) -> Iterator[Finding]:
    outbox = Outbox(path)
    try:
        destinations = outbox.destinations()
    finally:
        outbox.close()
    for one in destinations:
        if one.waiting:
            yield _waiting(one)
        if one.dead:
            yield warning(
                f"{one.destination} has refused {one.dead} events",
                "spark-lineage outbox list tells why; outbox retry sends them again, outbox drop throws them away",
            )
    used = sum(one.bytes for one in destinations)
    if used > max_bytes * _NEARLY_FULL:
        text = f"it holds {used / 1e6:,.1f} of {max_bytes / 1e6:,.1f} MB (outbox_max_bytes)"
        bad = problem if used >= max_bytes else warning
        yield bad(text, "mend the backends, then spark-lineage outbox flush; or raise outbox_max_bytes")


def _waiting(one: Waiting) -> Finding:
    days = (time.time() - one.oldest_at) / _DAY_SECONDS
    since = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(one.oldest_at))
    text = f"{one.waiting} events wait for {one.destination}, the oldest since {since}"
    if one.answer:
        text += f"; it said: {one.answer}"
    if days < 1 and not one.answer:
        # They leave with the next task.
        return ok(text)
    return warning(text, "mend the backend, then spark-lineage outbox flush")
