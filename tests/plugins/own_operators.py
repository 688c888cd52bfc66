"""Operators as people derive them from ``SparkSubmitOperator``, for the policy to give lineage to."""

from __future__ import annotations

import copy
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from functools import wraps
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent

from spark_lineage.launch import directory
from spark_lineage.operators.lineage_spark_submit import LineageSparkSubmitOperator


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


class Twice(SparkSubmitOperator):
    """Submits another job when its first one has ended."""

    def execute(self, context: Any) -> None:
        """Run both."""
        super().execute(context)
        script = Path(str(shutil.which("spark-submit"))).with_name("driver.json")
        script.write_text(script.read_text().replace("a_414", "d_414"))
        self._hook._conf["spark.users.second"] = "yes"
        super().execute(context)


class OwnSql(SparkSqlOperator):
    """Overrides what Airflow calls, of ``spark-sql``."""

    def execute(self, context: Any) -> str:
        """Run as the stock operator does."""
        super().execute(context)
        return "own"


class Failing(SparkSubmitOperator):
    """Fails while its driver runs."""

    def _get_hook(self) -> Any:
        hook = super()._get_hook()

        def fail(lines: Any) -> None:
            next(iter(lines))
            raise RuntimeError("the disk of the log is full")

        hook._process_spark_submit_log = fail
        return hook


class OnFullDisk(SparkSubmitOperator):
    """Runs where no disk has room."""

    def _get_hook(self) -> Any:
        directory.FREE_BYTES = 1 << 60
        return super()._get_hook()


class KilledEarly(SparkSubmitOperator):
    """Is killed when its command is built, and there is no process yet."""

    def _get_hook(self) -> Any:
        hook = super()._get_hook()
        build = hook._build_spark_submit_command

        def build_late(application: str) -> Any:
            os.kill(os.getpid(), signal.SIGUSR1)
            return build(application)

        hook._build_spark_submit_command = build_late
        return hook


class FailingSql(SparkSqlOperator):
    """Fails while its ``spark-sql`` runs."""

    def _get_hook(self) -> Any:
        hook = super()._get_hook()

        def fail(cmd: str = "", **popen: Any) -> None:
            hook._sp = subprocess.Popen(hook._prepare_command(cmd), stdout=subprocess.PIPE, text=True, **popen)
            next(iter(hook._sp.stdout))
            raise RuntimeError("the disk of the log is full")

        hook.run_query = fail
        return hook


class Patient(SparkSubmitOperator):
    """Waits for something before it submits its job, in another process."""

    def execute(self, context: Any) -> None:
        """Wait."""
        self.defer(trigger=Soon(), method_name="submit")

    def submit(self, context: Any, event: Any) -> str:
        """Run as the stock operator does."""
        assert type(copy.deepcopy(self)) is type(self)
        SparkSubmitOperator.execute(self, context)
        return str(event)


class Soon(BaseTrigger):
    """Fires at once."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what a triggerer makes it of."""
        return "own_operators.Soon", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Fire."""
        yield TriggerEvent("now")


class Deaf(SparkSubmitOperator):
    """Its own way of running a job is unknown to everybody."""

    def execute(self, context: Any) -> None:
        """Run nothing."""


class OffWhenResumed(LineageSparkSubmitOperator):
    """Its lineage is turned off while a trigger waits for its driver."""

    def complete(self, context: Any, event: Any) -> None:
        """Go on without lineage."""
        self.lineage_enabled = False
        super().complete(context, event)
