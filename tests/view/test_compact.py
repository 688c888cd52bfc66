"""What a task leaves for the tab: all of an event that a reader looks for, within the limit."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tab_events import RECORDED, RUN_ID, recorded_event, wide_event

from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.view import XCOM_KEY, compact, links_of, of_event, tries_of, with_try, written_at

if TYPE_CHECKING:
    from laboratory import Bench

    from spark_lineage.launch.line import LineCounts
    from spark_lineage.merge.lineage import TaskLineage

LIMIT = 48_000
A_414, GTASK_414 = (next(path for path in RECORDED if path.stem == name) for name in ("a_414", "gtask_414"))


def size(value: object) -> int:
    """As Airflow stores an XCom."""
    return len(json.dumps(value))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_nothing_is_left_out_of_a_recorded_task(path: Path) -> None:
    event = recorded_event(path)
    before = deepcopy(event)
    view = compact(event, LIMIT)
    assert event == before
    assert "left_out" not in view
    assert size(view) < LIMIT / 10
    for side in ("inputs", "outputs"):
        names = [(view["namespaces"][one["in"]], one["name"]) for one in view.get(side, ())]
        assert names == [(one["namespace"], one["name"]) for one in event[side]]
    for output, one in zip(event["outputs"], view.get("outputs", ()), strict=True):
        statistics = output.get("outputFacets", {}).get("outputStatistics", {})
        assert (one.get("rows"), one.get("bytes")) == (statistics.get("rowCount"), statistics.get("size"))
        fields = output["facets"].get("schema", {}).get("fields", ())
        assert [name for name, _ in one.get("columns", ())] == [field["name"] for field in fields]


def test_what_it_says_of_a_task() -> None:
    view = compact(recorded_event(A_414), LIMIT)
    assert (view["state"], view["run_id"], view["job"]) == ("COMPLETE", RUN_ID, "dag.task")
    assert (view["evidence"], view["spark"]) == (["listener"], "4.1.4")
    (output,) = view["outputs"]
    inputs = [one["name"].rpartition("/")[2] for one in view["inputs"]]
    made = {name: sorted((inputs[at], column) for at, column, _ in of) for name, of in output["lineage"].items()}
    assert made["country"] == [("cust.csv", "country")]
    assert output["fed_by"] == [0, 1]


def test_details_that_are_long_do_not_break_the_limit() -> None:
    event = recorded_event(A_414)
    text, columns = "x" * 5000, [{"new": {"name": f"column_{number}", "type": "string"}} for number in range(500)]
    transition = {"time": "t", "subject": "DRIVER", "id": "1", "newStatus": "FAILED", "exception": text}
    change = {"change": "CREATE", "objectType": "TABLE", "objectName": "t", "time": "t", "columns": columns}
    event["run"]["facets"] |= {
        "sparkLineage_status": {"transitions": [transition] * 30},
        "sparkLineage_catalogChanges": {"changes": [change] * 30},
    }
    view = compact(event, LIMIT)
    assert size(view) <= LIMIT
    assert (view["left_out"]["timeline"], view["left_out"]["changes"]) == (20, 20)
    assert len(view["outputs"]) == 1


def test_a_failure_names_its_error_and_what_was_attempted() -> None:
    view = compact(recorded_event(GTASK_414, "FAIL"), LIMIT)
    assert [(one["name"].rpartition("/")[2], one["reason"]) for one in view["attempted"]] == [("g_bad", "failed")]


def test_it_has_all_kinds_of_details(lineage: TaskLineage, counts: LineCounts) -> None:
    made = run_event(lineage, counts, job_namespace="airflow", job_name="dag.task", run_id=RUN_ID)
    view = compact(json.loads(to_json(made)), LIMIT, why="nothing came")
    assert {"why", "attempted", "changes", "unknown", "unread", "lines"} <= view.keys()
    assert "hunter2" not in json.dumps(view)


def test_a_schema_is_told_from_another_without_its_columns() -> None:
    event = wide_event(2, 2000)
    small = compact(event, 5000)
    assert "columns" not in small["outputs"][0]
    assert small["outputs"][0]["schema"] == compact(event, 10**9)["outputs"][0]["schema"]
    event["outputs"][0]["facets"]["schema"] = {"fields": [{"name": "another"}]}
    assert compact(event, 5000)["outputs"][0]["schema"] != small["outputs"][0]["schema"]


@pytest.mark.parametrize("limit", [1_000, 2_000, 5_000, 20_000, LIMIT, 200_000, 1_000_000])
def test_500_datasets_with_20_000_columns_fit(limit: int) -> None:
    event = wide_event(500, 20_000)
    view = compact(event, limit)
    assert size(view) <= limit
    lost = view["left_out"]
    for side in ("inputs", "outputs"):
        assert len(view.get(side, ())) + lost.get(side, 0) == 250
    datasets = [*view.get("inputs", ()), *view.get("outputs", ())]
    assert not any(key in one for one in datasets for key in ("columns", "lineage")) or "inputs" not in lost


def test_the_usual_limit_keeps_500_datasets() -> None:
    view = compact(wide_event(500, 20_000), LIMIT)
    assert view["left_out"].keys() == {"column lineage", "columns"}
    assert all(one["rows"] == 1000 for one in view["inputs"])


def test_the_widest_datasets_lose_their_columns_first() -> None:
    event = wide_event(6, 60)
    wide = wide_event(2, 4000)
    event["outputs"][0]["facets"] = wide["outputs"][0]["facets"]
    view = compact(event, 20_000)
    assert [("columns" in one, "lineage" in one) for one in view["outputs"]] == [
        (False, False),
        (True, True),
        (True, True),
    ]


def xcom(outcome: Any) -> list[dict[str, Any]]:
    return [value for key, value in outcome.pushed if key == XCOM_KEY]


def test_a_task_leaves_its_end(bench: Bench) -> None:
    (view,) = xcom(bench.run(lineage=[A_414]))
    assert (view["state"], len(view["inputs"]), len(view["outputs"])) == ("COMPLETE", 2, 1)


def test_a_failed_task_leaves_its_error(bench: Bench) -> None:
    (view,) = xcom(bench.run(lineage=[GTASK_414], exit_code=1))
    assert (view["state"], [one["name"].rpartition("/")[2] for one in view["attempted"]]) == ("FAIL", ["g_bad"])
    assert "exit code 1" in view["error"]
    assert [(one["subject"], one["status"]) for one in view["timeline"]][-1] == ("APPLICATION", "FAILED")


def test_without_lineage_it_says_where_it_looked(bench: Bench) -> None:
    (view,) = xcom(bench.run())
    assert view["state"] == "COMPLETE"
    assert str(bench.lineage_dir) in view["why"]


def test_retry_shows_the_tries_before_it(bench: Bench) -> None:
    first = bench.run(lineage=[GTASK_414], exit_code=1, store={}, task={"try_number": 1})
    assert "tries" not in xcom(first)[-1]
    second = bench.run(lineage=[A_414], store=first.store, task={"try_number": 2})
    view = xcom(second)[-1]
    assert (view["try"], view["state"]) == (2, "COMPLETE")
    (earlier,) = view["tries"]
    assert (earlier["try"], earlier["state"]) == (1, "FAIL")
    assert "exit code 1" in earlier["error"]


def test_tries_have_a_bound_and_the_xcom_keeps_its_limit() -> None:
    content = json.dumps(wide_event(500, 20_000)).encode()
    tries: list[Any] = []
    for number in range(1, 6):
        tries = with_try(tries, content, number)
    assert [one["try"] for one in tries] == [3, 4, 5]
    assert size(of_event(content, number=6, tries=tries)) <= LIMIT


@pytest.mark.parametrize("name", ["shop.db/clean_orders_0000", 'a "quoted" \\ name', "مبيعات"])
def test_written_at_is_the_time_of_a_task_with_this_output(name: str) -> None:
    event = wide_event(2, 4)
    event["outputs"][0]["name"] = name
    view = compact(event, LIMIT)
    for value in (view, json.dumps(view), json.dumps(view, ensure_ascii=False)):
        assert written_at(value, "s3://warehouse", name) == event["eventTime"]
        assert written_at(value, "s3://other", name) == written_at(value, "s3://warehouse", "another") == ""
        assert written_at(value, "s3://warehouse", event["inputs"][0]["name"]) == ""


@pytest.mark.parametrize("value", [None, 5, "text", [], {}, {"namespaces": [], "outputs": [{"in": 4}]}])
def test_foreign_xcom_has_neither_writer_nor_links(value: Any) -> None:
    assert written_at(value, "s3://warehouse", "text") == ""
    assert links_of(value) == {}
    assert tries_of(value) == []


def test_without_lineage_there_is_no_xcom(bench: Bench) -> None:
    assert xcom(bench.run(lineage=[A_414], lineage_enabled=False)) == []
