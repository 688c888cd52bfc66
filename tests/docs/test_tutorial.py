"""The tutorial, done as it says: its files, its commands, and an OpenLineage backend in the place of Marquez."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fast_spark import JAVA_ENV

pytestmark = pytest.mark.long

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
BLOCK = re.compile(r'^```\w+ title="(?P<title>[^"]+)"\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.fixture
def home(tmp_path: Path, openlineage_backend: Any) -> Path:
    for block in BLOCK.finditer(TUTORIAL):
        path = tmp_path / block["title"]
        path.parent.mkdir(exist_ok=True)
        path.write_text(block["text"].replace("http://127.0.0.1:5000", openlineage_backend.url))
    return tmp_path


def _run(home: Path, *blocks: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")} | JAVA_ENV
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    command = ["bash", "-euo", "pipefail", *blocks]
    return subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, check=False, timeout=300)


def _names(datasets: list[dict[str, Any]]) -> set[str]:
    return {Path(dataset["name"]).name for dataset in datasets}


@pytest.mark.truth
def test_the_tutorial_ends_with_the_graph_that_it_promises(home: Path, openlineage_backend: Any) -> None:
    for block in ("prepare", "run"):
        done = _run(home, block)
        assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Lineage: COMPLETE, 1 input, 2 outputs, [\d,]+ rows written \(", done.stdout)

    (end,) = [
        event for event in openlineage_backend.events
        if event["job"]["name"] == "revenue.load" and event["eventType"] == "COMPLETE"
    ]  # fmt: skip
    assert end["job"]["namespace"] == "tutorial"
    assert (_names(end["inputs"]), _names(end["outputs"])) == ({"orders.csv"}, {"paid", "revenue"})
    (revenue,) = [output for output in end["outputs"] if output["name"].endswith("/revenue")]
    (source,) = revenue["facets"]["columnLineage"]["fields"]["revenue"]["inputFields"]
    assert source["field"] == "amount"

    program = home / "jobs" / "revenue.py"
    program.write_text(program.read_text().replace('{"amount": "sum"}', '{"amounts": "sum"}'))
    done = _run(home, "run")
    assert re.search(r"Lineage: FAIL, 1 input, 1 output, [\d,]+ rows written", done.stdout)
    assert openlineage_backend.events[-1]["eventType"] == "FAIL"
