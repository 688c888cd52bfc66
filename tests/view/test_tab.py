"""The tab "Lineage" in Chromium, of a real Airflow whose URL has a path, with the demo on a real Spark.

With ``SPARK_LINEAGE_SCREENSHOTS=docs/images`` the pictures of the documentation are made anew.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import requests
from chromium import Browser, chromium
from lineage_backends.airflow_home import AirflowHome, airflow_home
from tab_events import wide_event
from waiting_driver import EVENTS, waiting_connection

from spark_lineage.view import compact

if TYPE_CHECKING:
    from fast_spark import FastSpark

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "dags_example"
SCREENSHOTS = os.environ.get("SPARK_LINEAGE_SCREENSHOTS")
ROWS = {
    "bronze/orders": "200 rows",
    "bronze/customers": "20 rows",
    "silver.db/orders": "194 rows",
    "silver/customers": "20 rows",
    "gold.db/revenue_by_country": "13 rows",
    "gold/top_customers": "10 rows",
}
LIMIT = 48_000
STATUS = ".spark-lineage [role=status]"
# What Airflow's database has of a run, by `rows`.
XCOMS = "SELECT key, value FROM xcom WHERE run_id = '{}'"
# Of an Airflow that lets a user read task instances, but no XComs.
NO_RIGHT = """const ask = window.fetch;
window.fetch = (url, ...more) => String(url).includes("xcomEntries")
  ? Promise.resolve(new Response("{}", { status: 403 })) : ask(url, ...more);"""

pytestmark = [pytest.mark.spark, pytest.mark.truth]


@dataclass
class Live:
    """The Airflow, in which ``failing`` and the demo have ended, and ``running`` waits."""

    airflow: AirflowHome
    folder: Path

    def ask(self, method: str, path: str, body: object = None) -> Any:
        token = requests.get(f"{self.airflow.url}/auth/token", timeout=60).json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        reply = requests.request(method, f"{self.airflow.url}/api/v2/{path}", json=body, headers=headers, timeout=60)
        assert reply.ok, reply.text
        return reply.json()

    def trigger(self, dag_id: str) -> str:
        return str(self.ask("POST", f"dags/{dag_id}/dagRuns", {"logical_date": None})["dag_run_id"])

    def state(self, dag_id: str, run_id: str) -> str:
        return str(self.ask("GET", f"dags/{dag_id}/dagRuns/{quote(run_id)}")["state"])

    def leave(self, dag_id: str, run_id: str, task_id: str, view: Any) -> None:
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/xcomEntries"
        self.ask("POST", path, {"key": "spark_lineage", "value": view, "map_index": -1})

    def page(self, dag_id: str, run_id: str, task: str) -> str:
        return f"{self.airflow.url}/dags/{dag_id}/runs/{quote(run_id)}/tasks/{task}/plugin/spark-lineage-task-instance"

    def wait(self, dag_id: str, run_id: str, seconds: float = 400) -> str:
        deadline = time.monotonic() + seconds
        while (state := self.state(dag_id, run_id)) not in ("success", "failed"):
            assert time.monotonic() < deadline, (dag_id, state)
            time.sleep(1)
        return state


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(scope="module")
def live(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, fast_spark: FastSpark, airflow_database: Path
) -> Iterator[Live]:
    # Short, for it is what the pictures show.
    folder = tmp_path_factory.mktemp("tab")
    home = folder / "airflow"
    (home / "dags" / "spark_jobs").mkdir(parents=True)
    for name in ("orders_medallion.py", "spark_jobs/orders_medallion.py"):
        shutil.copy(EXAMPLES / name, home / "dags" / name)
    shutil.copy(HERE / "programs" / "dags.py", home / "dags")
    shutil.copytree(EXAMPLES / "data", folder / "data")
    (folder / "orders.csv").write_text("order_id,amount\n" + "".join(f"{at},{at * 3}\n" for at in range(20)))
    transport = {"type": "file", "log_file_path": str(folder / "event")}
    spark = {
        "conn_type": "spark",
        "host": "local[2]",
        "extra": {"lineage_url": "http://marquez:3000/lineage/job/{namespace}/{job}"},
    }
    env = {
        **fast_spark.env,
        "LIVE": str(folder),
        "RECORDED": str(EVENTS),
        "TAB_PROGRAM": str(HERE / "programs" / "half.py"),
        "SPARK_LINEAGE_EXAMPLE_LAKE": str(folder),
        "SPARK_LINEAGE_EXAMPLE_DATA": str(folder / "data"),
        "XDG_CACHE_HOME": str(fast_spark.caches),
        "AIRFLOW__SPARK_LINEAGE__POLL_INTERVAL_SECONDS": "1",
        "AIRFLOW__CORE__AUTH_MANAGER": "hidden_dag.HiddenDag",
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "shop",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
    }
    env |= waiting_connection(folder, {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])})
    roots = [HERE / "programs", *(HERE.parents[1] / root for root in ("provider", "operators", "listeners"))]
    env["PYTHONPATH"] = os.pathsep.join(map(str, roots))
    with airflow_home(home, env, airflow_database, "/airflow") as airflow:
        airflow.wait_for_dags("orders_medallion", "failing", "running", "wide", "shop", "hidden")
        airflow.schedule()
        yield Live(airflow, folder)


@pytest.fixture(scope="module")
def demo(live: Live) -> str:
    run_id = live.trigger("orders_medallion")
    assert live.wait("orders_medallion", run_id) == "success"
    return run_id


def look(browser: Browser, url: str) -> str:
    """Open a page, and return what it says when it has drawn the tab."""
    browser.open(url)
    browser.wait("the tab", lambda: [text for text in browser.texts(STATUS) if not text.startswith("Reading")])
    return str(browser.texts(".spark-lineage")[0])


def pictured(browser: Browser, name: str, selector: str = ".spark-lineage") -> None:
    if SCREENSHOTS:
        browser.screenshot(Path(SCREENSHOTS) / f"tab-{name}.png", selector)


def choose(browser: Browser, label: str, value: str) -> None:
    """Choose an option of a selector, as a person does."""
    (select,) = [each for each in browser.all(".spark-lineage label") if each.text.startswith(label)]
    select.find_element("css selector", f"option[value='{value}']").click()


def nodes(browser: Browser, kind: str) -> dict[str, str]:
    """The note of each node of a kind, by its title."""
    return {text.splitlines()[0]: text.splitlines()[1] for text in browser.texts(f".node.{kind} .head")}


def test_the_demo_in_dark_and_light(live: Live, browser: Browser, demo: str) -> None:
    for scheme in ("dark", "light"):
        browser.color(scheme)
        said = look(browser, live.page("orders_medallion", demo, "build_gold"))
        assert "2 inputs, 6 outputs" in said
        assert "Links: Job in the backend (also under “Details” of the task)" in said
        assert nodes(browser, "input").keys() == {"data/orders.csv", "data/customers.csv"}
        found = nodes(browser, "output")
        assert {name: note.partition(" · ")[0] for name, note in found.items()} == ROWS
        assert "http://marquez:3000/lineage/job/shop/orders_medallion.build_gold" in [
            link.get_attribute("href") for link in browser.all(".spark-lineage a")
        ]
        browser.click(".node.output .head", "gold/top_customers")
        assert [text.splitlines()[0] for text in browser.texts(".node.output .column")] == [
            "customer_id",
            "name",
            "revenue",
        ]
        browser.click(".node.output .column", "revenue")
        browser.wait("its sources", lambda: "quantity" in " ".join(browser.texts(".node.input .column.lit")))
        assert len(browser.all("svg path.lit")) > 2
        pictured(browser, "task", "body")
        assert browser.faults(".spark-lineage") == []
    # The other way: what was made from a column.
    browser.click(".node.input .column", "quantity")
    browser.wait("what it made", lambda: "amount" in " ".join(browser.texts(".node.output .column.lit")))
    url = "http://marquez:3000/lineage/dataset/file/" + quote(f"{live.folder}/data/orders.csv", safe="")
    assert url in [link.get_attribute("href") for link in browser.all(".spark-lineage section a")]
    # Nothing but Airflow itself is asked.
    assert browser.hosts() == {"/".join(live.airflow.url.split("/")[:3])}


def test_task_leaves_one_xcom_that_has_its_links_too(live: Live, demo: str) -> None:
    ((key, value),) = live.airflow.rows(XCOMS.format(demo))
    assert key == "spark_lineage"
    assert "http://marquez:3000/lineage/job/shop/orders_medallion.build_gold" in value
    path = f"dags/orders_medallion/dagRuns/{quote(demo)}/taskInstances/build_gold/links"
    links = {name: url for name, url in live.ask("GET", path)["extra_links"].items() if url}
    assert links == {"Lineage": "http://marquez:3000/lineage/job/shop/orders_medallion.build_gold"}


def test_dataset_leads_to_the_task_that_wrote_it_last(live: Live, browser: Browser, demo: str) -> None:
    run_id = live.trigger("wide")
    live.wait("wide", run_id)
    look(browser, live.page("orders_medallion", demo, "build_gold"))
    browser.click(".node.output .head", "gold/top_customers")
    section = ".spark-lineage section[aria-label=Dataset]"
    browser.wait("its writer", lambda: "Last written by orders_medallion.build_gold" in browser.texts(section)[0])
    assert demo in browser.texts(section)[0]
    browser.click(".node.input .head", "data/orders.csv")
    browser.wait("no writer", lambda: "No lineage that you may read" in browser.texts(section)[0])
    view = compact(wide_event(2, 4), LIMIT)
    view["outputs"][0] |= {"name": f"{live.folder}/data/orders.csv"}
    live.leave("wide", run_id, "load", view | {"namespaces": ["file"]})
    look(browser, live.page("orders_medallion", demo, "build_gold"))
    browser.click(".node.input .head", "data/orders.csv")
    browser.wait("its writer", lambda: "Last written by wide.load" in browser.texts(section)[0])
    browser.click(f"{section} a", "wide.load")
    browser.wait("the page of the task", lambda: f"/runs/{quote(run_id)}/tasks/load/" in browser.driver.current_url)


def test_writer_is_none_of_a_dag_that_the_user_may_not_read(live: Live) -> None:
    view = compact(wide_event(2, 4), LIMIT)
    view["outputs"][0] |= {"name": "only/here"}
    for dag_id in ("wide", "hidden"):
        run_id = live.trigger(dag_id)
        live.wait(dag_id, run_id)
        live.leave(dag_id, run_id, "report", view)
    url = f"{live.airflow.url}/spark-lineage/writer?namespace=s3://warehouse&name=only/here"
    token = requests.get(f"{live.airflow.url}/auth/token", timeout=60).json()["access_token"]
    found = requests.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=60).json()
    assert (found["writer"]["dag_id"], found["writer"]["task_id"]) == ("wide", "report")


def test_earlier_tries_are_chosen_by_a_selector(live: Live, browser: Browser) -> None:
    run_id = live.trigger("wide")
    live.wait("wide", run_id)
    view = compact(wide_event(2, 4), LIMIT) | {"try": 2}
    failed = compact(wide_event(4, 4), LIMIT) | {"try": 1, "state": "FAIL", "run_id": "1", "error": "the first error"}
    live.leave("wide", run_id, "load", view | {"tries": [failed]})
    assert look(browser, live.page("wide", run_id, "load")).startswith("COMPLETE")
    choose(browser, "Try", "1")
    browser.wait("the first try", lambda: "the first error" in " ".join(browser.texts("pre.error")))
    assert browser.texts(STATUS)[0].startswith("FAIL")
    assert browser.faults(".spark-lineage") == []


def test_a_keyboard_is_enough(live: Live, browser: Browser, demo: str) -> None:
    look(browser, live.page("orders_medallion", demo, "build_gold"))
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    (head, *_) = browser.all(".node.input .head")
    head.send_keys(keys.ENTER)
    browser.wait("its columns", lambda: browser.texts(".node.input .column"))
    assert head.get_attribute("aria-expanded") == "true"


def test_a_failed_task_shows_its_error_and_what_it_attempted(live: Live, browser: Browser) -> None:
    run_id = live.trigger("failing")
    assert live.wait("failing", run_id) == "failed"
    said = look(browser, live.page("failing", run_id, "check"))
    assert said.startswith("FAIL")
    assert "an amount over 30" in browser.texts("pre.error")[0]
    assert nodes(browser, "output").keys() == {"out/kept"}
    assert nodes(browser, "vain") == {"out/checked": "attempted in vain: failed"}
    assert "Timeline" in browser.texts("h2")
    pictured(browser, "failed")
    browser.run("localStorage.setItem('timezone', JSON.stringify('Asia/Tokyo'))")
    assert "GMT+9" in look(browser, live.page("failing", run_id, "check"))
    browser.run("localStorage.removeItem('timezone')")
    assert browser.faults(".spark-lineage") == []


def test_a_running_job_turns_into_one_that_has_ended(live: Live, browser: Browser) -> None:
    run_id = live.trigger("running")
    look(browser, live.page("running", run_id, "wait/mapped/0"))
    browser.wait(
        "what it has read", lambda: nodes(browser, "input") and browser.texts(STATUS)[0].startswith("RUNNING"), 120
    )
    assert "The job is running" in " ".join(browser.texts(".note"))
    (live.folder / "w.released").touch()
    browser.wait("its end", lambda: browser.texts(STATUS)[0].startswith("COMPLETE"), 120)
    browser.wait("the end of its waiting", lambda: not browser.texts(".note"))
    script = "return performance.getEntriesByType('resource').filter(e => e.name.includes('spark_lineage?')).length"
    live.wait("running", run_id)
    time.sleep(6)
    asked = browser.run(script)
    time.sleep(6)
    assert browser.run(script) == asked, "it asks no more"


@pytest.mark.nightly
def test_500_datasets_and_20_000_columns(live: Live, browser: Browser) -> None:
    run_id = live.trigger("wide")
    live.wait("wide", run_id)
    view = compact(wide_event(500, 20_000), LIMIT)
    live.leave("wide", run_id, "load", view)
    said = look(browser, live.page("wide", run_id, "load"))
    assert "Left out: column lineage (10,000), columns (20,000)" in said
    # What is drawn bounds the time, whatever there is.
    assert browser.run("return document.querySelectorAll('.spark-lineage *').length") < 900
    assert len(browser.all(".node")) == 101
    (field,) = browser.all(".spark-lineage input[type=search]")
    field.send_keys("clean_orders_0249")
    browser.wait("the last one", lambda: len(browser.all(".node.output")) == 1)
    # Where a limit leaves room for all columns, no more are drawn.
    live.leave("wide", run_id, "report", compact(wide_event(2, 20_000), 10**7))
    look(browser, live.page("wide", run_id, "report"))
    browser.click(".node.output .head", "clean_orders")
    browser.wait("its columns", lambda: browser.all(".column"))
    assert len(browser.all(".column")) == 50
    assert browser.run("return document.querySelectorAll('.spark-lineage *').length") < 900


@pytest.mark.nightly
def test_earlier_runs_and_the_dag(live: Live, browser: Browser) -> None:
    runs = []
    for rows, columns in ((100, 4), (150, 4), (90, 6)):
        run_id = live.trigger("shop")
        live.wait("shop", run_id)
        load = json.dumps(compact(wide_event(2, columns, rows), LIMIT))
        # What the one writes, the other reads.
        report = load.replace("clean_orders", "sums_of_orders").replace("raw_orders", "clean_orders")
        live.leave("shop", run_id, "load", json.loads(load))
        live.leave("shop", run_id, "report", json.loads(report))
        runs.append(run_id)
    look(browser, live.page("shop", runs[-1], "load"))
    (plot,) = browser.wait("the plot", lambda: browser.all(".spark-lineage svg[role=img]"))
    assert plot.get_attribute("aria-label").endswith("100, 150, 90")
    labels = browser.run(
        "return [...document.querySelectorAll('.spark-lineage svg[role=img] text')].map(e => e.textContent)"
    )
    assert labels[::2] == ["100", "150", "90"]
    assert all(labels[1::2])
    found = [text for text in browser.texts(".spark-lineage tbody tr") if "manual__" in text]
    assert ["schema changed" in text for text in found] == [True, False, False]
    assert "+ column_00002 decimal(12,2)" in found[0]
    browser.run("document.querySelector('.spark-lineage svg[role=img]').scrollIntoView()")
    pictured(browser, "runs")
    assert browser.faults(".spark-lineage") == []
    options = browser.texts(".spark-lineage select option")
    assert len(options) == 3
    choose(browser, "Run", runs[0])
    browser.wait("the earlier run", lambda: f"/runs/{quote(runs[0])}/tasks/load/" in browser.driver.current_url)
    said = look(browser, f"{live.airflow.url}/dags/shop/plugin/spark-lineage-dag")
    assert "2 tasks" in said
    places = {one.text.splitlines()[0]: one.location["x"] for one in browser.all(".node")}
    assert [name.removeprefix("shop.db/").split("_")[0] for name in sorted(places, key=places.__getitem__)] == [
        "raw",
        "load",
        "clean",
        "report",
        "sums",
    ]
    browser.click(".tools button", "Fit")
    pictured(browser, "dag", "body")
    assert browser.faults(".spark-lineage") == []
    browser.click(".node .head", "shop.db/clean_orders")
    section = ".spark-lineage section[aria-label=Dataset]"
    browser.wait("its writer", lambda: "Last written by shop.load" in " ".join(browser.texts(section)))
    browser.click(".node.task .head", "report")
    browser.wait("the page of the task", lambda: f"/runs/{quote(runs[-1])}/tasks/report/" in browser.driver.current_url)


def test_what_is_not_there_is_explained(live: Live, browser: Browser) -> None:
    run_id = live.trigger("wide")
    live.wait("wide", run_id)
    said = look(browser, live.page("wide", run_id, "none"))
    assert "there is no lineage of it: EmptyOperator may collect none" in said
    assert "XComs were cleared" in said
    live.leave("wide", run_id, "none", "s3://xcoms/of/the/shop")
    said = look(browser, live.page("wide", run_id, "none"))
    assert said == "The lineage cannot be read: a custom XCom backend keeps it elsewhere."


def test_an_xcom_of_something_else_is_explained(live: Live, browser: Browser) -> None:
    view = compact(wide_event(2, 4), LIMIT)
    foreign = [5, {}, {**view, "v": 2}, {**view, "inputs": {"a": 1}}, {**view, "outputs": None}]
    for at, one in enumerate([view, *foreign, {**view, "timeline": [None]}]):
        run_id = live.trigger("wide")
        live.wait("wide", run_id)
        live.leave("wide", run_id, "report", one)
        said = look(browser, live.page("wide", run_id, "report"))
        if at == 0:
            assert said.startswith("COMPLETE")
            continue
        assert "another version of the provider, or something else, wrote the XCom spark_lineage" in said
        assert "cannot be drawn" in said if at == len(foreign) + 1 else "cannot be read" in said
        assert browser.texts("nav"), "the rest of Airflow's page stays"


def test_a_user_without_the_right_is_told(live: Live, browser: Browser) -> None:
    run_id = live.trigger("wide")
    live.wait("wide", run_id)
    browser.before_page(NO_RIGHT)
    said = look(browser, live.page("wide", run_id, "none"))
    assert said.startswith("You have no right to read the XComs")
