"""Tells the listener of the driver's two transports in a file of its own (``OPENLINEAGE_CONFIG``).

Spark properties cannot tell of a Kafka transport beside another one: the listener splits the keys of its producer at
their dots, cannot read what comes of it, and loses all events (``ArgumentParser`` of openlineage-spark 1.53, measured).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_lineage.launch.bounded_run import LINEAGE_FILES

LISTENER_VARIABLE = "OPENLINEAGE_CONFIG"


@dataclass(frozen=True)
class DriverTransport:
    """What the driver sends its raw events with: Spark properties, or what goes into the file; neither for nothing."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    file: Mapping[str, Any] | None = field(default=None, repr=False)


@LINEAGE_FILES.bounded
def write_listener_file(path: Path, events_file: str, transport: Mapping[str, Any]) -> None:
    """Write the configuration of a transport beside that of the file which lineage is collected from, private (0600).

    :raises OSError: when it cannot be written
    """
    transports = {"spark_lineage": {"type": "file", "location": events_file}, "user": transport}
    composite = {"type": "composite", "continueOnFailure": True, "transports": transports}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump({"transport": composite}, stream)
