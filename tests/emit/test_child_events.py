from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs
from openlineage.client.uuid import generate_new_uuid

from spark_lineage.emit.child_events import child_events, going_on_event
from spark_lineage.emit.run_event import to_json
from spark_lineage.launch.launch import Launch
from spark_lineage.merge.lineage import (
    Action,
    Application,
    Attempt,
    AttemptReason,
    ColumnLineage,
    DatasetLineage,
    InputField,
    ParentRun,
    SchemaField,
    Statistics,
    TaskLineage,
    TaskState,
    Transformation,
    Write,
)
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.identity import DatasetName
from spark_lineage.submission.collector import Collector

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "events").glob("*.ndjson"))
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
TASK = ParentRun("0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5e", "airflow", "dag.task")
ROOT = ParentRun("0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d5f", "airflow", "dag")

CUSTOMERS, ORDERS, UNUSED = (DatasetName("file", f"/in/{name}") for name in ("customers", "orders", "unused"))
SALES, REPORT, BROKEN = (DatasetName("file", f"/out/{name}") for name in ("sales", "report", "broken"))
STAGING = DatasetName("file", "/out/staging")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def action(
    number: int,
    inputs: tuple[DatasetName, ...],
    outputs: tuple[DatasetName, ...],
    *,
    state: TaskState = "COMPLETE",
    is_streaming: bool = False,
    command: str = "insert_command",
) -> Action:
    return Action(
        run_id=str(UUID(int=number)),
        job_namespace="spark",
        job_name=f"dag.task.spark.{command}.out_2024_01_31",
        state=state,
        started_at=at(number * 10),
        ended_at=at(number * 10 + 5),
        is_streaming=is_streaming,
        inputs=inputs,
        outputs=outputs,
    )


@pytest.fixture
def task() -> TaskLineage:
    """A task that made sales of orders by way of staging, a report of sales and customers, and then failed."""
    edge = InputField(ORDERS, "amount", (Transformation("DIRECT", "IDENTITY"),))
    return TaskLineage(
        state="FAIL",
        inputs=(
            DatasetLineage(CUSTOMERS, schema=(SchemaField("id", "int"),)),
            DatasetLineage(ORDERS, schema=(SchemaField("amount", "int"),), statistics=Statistics(row_count=10)),
            DatasetLineage(UNUSED),
        ),
        outputs=(
            DatasetLineage(REPORT, fed_by=(CUSTOMERS, ORDERS), lifecycle="CREATE"),
            DatasetLineage(
                SALES,
                schema=(SchemaField("amount", "int"),),
                statistics=Statistics(row_count=7),
                column_lineage=ColumnLineage(fields=(("amount", (edge,)),)),
                fed_by=(ORDERS,),
                writes=(Write("INSERT", "append"),),
            ),
        ),
        attempted=(Attempt(BROKEN, "failed"),),
        unconfirmed=(REPORT,),
        actions=(
            action(1, (UNUSED,), ()),
            action(2, (ORDERS,), (STAGING,)),
            action(3, (STAGING,), (SALES,)),
            action(4, (CUSTOMERS, SALES), (REPORT,)),
            action(5, (CUSTOMERS,), (BROKEN,), state="FAIL"),
            action(6, (ORDERS,), (STAGING,)),
        ),
        applications=(Application(str(UUID(int=9)), "spark", "dag.task.spark", spark_version="4.1.4"),),
        started_at=at(0),
        ended_at=at(100),
        run_count=7,
    )


def sent(lineage: TaskLineage, granularity: Any = "path", /, **arguments: Any) -> list[dict[str, Any]]:
    events = child_events(lineage, granularity, **({"task": TASK, "root": ROOT} | arguments))
    return [json.loads(to_json(event)) for event in events]


def ends(lineage: TaskLineage, granularity: Any = "path", /, **arguments: Any) -> dict[str, dict[str, Any]]:
    """The terminal events by the readable part of their job's name."""
    events = sent(lineage, granularity, **arguments)
    return {
        event["job"]["name"].removesuffix("@dag.task").rpartition("_")[0]: event
        for event in events
        if event["eventType"] != "START"
    }


def names(datasets: list[dict[str, Any]]) -> list[str]:
    return [dataset["name"] for dataset in datasets]


def test_a_task_alone_has_no_children(task: TaskLineage) -> None:
    assert sent(task, "task") == []


