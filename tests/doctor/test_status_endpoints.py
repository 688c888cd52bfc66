"""Status endpoints that answer, do not, or do not let us in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dialogues import http_connection

from spark_lineage.doctor.status_endpoints import check_status_endpoints


def told(findings: Any) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in findings]


def test_a_history_server_that_answers(setup: Any, server: Any) -> None:
    url = server({"/api/v1/version": (200, {"spark": "3.5.1"})})
    found = told(check_status_endpoints(setup(extra={"history_server_url": url})))
    assert found == [("ok", f"History Server at {url}: Spark 3.5.1")]


def test_a_login_that_is_missing_and_one_that_is_wrong(setup: Any, server: Any) -> None:
    url = server({"*": (401, {})})
    for connection in (None, http_connection(None, "hunter2-token")):
        checked = setup(extra={"history_server_url": url})
        checked = replace(checked, places=replace(checked.places, status=connection))
        (found,) = check_status_endpoints(checked)
        assert (found.level, found.text) == (
            "warning",
            f"History Server: {url}/api/v1/version answered HTTP 401",
        )
        assert "status_conn_id" in found.remedy
        assert "hunter2" not in repr(found)


def test_a_dead_port_and_what_is_no_json(setup: Any, dead_port: int, server: Any) -> None:
    (found,) = check_status_endpoints(setup(extra={"history_server_url": f"http://127.0.0.1:{dead_port}"}))
    assert found.level == "warning"
    assert "Connection refused" in found.text
    assert "history_server_url" in found.remedy
    url = server({"*": (200, ["a list"])})
    ((level, _),) = told(check_status_endpoints(setup(extra={"history_server_url": url})))
    assert level == "warning"


def test_no_history_server(setup: Any) -> None:
    ((level, text),) = told(check_status_endpoints(setup()))
    assert (level, text.startswith("no history_server_url")) == ("ok", True)


def test_standalone_masters(setup: Any, server: Any) -> None:
    alive, standby = (server({"/json/": (200, {"status": status})}) for status in ("ALIVE", "STANDBY"))
    port = server({"/v1/submissions/status/driver-0": (200, {"success": False})}).rpartition(":")[2]
    extra = {"master_ui_url": f"{alive},{standby}", "rest-port": port}
    master = "spark://127.0.0.1:7077"
    found = told(check_status_endpoints(setup(extra={**extra, "deploy-mode": "cluster"}, master=master)))
    assert found[:3] == [
        ("ok", f"UI of the standalone master at {alive}: ALIVE"),
        ("ok", f"UI of the standalone master at {standby}: STANDBY"),
        ("ok", f"REST server of the standalone master at http://127.0.0.1:{port}: it answers"),
    ]


def test_yarn(setup: Any, server: Any) -> None:
    url = server({"/ws/v1/cluster/info": (200, {"clusterInfo": {"state": "STARTED"}})})
    cluster = {"deploy-mode": "cluster"}
    extra = {**cluster, "yarn_resourcemanager_webapp_address": url}
    first, *_ = told(check_status_endpoints(setup(extra=extra, master="yarn")))
    assert first == ("ok", f"ResourceManager at {url}: STARTED")
    assert told(check_status_endpoints(setup(extra=cluster, master="yarn")))[0][0] == "warning"
    assert told(check_status_endpoints(setup(master="yarn")))[0][0] == "ok"


def test_kubernetes(setup: Any, server: Any) -> None:
    for status, level in ((404, "ok"), (403, "warning"), (401, "warning"), (200, "ok")):
        url = server({"*": (status, {"kind": "Status"})})
        found = told(check_status_endpoints(setup(extra={"deploy-mode": "cluster"}, master=f"k8s://{url}")))
        assert found[0][0] == level


def test_a_setting_that_does_not_fit(setup: Any) -> None:
    ((level, text),) = told(check_status_endpoints(setup(extra={"status_conn_id": "gone"})))
    assert (level, "there is no such connection" in text) == ("warning", True)
