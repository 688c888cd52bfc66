"""The page "Lineage coverage" in Chromium, in an Airflow whose URL has a path.

With ``SPARK_LINEAGE_SCREENSHOTS=DIR`` it keeps pictures.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Browser, chromium
from lineage_backends.airflow_home import HOST, START_SECONDS, _environment
from lineage_backends.processes import Server, free_ports, listens

SCREENSHOTS = os.environ.get("SPARK_LINEAGE_SCREENSHOTS")
PAGE = ".spark-coverage"
pytestmark = [pytest.mark.airflow, pytest.mark.truth]


@pytest.fixture(scope="module")
def url(planted: dict[str, str]) -> Iterator[str]:
    home, (port,) = Path(planted["AIRFLOW_HOME"]), free_ports(1)
    url = f"http://{HOST}:{port}/airflow"
    env = _environment(home, url) | planted | {"AIRFLOW__API__BASE_URL": url}
    command = [sys.executable, "-m", "airflow", "api-server", "--apps", "core", "--workers", "1"]
    server = Server.start("api-server", [*command, "--host", HOST, "--port", str(port)], home / "api.log", env=env)
    try:
        server.wait_until(lambda: listens(port), START_SECONDS)
        yield url
    finally:
        server.stop()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


def test_page_shows_the_rows_of_the_command(url: str, browser: Browser) -> None:
    for width, name in ((1300, "wide"), (480, "narrow")):
        for scheme in ("light", "dark"):
            browser.driver.set_window_size(width, 1000)
            browser.color(scheme)
            browser.open(f"{url}/plugin/spark-lineage-coverage")
            browser.wait("the rows", lambda: browser.all(f"{PAGE} li"))
            assert "120 tasks that run Spark" in browser.texts(f"{PAGE} [role=status]")[0]
            assert len(browser.all(f"{PAGE} li")) == 19
            if SCREENSHOTS:
                browser.screenshot(Path(SCREENSHOTS) / f"coverage-{name}-{scheme}.png")
            assert browser.faults(PAGE) == []
            assert browser.run(f"const e = document.querySelector('{PAGE}'); return e.scrollWidth <= e.clientWidth")
    browser.driver.set_window_size(1300, 1000)
    browser.click(f"{PAGE} .filters button", "whole")
    browser.wait("all rows", lambda: len(browser.all(f"{PAGE} li")) == 120)
    browser.click(f"{PAGE} li a", "gaps.counting")
    browser.wait("the page of the task", lambda: browser.driver.current_url.endswith("/dags/gaps/tasks/counting"))
    assert browser.hosts() == {"/".join(url.split("/")[:3])}
