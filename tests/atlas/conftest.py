"""An Atlas for the tests: the emulator, with ``SPARK_LINEAGE_ATLAS=real`` the real one too."""

from __future__ import annotations

import copy
import json
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from atlas_events import Atlas
from lineage_backends.atlas import atlas as real_atlas
from lineage_backends.atlas_emulator import atlas_emulator
from lineage_backends.kafka import Kafka, kafka

from spark_lineage.atlas.sender import AtlasSender


@pytest.fixture
def job() -> str:
    """The name of a task that no other test has."""
    return f"dag_{uuid.uuid4().hex[:8]}.task"


@pytest.fixture
def sender(atlas: Atlas, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., AtlasSender]]:
    """Makes senders of a connection with this extra."""
    made: list[AtlasSender] = []
    monkeypatch.setenv("AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR", str(tmp_path))

    def make(where: Atlas = atlas, **extra: Any) -> AtlasSender:
        name, password = where.login
        host = where.kafka if extra.get("kind") == "kafka" else where.url
        if extra.get("kind") == "kafka":
            name = password = ""
        connection = {"conn_type": "atlas", "host": host, "login": name, "password": password, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_ATLAS", json.dumps(connection))
        made.append(AtlasSender("atlas"))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def atlas_emulated(kafka: Kafka) -> Iterator[Atlas]:
    with atlas_emulator(kafka) as found:
        yield Atlas(found.url, (found.user, found.password), kafka.open_bootstrap)


@pytest.fixture(scope="session")
def atlas_real() -> Iterator[Atlas]:
    with kafka() as broker, real_atlas(broker) as found:
        yield Atlas(found.url, (found.user, found.password), broker.open_bootstrap)


# The real one takes minutes to begin: it is asked by whoever wants it.
@pytest.fixture(params=["emulated", *(["real"] if os.environ.get("SPARK_LINEAGE_ATLAS") == "real" else [])])
def atlas(request: pytest.FixtureRequest) -> Atlas:
    """Give the one of ``ATLAS_URL`` in the place of the emulator."""
    if request.param == "emulated" and (url := os.environ.get("ATLAS_URL")):
        parts = urlsplit(url)
        login = (parts.username or "", parts.password or "")
        return Atlas(f"http://{parts.hostname}:{parts.port}", login, os.environ.get("ATLAS_KAFKA", ""))
    # The login of a test that changes it is its own.
    return copy.copy(request.getfixturevalue(f"atlas_{request.param}"))
