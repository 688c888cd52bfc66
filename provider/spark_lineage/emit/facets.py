"""Our own facets, as attrs classes in the manner of openlineage-python; schemas are in ``docs/facets``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, ClassVar, Literal

import attr
from openlineage.client.generated.base import JobFacet, OutputDatasetFacet, RunFacet
from openlineage.client.utils import RedactMixin

if TYPE_CHECKING:
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields

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
JOB_KEY = "sparkLineage_job"
ATTEMPTED_OUTPUTS_KEY = "sparkLineage_attemptedOutputs"
UNCONFIRMED_OUTPUTS_KEY = "sparkLineage_unconfirmedOutputs"
COLLECTION_KEY = "sparkLineage_collection"
REDUCED_KEY = "sparkLineage_reduced"
WRITES_KEY = "sparkLineage_writes"
CATALOG_CHANGES_KEY = "sparkLineage_catalogChanges"
UNKNOWN_DATASETS_KEY = "sparkLineage_unknownDatasets"
UNREAD_PLANS_KEY = "sparkLineage_unreadPlans"


class OwnSchema:
    """Names the schema of a facet in ``docs/facets``, which is called as its class."""

    __slots__ = ()

    @classmethod
    def _get_schema(cls) -> str:
        return f"{_SCHEMAS}/{cls.__name__}.json#/$defs/{cls.__name__}"


@attr.define
class SparkJobFacet(OwnSchema, JobFacet):
    """What the OpenLineage provider would overwrite on the job of a task: what it processes, its own tags, its name."""

    processingType: Literal["BATCH", "STREAMING"] = "BATCH"  # noqa: N815  (the field names are the facet's JSON)
    tags: dict[str, str] = attr.field(factory=dict)
    isMapIndexInName: bool = False  # noqa: N815

    _additional_skip_redact: ClassVar[list[str]] = ["processingType", "isMapIndexInName"]


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
class SparkApplicationRunFacet(OwnSchema, RunFacet):
    """The Spark applications that the task ran."""

    applications: list[SparkApplication] = attr.field(factory=list)


@attr.define
class AttemptedOutput(RedactMixin):
    """A dataset that was to be written, and why nothing is left of it."""

    namespace: str
    name: str
    reason: Literal["failed", "unfinished", "not written"]

    _skip_redact: ClassVar[list[str]] = ["namespace", "name", "reason"]


@attr.define
class AttemptedOutputsRunFacet(OwnSchema, RunFacet):
    """The writes that left nothing behind. What an earlier write of the run left is an output of it, and not here."""

    outputs: list[AttemptedOutput] = attr.field(factory=list)


@attr.define
class UnconfirmedOutput(RedactMixin):
    """An output of the run whose write reported success, but no statistics."""

    namespace: str
    name: str

    _skip_redact: ClassVar[list[str]] = ["namespace", "name"]


@attr.define
class UnconfirmedOutputsRunFacet(OwnSchema, RunFacet):
    """The outputs of the run that may in truth not have been written."""

    outputs: list[UnconfirmedOutput] = attr.field(factory=list)


@attr.define
class CollectionRunFacet(OwnSchema, RunFacet):
    """What the lineage was made from: lines read as events and set aside, distinct Spark runs merged."""

    linesRead: int = 0  # noqa: N815
    linesSetAside: int = 0  # noqa: N815
    runs: int = 0
    setAside: dict[str, int] = attr.field(factory=dict)  # noqa: N815

    _additional_skip_redact: ClassVar[list[str]] = ["linesRead", "linesSetAside", "runs", "setAside"]


@attr.define
class ReducedDataset(RedactMixin):
    """A dataset of the run, of which a detail was left out; ``columnCount`` of its columns where not of all."""

    namespace: str
    name: str
    columnCount: int | None = None  # noqa: N815

    _skip_redact: ClassVar[list[str]] = ["namespace", "name", "columnCount"]


@attr.define
class LeftOut(RedactMixin):
    """A detail that was left out, the bytes that this saved, and of how many datasets; the first of them are named."""

    detail: str
    bytes: int
    datasetCount: int  # noqa: N815
    datasets: list[ReducedDataset] = attr.field(factory=list)

    _skip_redact: ClassVar[list[str]] = ["detail", "bytes", "datasetCount"]


@attr.define
class ReducedRunFacet(OwnSchema, RunFacet):
    """What was left out of an event over the size limit, in the order in which it was; no dataset ever is."""

    limitBytes: int = 0  # noqa: N815
    fullBytes: int = 0  # noqa: N815
    isOverLimit: bool = False  # noqa: N815
    leftOut: list[LeftOut] = attr.field(factory=list)  # noqa: N815

    _additional_skip_redact: ClassVar[list[str]] = ["limitBytes", "fullBytes", "isOverLimit"]


@attr.define
class WriteOperation(RedactMixin):
    """A kind of write, with Spark's save mode and the output mode of a stream where they are known."""

    operation: Literal["INSERT", "OVERWRITE", "UPDATE", "DELETE", "MERGE", "TRUNCATE"]
    mode: str | None = None
    isPartial: bool = False  # noqa: N815
    outputMode: str | None = None  # noqa: N815

    _skip_redact: ClassVar[list[str]] = ["operation", "mode", "isPartial", "outputMode"]


