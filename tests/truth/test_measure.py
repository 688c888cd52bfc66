"""The tool itself: it finds what an event lacks and what it makes up."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
truth_event = importlib.import_module("truth_event")
truth_file = importlib.import_module("truth_file")
truth_recording = importlib.import_module("truth_recording")
truth_run = importlib.import_module("truth_run")

HOME = Path("/job")


def truth(**told: Any) -> Any:
    told.setdefault("datasets", {"a": "a.csv", "b": "b"})
    told.setdefault("inputs", ["a"])
    told.setdefault("outputs", {"b": {"direct": {"x": ["a.y"]}, "indirect": {"*": ["a.z"]}, "rows": 2, "feeds": ["a"]}})
    return truth_file.Truth("job", **told)


def source(field: str, kind: str) -> dict[str, Any]:
    return {"namespace": "file", "name": "/job/a.csv", "field": field, "transformations": [{"type": kind}]}


def event(**changes: Any) -> dict[str, Any]:
    a, b = {"namespace": "file", "name": "/job/a.csv"}, {"namespace": "file", "name": "/job/b"}
    lineage = {"fields": {"x": {"inputFields": [source("y", "DIRECT")]}}, "dataset": [source("z", "INDIRECT")]}
    output = b | {"facets": {"columnLineage": lineage}, "outputFacets": {"outputStatistics": {"rowCount": 2}}}
    whole: dict[str, Any] = {
        "eventType": "COMPLETE",
        "run": {"runId": "run", "facets": {}},
        "job": {"facets": {"lineage": {"entries": [b | {"inputs": [a]}]}}},
        "inputs": [a],
        "outputs": [output],
    }
    return whole | changes


def wrong(truth: Any, event: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    scores = truth_event.compare(truth, [event], HOME)
    return {name: (score.missing, score.too_much) for name, score in scores.items() if not score.is_perfect}


def test_an_event_that_is_the_truth_is_perfect() -> None:
    assert wrong(truth(), event()) == {}


def test_what_is_missing_and_what_is_too_much_is_told_by_its_alias_or_else_by_its_name() -> None:
    other = {"namespace": "file", "name": "/job/other"}
    assert wrong(truth(), event(inputs=[other])) == {"inputs": (("a",), ("<file other>",))}


def test_every_measure_is_compared() -> None:
    found = wrong(truth(exit_code=1, attempted=["a"], catalog=[{"change": "drop", "dataset": "b"}]), event(outputs=[]))
    assert set(found) == {"state", "outputs", "attempted", "direct", "indirect", "rows", "catalog"}
    assert set(wrong(truth(), event(job={"facets": {}}))) == {"feeds"}


def test_what_the_truth_does_not_state_is_not_compared() -> None:
    stated = {"b": {"direct": {"x": ["a.y"]}, "indirect": {"*": ["a.z"]}}}
    assert wrong(truth(outputs=stated), event(job={"facets": {}})) == {}


def test_what_nothing_tells_counts_in_neither_direction() -> None:
    beyond = [{"measure": "inputs", "fact": "a", "why": "it is read by own code"}]
    assert wrong(truth(without_evidence=beyond), event(inputs=[])) == {}
    assert wrong(truth(without_evidence=beyond), event()) == {}


def test_precision_and_recall_are_shares_of_what_is_said_and_of_what_is_true() -> None:
    score = truth_event.Score(1, missing=("a", "b", "c"), too_much=("d",))
    assert (score.precision, score.recall) == (0.5, 0.25)
    assert truth_event.Score(0, (), ()).precision == truth_event.Score(0, (), ()).recall == 1


@pytest.mark.parametrize("facet", ["sparkLineage_unknownDatasets", "sparkLineage_unreadPlans"])
def test_what_must_be_counted_is_missing_where_an_event_has_no_count(facet: str) -> None:
    counted, parts = truth(counted=["all"]), "commands" if facet.endswith("Datasets") else "parts"
    assert wrong(counted, event()) == {"counted": (("all",), ())}
    assert wrong(counted, event(run={"runId": "run", "facets": {facet: {parts: [{"name": "x", "count": 1}]}}})) == {}


def test_what_must_be_counted_of_other_evidence_is_not_compared() -> None:
    scores = truth_event.compare(truth(counted=["event_log"]), [event()], HOME)
    assert scores["counted"] == truth_event.Score(0, (), ())
    scores = truth_event.compare(truth(counted=["event_log"]), [event()], HOME, "event_log")
    assert scores["counted"].missing == ("event_log",)


def test_changes_in_another_order_are_other_facts() -> None:
    assert truth_file.ordered(["create a", "drop a"]) != truth_file.ordered(["drop a", "create a"])
    assert len({fact for fact in truth_file.ordered(["create a"] * 2) if "comes after" not in fact}) == 2


def test_a_hundred_datasets_are_written_as_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(truth_file, "JOBS", tmp_path)
    (tmp_path / "many.toml").write_text('inputs = ["f{08..10}"]\n[datasets]\n"f{08..10}" = "in/{08..10}.csv"\n')
    names = truth_file.read_truth("many").names(HOME)
    assert names == {("file", f"/job/in/{number}.csv"): f"f{number}" for number in ("08", "09", "10")}


def test_versions_are_compared_where_the_truth_states_them() -> None:
    read = {"namespace": "file", "name": "/job/a.csv", "facets": {"version": {"datasetVersion": "3"}}}
    left = event()["outputs"][0]
    left = left | {"facets": left["facets"] | {"version": {"datasetVersion": "7"}}}
    said = event(inputs=[read], outputs=[left])
    assert wrong(truth(), said) == {}
    outputs = {"b": truth().outputs["b"] | {"version": 7}}
    assert wrong(truth(versions={"a": [3]}, outputs=outputs), said) == {}
    outputs = {"b": truth().outputs["b"] | {"version": 8}}
    assert wrong(truth(versions={"a": [1, 3]}, outputs=outputs), said) == {"versions": (("a @ 1", "b = 8"), ("b = 7",))}
    assert wrong(truth(versions={"a": []}), said) == {"versions": ((), ("a @ 3",))}


def test_the_version_of_an_output_is_missing_unless_no_evidence_has_it() -> None:
    outputs = {"b": truth().outputs["b"] | {"version": 7}}
    assert wrong(truth(outputs=outputs), event()) == {"versions": (("b = 7",), ())}
    assert wrong(truth(outputs=outputs, unversioned=["b"]), event()) == {}
    assert truth_event.compare(truth(outputs=outputs), [event()], HOME, "event_log")["versions"].is_perfect


def test_a_facet_names_one_version_or_several() -> None:
    several = {"inputFacets": {"sparkLineage_versions": {"versions": ["1", "3"]}}}
    assert truth_event.versions_of({"facets": {"version": {"datasetVersion": "3"}}}) == {"3"}
    assert truth_event.versions_of({"facets": {"version": {"datasetVersion": "3"}}, **several}) == {"1", "3"}
    assert truth_event.versions_of({}) == set()


def test_a_snapshot_is_called_by_its_number_among_those_of_its_table() -> None:
    versions = {"sparkLineage_versions": {"versions": ["22", "11", "99"]}}
    read = {"namespace": "file", "name": "/job/ice/db/a", "facets": {}, "inputFacets": versions}
    told = truth(datasets={"a": "ice/db/a", "b": "b"}, inputs=["a"], outputs={}, versions={"a": [2]})
    said = event(inputs=[read], outputs=[])
    snapshots = {"ice/db/a": ["33", "22", "11"], "ice/db/other": ["99"]}
    scores = truth_event.compare(told, [said], HOME, "all", snapshots)
    assert scores["versions"] == truth_event.Score(1, (), ("a @ 3", "a @ 99"))


def test_snapshots_are_in_the_order_of_their_commits_also_those_that_expired(tmp_path: Path) -> None:
    def metadata(path: str, *snapshots: tuple[int, int, int]) -> None:
        keys = ("snapshot-id", "sequence-number", "timestamp-ms")
        told = {"snapshots": [dict(zip(keys, each, strict=True)) for each in snapshots]}
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(told))

    metadata("ice/db/a/metadata/v1.metadata.json")
    metadata("ice/db/a/metadata/v2.metadata.json", (50, 1, 7))
    metadata("ice/db/a/metadata/v10.metadata.json", (20, 3, 8), (40, 2, 9))
    metadata("other/metadata/00001-x.metadata.json", (2, 0, 2), (3, 0, 1))
    found = truth_run.iceberg_snapshots(tmp_path)
    assert found == {"ice/db/a": ["50", "40", "20"], "other": ["3", "2"]}


def test_a_recording_keeps_the_snapshots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(truth_recording, "RECORDED", tmp_path)
    for job, snapshots in (("with", {"ice/db/a": ["2", "1"]}), ("without", {})):
        home = tmp_path / "ran" / job
        (home / "eventlog").mkdir(parents=True)
        if snapshots:
            (home / truth_run.SNAPSHOTS_FILE).write_text(json.dumps(snapshots))
        ran = truth_run.Application(home, home / "work", 0, 1.0)
        truth_recording.record(ran, truth_recording.recording(job, "4.1"))
        assert truth_recording.recorded(job, "4.1", tmp_path / "back" / job).snapshots == snapshots


@pytest.mark.parametrize(
    "text",
    [
        "input = []",
        "counted = ['log']",
        "[outputs.a]\nrow = 1",
        "[versions]\na = [0]",
        "[datasets]\na = 'a'\n[outputs.b]",
    ],
)
def test_a_truth_that_says_what_nobody_reads_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    monkeypatch.setattr(truth_file, "JOBS", tmp_path)
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(ValueError, match=r"odd\.toml"):
        assert truth_file.read_truth("odd").facts
