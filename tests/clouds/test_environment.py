"""The environment of ``make clouds``: the clients of the clouds, and what stands in for their services."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from aws_services import __file__ as services
from lineage_backends.processes import dies_with_parent

pytestmark = pytest.mark.clouds


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    ["moto.server", "s3fs", "airflow.providers.amazon", "airflow.providers.databricks", "airflow.providers.google"],
)
def test_environment_has_what_the_tests_need(name: str) -> None:
    assert importlib.import_module(name)


def test_driver_ends_with_the_process_that_runs_it(tmp_path: Path) -> None:
    submit, begun = tmp_path / "spark-submit", tmp_path / "begun"
    submit.write_text(f"#!/bin/sh\necho $$ > {begun}.part; mv {begun}.part {begun}; exec sleep 600\n")
    submit.chmod(0o755)
    program = (
        "import sys, aws_services, pathlib\n"
        "runner = aws_services.Runner(pathlib.Path(sys.argv[1]), '', [], 1, sys.argv[2:])\n"
        "runner.run('job', ['a.py'], lambda: False)\n"
    )
    runner = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), *dies_with_parent()],
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(Path(services).parent)},
    )
    while not begun.exists():
        assert runner.poll() is None
        time.sleep(0.05)
    driver = psutil.Process(int(begun.read_text()))
    runner.kill()
    runner.wait()
    driver.wait(10)
