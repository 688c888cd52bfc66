from __future__ import annotations

from typing import Any

import pytest
from dialogues import polled

from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import StatusSummary
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources

EXTRA = {"history_server_url": "http://history:18080", "yarn_resourcemanager_webapp_address": "rm:8088"}
ID = "application_1_0001"


@pytest.mark.parametrize(
    ("master", "deploy_mode", "manager"),
    [
        ("local[2]", "client", []),
        ("spark://a:7077,b:7077", "client", ["standalone master"]),
        ("spark://a:7077", "cluster", ["standalone REST server", "standalone master"]),
        ("yarn", "client", ["YARN ResourceManager"]),
        ("yarn", "cluster", ["YARN ResourceManager"]),
        ("k8s://https://api", "client", []),
        ("k8s://https://api", "cluster", ["Kubernetes"]),
    ],
)
def test_what_fits(master: str, deploy_mode: str, manager: list[str]) -> None:
    sources = Sources(Endpoints(master, deploy_mode, EXTRA), Driver())
    assert [one.name for one in sources.while_running] == [*manager, "driver UI"]
    assert [one.name for one in sources.at_the_end] == [*manager, "History Server"]
    # Nothing is known yet, so that nobody is asked.
    assert [polled(one) for one in (*sources.while_running, *sources.at_the_end)] == [[]] * (2 + 2 * len(manager))


def test_what_has_no_address_is_left_out() -> None:
    sources = Sources(Endpoints("yarn", "cluster", {}), Driver(application_id=ID))
    assert [one.name for one in sources.while_running] == ["driver UI"]
    assert (sources.at_the_end, sources.ui.progress) == ([], "")
    links = sources.linked(StatusSummary(), ID)
    assert (links.ui_url, links.history_url, links.logs_url) == (None, None, None)


def test_links() -> None:
    known = Driver(ui_url="http://driver:4040")
    sources = Sources(Endpoints("local", "client", EXTRA), known)
    assert sources.linked(StatusSummary(), None).history_url is None
    links = sources.linked(StatusSummary(), "local-1")
    assert links.ui_url == "http://driver:4040"
    assert links.history_url == "http://history:18080/history/local-1/jobs/"


def test_the_address_of_the_connection_wins() -> None:
    extra = {"driver_ui_url": "https://proxy/{application_id}"}
    known = Driver(ui_url="http://driver:4040")
    sources = Sources(Endpoints("local", "client", extra), known)
    assert sources.linked(StatusSummary(), None).ui_url == "http://driver:4040"
    known.application_id = "local-1"
    assert sources.linked(StatusSummary(), None).ui_url == "https://proxy/local-1"


def test_yarn_leads_to_the_ui_and_to_the_logs(loopback: Any) -> None:
    proxy, logs = f"{loopback.url}/proxy/{ID}", "http://nm:8042/node/containerlogs/c/me"
    running = {"state": "RUNNING", "trackingUrl": f"{proxy}/", "amContainerLogs": logs}
    loopback.reply(f"/ws/v1/cluster/apps/{ID}", json={"app": running})
    attempt = {"attemptId": "1", "completed": True}
    loopback.reply(f"/proxy/{ID}/api/v1/applications", json=[{"id": ID, "attempts": [attempt]}])
    loopback.reply(f"/proxy/{ID}/api/v1/applications/{ID}/1/jobs", json=[{"jobId": 0, "status": "RUNNING"}])
    loopback.reply(f"/api/v1/applications/{ID}", json={"id": ID, "attempts": [attempt]})
    loopback.reply(f"/api/v1/applications/{ID}/1/jobs", json=[])
    extra = {"yarn_resourcemanager_webapp_address": loopback.url, "history_server_url": loopback.url}
    # In cluster mode the provider's id of the driver is that of the application.
    known = Driver(driver_id=ID, ui_url="http://127.0.0.1:1")
    sources = Sources(Endpoints("yarn", "cluster", extra), known)
    yarn, ui = sources.while_running
    assert {(one.subject, one.status) for one in polled(yarn)} == {("DRIVER", "RUNNING"), ("APPLICATION", "RUNNING")}
    assert {(one.subject, one.application_id) for one in polled(ui)} == {("APPLICATION", ""), ("SPARK_JOB", f"{ID}/1")}
    assert sources.ui.progress == "0 of 1 jobs done; 0 of 0 stages done"
    known.application_id = ID
    for source in sources.at_the_end:
        polled(source)
    links = sources.linked(StatusSummary(), ID)
    assert (links.ui_url, links.logs_url) == (proxy, logs)
    assert links.history_url == f"{loopback.url}/history/{ID}/1/jobs/"
    assert links.manager_url == f"{loopback.url}/cluster/app/{ID}"


def test_a_master_that_answers_shows_the_application(loopback: Any) -> None:
    app = {"id": "app-1", "state": "RUNNING", "starttime": 1}
    loopback.reply("/json/", json={"status": "ALIVE", "activeapps": [app]})
    known = Driver(application_id="app-1")
    sources = Sources(Endpoints("spark://a:7077", "client", {"master_ui_url": loopback.url}), known)
    assert sources.linked(StatusSummary(), "app-1").manager_url is None
    assert [len(polled(one)) for one in sources.managers] == [2]
    assert sources.linked(StatusSummary(), "app-1").manager_url == f"{loopback.url}/app/?appId=app-1"
    assert sources.linked(StatusSummary(), None).manager_url is None


def test_a_driver_in_client_mode_is_not_asked_of_the_master(loopback: Any) -> None:
    extra = {"master_ui_url": loopback.url}
    sources = Sources(Endpoints("spark://a:7077", "client", extra), Driver(driver_id="4711"))
    assert [polled(one) for one in sources.at_the_end] == [[]]
    assert not loopback.asked
