"""What is exported for OpenLineage's compatibility-tests: their comparison finds each recording right, and faults."""

from __future__ import annotations

import importlib
import json
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.shares("recordings")

# Tests are no package, and the tool is a program: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
scenario = importlib.import_module("scenario")
recordings = importlib.import_module("truth_recording")
truth_file = importlib.import_module("truth_file")

THEIRS = Path(__file__).parents[1] / "fixtures" / "compatibility" / "compare_events.txt"
LAST = {job: version for version, job in recordings.recordings()}


@pytest.fixture(scope="module")
def theirs() -> ModuleType:
    """The module of their validator that compares events."""
    loader = SourceFileLoader("compare_events", str(THEIRS))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("job", LAST)
def test_event_of_recording_is_what_the_scenario_expects(theirs: ModuleType, job: str) -> None:
    event = recordings.merged_recording(job, LAST[job])[1]
    expected = scenario.expected_events(truth_file.read_truth(job))
    assert {facet: theirs.diff(each, event) for facet, each in expected.items()} == {facet: [] for facet in expected}


def test_faults_of_an_event_are_found_by_the_scenario(theirs: ModuleType) -> None:
    event = recordings.merged_recording("save_modes", LAST["save_modes"])[1]
    expected = scenario.expected_events(truth_file.read_truth("save_modes"))
    assert expected.keys() == {"run_event", "outputStatistics", "columnLineage"}

    def found(**changes: Any) -> set[str]:
        return {facet for facet, each in expected.items() if theirs.diff(each, event | changes)}

    output = event["outputs"][0]
    lineage = json.loads(json.dumps(output["facets"]["columnLineage"]).replace('"DIRECT"', '"INDIRECT"'))
    assert found(eventType="FAIL") == expected.keys()
    assert found(inputs=event["inputs"][1:]) == expected.keys()
    assert found(outputs=[output | {"name": "/elsewhere"}, *event["outputs"][1:]]) == expected.keys()
    wrong = output | {"outputFacets": {"outputStatistics": {"rowCount": 77}}}
    assert found(outputs=[wrong, *event["outputs"][1:]]) == {"outputStatistics"}
    wrong = output | {"facets": {"columnLineage": lineage}}
    assert found(outputs=[wrong, *event["outputs"][1:]]) == {"columnLineage"}


def test_export_has_the_structure_that_their_scripts_check(tmp_path: Path) -> None:
    scenario.export(truth_file.read_truth("hive_tables"), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for test in config["tests"]:
        assert test["name"]
        assert (tmp_path / test["path"]).is_file()
        assert test["tags"]["facets"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "config.json",
        "events",
        "maintainers.json",
        "scenario.md",
        "test",
    }
    files = {path.name for path in (tmp_path / "test").iterdir()}
    assert files == {"hive_tables.py", "hive_tables.toml", "before_hive.py"}
