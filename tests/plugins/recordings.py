"""Gives what real applications left, with the event log beside the events, from ``tests/truth/recorded``."""

from __future__ import annotations

import atexit
import tempfile
import zipfile
from functools import cache
from pathlib import Path

_RECORDED = Path(__file__).parents[1] / "truth" / "recorded"


@cache
def recorded(job: str, version: str) -> Path:
    """Unpack what a job left on a Spark release: ``lineage/*.ndjson`` and ``eventlog/*`` in a directory."""
    directory = tempfile.TemporaryDirectory(prefix="recorded-")
    atexit.register(directory.cleanup)
    with zipfile.ZipFile(_RECORDED / version / f"{job}.zip") as archive:
        archive.extractall(directory.name)
    return Path(directory.name)
