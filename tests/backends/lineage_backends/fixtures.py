"""The backends as fixtures; a real server starts with the first test that asks for it, and ends with the last test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from lineage_backends.atlas_emulator import AtlasEmulator
from lineage_backends.atlas_emulator import atlas_emulator as run_atlas_emulator
from lineage_backends.certificates import Certificates, make_certificates
from lineage_backends.data_rentgen import DataRentgen
from lineage_backends.data_rentgen import data_rentgen as run_data_rentgen
from lineage_backends.hadoop import Hadoop
from lineage_backends.hadoop import hadoop as run_hadoop
from lineage_backends.http_backend import OpenLineageBackend
from lineage_backends.http_backend import openlineage_backend as run_openlineage_backend
from lineage_backends.kafka import Kafka
from lineage_backends.kafka import kafka as run_kafka
from lineage_backends.kubernetes import Kubernetes
from lineage_backends.kubernetes import kubernetes as run_kubernetes
from lineage_backends.postgresql import PostgreSql
from lineage_backends.postgresql import postgresql as run_postgresql
from lineage_backends.processes import NotInstalledError

Backend = TypeVar("Backend")


@pytest.fixture
def openlineage_backend() -> Iterator[OpenLineageBackend]:
    """A strict OpenLineage backend over HTTP, new for every test."""
    with run_openlineage_backend() as backend:
        yield backend


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """For ``openlineage_backend(certificates=…)`` of ``lineage_backends.http_backend``."""
    directory: Path = tmp_path_factory.mktemp("certificates")
    return make_certificates(directory)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A Kafka broker, empty but for the topics that tests make."""
    with or_skip(run_kafka()) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSql]:
    """A PostgreSQL server."""
    with or_skip(run_postgresql()) as server:
        yield server


@pytest.fixture(scope="session")
def data_rentgen(postgresql: PostgreSql, kafka: Kafka) -> Iterator[DataRentgen]:
    """A Data.Rentgen that reads the topic ``input.runs`` of ``kafka``."""
    with or_skip(run_data_rentgen(postgresql, kafka)) as rentgen:
        yield rentgen


@pytest.fixture
def atlas_emulator() -> Iterator[AtlasEmulator]:
    """An Atlas in memory, new for every test; ``atlas_emulator.hooks.take`` takes what else comes over Kafka."""
    with or_skip(run_atlas_emulator()) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def hadoop() -> Iterator[Hadoop]:
    """A YARN that runs programs, and an HDFS, empty but for what tests write."""
    with or_skip(run_hadoop()) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Kubernetes]:
    """A Kubernetes whose pods are processes; the first time its servers are built, which takes minutes."""
    with or_skip(run_kubernetes()) as cluster:
        yield cluster


@contextmanager
def or_skip(backend: AbstractContextManager[Backend]) -> Iterator[Backend]:
    """Run a backend; a test is skipped where it is not installed."""
    try:
        running = backend.__enter__()
    except NotInstalledError as error:
        pytest.skip(str(error))
    try:
        yield running
    finally:
        backend.__exit__(None, None, None)
