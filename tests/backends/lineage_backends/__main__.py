"""``make backends``: start every backend on free ports of the loopback, say how to reach it, and stop all on Ctrl-C."""

# ruff: noqa: T201 (it talks to a person)

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

from lineage_backends.atlas import Atlas, atlas
from lineage_backends.atlas_emulator import AtlasEmulator, atlas_emulator
from lineage_backends.connections import to_atlas, to_atlas_hooks, to_data_rentgen, to_kafka, to_strict
from lineage_backends.data_rentgen import TOPIC, DataRentgen, data_rentgen
from lineage_backends.http_backend import OpenLineageBackend, openlineage_backend
from lineage_backends.kafka import Kafka, kafka
from lineage_backends.postgresql import postgresql
from lineage_backends.processes import BackendError


def main() -> int:
    """Run until Ctrl-C; gives the exit code: 1 when a backend does not start."""
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    try:
        with ExitStack() as stack:
            strict = stack.enter_context(openlineage_backend())
            print(
                "Starting PostgreSQL, Kafka, Data.Rentgen and Atlas; the first time fetches them, which takes minutes …"
            )
            database = stack.enter_context(postgresql())
            broker = stack.enter_context(kafka())
            rentgen = stack.enter_context(data_rentgen(database, broker))
            is_real = os.environ.get("SPARK_LINEAGE_ATLAS") == "real"
            catalog = stack.enter_context(atlas(broker) if is_real else atlas_emulator(broker))
            print("\n".join([*_lines(strict, broker, rentgen), *_lines_of_atlas(catalog, broker)]))
            print(f"PostgreSQL: {database.url('postgres')}\n\nCtrl-C stops them all.", flush=True)
            _tell(strict, is_over)
    except BackendError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _lines(strict: OpenLineageBackend, broker: Kafka, rentgen: DataRentgen) -> Iterator[str]:
    yield f"\nStrict OpenLineage backend: POST {strict.url}/api/v1/lineage"
    yield _export("STRICT", to_strict(strict))
    yield f"\nKafka: {broker.bootstrap} (SASL, {broker.user}), {broker.open_bootstrap} (open), topic {TOPIC}"
    yield _export("KAFKA", to_kafka(broker))
    yield f"\nData.Rentgen {rentgen.version}, which reads that topic: {rentgen.url}/docs (any login)"
    if rentgen.http2kafka_url is not None:
        yield f"It takes HTTP as well: POST {rentgen.http2kafka_url}/v1/openlineage"
        yield _export("DATA_RENTGEN", to_data_rentgen(rentgen))
    yield ""


def _lines_of_atlas(catalog: Atlas | AtlasEmulator, broker: Kafka) -> Iterator[str]:
    what = "Atlas 2.1.0" if isinstance(catalog, Atlas) else "Atlas, emulated"
    yield f"{what}: {catalog.url} ({catalog.user}, {catalog.password}), which reads the topic of its hooks as well"
    yield _export("ATLAS", to_atlas(catalog))
    yield _export("ATLAS_HOOKS", to_atlas_hooks(broker))
    yield ""


def _export(name: str, connection: str) -> str:
    return f"  export AIRFLOW_CONN_{name}={shlex.quote(connection)}"


def _tell(strict: OpenLineageBackend, is_over: threading.Event) -> None:
    """Print what the strict backend gets, until it is over."""
    told = 0
    while not is_over.wait(0.2):
        for received in strict.received[told:]:
            told += 1
            event = received.event if isinstance(received.event, dict) else {}
            job = event.get("job", {}).get("name", "?")
            at = datetime.fromtimestamp(received.at, UTC).strftime("%H:%M:%S")
            print(f"{at} {received.status} {event.get('eventType', '?')} {job} {received.reason}", flush=True)
    print(f"Stopping … ({time.strftime('%H:%M:%S')})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
