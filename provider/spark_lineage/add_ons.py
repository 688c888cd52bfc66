"""The one table of add-ons: what the core, the commands and the plugin look for in packages that they do not import.

Whatever is not installed is left out: a task runs without any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

_COMMANDS = (
    "spark_lineage.cli.merge",
    "spark_lineage.archive.command",
    "spark_lineage.atlas.command",
    "spark_lineage.doctor.init_command",
    "spark_lineage.doctor.config_command",
    "spark_lineage.doctor.command",
    "spark_lineage.doctor.report_command",
    "spark_lineage.coverage.command",
    "spark_lineage.supervision.command",
    "spark_lineage.cli.outbox",
    "spark_lineage.receiver.command",
    "spark_lineage.replay.command",
)
_PARTS: Mapping[str, str] = {
    "atlas": "spark_lineage.atlas.sender",
    "listeners": "spark_lineage.notify.notifications",
    "assets": "spark_lineage.notify.assets",
    "tab": "spark_lineage.view",
    "tab's apps": "spark_lineage.view.app",
    "coverage's apps": "spark_lineage.coverage.page",
    "operators' links": "spark_lineage.policy.links",
}


def part(name: str) -> Any | None:
    """Return the module that the table has under a name; None where a package of ours is missing for it."""
    try:
        return import_module(_PARTS.get(name, name))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("spark_lineage."):
            return None
        raise


def commands() -> Iterator[Any]:
    """Return the modules of the commands whose packages are installed, in the order of the help."""
    yield from filter(None, map(part, _COMMANDS))
