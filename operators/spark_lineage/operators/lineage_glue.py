"""``GlueJobOperator`` with lineage: a DAG changes one import and one class name."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.providers.amazon.aws.operators.glue import GlueJobOperator

from spark_lineage.operators.lineage_aws import LineageAwsOperator
from spark_lineage.operators.lineage_operator import PollingOperator


class LineageGlueJobOperator(PollingOperator, LineageAwsOperator, GlueJobOperator):  # type: ignore[misc]
    """Run a Glue job, and give its task one truthful OpenLineage event.

    It takes every argument of ``GlueJobOperator``, and those of ``LineageOperator``. Where the task does not wait for
    its run (``wait_for_completion=False``), the lineage is that of a job of its own.
    """

    template_fields: Sequence[str] = (*GlueJobOperator.template_fields, *LineageAwsOperator.template_fields)
