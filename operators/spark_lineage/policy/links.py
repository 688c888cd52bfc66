"""The links of Spark tasks in the plugin: servers of Airflow 3 find them by the class of an operator, and run them.

For each link of the class itself Airflow would push an XCom, even an empty one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import attrs
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

from spark_lineage.policy import _ASKED_FOR, _KINDS, _OURS, _STOCK
from spark_lineage.policy import __name__ as _policy
from spark_lineage.task.links import LINKS, SparkLink

# What the Spark provider derives from its own operators.
_DERIVED = (
    (f"{_STOCK}.spark_jdbc", "SparkJDBCOperator"),
    ("airflow.providers.apache.spark.decorators.pyspark", "_PySparkDecoratedOperator"),
)


@attrs.frozen
class PluginLink(SparkLink):
    """A link of our operators, and with the policy of those that it replaces; a user's subclass has none."""

    @property
    def operators(self) -> list[Any]:  # type: ignore[override]
        """Names in place of classes, whose providers may be missing: Airflow compares nothing else."""
        return [SimpleNamespace(__module__=module, __name__=name) for module, name in _operators()]


def _operators() -> Iterator[tuple[str, str]]:
    for module, name, _ in _KINDS + _ASKED_FOR:
        yield f"{_OURS}.lineage_{module.rpartition('.')[2]}", f"Lineage{name}"
    local = vars(sys.modules.get("airflow_local_settings", object)).values()
    if any(_policy in (getattr(one, "__module__", ""), getattr(one, "__name__", "")) for one in local):
        yield from (kind[:2] for kind in _KINDS)
        yield from _DERIVED


def operator_extra_links() -> list[PluginLink]:
    """Return the links for the plugin; in Airflow 2, which fails on those of a mapped task, the class has them."""
    return [PluginLink(link.name) for link in LINKS] if AIRFLOW_V_3_0_PLUS else []