def test_each_output_is_a_child_with_all_that_leads_to_it(task: TaskLineage) -> None:
    sales = ends(task)["sales"]
    assert sales["eventType"] == "COMPLETE"
    assert (names(sales["inputs"]), names(sales["outputs"])) == (["/in/orders"], ["/out/sales"])
    assert set(sales["inputs"][0]["facets"]) == {"dataSource", "schema"}
    (output,) = sales["outputs"]
    assert output["facets"]["columnLineage"]["fields"]["amount"]["inputFields"][0]["name"] == "/in/orders"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert output["outputFacets"]["sparkLineage_writes"]["operations"] == [
        {"operation": "INSERT", "mode": "append", "isPartial": False}
    ]
    report = ends(task)["report"]
    assert (names(report["inputs"]), names(report["outputs"])) == (["/in/customers", "/in/orders"], ["/out/report"])
    assert names(report["run"]["facets"]["sparkLineage_unconfirmedOutputs"]["outputs"]) == ["/out/report"]
    assert "sparkLineage_unconfirmedOutputs" not in sales["run"]["facets"]


def test_a_child_says_what_it_is_and_has_the_words_of_the_task(task: TaskLineage) -> None:
    words = {"owners": ["shop"], "tags": {"daily", "core"}, "description": "Sales of the day."}
    facets = sent(task, **words)[-1]["job"]["facets"]
    assert [each["name"] for each in facets["ownership"]["owners"]] == ["shop"]
    assert [each["key"] for each in facets["tags"]["tags"]] == ["core", "daily"]
    texts = {each["job"]["facets"]["documentation"]["description"] for each in sent(task, **words)}
    assert "All that leads to /out/sales, in the task dag.task.\n\nSales of the day." in texts
    bare = sent(task)[0]["job"]["facets"]
    assert bare["documentation"]["description"].endswith(", in the task dag.task.")
    assert {"ownership", "tags"}.isdisjoint(bare)


def test_how_much_the_task_read_is_not_said_of_a_path(task: TaskLineage) -> None:
    assert ends(task)["sales"]["inputs"][0]["inputFacets"] == {}


def test_a_child_has_the_task_as_parent_and_the_root_of_the_task(task: TaskLineage) -> None:
    for event in sent(task):
        parent = event["run"]["facets"]["parent"]
        assert parent["run"]["runId"] == TASK.run_id
        assert (parent["job"]["namespace"], parent["job"]["name"]) == ("airflow", "dag.task")
        assert parent["root"]["run"]["runId"] == ROOT.run_id
        assert (parent["root"]["job"]["namespace"], parent["root"]["job"]["name"]) == ("airflow", "dag")
        assert event["job"]["namespace"] == "airflow"
        # What differs comes first: backends cut long names.
        assert event["job"]["name"].endswith("@dag.task")
    assert "root" not in sent(task, root=None)[0]["run"]["facets"]["parent"]


def test_a_child_runs_from_the_first_action_that_leads_to_it_to_the_last(task: TaskLineage) -> None:
    times = {
        (event["job"]["name"].removesuffix("@dag.task")[:5], event["eventType"]): event["eventTime"]
        for event in sent(task)
    }
    # What made the staging table anew afterwards is no part of it.
    assert times["sales", "START"] == "2024-01-31T12:00:20.000000Z"
    assert times["sales", "COMPLETE"] == "2024-01-31T12:00:35.000000Z"
    assert times["repor", "START"] == "2024-01-31T12:00:20.000000Z"
    assert times["repor", "COMPLETE"] == "2024-01-31T12:00:45.000000Z"


def test_a_path_follows_every_table_between_and_nothing_that_came_later(task: TaskLineage) -> None:
    other = DatasetName("file", "/out/other")
    actions = (
        action(1, (), (other,)),
        action(2, (ORDERS,), (STAGING, other)),
        action(3, (STAGING, other), (SALES,)),
        action(4, (SALES,), (other,)),
        action(5, (CUSTOMERS,), (STAGING,)),
    )
    start, end = sent(structs.replace(task, actions=actions, attempted=(), outputs=task.outputs[1:]))
    assert (start["eventTime"], end["eventTime"]) == ("2024-01-31T12:00:10.000000Z", "2024-01-31T12:00:35.000000Z")


def test_a_child_of_which_no_action_is_known_took_as_long_as_the_task(task: TaskLineage) -> None:
    start, end = sent(structs.replace(task, actions=(), attempted=(), outputs=task.outputs[:1]))
    assert (start["eventTime"], end["eventTime"]) == ("2024-01-31T12:00:00.000000Z", "2024-01-31T12:01:40.000000Z")


@pytest.mark.parametrize(
    ("started_at", "ended_at", "time"),
    [(None, None, "1970-01-01T00:00:00"), (None, NOON, "2024-01-31T12:00:00"), (NOON, None, "2024-01-31T12:00:00")],
)
def test_a_task_without_times_has_children(started_at: datetime, ended_at: datetime, time: str) -> None:
    output = DatasetLineage(SALES)
    lineage = TaskLineage(state="COMPLETE", outputs=(output,), started_at=started_at, ended_at=ended_at)
    assert [event["eventTime"] for event in sent(lineage)] == [f"{time}.000000Z"] * 2


