"""With ``lineage_enabled=False`` the operator is the stock one: it starts, requests and calls the same, and no more."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from cluster_manager import APPLICATION_ID, DRIVER_LINE, Cluster
from http_server import serving

STOCK = "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator"
OURS = "spark_lineage.operators.lineage_spark_submit.LineageSparkSubmitOperator"
YARN_LINE = f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"
POD_LINE = "INFO LoggingPodStatusWatcherImpl: Application job with submission ID spark:job-0a1b-driver into Kubernetes"
QUEUES = {"owner:airflow": ["etl"]}
# What fits none of the keys of the Spark provider: the settings of ours, which nothing may read.
EXTRA = {"queues": QUEUES, "status_conn_id": "servers"}


@pytest.fixture
def spark(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Makes a ``spark-submit`` that prints lines; returns the environment that has it."""

    def made(*lines: str, exit_code: int = 0) -> dict[str, str]:
        binaries = tmp_path / "bin"
        binaries.mkdir()
        status = 'case "$*" in *--status*|*--kill*) exit 0;; esac'
        # A task that is killed is so when the output has ended.
        end = f"exec >&- 2>&-; sleep 0.5; exit {exit_code}"
        text = "\n".join(["#!/bin/sh", *(f"echo {shlex.quote(line)}" for line in lines), status, end])
        (binaries / "spark-submit").write_text(f"{text}\n")
        (binaries / "spark-submit").chmod(0o755)
        return {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}

    return made


@pytest.fixture
def recorded(laboratory: Any, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs an operator on a connection, and returns what it did."""

    def run(
        operator: str,
        connection: dict[str, Any],
        env: dict[str, str],
        *,
        store: dict[str, Any] | None = None,
        is_by_policy: bool = False,
        kills: bool = False,
        **arguments: Any,
    ) -> dict[str, Any]:
        result, printed = tmp_path / "result.json", tmp_path / "printed.txt"
        result.unlink(missing_ok=True)
        scenario = {
            "program": "recorded_operator",
            "class": operator,
            "arguments": {"application": "job.py", **arguments},
            "store": store,
            "is_by_policy": is_by_policy,
            "kills": kills,
            "env": {"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", **connection}), **env},
            "hanging": None,
            "limit_seconds": 60,
            "result": str(result),
            "printed": str(printed),
        }
        laboratory.run(scenario)
        assert result.exists(), printed.read_text()[-4000:]
        found: dict[str, Any] = json.loads(result.read_text())
        return found

    return run


@pytest.fixture
def compared(recorded: Callable[..., dict[str, Any]], laboratory: Any) -> Callable[..., dict[str, Any]]:
    """Runs the stock operator and ours without lineage, which have to do the same; returns what that is."""

    def run(connection: dict[str, Any], env: dict[str, str], **arguments: Any) -> dict[str, Any]:
        before = sorted(laboratory.home.glob("spark_lineage*/**"))
        stock = recorded(STOCK, connection, env, **arguments)
        ours = recorded(OURS, connection, env, lineage_enabled=False, **arguments)
        for what in stock:
            assert ours[what] == stock[what], what
        assert sorted(laboratory.home.glob("spark_lineage*/**")) == before, "no files"
        return stock

    return run


@pytest.fixture
def kubernetes(tmp_path: Path) -> Iterator[tuple[dict[str, str], list[str]]]:
    """An API server that knows one pod, which has succeeded; gives the environment that leads there, and requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_there = self.path.startswith("/api/v1/namespaces/jobs/pods/job-0a1b-driver")
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            pod = {"kind": "Pod", "metadata": {"name": "job-0a1b-driver"}, "status": {"phase": "Succeeded"}}
            self.wfile.write(json.dumps(pod if is_there else {}).encode())

        do_DELETE = do_GET

        def log_message(self, *_: object) -> None: ...

    with serving(Handler) as url:
        user = {"name": "me", "context": {"cluster": "here", "user": "me"}, "cluster": {"server": url}, "user": {}}
        names = {"contexts": "context", "clusters": "cluster", "users": "user"}
        lists = {key: [{"name": "here" if key == "clusters" else "me", one: user[one]}] for key, one in names.items()}
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "me", **lists}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        section = "AIRFLOW__KUBERNETES_EXECUTOR__"
        yield {f"{section}IN_CLUSTER": "False", f"{section}CONFIG_FILE": str(tmp_path / "kubeconfig")}, asked


LOCAL = {"host": "local[2]", "extra": EXTRA}


