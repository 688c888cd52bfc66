"""Sends an event that the outbox could not keep: better once, without a second try, than never."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spark_lineage.deliver.outbox.kept_event import restored
from spark_lineage.launch.bounded_run import BoundedRun, counting_down

if TYPE_CHECKING:
    from openlineage.client.transport import Transport


def send_unkept(content: bytes, open_transport: Callable[[], Transport], seconds: float) -> None:
    """Send the JSON of an event, and wait for the answer no longer than this.

    :raises TimeoutError: when there was none by then; it may still be taken
    :raises Exception: what the transport raises
    """
    sending = BoundedRun(lambda: open_transport().emit(restored(content)), "spark-lineage-unkept")
    if not sending.wait(counting_down(seconds)):
        raise TimeoutError("the backend has not answered in time: this event may be lost")
