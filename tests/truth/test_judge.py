"""Events of any producer are judged by the truth: files of another one as the merged event of a recording."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.settings.places import DEFAULT_JAR

pytestmark = pytest.mark.shares("recordings")

# Tests are no package, and the tool is a program: it finds its modules beside it.
sys.path.insert(0, str(Path(__file__).parent))
judge = importlib.import_module("judge")
recordings = importlib.import_module("truth_recording")
truth_run = importlib.import_module("truth_run")

DOCS = Path(__file__).parents[2] / "docs" / "handbook" / "truth.md"
PROGRAM, VERSION = "save_modes", "4.1"


@pytest.fixture
def merged() -> dict[str, Any]:
    event: dict[str, Any] = recordings.merged_recording(PROGRAM, VERSION)[1]
    return event


@pytest.fixture
def produced(tmp_path: Path) -> Path:
    """A directory for the events of another producer."""
    (tmp_path / "produced").mkdir()
    return tmp_path / "produced"


def verdict_of(directory: Path, *events: dict[str, Any]) -> Any:
    (directory / f"{PROGRAM}.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return judge.judge("theirs", judge.read_directory(directory, "/data/lab/work"))


def test_judge_of_a_perfect_event_in_a_file_finds_no_fault(produced: Path, merged: dict[str, Any]) -> None:
    verdict = verdict_of(produced, merged)
    assert verdict.perfect(judge.KINDS) == 1
    assert verdict.total("inputs").right == 3


def test_judge_of_several_events_takes_the_facts_of_all(produced: Path, merged: dict[str, Any]) -> None:
    first, second = (merged | {"outputs": outputs} for outputs in (merged["outputs"][:1], merged["outputs"][1:]))
    assert verdict_of(produced, first, second).perfect(judge.KINDS) == 1
    assert len(verdict_of(produced, first).total("outputs").missing) == 2
    invented = merged["inputs"][0] | {"name": "/elsewhere"}
    score = verdict_of(produced, merged, merged | {"inputs": [invented]}).total("inputs")
    assert (score.precision, score.recall, score.too_much) == (0.75, 1.0, ("<file /elsewhere>",))


def test_judge_takes_the_last_state_of_runs_without_parent(produced: Path, merged: dict[str, Any]) -> None:
    start, late = (merged | {"eventType": kind} for kind in ("START", "RUNNING"))
    parent = {"parent": {"run": {"runId": merged["run"]["runId"]}, "job": {"namespace": "a", "name": "b"}}}
    child = start | {"run": {"runId": "another", "facets": parent}}
    assert verdict_of(produced, start, child, merged, late).total("state").too_much == ()
    other = start | {"run": {"runId": "another", "facets": {}}}
    assert verdict_of(produced, merged, other).total("state").too_much == ("START",)


def test_judge_without_lineage_facet_takes_each_input_as_source_of_each_output(
    produced: Path, merged: dict[str, Any]
) -> None:
    bare = merged | {"job": {"namespace": "a", "name": "b"}}
    score = verdict_of(produced, bare).total("feeds")
    assert (score.right, len(score.too_much)) == (4, 5)


def test_judge_of_minimal_events_finds_no_facts(produced: Path, merged: dict[str, Any]) -> None:
    minimal = {key: merged[key] for key in ("eventType", "eventTime")} | {
        "run": {"runId": "r"},
        "job": {"namespace": "a", "name": "b"},
    }
    verdict = verdict_of(produced, minimal)
    assert (verdict.total("state").recall, verdict.total("inputs").recall) == (1.0, 0.0)
    assert verdict_of(produced).total("state").recall == 0


@pytest.mark.parametrize(("name", "text"), [("unknown.jsonl", "{}\n"), (f"{PROGRAM}.jsonl", '{"run": {}}\n{"a"\n')])
def test_judge_refuses_a_file_that_it_cannot_read(produced: Path, name: str, text: str) -> None:
    (produced / name).write_text(text)
    with pytest.raises(ValueError, match=r"unknown|line 2"):
        judge.judge("theirs", judge.read_directory(produced, "/work"))


def test_judge_replaces_the_program_in_the_directory_of_the_run(produced: Path, merged: dict[str, Any]) -> None:
    event = json.loads(json.dumps(merged).replace("/data/lab/work", f"/runs/{PROGRAM}/work"))
    (produced / f"{PROGRAM}.ndjson").write_text(json.dumps(event))
    verdict = judge.judge("theirs", judge.read_directory(produced, "/runs/{program}/work"))
    assert verdict.perfect(judge.KINDS) == 1


def test_report_has_the_form_of_the_compatibility_tests(
    produced: Path, merged: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict_of(produced, merged | {"inputs": merged["inputs"][1:]})
    assert judge.main([str(produced), "--format", "report"]) == 0
    (component,) = json.loads(capsys.readouterr().out)
    assert (component["name"], component["component_type"]) == ("produced", "producer")
    ((scenario),) = component["scenarios"]
    assert (scenario["name"], scenario["status"]) == (PROGRAM, "FAILURE")
    failed = {test["name"]: test["details"] for test in scenario["tests"] if test["status"] == "FAILURE"}
    assert failed == {"inputs": ["'inputs' missing last"]}
    tags = {test["name"]: test["tags"]["facets"] for test in scenario["tests"]}
    assert (tags["direct"], tags["attempted"]) == (["columnLineage"], ["sparkLineage_attemptedOutputs"])


def test_other_formats_have_the_same_figures(
    produced: Path, merged: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    verdict_of(produced, merged | {"inputs": merged["inputs"][1:]})
    judge.main([str(produced), "--format", "json"])
    kinds = json.loads(capsys.readouterr().out)["produced"]["kinds"]
    assert kinds["inputs"] == {"right": 2, "missing": 1, "too_much": 0, "precision": 1.0, "recall": 2 / 3}
    judge.main([str(produced), "--format", "markdown"])
    assert "| inputs | 100% / 66.6% |" in capsys.readouterr().out
    judge.main([str(produced), "--details"])
    assert "produced: save_modes\n  inputs: missing last\n" in capsys.readouterr().out


def test_docs_have_the_figures_of_the_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    judge.main(["--format", "markdown"])
    table = capsys.readouterr().out
    assert table in DOCS.read_text(), f"copy this table:\n{table}"


@pytest.mark.truth
@pytest.mark.spark
def test_program_that_is_laid_out_runs_with_a_listener_of_its_own(
    tmp_path: Path,
    produced: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fast_spark: Any,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(fast_spark.caches))
    judge.main(["--lay-out", str(tmp_path / "home"), "--program", PROGRAM])
    script = capsys.readouterr().out.strip()
    options = [
        *("--driver-class-path", truth_run._jar(DEFAULT_JAR)),
        *("--conf", "spark.extraListeners=io.openlineage.spark.agent.OpenLineageSparkListener"),
        *("--conf", "spark.openlineage.transport.type=file"),
        *("--conf", f"spark.openlineage.transport.location={produced}/{PROGRAM}.jsonl"),
    ]
    subprocess.run(["bash", script, *options], check=True, capture_output=True, env=os.environ | fast_spark.env)
    described = judge.read_directory(produced, f"{tmp_path}/home/{{program}}/work")
    verdict = judge.judge("listener", described)
    assert verdict.total("inputs") == judge.Score(3, (), ())
    assert verdict.total("outputs") == judge.Score(3, (), ("existing",))
    assert verdict.engine["version"].startswith(truth_run.own_version())
