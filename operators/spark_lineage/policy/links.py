"""The links of Spark tasks in the plugin: servers of Airflow 3 find them by the class of an operator, and run them.

A link of the class itself would be an XCom for each, which Airflow pushes even when it is empty.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import attrs

from spark_lineage.policy import _ASKED_FOR, _KINDS, _OURS
from spark_lineage.task.links import LINKS, SparkLink


def _named(module: str, name: str) -> SimpleNamespace:
    return SimpleNamespace(__module__=module, __name__=name)


@attrs.frozen
class PluginLink(SparkLink):
    """A link of our operators, and of those stock operators that the policy replaces; a user's subclass has none."""

    # Airflow compares names; the classes themselves need their providers.
    operators: ClassVar[Any] = (
        *(_named(f"{_OURS}.lineage_{of.rpartition('.')[2]}", f"Lineage{name}") for of, name, _ in _KINDS + _ASKED_FOR),
        *(_named(of, name) for of, name, _ in _KINDS),
    )


def operator_extra_links() -> list[PluginLink]:
    """Return the links for the plugin."""
    return [PluginLink(link.name) for link in LINKS]