def test_an_end_never_comes_before_its_start(task: TaskLineage) -> None:
    backwards = structs.replace(task.actions[2], started_at=at(50), ended_at=at(40), inputs=())
    start, end = sent(structs.replace(task, actions=(backwards,), attempted=(), outputs=task.outputs[1:]))
    assert start["eventTime"] == end["eventTime"] == "2024-01-31T12:00:50.000000Z"


def test_what_was_tried_in_vain_is_a_failed_child_without_output(task: TaskLineage) -> None:
    broken = ends(task)["broken"]
    assert broken["eventType"] == "FAIL"
    assert (names(broken["inputs"]), broken["outputs"]) == (["/in/customers"], [])
    assert broken["run"]["facets"]["sparkLineage_attemptedOutputs"]["outputs"] == [
        {"namespace": "file", "name": "/out/broken", "reason": "failed"}
    ]


@pytest.mark.parametrize(
    ("reason", "task_state", "ended"),
    [
        ("failed", "COMPLETE", "FAIL"),
        ("failed", "ABORT", "FAIL"),
        ("unfinished", "ABORT", "ABORT"),
        ("unfinished", "FAIL", "FAIL"),
        ("not written", "COMPLETE", "COMPLETE"),
    ],
)
def test_a_child_that_left_nothing_behind_ends_as_it_did(
    task: TaskLineage, reason: AttemptReason, task_state: TaskState, ended: str
) -> None:
    lineage = structs.replace(task, state=task_state, attempted=(Attempt(BROKEN, reason),))
    assert ends(lineage)["broken"]["eventType"] == ended


def test_a_path_that_failed_is_the_same_job_as_when_it_succeeds(task: TaskLineage) -> None:
    fixed = structs.replace(
        task,
        outputs=(*task.outputs, DatasetLineage(BROKEN, fed_by=(CUSTOMERS,))),
        attempted=(),
        actions=(*task.actions[:4], action(5, (CUSTOMERS,), (BROKEN,))),
    )
    assert ends(fixed)["broken"]["job"]["name"] == ends(task)["broken"]["job"]["name"]
    assert ends(fixed)["broken"]["eventType"] == "COMPLETE"


def test_a_start_names_the_datasets_of_its_end_and_not_how_it_ended(task: TaskLineage) -> None:
    events = sent(task)
    for start, end in zip(events[::2], events[1::2], strict=True):
        assert start["eventType"] == "START"
        assert end["eventType"] in {"COMPLETE", "FAIL"}
        assert start["run"]["runId"] == end["run"]["runId"]
        assert start["job"] == end["job"]
        assert start["eventTime"] <= end["eventTime"]
        assert names(start["inputs"]) == names(end["inputs"])
        assert names(start["outputs"]) == names(end["outputs"])
        assert set(start["run"]["facets"]) == {"parent", "processing_engine", "sparkLineage_application"}
        assert all(output["outputFacets"] == {} for output in start["outputs"])


def test_the_name_of_a_path_hangs_on_its_datasets_alone(task: TaskLineage) -> None:
    sales = ends(task)["sales"]["job"]["name"]
    # Written down, so that it stays what it is with every Python and every release.
    assert sales == "sales_fc81d16728e2@dag.task"
    other_run = ParentRun(ROOT.run_id, TASK.job_namespace, TASK.job_name)
    assert ends(structs.replace(task, actions=(), state="COMPLETE"), task=other_run)["sales"]["job"]["name"] == sales
    more = structs.replace(task.outputs[1], fed_by=(CUSTOMERS, ORDERS))
    less = structs.replace(task.outputs[1], fed_by=(ORDERS, CUSTOMERS))
    named = [ends(structs.replace(task, outputs=(each,)))["sales"]["job"]["name"] for each in (more, less)]
    assert named[0] == named[1] != sales


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        (DatasetName("postgres://db:5432", "shop.public.report"), "shop.public.report"),
        (DatasetName("s3://bucket", "/"), ""),
        (DatasetName("file", "/out/a b?c/"), "a_b_c"),
        (DatasetName("file", "/out/ümlaut"), "ümlaut"),
        (DatasetName("file", "/out/" + "x" * 100), "x" * 64),
        (DatasetName("jdbc://me:hunter2@db", "t"), "t"),
    ],
)
def test_a_path_is_readable(name: DatasetName, readable: str) -> None:
    (end,) = [
        e for e in sent(TaskLineage(state="COMPLETE", outputs=(DatasetLineage(name),))) if e["eventType"] != "START"
    ]
    job = end["job"]["name"].removesuffix("@dag.task")
    assert (job[:-13], len(job) - len(readable)) == (readable, 13) if readable else len(job) == 12
    assert "hunter2" not in json.dumps(end)


