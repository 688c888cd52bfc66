"""The name of a dataset: what the rooms compare, sort and write by."""

from __future__ import annotations

from msgspec import Struct


class DatasetName(Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """The identity of a dataset: OpenLineage's ``namespace`` and ``name``."""

    namespace: str
    name: str
