"""Runs a task whose listeners write down what they are told."""

from __future__ import annotations

import json
from typing import Any

NDJSON = "spark_lineage.listeners.ndjson_listener.NdjsonListener"


def notified(bench: Any, **arguments: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return the outcome of a task, and what its listeners were told."""
    path = bench.root / "notified.ndjson"
    bench.connection["extra"] = {**bench.connection.get("extra", {}), "ndjson_listener_path": str(path)}
    outcome = bench.run(lineage_listeners=NDJSON, **arguments)
    return outcome, [json.loads(line) for line in path.read_text().splitlines()]