@attr.define
class WritesOutputDatasetFacet(OwnSchema, OutputDatasetFacet):
    """The distinct kinds of write that made the output what the run left behind, in order."""

    operations: list[WriteOperation] = attr.field(factory=list)


@attr.define
class ColumnChange(RedactMixin):
    """A column before and after: ``old`` is ``None`` for an added one, ``new`` for a dropped one."""

    old: SchemaDatasetFacetFields | None = None
    new: SchemaDatasetFacetFields | None = None


@attr.define
class CatalogChange(RedactMixin):
    """One change of a table, view or database; what is unknown is ``None`` and left out of the JSON."""

    change: Literal["CREATE", "ALTER", "RENAME", "TRUNCATE", "OVERWRITE", "DROP"]
    objectType: Literal["TABLE", "VIEW", "DATABASE"]  # noqa: N815
    objectName: str  # noqa: N815
    namespace: str
    name: str
    time: str
    isCertain: bool = True  # noqa: N815
    isIgnored: bool | None = None  # noqa: N815
    previousObjectName: str | None = None  # noqa: N815
    columns: list[ColumnChange] | None = None
    schema: list[SchemaDatasetFacetFields] | None = None
    properties: dict[str, str] | None = None
    catalog: str | None = None
    database: str | None = None
    partitionedBy: list[str] | None = None  # noqa: N815

    _skip_redact: ClassVar[list[str]] = [
        "change", "objectType", "objectName", "namespace", "name", "time", "isCertain", "isIgnored",
        "previousObjectName", "catalog", "database", "partitionedBy",
    ]  # fmt: skip


@attr.define
class CatalogChangesRunFacet(OwnSchema, RunFacet):
    """What the run did to catalogs, in the order in which it happened."""

    changes: list[CatalogChange] = attr.field(factory=list)


@attr.define
class UnknownCommand(RedactMixin):
    """A command that wrote somewhere, and how often it ran."""

    command: str
    count: int

    _skip_redact: ClassVar[list[str]] = ["command", "count"]


@attr.define
class UnknownDatasetsRunFacet(OwnSchema, RunFacet):
    """The commands of which it is unknown what they wrote: there may be more outputs than the event names."""

    commands: list[UnknownCommand] = attr.field(factory=list)


@attr.define
class UnreadPlanPart(RedactMixin):
    """An operator or command that no rule reads, or why a plan was not read, and in how many SQL executions."""

    name: str
    count: int

    _skip_redact: ClassVar[list[str]] = ["name", "count"]


@attr.define
class UnreadPlansRunFacet(OwnSchema, RunFacet):
    """What was not understood of Spark's plans: columns that go through it have edges of the kind UNKNOWN, or none."""

    parts: list[UnreadPlanPart] = attr.field(factory=list)
