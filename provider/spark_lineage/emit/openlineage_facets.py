"""Facets of OpenLineage that its Python client has from 1.45 (``hierarchy``) and 1.52 (``lineage``) on only."""

from __future__ import annotations

from typing import ClassVar, Literal

import attr
from openlineage.client.generated.base import DatasetFacet, JobFacet
from openlineage.client.utils import RedactMixin

_SPEC = "https://openlineage.io/spec/facets/1-0-0"


@attr.define
class HierarchyLevel(RedactMixin):
    """A level of a dataset's name: the database, or the table in it."""

    type: str
    name: str


@attr.define
class HierarchyDatasetFacet(DatasetFacet):
    """The levels of a dataset's name, from the highest to the lowest."""

    hierarchy: list[HierarchyLevel]

    @staticmethod
    def _get_schema() -> str:
        return f"{_SPEC}/HierarchyDatasetFacet.json#/$defs/HierarchyDatasetFacet"


@attr.define
class LineageInput(RedactMixin):
    """A dataset that feeds another."""

    namespace: str
    name: str
    type: Literal["DATASET"] = "DATASET"

    _skip_redact: ClassVar[list[str]] = ["namespace", "name", "type"]


@attr.define
class LineageEntry(RedactMixin):
    """A dataset, and those that feed it."""

    namespace: str
    name: str
    inputs: list[LineageInput]
    type: Literal["DATASET"] = "DATASET"

    _skip_redact: ClassVar[list[str]] = ["namespace", "name", "type"]


@attr.define
class LineageJobFacet(JobFacet):
    """What fed each dataset that a run wrote."""

    entries: list[LineageEntry]

    @staticmethod
    def _get_schema() -> str:
        return f"{_SPEC}/LineageFacet.json#/$defs/LineageJobFacet"