def test_run_ids_are_of_version_7_of_their_start_and_the_same_when_sent_twice(task: TaskLineage) -> None:
    events = sent(task)
    assert sent(task) == events
    starts = [event for event in events if event["eventType"] == "START"]
    assert len({event["run"]["runId"] for event in starts}) == len(starts)
    for event in starts:
        run_id = UUID(event["run"]["runId"])
        assert run_id.version == 7
        assert run_id.int >> 80 == datetime.fromisoformat(event["eventTime"]).timestamp() * 1000
    retried = sent(task, task=ParentRun(ROOT.run_id, "airflow", "dag.task"))
    assert not {event["run"]["runId"] for event in retried} & {event["run"]["runId"] for event in events}


@pytest.mark.parametrize("last", ["COMPLETE", "ABORT"])
def test_a_path_of_micro_batches_is_a_stream(task: TaskLineage, last: TaskState) -> None:
    batches = (
        action(1, (ORDERS,), (SALES,), is_streaming=True),
        action(2, (ORDERS,), (SALES,), is_streaming=True, state=last),
    )
    (path,) = ends(structs.replace(task, outputs=task.outputs[1:], attempted=(), actions=batches)).values()
    assert path["job"]["facets"]["jobType"]["processingType"] == "STREAMING"


def test_every_event_keeps_to_the_limit_and_says_what_it_cost(task: TaskLineage) -> None:
    columns = tuple(SchemaField(f"column_{number}", "string", "what it is for") for number in range(500))
    wide = structs.replace(task, outputs=(structs.replace(task.outputs[1], schema=columns),))
    for event in child_events(wide, "path", task=TASK, limit_bytes=20_000):
        assert len(to_json(event)) <= 20_000
    whole, cut = ends(wide)["sales"], ends(wide, limit_bytes=20_000)["sales"]
    assert whole["job"]["name"] == cut["job"]["name"]
    assert "sparkLineage_reduced" in cut["run"]["facets"]
    assert "sparkLineage_reduced" not in whole["run"]["facets"]


@pytest.mark.parametrize("recorded", FIXTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("task_state", ["COMPLETE", "FAIL", "ABORT"])
def test_the_children_of_a_recorded_application_tell_what_the_task_tells(recorded: Path, task_state: TaskState) -> None:
    collector = Collector()
    with recorded.open("rb") as stream:
        collector.read(stream, source=recorded.name)
    lineage = task_lineage(collector.state, task_state, has_actions=True)
    events = sent(lineage)
    assert [event["eventType"] for event in events[::2]] == ["START"] * (len(events) // 2)
    ended = events[1::2]
    done = [each for each in ended if each["outputs"]]
    assert sorted(names(each["outputs"])[0] for each in done) == sorted(each.dataset.name for each in lineage.outputs)
    assert {each["eventType"] for each in done} <= {"COMPLETE"}
    assert len(ended) - len(done) == len(lineage.attempted)
    assert all(start["eventTime"] <= end["eventTime"] for start, end in zip(events[::2], ended, strict=True))
    assert len({event["run"]["runId"] for event in events}) == len(ended)


def test_thousands_of_actions_are_followed_back_to_the_first(task: TaskLineage) -> None:
    count = 3_000
    tables = [DatasetName("file", f"/t/{number}") for number in range(count + 1)]
    # Each table is made of the one before, and of one that all append to.
    actions = tuple(
        action(number, (tables[number], SALES), (tables[number + 1], SALES), command="c") for number in range(count)
    )
    outputs = (DatasetLineage(tables[-1], fed_by=(tables[0],)), DatasetLineage(SALES, fed_by=(tables[0],)))
    chain = TaskLineage(state="COMPLETE", inputs=(DatasetLineage(tables[0]),), outputs=outputs, actions=actions)
    start, *_ = sent(chain)
    assert start["eventTime"] == "2024-01-31T12:00:00.000000Z"


def test_job_that_goes_on_starts_when_it_was_submitted() -> None:
    parent = (("spark.openlineage.parentRunId", TASK.run_id), ("spark.openlineage.parentJobName", "dag.task"))
    launch = Launch("/lineage", str(generate_new_uuid(NOON)), child="batch", parent=parent)

    assert going_on_event("START", TaskLineage("RUNNING"), launch).eventTime == "2024-01-31T12:00:00.000000Z"
