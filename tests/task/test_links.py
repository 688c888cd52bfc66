"""The links that a task pushes: what they lead to, when, and without what is secret."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.launch.log import Guard
from spark_lineage.task.links import HISTORY, KEY, LINKS, UI, TaskLinks
from spark_lineage.view import XCOM_KEY

if TYPE_CHECKING:
    from laboratory import Bench

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
UI_LINE = "26/01/01 00:00:00 INFO Utils: Successfully started service 'SparkUI' on port 4041."


def test_an_api_server_that_hangs_holds_up_no_task() -> None:
    class Hanging(Task):
        def xcom_push(self, key: str, value: Any) -> None:
            time.sleep(4)
            super().xcom_push(key, value)

    said: list[str] = []
    task, began = Hanging(), time.monotonic()
    for url in ("http://host:4040", "http://host:4041", "http://host:4042"):
        shown(task, url, said)
    assert time.monotonic() - began < 3.5
    assert any("Airflow's API server has not answered" in one for one in said)
    assert any("Airflow's API server hangs" in one for one in said)
    # It has its time, beside the task.
    while not task.pushed:
        time.sleep(0.1)


MARQUEZ = "http://marquez:3000/lineage/job/{namespace}/{job}"


def test_a_task_shows_its_ui_while_it_runs_and_its_history_afterwards(bench: Bench) -> None:
    bench.connection["extra"] = {"history_server_url": "http://history:18080", "lineage_url": MARQUEZ}
    outcome = bench.run(lineage=[EVENTS], log=[UI_LINE])
    assert {key for key, _ in outcome.pushed} == {XCOM_KEY}
    first, running, *_, last = [value for _, value in outcome.pushed]
    pages = {
        "Lineage": "http://marquez:3000/lineage/job/airflow-of-the-test/shop.load",
        "Dataset": "http://marquez:3000/lineage/dataset/{dataset_namespace}/{dataset}",
    }
    assert first == {"v": 1, "links": pages}
    assert running["links"].pop("Spark UI").rpartition(":")[2] == "4041"
    assert running == first
    assert last["state"] == "COMPLETE"
    assert last["links"].pop("Spark history").startswith("http://history:18080/history/local-")
    assert last["links"] == pages


def test_without_addresses_nothing_is_shown(bench: Bench) -> None:
    outcome = bench.run(lineage=[EVENTS], lineage_enabled=False)
    assert outcome.pushed == []
    outcome = bench.run()
    assert {key for key, _ in outcome.pushed} == {XCOM_KEY}


def test_each_index_of_a_mapped_task_may_have_a_job(bench: Bench) -> None:
    bench.connection["extra"] = {"lineage_url": MARQUEZ + "?run={run_id}"}
    outcome = bench.run(task={"map_index": 3}, map_index_in_job_name=True)
    url = outcome.pushed[-1][1]["links"]["Lineage"]
    assert url.partition("?run=")[0].endswith("/shop.load%5B3%5D")
    assert len(url.partition("?run=")[2]) == 36


@pytest.mark.parametrize(
    "url",
    ["http://m/{nope}", "http://m/{job", "http://[::1/{job}", "http://m/\n{job}", "m/{job}", "http://m http://m/{job}"],
)
def test_a_pattern_that_makes_no_url_is_said(bench: Bench, url: str) -> None:
    bench.connection["extra"] = {"lineage_url": url}
    outcome = bench.run()
    assert "Dataset" not in outcome.pushed[-1][1].get("links", {})
    assert "lineage_url makes no URL; give one of http or https, whose placeholders are {" in outcome.printed


def test_show_pages_takes_a_pattern_of_datasets_beside_that_of_the_job(bench: Bench) -> None:
    bench.connection["extra"] = {"lineage_url": "https://d/{job} https://d/search?query={dataset}"}
    links = bench.run().pushed[-1][1]["links"]
    assert links == {"Lineage": "https://d/shop.load", "Dataset": "https://d/search?query={dataset}"}


class Task:
    """A task instance that keeps what is pushed."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.pushed: list[tuple[str, Any]] = []
        self.trouble = trouble

    def xcom_push(self, key: str, value: Any) -> None:
        if self.trouble:
            raise self.trouble
        self.pushed.append((key, value))


