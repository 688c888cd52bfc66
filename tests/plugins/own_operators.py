"""Operators as people derive them from ``SparkSubmitOperator``, for the policy to give lineage to."""

from __future__ import annotations

from functools import wraps
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator


def noted(execute: Any) -> Any:
    """Decorate a method as libraries do that retry it or audit it."""

    @wraps(execute)
    def call(self: Any, context: Any) -> Any:
        self.log.info("noted begins")
        return execute(self, context)

    return call


class Own(SparkSubmitOperator):
    """Overrides what Airflow calls; its log shows that."""

    @noted
    def execute(self, context: Any) -> str:
        """Run as the stock operator does."""
        self.log.info("Own.execute begins")
        super().execute(context)
        self.log.info("Own.execute ends")
        return "own"

    def on_kill(self) -> None:
        """Kill as the stock operator does."""
        print("Own.on_kill", flush=True)  # noqa: T201
        super().on_kill()


class Deaf(SparkSubmitOperator):
    """Its own way of running a job is unknown to everybody."""

    def execute(self, context: Any) -> None:
        """Run nothing."""
