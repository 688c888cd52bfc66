"""The one table of add-ons: what the core, the commands and the plugin look for in packages that they do not import.

Whatever is not installed is left out: a task runs without any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

_COMMANDS = (
    *(f"spark_lineage.cli.{name}" for name in ("merge", "archive", "atlas", "config", "doctor")),
    "spark_lineage.supervision.command",
    "spark_lineage.cli.outbox",
    "spark_lineage.receiver.command",
    *(f"spark_lineage.cli.{name}" for name in ("replay", "warm")),
)
_PARTS: Mapping[str, str] = {
    "listeners": "spark_lineage.notify.notifications",
    "assets": "spark_lineage.notify.assets",
    "tab": "spark_lineage.view",
    "tab's apps": "spark_lineage.view.app",
}


def part(name: str) -> Any | None:
    """Return the module that the table has under a name; None where its package is not installed."""
    return _module(_PARTS[name])


def commands() -> Iterator[Any]:
    """Return the modules of the commands whose packages are installed, in the order of the help."""
    yield from filter(None, map(_module, _COMMANDS))


def _module(name: str) -> Any | None:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # What is not ours is a dependency that is missing.
        if not (error.name or "").startswith("spark_lineage."):
            raise
        return None
