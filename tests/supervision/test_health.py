"""The health of servers that answer as real ones do not at will; ``tests/watch`` asks real ones, too."""

from __future__ import annotations

import json
import os
import re
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.supervision.health import ask_servers, send_gauges, who_runs
from spark_lineage.watch.endpoints import Endpoints

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from warm_python import WarmPython


@pytest.fixture
def health(tmp_path: Path, warm_python: WarmPython) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command on a connection."""

    def run(extra: dict[str, Any], *arguments: str, host: str = "yarn") -> subprocess.CompletedProcess[str]:
        connection = json.dumps({"conn_type": "spark", "host": host, "extra": extra})
        command = ("-m", "spark_lineage.cli", "health", "--conn-id", "my_spark", *arguments)
        env = {"AIRFLOW_CONN_MY_SPARK": connection, "AIRFLOW_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        return warm_python.run(*command, env=env)

    return run


@pytest.fixture
def extra(server: Any) -> dict[str, Any]:
    """A ResourceManager with an application that ended 100 s ago, of which the History Server knows nothing yet."""
    ended = [
        {"id": f"application_1_{number}", "finishedTime": (time.time() - 100 / number) * 1000} for number in (1, 2)
    ]
    metrics = {"appsRunning": 3, "appsCompleted": 4, "appsFailed": 2, "appsKilled": 1}
    manager = {
        "/ws/v1/cluster/info": (200, {"clusterInfo": {"state": "STARTED", "haState": "ACTIVE"}}),
        "/ws/v1/cluster/metrics": (200, {"clusterMetrics": metrics}),
        "*": (200, {"apps": {"app": ended}}),
    }
    history = {"/api/v1/version": (200, {"spark": "4.2.0"}), "*": (200, [{"id": "application_1_2"}])}
    return {"yarn_resourcemanager_webapp_address": server(manager), "history_server_url": server(history)}


def test_a_history_server_that_is_behind(health: Any, extra: dict[str, Any]) -> None:
    done = health(extra)
    assert done.returncode == 0, done.stderr
    manager, history = done.stdout.splitlines()
    url = extra["yarn_resourcemanager_webapp_address"]
    assert manager == f"up      YARN ResourceManager at {url}: ACTIVE, 3 running, 7 completed"
    assert history.startswith(
        f"up      History Server at {extra['history_server_url']}: Spark 4.2.0, 1 running, 1 compl"
    )
    assert re.search(r"behind by 1\d\d s", history), history
    assert history.endswith(
        "s: of 1 that ended within the last hour it does not know the end, first of application_1_1"
    )
    (_, told) = json.loads(health(extra, "--json").stdout)["servers"]
    assert (told["is_up"], told["missing"], 100 <= told["behind_seconds"] < 160) == (True, ["application_1_1"], True)


def test_only_what_succeeded_is_looked_for_on_a_history_server(server: Any) -> None:
    now = time.time()
    apps = [
        {"id": f"app-{state}", "state": state, "starttime": now * 1000, "duration": 0}
        for state in ("FINISHED", "KILLED")
    ]
    master = server({"/json/": (200, {"status": "ALIVE", "activeapps": [], "completedapps": apps})})
    history = server({"/api/v1/version": (200, {"spark": "4.2.0"}), "*": (200, [])})
    extra = {"master_ui_url": master, "history_server_url": history}
    (_, told) = ask_servers(Endpoints("spark://master:7077", "client", extra), now)
    assert told.missing == ["app-FINISHED"]


def test_a_standby_is_up_and_a_dead_one_is_not(health: Any, extra: dict[str, Any], server: Any, dead_port: int) -> None:
    standby = server({"/ws/v1/cluster/info": (200, {"clusterInfo": {"state": "STARTED", "haState": "STANDBY"}})})
    urls = f"{standby},{extra['yarn_resourcemanager_webapp_address']}"
    done = health({**extra, "yarn_resourcemanager_webapp_address": urls})
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"up      YARN ResourceManager at {standby}: STANDBY")
    done = health({**extra, "history_server_url": f"http://127.0.0.1:{dead_port}"})
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].startswith(f"down    History Server at http://127.0.0.1:{dead_port}")
    assert "Connection refused" in done.stdout


def test_what_is_no_master(health: Any, server: Any) -> None:
    done = health({"master_ui_url": server({"*": (200, {"status": "ALIVE"})})}, host="spark://127.0.0.1:7077")
    assert (done.returncode, "down    standalone master" in done.stdout) == (1, True)
    assert "it answers JSON of another shape" in done.stdout


def test_a_connection_that_names_no_server(health: Any) -> None:
    done = health({}, host="local")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the connection my_spark names no server: set history_server_url in its extra" in done.stderr


def yarn(*urls: str) -> Endpoints:
    return Endpoints("yarn", "cluster", {"yarn_resourcemanager_webapp_address": ",".join(urls)})


def standalone(url: str) -> Endpoints:
    return Endpoints("spark://master:7077", "client", {"master_ui_url": url})


def manager_of(states: dict[str, str], began: int) -> dict[str, tuple[int, Any]]:
    """Return what a ResourceManager answers that knows these applications; others of its own life have ended."""
    apps = {f"/ws/v1/cluster/apps/{name}": (200, {"app": {"state": state}}) for name, state in states.items()}
    return {**apps, "/ws/v1/cluster/info": (200, {"clusterInfo": {"id": began}}), "*": (404, {})}


def test_who_runs(server: Any, dead_port: int) -> None:
    states = {"application_1_7": "RUNNING", "application_1_8": "KILLED", "application_1_9": "ACCEPTED"}
    manager, idle = server(manager_of(states, 2)), server(manager_of({}, 3))
    applications = {"activeapps": [{"id": "app-1"}], "completedapps": [{"id": "app-2"}]}
    master = server({"/json/": (200, {"status": "ALIVE", **applications})})
    is_running = who_runs([yarn(f"http://127.0.0.1:{dead_port}", manager), yarn(idle), standalone(master)])
    assert {name: is_running(name) for name in (*states, "application_2_1", "application_3_1", "app-1", "app-2")} == {
        "application_1_7": True,
        "application_1_8": False,
        "application_1_9": True,
        "application_2_1": False,
        "application_3_1": False,
        "app-1": True,
        "app-2": False,
    }


@pytest.mark.parametrize("name", ["application_1_9", "application_4_1", "app-3", "local-1", "spark-1"])
def test_what_another_cluster_may_run_is_not_known(server: Any, name: str) -> None:
    master = server({"/json/": (200, {"status": "STANDBY", "activeapps": [], "completedapps": []})})
    manager = server(manager_of({"application_1_7": "RUNNING"}, 2))
    assert who_runs([yarn(manager), standalone(master), Endpoints("local", "client", {})])(name) is None


@pytest.mark.parametrize("name", ["application_1_8", "app-1", "local-1"])
def test_who_runs_on_a_cluster_that_does_not_answer_is_not_known(dead_port: int, name: str) -> None:
    dead = f"http://127.0.0.1:{dead_port}"
    assert who_runs([yarn(dead), standalone(dead)])(name) is None
    assert who_runs([])(name) is None


def test_send_gauges_sends_what_each_server_said(
    extra: dict[str, Any], dead_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[tuple[str, str], float] = {}

    def gauge(name: str, value: float, *, tags: dict[str, str]) -> None:
        assert tags["conn_id"] == "my_spark"
        sent[tags["server"], name.removeprefix("spark_lineage.health.")] = value

    monkeypatch.setattr("airflow.providers.common.compat.sdk.Stats", SimpleNamespace(gauge=gauge), raising=False)
    send_gauges(ask_servers(Endpoints("yarn", "client", extra), time.time()), "my_spark")
    assert 100 <= sent.pop(("History Server", "behind_seconds")) < 160
    manager, history = "YARN ResourceManager", "History Server"
    assert sent == {
        (manager, "up"): 1,
        (manager, "running"): 3,
        (manager, "completed"): 7,
        (history, "up"): 1,
        (history, "running"): 1,
        (history, "completed"): 1,
        (history, "missing"): 1,
    }
    sent.clear()
    dead = {"history_server_url": f"http://127.0.0.1:{dead_port}"}
    send_gauges(ask_servers(Endpoints("local", "client", dead), time.time()), "my_spark")
    assert sent == {(history, "up"): 0}
