"""Operators of Amazon EMR with lineage: a DAG changes one import and one class name."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.providers.amazon.aws.operators.emr import (
    EmrAddStepsOperator,
    EmrContainerOperator,
    EmrServerlessStartJobOperator,
)

from spark_lineage.operators.lineage_aws import LineageAwsOperator


class LineageEmrServerlessStartJobOperator(LineageAwsOperator, EmrServerlessStartJobOperator):  # type: ignore[misc]
    """Run a job of EMR Serverless, and give its task one truthful OpenLineage event.

    It takes every argument of ``EmrServerlessStartJobOperator``, and those of ``LineageOperator``. Where the task does
    not wait for its job (``wait_for_completion=False``), the lineage is that of a job of its own.
    """

    template_fields: Sequence[str] = (
        *EmrServerlessStartJobOperator.template_fields,
        *LineageAwsOperator.template_fields,
    )


class LineageEmrContainerOperator(LineageAwsOperator, EmrContainerOperator):  # type: ignore[misc]
    """Run a job of EMR on EKS, and give its task one truthful OpenLineage event.

    It takes every argument of ``EmrContainerOperator``, and those of ``LineageOperator``. Where the task does not wait
    for its job (``wait_for_completion=False``), the lineage is that of a job of its own.
    """

    template_fields: Sequence[str] = (*EmrContainerOperator.template_fields, *LineageAwsOperator.template_fields)


class LineageEmrAddStepsOperator(LineageAwsOperator, EmrAddStepsOperator):  # type: ignore[misc]
    """Add steps to an EMR cluster, and give those of Spark their lineage.

    It takes every argument of ``EmrAddStepsOperator``, and those of ``LineageOperator``. The steps of a task that does
    not wait, which is the default, are a job each.
    """

    template_fields: Sequence[str] = (*EmrAddStepsOperator.template_fields, *LineageAwsOperator.template_fields)