@pytest.mark.parametrize(
    ("exit_code", "arguments"),
    [
        (0, {"conf": {"spark.ui.enabled": "false"}, "env_vars": {"A": "b"}, "post_submit_commands": ["true"]}),
        (3, {"application_args": ["--password", "hunter2"], "yarn_queue": "secret"}),
        (0, {"kills": True}),
    ],
)
def test_client_mode_without_lineage_does_what_the_stock_operator_does(
    spark: Any, recorded: Any, compared: Any, exit_code: int, arguments: dict[str, Any]
) -> None:
    env = spark("a line", exit_code=exit_code)
    stock = compared(LOCAL, env, **arguments)
    assert stock["processes"]
    assert recorded(OURS, LOCAL, env, lineage_enabled=False, deferrable=True, **arguments) == stock
    assert recorded(OURS, LOCAL, env, **arguments)["processes"] != stock["processes"], "with lineage it differs"


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        ({}, "ValueError: YARN cluster mode with durable=True requires yarn_track_via_rm_api=True."),
        ({"durable": False}, ""),
        ({"durable": False, "kills": True}, ""),
        ({"yarn_track_via_rm_api": True, "post_submit_commands": ["true"], "yarn_queue": "secret"}, ""),
        ({"yarn_track_via_rm_api": True, "kills": True}, ""),
        ({"yarn_track_via_rm_api": True, "store": {"spark_job_id": APPLICATION_ID}}, ""),
    ],
)
def test_yarn_cluster_without_lineage_does_what_the_stock_operator_does(
    spark: Any, compared: Any, arguments: dict[str, Any], end: str
) -> None:
    with Cluster(["SUCCEEDED"]).serving() as manager:
        address = {"yarn_resourcemanager_webapp_address": f"http://127.0.0.1:{manager.port}"}
        connection = {"host": "yarn", "extra": {"deploy-mode": "cluster", **EXTRA, **address}}
        stock = compared(connection, spark(YARN_LINE), **{"store": {}, **arguments})
    assert stock["end"].startswith(end)
    assert bool(stock["end"]) == bool(end)
    assert bool(stock["requests"]) == (arguments.keys() >= {"yarn_track_via_rm_api"} or "kills" in arguments)


@pytest.mark.truth
@pytest.mark.parametrize(
    ("host", "state", "kills"),
    [
        ("spark://127.0.0.1", "FINISHED", False),
        ("spark://127.0.0.1", "FAILED", False),
        ("spark://127.0.0.1", "KILLED", True),
        ("spark://127.0.0.1,localhost", "FINISHED", False),
        ("spark://127.0.0.1,localhost", "FINISHED", True),
    ],
)
def test_standalone_cluster_without_lineage_does_what_the_stock_operator_does(
    spark: Any, recorded: Any, compared: Any, host: str, state: str, *, kills: bool
) -> None:
    with Cluster([state]).serving() as master:
        connection = {
            "host": host,
            "port": 7077,
            "extra": {"deploy-mode": "cluster", "rest-port": master.port, **EXTRA},
        }
        env = spark(DRIVER_LINE, '"driverState" : "FINISHED",')
        stock = compared(connection, env, store={}, kills=kills)
        has_curl = CURL in binaries(stock)
        assert has_curl == ("," not in host)
        assert CURL not in binaries(recorded(OURS, connection, env, store={}, kills=kills)), "with lineage"


CURL = "/usr/bin/curl"


def binaries(done: dict[str, Any]) -> list[str]:
    return [args[0] for args, *_ in done["processes"]]


@pytest.mark.parametrize(
    ("namespace", "is_tracked", "kills"),
    [
        ("jobs", True, False),
        ("jobs", True, True),
        ("jobs", False, False),
        ("jobs", False, True),
        ("others", True, False),
    ],
)
def test_kubernetes_without_lineage_does_what_the_stock_operator_does(
    spark: Any, kubernetes: Any, compared: Any, namespace: str, *, is_tracked: bool, kills: bool
) -> None:
    env, asked = kubernetes
    extra = {"deploy-mode": "cluster", "namespace": namespace, **EXTRA}
    stock = compared(
        {"host": "k8s://https://127.0.0.1:1", "extra": extra},
        spark(POD_LINE, "Exit code: 0") | env,
        track_driver_via_k8s_api=is_tracked,
        store={},
        kills=kills,
    )
    assert stock["processes"]
    assert bool(stock["requests"]) == bool(asked) == (is_tracked or kills)


def without_look_ups(done: dict[str, Any]) -> dict[str, Any]:
    """Return what was done but for reading a connection, which may be what turns lineage off."""
    return done | {"calls": [call for call in done["calls"] if not call.startswith("airflow.sdk.bases.hook.")]}


@pytest.mark.parametrize("is_by_policy", [True, False])
@pytest.mark.parametrize("place", ["extra", "section"])
def test_lineage_off_elsewhere_does_what_the_stock_operator_does(
    spark: Any, recorded: Any, place: str, *, is_by_policy: bool
) -> None:
    connection, env = {"host": "yarn", "extra": {"deploy-mode": "cluster", **EXTRA}}, spark(YARN_LINE)
    stock = recorded(STOCK, connection, env)
    assert stock["end"].startswith("ValueError: ")
    if place == "extra":
        connection["extra"] |= {"lineage_enabled": "false"}
    else:
        env |= {"AIRFLOW__SPARK_LINEAGE__LINEAGE_ENABLED": "False"}
    ours = recorded(STOCK if is_by_policy else OURS, connection, env, is_by_policy=is_by_policy)
    ours["processes"] = [
        [args, [one for one in env if "SPARK_LINEAGE" not in one[0]], *more] for args, env, *more in ours["processes"]
    ]
    assert without_look_ups(ours) == without_look_ups(stock)
