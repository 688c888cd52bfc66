"""Finds Iceberg's metadata tables (``cat.db.t.snapshots``): reading one reads no row of its table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from msgspec import structs

from spark_lineage.merge.observed import Observed, by_name
from spark_lineage.merge.state import LineageState
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace

_STAGE = re.compile(r"(?P<model>.+?)/stages/\d+_\w+_[0-9a-f]{12}(?:/.*)?")
_METADATA = "/metadata"
_TUPLE = ["_1"]
# What the models of Spark ML keep beside their metadata.
_PART = re.compile(
    r"(?P<model>.+?)/(?:data|bestModel|estimator|evaluator|subModels|classifier|model_\d+|userFactors|itemFactors"
    r"|treesMetadata)(?:/.*)?"
)
# org.apache.iceberg.MetadataTableType
_KINDS = frozenset(
    {
        "entries",
        "files",
        "data_files",
        "delete_files",
        "history",
        "metadata_log_entries",
        "snapshots",
        "refs",
        "manifests",
        "partitions",
        "all_data_files",
        "all_delete_files",
        "all_files",
        "all_manifests",
        "all_entries",
        "position_deletes",
    }
)
_NAMESPACE_AND_TABLE = 2


def metadata_tables(observed: Iterable[Observed], real: Collection[DatasetName]) -> frozenset[DatasetName]:
    """Return the metadata tables among all datasets that a task names.

    The name does not tell ``db.t.files`` from a table ``files`` in a namespace ``db.t``: what is above is a table that
    the task knows, or at least no folder of other tables.

    :param real: those of ``real_tables``
    """
    tables: set[DatasetName] = set()
    alike: set[DatasetName] = set()
    for one in observed:
        names = [link.name.casefold().split(".") for link in one.symlinks if link.type == "TABLE"]
        if names:
            tables.add(one.dataset)
        if any(len(parts) > _NAMESPACE_AND_TABLE and parts[-1] in _KINDS for parts in names):
            alike.add(one.dataset)
    folders = {next(directories_above(name), name) for name in tables - alike} if alike else set()
    return frozenset(
        name
        for name in alike
        for above in (next(directories_above(name), name),)
        if (above != name and above in tables) or (name not in real and above not in folders)
    )


def real_tables(state: LineageState) -> set[DatasetName]:
    """What is a table unless another is above it: what the listener names, and what commands write by the log."""
    contents = {id(run.content): run.content for run in state.runs.values()}
    listened = {one.dataset for content in contents.values() for one in (*content.inputs, *content.outputs)}
    return listened.union(one.dataset for execution in state.executions.values() for one in execution.outputs)


def without(observed: tuple[Observed, ...], names: Collection[DatasetName]) -> tuple[Observed, ...]:
    """Return datasets without those of these names, and without the columns that come from them."""
    return tuple(
        structs.replace(one, edges=frozenset(edge for edge in one.edges if edge[1] not in names))
        if any(source in names for _, source, _, _ in one.edges)
        else one
        for one in observed
        if one.dataset not in names
    )


def model_directories(observed: Iterable[Observed]) -> frozenset[DatasetName]:
    """Return the directories of models, of all datasets that a task names."""
    paths = {one.dataset: one for one in observed if is_path_namespace(one.dataset.namespace)}
    found = {DatasetName(name.namespace, match["model"]) for name in paths if (match := _STAGE.fullmatch(name.name))}
    around = {DatasetName(name.namespace, match["model"]) for name in paths if (match := _PART.fullmatch(name.name))}
    for name, one in paths.items():
        model = DatasetName(name.namespace, name.name.removesuffix(_METADATA))
        # A line of JSON; other data in a directory of that name has columns.
        columns = [field.name for field in one.schema]
        if model != name and (columns == _TUPLE or (len(columns) <= 1 and model in around)):
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
