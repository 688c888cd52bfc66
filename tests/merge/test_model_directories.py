"""A model of Spark ML is one dataset, not the files that it is made of."""

from __future__ import annotations

import pytest

from spark_lineage.merge.evidence import by_model, model_directories
from spark_lineage.merge.lineage import SchemaField
from spark_lineage.merge.observed import Observed
from spark_lineage.naming.identity import DatasetName


def at(path, *columns):
    return Observed(DatasetName("file", path), schema=tuple(SchemaField(column) for column in columns))


PIPELINE = (
    at("/models/churn/metadata", "value"),
    at("/models/churn/stages/0_StringIndexer_468f2a1b9c3d/metadata", "value"),
    at("/models/churn/stages/0_StringIndexer_468f2a1b9c3d/data", "labels"),
    at("/models/churn/stages/1_LogisticRegression_0123456789ab"),
)


@pytest.mark.parametrize(
    ("observed", "models"),
    [
        (PIPELINE, {"/models/churn"}),
        ((at("/m/metadata", "value"), at("/m/data", "weights")), {"/m"}),
        ((at("/m/metadata"), at("/m/data")), {"/m"}),
        # Data that is called metadata, and metadata without data.
        ((at("/m/metadata", "id", "at"), at("/m/data")), set()),
        ((at("/m/metadata", "value"),), set()),
        ((at("/m/data"),), set()),
        # An estimator that was not fitted.
        ((at("/m/metadata", "_1"),), {"/m"}),
        # No id of a stage.
        ((at("/in/stages/0_bronze"),), set()),
        ((Observed(DatasetName("kafka://k:9092", "/m/stages/0_A_0123456789ab")),), set()),
    ],
)
def test_a_directory_is_a_model_by_what_is_in_it(observed, models) -> None:
    assert {model.name for model in model_directories(observed)} == models


def test_what_is_inside_of_a_model_is_the_model_without_the_columns_of_its_files() -> None:
    other = at("/in/customers", "id")
    assert by_model((*PIPELINE, other), model_directories(PIPELINE)) == (other, at("/models/churn"))


def test_what_is_inside_of_no_model_stays_as_it_is() -> None:
    observed = (at("/in/customers", "id"),)
    assert by_model(observed, frozenset({DatasetName("file", "/models/churn")})) is observed
