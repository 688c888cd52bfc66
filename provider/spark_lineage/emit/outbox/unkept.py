"""Sends an event that the outbox could not keep: better once, without a second try, than never."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from spark_lineage.emit.outbox.kept_event import restored

if TYPE_CHECKING:
    from openlineage.client.transport import Transport


def send_unkept(content: bytes, open_transport: Callable[[], Transport], seconds: float) -> None:
    """Send the JSON of an event, and wait for the answer no longer than this.

    :raises TimeoutError: when there was none by then; it may still be taken
    :raises Exception: what the transport raises
    """
    errors: list[Exception] = []

    def send() -> None:
        try:
            open_transport().emit(restored(content))
        except Exception as error:
            errors.append(error)

    sending = threading.Thread(target=send, name="spark-lineage-unkept", daemon=True)
    sending.start()
    sending.join(seconds)
    if errors:
        raise errors[0]
    if sending.is_alive():
        raise TimeoutError("the backend has not answered in time: this event may be lost")
