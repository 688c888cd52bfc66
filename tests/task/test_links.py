"""The links that a task pushes: what they lead to, when, and without what is secret."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.launch.log import Guard
from spark_lineage.task.links import HISTORY, JOB, LINKS, UI, TaskLinks
from spark_lineage.view import XCOM_KEY

if TYPE_CHECKING:
    from laboratory import Bench

EVENTS = Path(__file__).parents[1] / "fixtures" / "events" / "a_414.ndjson"
UI_LINE = "26/01/01 00:00:00 INFO Utils: Successfully started service 'SparkUI' on port 4041."


def test_an_api_server_that_hangs_holds_up_no_task() -> None:
    class Hanging(Task):
        def xcom_push(self, key: str, value: str) -> None:
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
    pushed = [(key, value) for key, value in outcome.pushed if key != XCOM_KEY]
    job = ("spark_lineage_job", "http://marquez:3000/lineage/job/airflow-of-the-test/shop.load")
    (ui, *_) = [value for key, value in pushed if key == "spark_lineage_ui"]
    assert (pushed[0], ui.rpartition(":")[2]) == (job, "4041")
    last = dict(pushed)
    assert (last["spark_lineage_ui"], last["spark_lineage_job"]) == ("", job[1])
    assert last["spark_lineage_history"].startswith("http://history:18080/history/local-")
    assert len(pushed) == len(set(pushed)) == 4, "nothing is pushed twice"


def test_without_addresses_nothing_is_shown(bench: Bench) -> None:
    outcome = bench.run(lineage=[EVENTS], lineage_enabled=False)
    assert outcome.pushed == []
    outcome = bench.run()
    assert {key for key, _ in outcome.pushed} == {XCOM_KEY}


def test_each_index_of_a_mapped_task_may_have_a_job(bench: Bench) -> None:
    bench.connection["extra"] = {"lineage_url": MARQUEZ + "?run={run_id}"}
    outcome = bench.run(task={"map_index": 3}, map_index_in_job_name=True)
    url = dict(outcome.pushed)["spark_lineage_job"]
    assert url.partition("?run=")[0].endswith("/shop.load%5B3%5D")
    assert len(url.partition("?run=")[2]) == 36


@pytest.mark.parametrize(
    "url", ["http://m/{nope}", "http://m/{job", "http://[::1/{job}", "http://m/\n{job}", "m/{job}"]
)
def test_a_pattern_that_makes_no_url_is_said(bench: Bench, url: str) -> None:
    bench.connection["extra"] = {"lineage_url": url}
    outcome = bench.run()
    assert "spark_lineage_job" not in dict(outcome.pushed)
    assert "lineage_url makes no URL; give one of http or https, whose placeholders are {namespace}" in outcome.printed


class Task:
    """A task instance that keeps what is pushed."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.pushed: list[tuple[str, str]] = []
        self.trouble = trouble

    def xcom_push(self, key: str, value: str) -> None:
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
    return [value for _, value in task.pushed]


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


def test_airflow_asks_the_operator_at_the_end() -> None:
    operator = SimpleNamespace(lineage_links={"spark_lineage_history": "http://history"})
    assert [link.get_link(operator, ti_key=None) for link in (UI, HISTORY, JOB)] == ["", "http://history", ""]
    assert len({link.xcom_key for link in LINKS}) == len({link.name for link in LINKS}) == 5
