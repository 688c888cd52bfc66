"""The fields of ``openlineage`` and ``atlas`` connections to the backends, for ``AIRFLOW_CONN_…``."""

from __future__ import annotations

import json
from typing import Any

from lineage_backends.atlas import Atlas
from lineage_backends.atlas_emulator import AtlasEmulator
from lineage_backends.data_rentgen import TOPIC, DataRentgen
from lineage_backends.http_backend import OpenLineageBackend
from lineage_backends.kafka import Kafka


def to_strict(backend: OpenLineageBackend) -> str:
    """To the OpenLineage backend over HTTP."""
    return _json(host=backend.url)


def to_marquez(backend: OpenLineageBackend) -> str:
    """To the same, as what it is: a Marquez."""
    return _json(host=backend.url, extra={"kind": "marquez"})


def to_kafka(broker: Kafka, topic: str = TOPIC) -> str:
    """To a topic, by default the one that Data.Rentgen reads."""
    extra = {"kind": "kafka", "topic": topic, "sasl_mechanism": "SCRAM-SHA-512", "compression": "zstd", "acks": "all"}
    return _json(host=broker.bootstrap, login=broker.user, password=broker.password, extra=extra)


def to_data_rentgen(rentgen: DataRentgen) -> str:
    """To Data.Rentgen's HTTP; a version that has none raises ``ValueError``."""
    if rentgen.http2kafka_url is None:
        raise ValueError(f"Data.Rentgen {rentgen.version} reads Kafka only")
    extra = {"endpoint": "v1/openlineage", "compression": "gzip"}
    return _json(host=rentgen.http2kafka_url, password=rentgen.personal_token, extra=extra)


def to_atlas(backend: Atlas | AtlasEmulator) -> str:
    """To the REST API of an Atlas."""
    return _json("atlas", host=backend.url, login=backend.user, password=backend.password)


def to_atlas_hooks(broker: Kafka) -> str:
    """To the topic from which an Atlas reads what its hooks say."""
    extra = {"kind": "kafka", "sasl_mechanism": "SCRAM-SHA-512"}
    return _json("atlas", host=broker.bootstrap, login=broker.user, password=broker.password, extra=extra)


def _json(conn_type: str = "openlineage", **fields: Any) -> str:
    return json.dumps({"conn_type": conn_type, **fields})
