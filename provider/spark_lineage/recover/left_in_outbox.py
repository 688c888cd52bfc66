"""Has delivered what waits in the outboxes of a server's host: where no task runs, nobody else would."""

from __future__ import annotations

import time
from contextlib import closing

from msgspec import Struct

from spark_lineage.deliver.outbox.database import FILE
from spark_lineage.deliver.outbox.outbox import Outbox, default_directory, flush

_SECONDS = 30.0


class LeftInOutbox(Struct, frozen=True, tag=True):
    """Events that waited at a moment (seconds since the epoch)."""

    seen_at: float

    def send(self) -> None:
        """Send them, as far as the backends take them."""
        flush(seconds=_SECONDS)


def left_in_outbox() -> list[LeftInOutbox]:
    """Look, without sending anything."""
    directory = default_directory()
    if not (directory / FILE).exists():
        return []
    with closing(Outbox(directory)) as outbox:
        is_left = any(one.waiting for one in outbox.destinations())
    return [LeftInOutbox(time.time())] if is_left else []
