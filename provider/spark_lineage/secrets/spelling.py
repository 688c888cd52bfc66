"""How everything that is sent spells the names of datasets, and times."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from spark_lineage.naming.backend_names import safe_name
from spark_lineage.naming.identity import DatasetName
from spark_lineage.secrets.redaction import redact_dataset
from spark_lineage.secrets.registered_secrets import generation

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def sent_name(dataset: DatasetName) -> DatasetName:
    """The name of a dataset as every event has it: without secrets, and such that every backend can hold it."""
    return _sent_name(dataset, generation())


# Column lineage names the same few datasets over and over.
@lru_cache(maxsize=8192)
def _sent_name(dataset: DatasetName, _secrets: object) -> DatasetName:
    return safe_name(DatasetName(redact_dataset(dataset.namespace), redact_dataset(dataset.name)))


def without_controls(text: str) -> str:
    """Replace what no backend can hold: of control characters, all but tab and line end."""
    return _CONTROLS.sub("\ufffd", text)


def event_time(moment: datetime) -> str:
    """An aware time as ``RunEvent.eventTime`` has it: RFC 3339, in UTC, with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
