"""Our own facets (schemas are in ``docs/facets``), and OpenLineage's that older clients of Python do not have."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Literal

import attr
from openlineage.client.generated.base import DatasetFacet, JobFacet, OutputDatasetFacet, RunFacet

_REPOSITORY = "https://github.com/spark-lineage/airflow-provider-spark-lineage"


def _installed_version() -> str:
    try:
        return version("airflow-provider-spark-lineage")
    except PackageNotFoundError:
        # Run from a source tree or a zip that was never installed.
        return "main"


PRODUCER = f"{_REPOSITORY}/tree/{_installed_version()}"
_OURS = f"{_REPOSITORY}/blob/main/docs/facets/1-0-0/{{0}}.json#/$defs/{{0}}"
_SPEC = "https://openlineage.io/spec/facets/1-0-0"

APPLICATION_KEY = "sparkLineage_application"
JOB_KEY = "sparkLineage_job"
ATTEMPTED_OUTPUTS_KEY = "sparkLineage_attemptedOutputs"
UNCONFIRMED_OUTPUTS_KEY = "sparkLineage_unconfirmedOutputs"
COLLECTION_KEY = "sparkLineage_collection"
REDUCED_KEY = "sparkLineage_reduced"
STATUS_KEY = "sparkLineage_status"
WRITES_KEY = "sparkLineage_writes"
CATALOG_CHANGES_KEY = "sparkLineage_catalogChanges"
UNKNOWN_DATASETS_KEY = "sparkLineage_unknownDatasets"
UNREAD_PLANS_KEY = "sparkLineage_unreadPlans"
HIERARCHY_KEY = "hierarchy"
LINEAGE_KEY = "lineage"

# Name and kind of the class of each facet, and its schema where that is not ours. The client has ``hierarchy`` from
# 1.45 and ``lineage`` from 1.52 on.
_CLASSES: dict[str, tuple[str, type[Any], str]] = {
    APPLICATION_KEY: ("SparkApplicationRunFacet", RunFacet, _OURS),
    ATTEMPTED_OUTPUTS_KEY: ("AttemptedOutputsRunFacet", RunFacet, _OURS),
    UNCONFIRMED_OUTPUTS_KEY: ("UnconfirmedOutputsRunFacet", RunFacet, _OURS),
    COLLECTION_KEY: ("CollectionRunFacet", RunFacet, _OURS),
    REDUCED_KEY: ("ReducedRunFacet", RunFacet, _OURS),
    STATUS_KEY: ("StatusRunFacet", RunFacet, _OURS),
    WRITES_KEY: ("WritesOutputDatasetFacet", OutputDatasetFacet, _OURS),
    CATALOG_CHANGES_KEY: ("CatalogChangesRunFacet", RunFacet, _OURS),
    UNKNOWN_DATASETS_KEY: ("UnknownDatasetsRunFacet", RunFacet, _OURS),
    UNREAD_PLANS_KEY: ("UnreadPlansRunFacet", RunFacet, _OURS),
    HIERARCHY_KEY: ("HierarchyDatasetFacet", DatasetFacet, f"{_SPEC}/{{0}}.json#/$defs/{{0}}"),
    LINEAGE_KEY: ("LineageJobFacet", JobFacet, f"{_SPEC}/LineageFacet.json#/$defs/{{0}}"),
}
# Airflow's own redactor looks at these texts again. All else is names, which agree with those of datasets, and numbers.
_TEXTS = frozenset({"transitions", "error", "uiUrl", "historyUrl", "logsUrl"})


def facet(key: str, **fields: Any) -> Any:
    """Return the facet of a key; values are JSON without nulls, but for fields that are None and left out."""
    return _facet_class(key, tuple(fields))(**fields, producer=PRODUCER)


def known(**fields: Any) -> dict[str, Any]:
    """Return the fields of a JSON object whose values are known: those that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


@cache
def _facet_class(key: str, fields: tuple[str, ...]) -> type[Any]:
    name, base, schema = _CLASSES[key]
    made: Any = attr.make_class(name, {field: attr.field(kw_only=True) for field in fields}, bases=(base,))
    made._get_schema = staticmethod(lambda: schema.format(name))  # noqa: SLF001  (openlineage-python asks for it)
    made._additional_skip_redact = [field for field in fields if field not in _TEXTS]  # noqa: SLF001
    return made  # type: ignore[no-any-return]


@attr.define
class SparkJobFacet(JobFacet):
    """What the OpenLineage provider would overwrite on the job of a task: what it processes, its own tags, its name."""

    processingType: Literal["BATCH", "STREAMING"] = "BATCH"  # noqa: N815  (the field names are the facet's JSON)
    tags: dict[str, str] = attr.field(factory=dict)
    isMapIndexInName: bool = False  # noqa: N815

    _additional_skip_redact: ClassVar[list[str]] = ["processingType", "isMapIndexInName"]

    @staticmethod
    def _get_schema() -> str:
        return _OURS.format("SparkJobFacet")
