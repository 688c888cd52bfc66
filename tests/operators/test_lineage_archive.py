"""What the archive's operator tells ``spark-submit``; its own lineage is in ``tests/dags_example``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.archive.job import add_arguments

REPOSITORY = Path(__file__).parents[2]
JOB = str(REPOSITORY / "provider" / "spark_lineage" / "archive" / "job.py")
DRIVER_PYTHON = "spark.pyspark.driver.python"


@pytest.fixture
def archive_bench(bench: Any) -> Any:
    """A place to run the archive's operator in, with a fake ``spark-submit``."""
    bench.operator = "lineage_archive:LineageArchiveOperator"
    bench.application = {"sources": ["/lineage/a", "s3a://lineage/b"], "destination": "/archive"}
    return bench


def program(told: dict[str, Any]) -> list[str]:
    """What is run, with its arguments: all that follows the options of spark-submit."""
    argv: list[str] = told["argv"]
    return argv[argv.index(JOB) :]


def test_the_job_is_run_here_by_the_python_of_the_task(archive_bench: Any) -> None:
    archive_bench.connection["extra"] = {"deploy-mode": "cluster"}
    outcome = archive_bench.run(executions=2)
    assert outcome.error is None, outcome.printed
    for told in outcome.told:
        assert program(told)[1:] == ["/lineage/a", "s3a://lineage/b", "--out", "/archive"]
        assert told["conf"][DRIVER_PYTHON] == sys.executable
        assert told["argv"][told["argv"].index("--deploy-mode") + 1] == "client"
        assert told["argv"][told["argv"].index("--name") + 1] == "spark-lineage archive"


def test_the_arguments_of_the_command(archive_bench: Any) -> None:
    archive_bench.application |= {
        "sources": "/lineage",
        "event_logs": ["/logs/a", "/logs/b"],
        "full": True,
        "naming": {"hostnamePattern.prod": r"10\.1\..*", "hostnamePattern.test": "a b"},
        "max_event_bytes": 5000,
    }
    outcome = archive_bench.run()
    expected = ["/lineage", "--event-log", "/logs/a", "--event-log", "/logs/b", "--out", "/archive", "--full"]
    expected += ["--naming", r"hostnamePattern.prod=10\.1\..*", "--naming", "hostnamePattern.test=a b"]
    expected += ["--max-event-bytes", "5000"]
    told = program(outcome.command)[1:]
    assert told == expected
    # Which the job understands.
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parsed = parser.parse_args(told)
    assert [f"{key}={value}" for key, value in parsed.naming] == expected[9:12:2]
    assert (parsed.sources, parsed.event_log) == (["/lineage"], ["/logs/a", "/logs/b"])


@pytest.mark.parametrize(
    ("arguments", "python"),
    [
        ({"conf": {DRIVER_PYTHON: "/mine/python"}}, "/mine/python"),
        ({"env_vars": {"PYSPARK_DRIVER_PYTHON": "/mine/python"}}, None),
        ({"deploy_mode": "cluster"}, None),
    ],
)
def test_the_python_that_the_user_has_set_runs_the_driver(
    archive_bench: Any, arguments: dict[str, Any], python: str | None
) -> None:
    outcome = archive_bench.run(**arguments)
    assert outcome.command["conf"].get(DRIVER_PYTHON) == python
