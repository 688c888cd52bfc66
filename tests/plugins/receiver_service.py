"""Runs a receiver of the listener's events in a thread, as the service of an installation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.receiver.service import Limits, Receiver


@contextmanager
def receiver_service(root: Path, secret: bytes, limits: Limits | None = None, **others: Any) -> Iterator[int]:
    """Receive on the loopback, with the files of the runs in a directory; yields the port.

    :param others: what ``server_of`` takes besides
    """
    pytest.importorskip("uvicorn")
    from spark_lineage.receiver.server import KeptFiles, bound, server_of

    server = server_of(Receiver(secret, KeptFiles(root, 30).file_of, limits), **others)
    listening = bound("127.0.0.1", [0])
    thread = threading.Thread(target=partial(server.run, sockets=[listening]))
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()
