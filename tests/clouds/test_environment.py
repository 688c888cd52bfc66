"""The environment of ``make clouds``: the clients of the clouds, and what stands in for their services."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from aws_services import __file__ as services
from submitted_program import Driver

pytestmark = pytest.mark.clouds


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    ["moto.server", "s3fs", "airflow.providers.amazon", "airflow.providers.databricks", "airflow.providers.google"],
)
def test_environment_has_what_the_tests_need(name: str) -> None:
    assert importlib.import_module(name)


# A shell has its commands in the background ignore SIGINT.
INTERRUPTED = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
path = pathlib.Path(sys.argv[1])
"""
RUNNERS = {
    "aws": """
import aws_services
aws_services.Runner(path, "", [], 1).run("job", ["spark-submit", "a.py"], lambda: False)
""",
    "others": """
from submitted_program import SubmittedProgram
SubmittedProgram("a.py", [], {}, {"SPARK_HOME": str(path), **os.environ}, path / "log")
time.sleep(600)
""",
}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("runner", RUNNERS)
def test_driver_ends_with_the_process_that_runs_it(runner: str, how: signal.Signals, tmp_path: Path) -> None:
    submit, begun = tmp_path / "bin" / "spark-submit", tmp_path / "begun"
    submit.parent.mkdir()
    # As Java starts the Python of a program, which outlives it.
    submit.write_text(f"#!/bin/sh\nsleep 600 &\necho $$ $! > {begun}.part; mv {begun}.part {begun}; wait\n")
    submit.chmod(0o755)
    program = INTERRUPTED + RUNNERS[runner]
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        env={"PATH": f"{submit.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(Path(services).parent)},
        stderr=subprocess.DEVNULL,
    )
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    drivers = [psutil.Process(int(each)) for each in begun.read_text().split()]
    process.send_signal(how)
    try:
        process.wait(10)
    finally:
        process.kill()
    for driver in drivers:
        driver.wait(10)


def test_driver_that_is_over_leaves_nothing_behind(tmp_path: Path) -> None:
    made = Driver(["sh", "-c", "sleep 600 & echo $!; exit 3"], stdout=subprocess.PIPE)
    assert made.stdout is not None
    left = psutil.Process(int(made.stdout.readline()))
    assert made.wait(10) == 3
    left.wait(10)
    made.stdout.close()
