"""The OpenLineage facets of one dataset; an empty facet is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from openlineage.client.generated.catalog_dataset import CatalogDatasetFacet
from openlineage.client.generated.column_lineage_dataset import ColumnLineageDatasetFacet
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
from openlineage.client.generated.datasource_dataset import DatasourceDatasetFacet
from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet
from openlineage.client.generated.lifecycle_state_change_dataset import (
    LifecycleStateChange,
    LifecycleStateChangeDatasetFacet,
    PreviousIdentifier,
)
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet
from openlineage.client.generated.storage_dataset import StorageDatasetFacet
from openlineage.client.generated.symlinks_dataset import Identifier, SymlinksDatasetFacet

from spark_lineage.emit.facets import HIERARCHY_KEY, PRODUCER, WRITES_KEY, facet, known
from spark_lineage.naming.identity import dataset_type
from spark_lineage.secrets.redaction import redact
from spark_lineage.secrets.spelling import sent_name

if TYPE_CHECKING:
    from spark_lineage.merge.lineage import (
        Catalog,
        ColumnLineage,
        DatasetLineage,
        InputField,
        SchemaField,
        Statistics,
        Symlink,
        Transformation,
    )
    from spark_lineage.naming.identity import DatasetName

# A namespace that is a scheme and nothing else (`file`), and one that is a URI.
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!//\Z).")


def named(dataset: DatasetName) -> dict[str, str]:
    """Return namespace and name of a dataset as they are sent."""
    sent = sent_name(dataset)
    return {"namespace": sent.namespace, "name": sent.name}


def facets_of_input(dataset: DatasetLineage) -> dict[str, Any]:
    """The facets that say what a dataset is: dataSource, schema, symlinks or hierarchy, storage, catalog, version."""
    columns: list[Any] = schema_fields(dataset.schema)
    storage, links = dataset.storage, [link for link in dataset.symlinks if not _is_directory(link, dataset)]
    identifiers = [Identifier(**named(link.dataset), type=link.type) for link in links]
    return known(
        dataSource=data_source(sent_name(dataset.dataset).namespace) if dataset.has_data_source else None,
        schema=SchemaDatasetFacet(columns, producer=PRODUCER) if columns else None,
        symlinks=SymlinksDatasetFacet(identifiers, producer=PRODUCER) if links else None,
        hierarchy=_hierarchy(dataset.symlinks[0]) if dataset.symlinks and not links else None,
        storage=StorageDatasetFacet(storage.storage_layer, storage.file_format, producer=PRODUCER) if storage else None,
        catalog=_catalog(dataset.catalog) if dataset.catalog else None,
        version=DatasetVersionDatasetFacet(dataset.version, producer=PRODUCER) if dataset.version is not None else None,
    )


def facets_of_output(dataset: DatasetLineage) -> dict[str, Any]:
    """The facets of an input, and those that say how the task made it: columnLineage, lifecycleStateChange."""
    # A state that the spec does not know would make the whole event invalid.
    change = LifecycleStateChange.__members__.get(dataset.lifecycle or "")
    return facets_of_input(dataset) | known(
        columnLineage=_column_lineage(dataset.column_lineage) if dataset.column_lineage else None,
        lifecycleStateChange=None if change is None else _lifecycle(dataset, change),
    )


def input_statistics(statistics: Statistics | None) -> dict[str, Any]:
    """``inputStatistics``, or nothing where no number is known; a true 0 is a number."""
    numbers = _numbers(statistics)
    return {"inputStatistics": InputStatisticsInputDatasetFacet(**numbers, producer=PRODUCER)} if numbers else {}


def output_facets(dataset: DatasetLineage) -> dict[str, Any]:
    """``outputStatistics`` where a number is known, a true 0 too, and the kinds of write."""
    numbers = _numbers(dataset.statistics)
    writes = [
        known(
            operation=each.operation,
            mode=each.mode or None,
            isPartial=each.is_partial,
            outputMode=each.output_mode or None,
        )
        for each in dataset.writes
    ]
    statistics = OutputStatisticsOutputDatasetFacet(**numbers, producer=PRODUCER) if numbers else None
    return known(outputStatistics=statistics) | ({WRITES_KEY: facet(WRITES_KEY, operations=writes)} if writes else {})


def _numbers(statistics: Statistics | None) -> dict[str, int]:
    if statistics is None:
        return {}
    return known(rowCount=statistics.row_count, size=statistics.size, fileCount=statistics.file_count)


def schema_fields(fields: Sequence[SchemaField]) -> list[dict[str, Any]]:
    """Columns as ``SchemaDatasetFacet.fields`` has them; those of a struct column are within it."""
    return [
        known(
            name=field.name,
            type=field.type,
            description=None if field.description is None else redact(field.description),
            fields=schema_fields(field.fields) or None,
        )
        for field in fields
    ]


def data_source(namespace: str) -> DatasourceDatasetFacet:
    """Return where a dataset is, as a URI: Marquez answers 500 for its sources after a dataset without one."""
    if _BARE.fullmatch(namespace):
        uri = f"{namespace}:///"
    else:
        uri = namespace if _URI.match(namespace) else f"unknown://{namespace}"
    return DatasourceDatasetFacet(name=namespace, uri=uri, producer=PRODUCER)


def _is_directory(link: Symlink, dataset: DatasetLineage) -> bool:
    """Whether a table's name is in no catalog but Spark's own, for which the listener names the warehouse's directory.

    A backend would open a namespace for it in which nobody ever writes. Iceberg's Hadoop catalog is such a directory.
    """
    hints = (
        dataset.catalog.framework if dataset.catalog else None,
        dataset.storage.storage_layer if dataset.storage else None,
    )
    return dataset_type(link.dataset) == "table" and "iceberg" not in hints


def _hierarchy(link: Symlink) -> Any:
    database, _, table = sent_name(link.dataset).name.rpartition(".")
    levels = (("DATABASE", database), ("TABLE", table))
    return facet(HIERARCHY_KEY, hierarchy=[{"type": kind, "name": name} for kind, name in levels if name])


def _catalog(catalog: Catalog) -> CatalogDatasetFacet:
    return CatalogDatasetFacet(
        framework=catalog.framework,
        type=catalog.type,
        name=catalog.name,
        metadataUri=None if catalog.metadata_uri is None else redact(catalog.metadata_uri),
        warehouseUri=None if catalog.warehouse_uri is None else redact(catalog.warehouse_uri),
        source=catalog.source,
        catalogProperties=None,
        producer=PRODUCER,
    )


def _lifecycle(dataset: DatasetLineage, change: LifecycleStateChange) -> LifecycleStateChangeDatasetFacet:
    previous = None if dataset.previous_name is None else PreviousIdentifier(**named(dataset.previous_name))
    return LifecycleStateChangeDatasetFacet(lifecycleStateChange=change, previousIdentifier=previous, producer=PRODUCER)


class _ColumnLineage(ColumnLineageDatasetFacet):
    """That facet with plain objects in it, which are a hundred thousand; Airflow's redactor leaves them alone."""

    _additional_skip_redact: ClassVar[list[str]] = ["fields", "dataset"]


def _column_lineage(lineage: ColumnLineage) -> _ColumnLineage | None:
    # Column lineage names the same few datasets and transformations over and over.
    beginning, transformed = cache(named), cache(_transformations)

    def input_fields(edges: Iterable[InputField]) -> list[Any]:
        return [{**beginning(edge.dataset), "field": edge.field, **transformed(edge.transformations)} for edge in edges]

    # A column without inputFields is against the spec, and a 500 in Marquez.
    fields: Any = {column: {"inputFields": input_fields(edges)} for column, edges in lineage.fields if edges}
    if not fields and not lineage.dataset:
        return None
    return _ColumnLineage(fields=fields, dataset=input_fields(lineage.dataset) or None, producer=PRODUCER)


def _transformations(transformations: Sequence[Transformation]) -> dict[str, Any]:
    written = [
        known(
            type=each.type,
            subtype=each.subtype or None,
            description=redact(each.description) if each.description else None,
            masking=each.masking,
        )
        for each in transformations
    ]
    return {"transformations": written} if written else {}
