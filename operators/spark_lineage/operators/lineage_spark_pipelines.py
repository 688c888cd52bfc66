"""``SparkPipelinesOperator`` with lineage: a DAG changes one import and one class name."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.providers.apache.spark.operators.spark_pipelines import SparkPipelinesOperator

from spark_lineage.operators.lineage_operator import HookOperator, LineageOperator


class LineageSparkPipelinesOperator(HookOperator, SparkPipelinesOperator):
    """Run a declarative pipeline on a Spark Connect server, and give its task one truthful OpenLineage event.

    It takes every argument of ``SparkPipelinesOperator``, and those of ``LineageOperator``.
    """

    template_fields: Sequence[str] = (*SparkPipelinesOperator.template_fields, *LineageOperator.template_fields)
