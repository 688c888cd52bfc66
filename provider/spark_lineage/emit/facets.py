"""Our own run facets, as attrs classes in the manner of openlineage-python; schemas are in ``docs/facets``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar, Literal

import attr
from openlineage.client.generated.base import RunFacet
from openlineage.client.utils import RedactMixin

_REPOSITORY = "https://github.com/spark-lineage/airflow-provider-spark-lineage"
_SCHEMAS = f"{_REPOSITORY}/blob/main/docs/facets/1-0-0"


def _installed_version() -> str:
    try:
        return version("airflow-provider-spark-lineage")
    except PackageNotFoundError:
        # Run from a source tree or a zip that was never installed.
        return "main"


PRODUCER = f"{_REPOSITORY}/tree/{_installed_version()}"

APPLICATION_KEY = "sparkLineage_application"
ATTEMPTED_OUTPUTS_KEY = "sparkLineage_attemptedOutputs"
UNCONFIRMED_OUTPUTS_KEY = "sparkLineage_unconfirmedOutputs"
COLLECTION_KEY = "sparkLineage_collection"

APPLICATION_SCHEMA_URL = f"{_SCHEMAS}/SparkApplicationRunFacet.json#/$defs/SparkApplicationRunFacet"
ATTEMPTED_OUTPUTS_SCHEMA_URL = f"{_SCHEMAS}/AttemptedOutputsRunFacet.json#/$defs/AttemptedOutputsRunFacet"
UNCONFIRMED_OUTPUTS_SCHEMA_URL = f"{_SCHEMAS}/UnconfirmedOutputsRunFacet.json#/$defs/UnconfirmedOutputsRunFacet"
COLLECTION_SCHEMA_URL = f"{_SCHEMAS}/CollectionRunFacet.json#/$defs/CollectionRunFacet"


@attr.define
class SparkApplication(RedactMixin):
    """A Spark application of the task; what its events did not say is ``None`` and left out of the JSON."""

    runId: str  # noqa: N815  (the field names are the facet's JSON)
    namespace: str
    name: str
    applicationId: str | None = None  # noqa: N815
    sparkVersion: str | None = None  # noqa: N815
    openlineageAdapterVersion: str | None = None  # noqa: N815
    master: str | None = None
    deployMode: str | None = None  # noqa: N815
    uiUrl: str | None = None  # noqa: N815
    isEnded: bool = False  # noqa: N815

    _skip_redact: ClassVar[list[str]] = ["runId", "namespace", "name", "applicationId"]


@attr.define
class SparkApplicationRunFacet(RunFacet):
    """The Spark applications that the task ran."""

    applications: list[SparkApplication] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return APPLICATION_SCHEMA_URL


@attr.define
class AttemptedOutput(RedactMixin):
    """A dataset that was to be written, and why nothing is left of it."""

    namespace: str
    name: str
    reason: Literal["failed", "unfinished", "not written"]

    _skip_redact: ClassVar[list[str]] = ["namespace", "name", "reason"]


@attr.define
class AttemptedOutputsRunFacet(RunFacet):
    """The writes that left nothing behind; what an earlier write had left may be an output of the run all the same."""

    outputs: list[AttemptedOutput] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return ATTEMPTED_OUTPUTS_SCHEMA_URL


@attr.define
class UnconfirmedOutput(RedactMixin):
    """An output of the run whose write reported success, but no statistics."""

    namespace: str
    name: str

    _skip_redact: ClassVar[list[str]] = ["namespace", "name"]


@attr.define
class UnconfirmedOutputsRunFacet(RunFacet):
    """The outputs of the run that may in truth not have been written."""

    outputs: list[UnconfirmedOutput] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return UNCONFIRMED_OUTPUTS_SCHEMA_URL


@attr.define
class CollectionRunFacet(RunFacet):
    """What the lineage was made from: lines read as events and set aside, distinct Spark runs merged."""

    linesRead: int = 0  # noqa: N815
    linesSetAside: int = 0  # noqa: N815
    runs: int = 0
    setAside: dict[str, int] = attr.field(factory=dict)  # noqa: N815

    _additional_skip_redact: ClassVar[list[str]] = ["linesRead", "linesSetAside", "runs", "setAside"]

    @staticmethod
    def _get_schema() -> str:
        return COLLECTION_SCHEMA_URL
