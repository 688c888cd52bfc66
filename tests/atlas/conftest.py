"""An Atlas for the tests: the one of ``ATLAS_URL``, else the emulator."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from atlas_events import Atlas

from spark_lineage.atlas.transport import AtlasConfig, AtlasTransport


@pytest.fixture
def job() -> str:
    """The name of a task that no other test has."""
    return f"dag_{uuid.uuid4().hex[:8]}.task"


@pytest.fixture
def sender(atlas: Atlas, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., AtlasTransport]]:
    """Makes transports of a connection with this extra."""
    made: list[AtlasTransport] = []
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR", str(tmp_path))

    def make(**extra: Any) -> AtlasTransport:
        name, password = atlas.login
        host = atlas.kafka if extra.get("kind") == "kafka" else atlas.url
        if host == atlas.kafka:
            name = password = ""
        connection = {"conn_type": "atlas", "host": host, "login": name, "password": password, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_ATLAS", json.dumps(connection))
        made.append(AtlasTransport(AtlasConfig("atlas")))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def atlas() -> Atlas:
    parts = urlsplit(os.environ["ATLAS_URL"])
    return Atlas(
        f"http://{parts.hostname}:{parts.port}",
        (parts.username or "", parts.password or ""),
        os.environ.get("ATLAS_KAFKA", ""),
    )
