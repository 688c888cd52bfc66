"""The Atlas emulator answers what the real Atlas is recorded to answer; with ``ATLAS_URL`` the real one is asked again.

``ATLAS_URL=http://user:password@host:port`` names it, ``ATLAS_KAFKA=host:port`` the Kafka that it reads its hooks from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from lineage_backends.atlas import atlas
from lineage_backends.atlas_emulator import AtlasEmulator, atlas_emulator
from lineage_backends.atlas_recording import Conversation
from lineage_backends.kafka import Kafka, kafka

pytestmark = [pytest.mark.shares("kafka"), pytest.mark.truth]

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


@pytest.fixture(scope="module")
def emulator(kafka: Kafka) -> Iterator[AtlasEmulator]:
    with atlas_emulator(kafka) as running:
        yield running


@pytest.fixture
def conversation(request: pytest.FixtureRequest) -> Conversation:
    """With the Atlas that the environment names, else with the emulator."""
    if (given := os.environ.get("ATLAS_URL")) is not None:
        url = urlsplit(given)
        login = (url.username or "admin", url.password or "admin")
        return Conversation(f"http://{url.hostname}:{url.port}", login, os.environ.get("ATLAS_KAFKA"))
    emulator: AtlasEmulator = request.getfixturevalue("emulator")
    broker: Kafka = request.getfixturevalue("kafka")
    return Conversation(emulator.url, (emulator.user, emulator.password), broker.open_bootstrap)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_answers_as_recorded(recorded: Path, conversation: Conversation) -> None:
    steps = json.loads(recorded.read_text())
    if conversation.hooks is None and any("hook" in step for step in steps):
        pytest.skip("ATLAS_KAFKA does not say from where Atlas reads its hooks.")
    assert list(_differences(steps, conversation)) == []


def check_the_real_one_answers_as_recorded() -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(kafka())
        real = stack.enter_context(atlas(broker))
        for recorded in RECORDED:
            conversation = Conversation(real.url, (real.user, real.password), broker.open_bootstrap)
            assert list(_differences(json.loads(recorded.read_text()), conversation)) == []


# It takes minutes to begin: it is asked by whoever wants it.
if os.environ.get("SPARK_LINEAGE_ATLAS") == "real":
    test_the_real_one_answers_as_recorded = check_the_real_one_answers_as_recorded


def test_the_page_shows_the_lineage_around_an_entity(emulator: AtlasEmulator) -> None:
    def entity(kind: str, name: str, **attributes: Any) -> dict[str, Any]:
        return {"typeName": kind, "guid": f"-{name}", "attributes": {"qualifiedName": name, "name": name, **attributes}}

    given = [entity("spark_table", "bronze"), entity("spark_table", "silver")]
    given.append(entity("spark_column", "silver.id", type="bigint", table={"guid": "-silver"}))
    given.append(entity("spark_process", "job", inputs=[{"guid": "-bronze"}], outputs=[{"guid": "-silver"}]))
    emulator.graph.post(given, "somebody")
    login = (emulator.user, emulator.password)
    listed = requests.get(emulator.url, auth=login, timeout=10).text
    assert all(name in listed for name in ("bronze", "silver", "job"))
    silver = emulator.graph.named("spark_table", {"qualifiedName": "silver"})
    shown = requests.get(emulator.url, params={"guid": silver.guid}, auth=login, timeout=10).text
    assert shown.index("bronze") < shown.index(">job<") < shown.rindex("<small>silver.id</small>")
    assert requests.get(emulator.url, timeout=10).status_code == 401


def _differences(steps: list[dict[str, Any]], conversation: Conversation) -> Iterator[tuple[str, Any, Any]]:
    for step, came in conversation.hold(steps):
        recorded = {key: step[key] for key in ("status", "answer") if key in step}
        if came != recorded:
            yield f"{step.get('why', '')}: {step.get('ask', 'hook')}", recorded, came
