"""What the listener names that is no dataset of its own (M10): schema reading, bookkeeping, and parts of others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from msgspec import structs

from spark_lineage.merge.observed import Observed, by_name, keep_edges
from spark_lineage.merge.state import LineageState, RunContent
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace

RDD_JOB = "RDD_JOB"
# Plans of Spark's schema inference for CSV and JSON, which reads files as lines of text.
_INFERENCE_PLANS = ("collect_limit", "deserialize_to_object")
# The RDD that reads the footers of Parquet and ORC files; no RDD of a program's own names files by it.
_FOOTER_RDD = "parallel_collection"
# Where Delta keeps its log, Structured Streaming that of a sink, and an archive of lineage what it has read.
_INTERNAL = frozenset({"_delta_log", "_spark_metadata", "_spark_lineage"})
# The catalogs through which Iceberg's rewrite_data_files writes the rows of a table anew, of 1.12 and before.
_COMPACTING = ("default_rewrite_catalog", "default_cache_iceberg")
_STAGE = re.compile(r"(?P<model>.+?)/stages/\d+_\w+_[0-9a-f]{12}(?:/.*)?")
# What the models of Spark ML keep beside their metadata.
_PART = re.compile(
    r"(?P<model>.+?)/(?:data|bestModel|estimator|evaluator|subModels|classifier|model_\d+|userFactors|itemFactors"
    r"|treesMetadata)(?:/.*)?"
)
# org.apache.iceberg.MetadataTableType
_METADATA_TABLE = re.compile(
    r"(?:all_)?(?:(?:data_|delete_)?files|entries|manifests)"
    r"|history|metadata_log_entries|snapshots|refs|partitions|position_deletes"
)
_NAMESPACE_AND_TABLE = 2


def is_compaction(content: RunContent) -> bool:
    """Whether a run only rearranges the files of a table: nothing is read from it, and nothing written."""
    return any(catalog in content.job_name for catalog in _COMPACTING)


def is_internal(name: DatasetName) -> bool:
    """Whether a path is the bookkeeping of a table."""
    return is_path_namespace(name.namespace) and not _INTERNAL.isdisjoint(name.name.split("/"))


def is_schema_reading(content: RunContent, read: Observed) -> bool:
    """Whether a run read this dataset only to learn its schema."""
    if content.outputs:
        return False
    if content.job_type == RDD_JOB:
        return _FOOTER_RDD in content.job_name
    is_lines = [(field.name, field.type) for field in read.schema] == [("value", "string")]
    is_inference = any(plan in content.job_name for plan in _INFERENCE_PLANS)
    return is_lines and is_inference and is_path_namespace(read.dataset.namespace)


def metadata_tables(observed: Iterable[Observed], real: Collection[DatasetName]) -> frozenset[DatasetName]:
    """Return Iceberg's metadata tables (``cat.db.t.snapshots``) among all datasets: reading one reads no row.

    The name does not tell ``db.t.files`` from a table ``files`` in a namespace ``db.t``: what is above is a table that
    the task knows, or at least no folder of other tables.

    :param real: those of ``real_tables``
    """
    tables: set[DatasetName] = set()
    alike: set[DatasetName] = set()
    for one in observed:
        names = [link.name.casefold().split(".") for link in one.tables]
        tables |= {one.dataset} if names else set()
        if any(len(parts) > _NAMESPACE_AND_TABLE and _METADATA_TABLE.fullmatch(parts[-1]) for parts in names):
            alike.add(one.dataset)
    folders = {_above(name) for name in tables - alike}
    return frozenset(
        name
        for name in alike
        if (_above(name) != name and _above(name) in tables) or (name not in real and _above(name) not in folders)
    )


def _above(name: DatasetName) -> DatasetName:
    return next(directories_above(name), name)


def real_tables(state: LineageState) -> set[DatasetName]:
    """Return what is a table unless another is above it: what the listener names, and what the log's commands write."""
    contents = {id(run.content): run.content for run in state.runs.values()}.values()
    listened = {one.dataset for content in contents for one in (*content.inputs, *content.outputs)}
    return listened.union(one.dataset for execution in state.executions.values() for one in execution.outputs)


def without(observed: Iterable[Observed], names: Collection[DatasetName]) -> tuple[Observed, ...]:
    """Return datasets without those of these names, and without the columns that come from them."""
    return tuple(keep_edges(one, lambda edge: edge[1] not in names) for one in observed if one.dataset not in names)


def model_directories(observed: Iterable[Observed]) -> frozenset[DatasetName]:
    """Return the directories of Spark ML's models, of all datasets that a task names."""
    paths = {one.dataset: one for one in observed if is_path_namespace(one.dataset.namespace)}
    found, around = (
        {DatasetName(name.namespace, match["model"]) for name in paths if (match := inside.fullmatch(name.name))}
        for inside in (_STAGE, _PART)
    )
    for name, one in paths.items():
        model = DatasetName(name.namespace, name.name.removesuffix("/metadata"))
        # A line of JSON; other data in a directory of that name has columns.
        columns = [field.name for field in one.schema]
        if model != name and (columns == ["_1"] or (len(columns) <= 1 and model in around)):
            found.add(model)
    return frozenset(name for name in found if found.isdisjoint(directories_above(name)))


def by_model(observed: tuple[Observed, ...], models: frozenset[DatasetName]) -> tuple[Observed, ...]:
    """Return what is inside of a model as the model; columns and numbers of its files say nothing of it."""
    lifted = {one.dataset: model for one in observed for model in directories_above(one.dataset) if model in models}
    if not lifted:
        return observed
    return by_name(
        structs.replace(one, dataset=lifted[one.dataset], schema=(), statistics=None, edges=frozenset())
        if one.dataset in lifted
        else one
        for one in observed
    )