def shown(task: Task, url: str | None, said: list[str] | None = None) -> list[str]:
    logger: Any = SimpleNamespace(
        **{level: lambda text, *words, **_: (said if said is not None else []).append(text % words)
           for level in ("debug", "info", "warning", "error")}
    )  # fmt: skip
    links = TaskLinks(task, Guard(lambda: True, logger))
    pushed = list(task.pushed)
    links.show(UI, url)
    assert task.pushed == pushed, "any thread may show a link, and the task's own pushes it"
    links.push()
    return [value["links"]["Spark UI"] for _, value in task.pushed]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host:4040", ["http://host:4040"]),
        ("http://user:word@host:4040/a", ["http://host:4040/a"]),
        ("https://host/?token=hunter2secret", ["https://host/?token=***"]),
        ("", []),
        (None, []),
        ("javascript:alert(1)", []),
        ("spark://host:7077", []),
    ],
)
def test_what_is_shown(url: str | None, expected: list[str]) -> None:
    assert shown(Task(), url) == expected


def test_trouble_does_not_fail_the_task() -> None:
    said: list[str] = []
    assert shown(Task(ConnectionError("the API server is away")), "http://host", said) == []
    assert any("A link of the task is not shown" in one for one in said)


def test_try_that_was_cleared_has_no_tab_and_no_warning() -> None:
    pytest.importorskip("airflow.sdk.execution_time.comms")
    from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
    from airflow.sdk.execution_time.comms import ErrorResponse

    event = EVENTS.read_bytes().splitlines()[0]

    def said(status: int) -> list[str]:
        warnings: list[str] = []
        log: Any = SimpleNamespace(
            warning=lambda text, *arguments: warnings.append(text % arguments), debug=lambda *_, **__: None
        )
        refusal = ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": status})
        task: Any = Task(AirflowRuntimeError(refusal))
        task.try_number = 1
        TaskLinks(task, Guard(lambda: True, log)).show_event("ABORT", event)
        return warnings

    assert said(404) == []
    assert [text.partition(":")[0] for text in said(500)] == ["The tab of the task does not show its lineage"]


def test_show_event_leaves_one_xcom_with_the_links_that_have_a_url() -> None:
    task: Any = Task()
    task.try_number = 1
    links = TaskLinks(task, Guard(lambda: True, SimpleNamespace()))
    links.show(HISTORY, "http://history")
    links.show(UI, "http://ui")
    links.push()
    links.show_event("RUNNING", EVENTS.read_bytes().splitlines()[0])
    view = {key: value for key, value in task.pushed[-1][1].items() if key != "links"}
    assert view["state"] == "START", "that of the event"
    links.show(UI, "")
    links.push()
    assert {key for key, _ in task.pushed} == {KEY} == {XCOM_KEY}
    assert task.pushed[-1][1] == {**view, "links": {"Spark history": "http://history"}}
    count = len(task.pushed)
    links.push()
    assert len(task.pushed) == count


def test_plugin_links_are_those_of_our_operators_and_of_stock_ones() -> None:
    from spark_lineage.listeners.plugin import SparkLineagePlugin

    links = SparkLineagePlugin.operator_extra_links
    assert [link.name for link in links] == [link.name for link in LINKS]
    names = {f"{operator.__module__}.{operator.__name__}" for operator in links[0].operators}
    assert "spark_lineage.operators.lineage_spark_submit.LineageSparkSubmitOperator" in names
    assert all(name.startswith("spark_lineage.") for name in names), "stock operators have links by the policy alone"
