"""Where the launches of a task are, and whether a process of one is still there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

EVENTS_FILE = "openlineage-events.ndjson"


def launches(root: Path) -> list[Path]:
    """Return the directories of all launches below a lineage directory."""
    return sorted(root.glob("*/*/*/*/*"))


def location(outcome: Any) -> Path:
    """Return the file that the driver was told to write its lineage to."""
    conf, prefix = outcome.command["conf"], "spark.openlineage.transport."
    return Path(conf.get(f"{prefix}transports.spark_lineage.location") or conf[f"{prefix}location"])


def is_running(pid: int) -> bool:
    """Whether a process is there and not just waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
