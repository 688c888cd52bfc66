"""The task's changes of catalogs as a run facet, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_lineage.emit.dataset_facets import schema_fields
from spark_lineage.emit.facets import PRODUCER, CatalogChange, CatalogChangesRunFacet, ColumnChange
from spark_lineage.secrets.redaction import redact_dataset, redact_value
from spark_lineage.secrets.spelling import event_time, sent_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields

    from spark_lineage.merge.lineage import CatalogChange as MergedCatalogChange
    from spark_lineage.merge.lineage import SchemaField


def catalog_changes_facet(changes: Sequence[MergedCatalogChange]) -> CatalogChangesRunFacet:
    """The facet ``sparkLineage_catalogChanges``; values of secret properties, and secrets in comments, are masked."""
    return CatalogChangesRunFacet(changes=[_change(each) for each in changes], producer=PRODUCER)


def _change(change: MergedCatalogChange) -> CatalogChange:
    sent = sent_name(change.dataset)
    columns = [ColumnChange(_field(each.old), _field(each.new)) for each in change.columns]
    return CatalogChange(
        change=change.change,
        objectType=change.object_type,
        objectName=redact_dataset(change.name),
        namespace=sent.namespace,
        name=sent.name,
        time=event_time(change.time),
        isCertain=change.is_certain,
        isIgnored=change.is_ignored,
        previousObjectName=None if change.previous_name is None else redact_dataset(change.previous_name),
        columns=columns or None,
        schema=schema_fields(change.schema) or None,
        properties=redact_value(dict(change.properties)) or None,
        catalog=change.catalog or None,
        database=redact_dataset(change.database) or None,
        partitionedBy=list(change.partitioned_by) or None,
    )


def _field(field: SchemaField | None) -> SchemaDatasetFacetFields | None:
    return None if field is None else schema_fields((field,))[0]
