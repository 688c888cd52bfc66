"""Finds the directories that Spark ML keeps its models in: a model is one dataset, not the files it is made of.

A pipeline's stages lie in ``stages/0_StringIndexer_468…``, with a new random id for each fit; a single stage lies in
``metadata`` and ``data`` (``org.apache.spark.ml.util.DefaultParamsWriter``). An estimator that was not fitted has its
``metadata`` alone, which Spark 4 writes as the only member of a tuple.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import structs

from spark_lineage.merge.observed import Observed, by_name
from spark_lineage.naming.identity import DatasetName, directories_above, is_path_namespace

_STAGE = re.compile(r"(?P<model>.+?)/stages/\d+_\w+_[0-9a-f]{12}(?:/.*)?")
_METADATA = "/metadata"
_TUPLE = ["_1"]
# What the models of Spark ML keep beside their metadata.
_PART = re.compile(
    r"(?P<model>.+?)/(?:data|bestModel|estimator|evaluator|subModels|classifier|model_\d+|userFactors|itemFactors"
    r"|treesMetadata)(?:/.*)?"
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
