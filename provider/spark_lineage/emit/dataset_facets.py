"""The OpenLineage facets of one dataset, in openlineage-python's classes; an empty facet is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeGuard

from openlineage.client.generated.catalog_dataset import CatalogDatasetFacet
from openlineage.client.generated.column_lineage_dataset import (
    ColumnLineageDatasetFacet,
    Fields,
    InputField,
    Transformation,
)
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
from openlineage.client.generated.datasource_dataset import DatasourceDatasetFacet
from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet
from openlineage.client.generated.lifecycle_state_change_dataset import (
    LifecycleStateChange,
    LifecycleStateChangeDatasetFacet,
    PreviousIdentifier,
)
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields
from openlineage.client.generated.storage_dataset import StorageDatasetFacet
from openlineage.client.generated.symlinks_dataset import Identifier, SymlinksDatasetFacet

from spark_lineage.emit.facets import PRODUCER, WRITES_KEY, WriteOperation, WritesOutputDatasetFacet
from spark_lineage.emit.openlineage_facets import HierarchyDatasetFacet, HierarchyLevel
from spark_lineage.naming.identity import dataset_type
from spark_lineage.secrets.redaction import redact
from spark_lineage.secrets.spelling import sent_name

# A namespace that is a scheme and nothing else (`file`), and one that is a URI.
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!//\Z).")

if TYPE_CHECKING:
    from openlineage.client.generated.base import DatasetFacet, InputDatasetFacet, OutputDatasetFacet

    from spark_lineage.merge.lineage import Catalog, ColumnLineage, DatasetLineage, SchemaField, Statistics, Symlink
    from spark_lineage.merge.lineage import InputField as MergedInputField
    from spark_lineage.merge.lineage import Transformation as MergedTransformation


def facets_of_input(dataset: DatasetLineage) -> dict[str, DatasetFacet]:
    """The facets that say what a dataset is: dataSource, schema, symlinks or hierarchy, storage, catalog, version."""
    facets: dict[str, DatasetFacet] = {}
    if dataset.has_data_source:
        facets["dataSource"] = data_source(sent_name(dataset.dataset).namespace)
    if dataset.schema:
        facets["schema"] = SchemaDatasetFacet(fields=schema_fields(dataset.schema), producer=PRODUCER)
    links = [link for link in dataset.symlinks if not _is_directory(link, dataset)]
    if links:
        identifiers = [_identifier(link) for link in links]
        facets["symlinks"] = SymlinksDatasetFacet(identifiers=identifiers, producer=PRODUCER)
    elif dataset.symlinks:
        facets["hierarchy"] = _hierarchy(dataset.symlinks[0])
    if dataset.storage is not None:
        storage = dataset.storage
        facets["storage"] = StorageDatasetFacet(storage.storage_layer, storage.file_format, producer=PRODUCER)
    if dataset.catalog is not None:
        facets["catalog"] = _catalog(dataset.catalog)
    if dataset.version is not None:
        facets["version"] = DatasetVersionDatasetFacet(dataset.version, producer=PRODUCER)
    return facets


def facets_of_output(dataset: DatasetLineage) -> dict[str, DatasetFacet]:
    """The facets of an input, and those that say how the task made it: columnLineage, lifecycleStateChange."""
    facets = facets_of_input(dataset)
    column_lineage = None if dataset.column_lineage is None else _column_lineage(dataset.column_lineage)
    if column_lineage is not None:
        facets["columnLineage"] = column_lineage
    # A state that the spec does not know would make the whole event invalid.
    change = LifecycleStateChange.__members__.get(dataset.lifecycle or "")
    if change is not None:
        facets["lifecycleStateChange"] = _lifecycle(dataset, change)
    return facets


def input_statistics(statistics: Statistics | None) -> dict[str, InputDatasetFacet]:
    """``inputStatistics``, or nothing where no number is known; a true 0 is a number."""
    if not _has_numbers(statistics):
        return {}
    facet = InputStatisticsInputDatasetFacet(
        rowCount=statistics.row_count, size=statistics.size, fileCount=statistics.file_count, producer=PRODUCER
    )
    return {"inputStatistics": facet}


def output_facets(dataset: DatasetLineage) -> dict[str, OutputDatasetFacet]:
    """``outputStatistics`` where a number is known, a true 0 too, and the kinds of write."""
    facets: dict[str, OutputDatasetFacet] = {}
    statistics = dataset.statistics
    if _has_numbers(statistics):
        facets["outputStatistics"] = OutputStatisticsOutputDatasetFacet(
            rowCount=statistics.row_count, size=statistics.size, fileCount=statistics.file_count, producer=PRODUCER
        )
    if dataset.writes:
        operations = [
            WriteOperation(each.operation, each.mode or None, each.is_partial, each.output_mode or None)
            for each in dataset.writes
        ]
        facets[WRITES_KEY] = WritesOutputDatasetFacet(operations=operations, producer=PRODUCER)
    return facets


def _has_numbers(statistics: Statistics | None) -> TypeGuard[Statistics]:
    return statistics is not None and (
        statistics.row_count is not None or statistics.size is not None or statistics.file_count is not None
    )


def schema_fields(fields: Sequence[SchemaField]) -> list[SchemaDatasetFacetFields]:
    """Columns as ``SchemaDatasetFacet.fields`` has them; those of a struct column are within it."""
    return [
        SchemaDatasetFacetFields(
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


def _hierarchy(link: Symlink) -> HierarchyDatasetFacet:
    database, _, table = sent_name(link.dataset).name.rpartition(".")
    levels = [("DATABASE", database), ("TABLE", table)]
    return HierarchyDatasetFacet(
        hierarchy=[HierarchyLevel(kind, name) for kind, name in levels if name], producer=PRODUCER
    )


def _identifier(link: Symlink) -> Identifier:
    sent = sent_name(link.dataset)
    return Identifier(sent.namespace, sent.name, link.type)


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
    previous = None if dataset.previous_name is None else sent_name(dataset.previous_name)
    return LifecycleStateChangeDatasetFacet(
        lifecycleStateChange=change,
        previousIdentifier=None
        if previous is None
        else PreviousIdentifier(name=previous.name, namespace=previous.namespace),
        producer=PRODUCER,
    )


def _column_lineage(lineage: ColumnLineage) -> ColumnLineageDatasetFacet | None:
    # Column lineage names the same few datasets and transformations over and over.
    sent, transformed = cache(sent_name), cache(_transformations)

    def input_fields(inputs: Iterable[MergedInputField]) -> list[InputField]:
        return [
            InputField(
                namespace=sent(source.dataset).namespace,
                name=sent(source.dataset).name,
                field=source.field,
                transformations=transformed(source.transformations),
            )
            for source in inputs
        ]

    # A column without inputFields is against the spec, and a 500 in Marquez.
    fields = {column: Fields(inputFields=input_fields(inputs)) for column, inputs in lineage.fields if inputs}
    if not fields and not lineage.dataset:
        return None
    return ColumnLineageDatasetFacet(fields=fields, dataset=input_fields(lineage.dataset) or None, producer=PRODUCER)


def _transformations(transformations: Sequence[MergedTransformation]) -> list[Transformation] | None:
    return [
        Transformation(
            type=each.type,
            subtype=each.subtype or None,
            description=redact(each.description) if each.description else None,
            masking=each.masking,
        )
        for each in transformations
    ] or None
