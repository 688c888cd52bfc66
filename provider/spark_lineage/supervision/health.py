"""Whether the servers of a Spark installation are up, what runs there, and how far the History Server is behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from spark_lineage.http_client import HttpClient, NoAnswerError, place_of
from spark_lineage.settings.hadoop import resource_managers
from spark_lineage.settings.places import Places
from spark_lineage.watch.dialect import get_json
from spark_lineage.watch.endpoints import Endpoints

WINDOW_SECONDS = 3600.0
"""Applications that ended longer ago are not looked for on the History Server."""
_MOST_APPLICATIONS = 10_000
_HISTORY_SERVER = "History Server"
_OTHER_SHAPE = (LookupError, TypeError, ValueError, AttributeError)


@dataclass
class Server:
    """One server: ``state`` is what it says of itself, or why it does not answer; the numbers are of applications.

    ``missing`` are those that succeeded within the last hour, and of which the History Server does not know the end;
    the first of them ended ``behind_seconds`` ago. A killed driver never logs its end, so only successes count. An
    application that logs no events is always missing.
    """

    name: str
    url: str
    is_up: bool = True
    state: str = ""
    running: int | None = None
    completed: int | None = None
    missing: list[str] = field(default_factory=list)
    behind_seconds: float = 0.0


_Get = Callable[[str], Any]
_Ask = Callable[[Server, _Get, dict[str, float], float], None]


def ask_servers(endpoints: Endpoints, now: float) -> list[Server]:
    """Ask all servers that the endpoints name, the History Server last; ``now`` is in epoch seconds."""
    asked: list[tuple[str, str, _Ask]] = []
    if endpoints.master.startswith("spark://"):
        asked += [("standalone master", url, _ask_master) for url in endpoints.master_ui_urls]
    if endpoints.master.startswith("yarn"):
        asked += [("YARN ResourceManager", url, _ask_manager) for url in endpoints.yarn_urls]
    if endpoints.history_server_url:
        asked.append((_HISTORY_SERVER, endpoints.history_server_url, _ask_history))
    servers: list[Server] = []
    ended: dict[str, float] = {}
    with closing(endpoints.client()) as client:
        for name, url, query in asked:
            server = Server(name, place_of(url))
            servers.append(server)
            try:
                query(server, partial(_get, client, url), ended, now)
            except NoAnswerError as error:
                server.is_up, server.state = False, str(error)
            except _OTHER_SHAPE:
                server.is_up, server.state = False, "it answers JSON of another shape"
    return servers


def endpoints_of(conn_id: str) -> Endpoints:
    """Return the servers that a Spark connection or Hadoop's configuration names; for a missing one, those of YARN.

    :raises SettingError: when its extra does not fit
    """
    places = Places.of(conn_id, {})
    yarn_urls = resource_managers(os.environ)
    return Endpoints(places.master, "client", places.extra, places.status, yarn_urls=yarn_urls)


def send_gauges(servers: Sequence[Server], conn_id: str) -> None:
    """Send the numbers of servers to Airflow's metrics, as gauges with the tags ``conn_id``, ``server`` and ``url``.

    They are ``spark_lineage.health.up`` (1 or 0), ``running``, ``completed``, ``missing`` and ``behind_seconds``; what
    a server has not said is left out.
    """
    from airflow.providers.common.compat.sdk import Stats

    for server in servers:
        tags = {"conn_id": conn_id, "server": server.name, "url": server.url}
        numbers = {"up": int(server.is_up), "running": server.running, "completed": server.completed}
        if server.name == _HISTORY_SERVER and server.is_up:
            numbers |= {"missing": len(server.missing), "behind_seconds": server.behind_seconds}  # type: ignore[dict-item]
        for name, number in numbers.items():
            if number is not None:
                Stats.gauge(f"spark_lineage.health.{name}", number, tags=tags)


def who_runs(clusters: Iterable[Endpoints]) -> Callable[[str], bool | None]:
    """Have the cluster managers asked of each application.

    :return: whether an application runs, by its id; None for one that no manager of its kind knows: it may run on
        another cluster
    """
    known = list(clusters)

    @cache
    def is_running(application_id: str) -> bool | None:
        is_yarn = application_id.startswith("application_")
        for endpoints in known:
            if not endpoints.master.startswith("yarn" if is_yarn else "spark://"):
                continue
            for url in endpoints.yarn_urls if is_yarn else endpoints.master_ui_urls:
                with closing(endpoints.client()) as client, suppress(NoAnswerError, *_OTHER_SHAPE):
                    runs = (_runs_on_yarn if is_yarn else _runs_on_master)(partial(_get, client, url), application_id)
                    if runs is not None:
                        return runs
        return None

    return is_running


def _runs_on_yarn(get: _Get, application_id: str) -> bool | None:
    """Ask ``/ws/v1/cluster/apps/{id}``: one that a manager has begun since its start, and has forgotten, has ended."""
    try:
        return get(f"/ws/v1/cluster/apps/{application_id}")["app"]["state"] not in {"FINISHED", "FAILED", "KILLED"}
    except NoAnswerError as error:
        if error.http_status != HTTPStatus.NOT_FOUND:
            raise
    began = get("/ws/v1/cluster/info")["clusterInfo"]["id"]
    return False if application_id.startswith(f"application_{began}_") else None


def _runs_on_master(get: _Get, application_id: str) -> bool | None:
    """Ask ``/json/``, which has the last 200 that have ended (``spark.deploy.retainedApplications``)."""
    answer = get("/json/")
    for is_running, kind in ((True, "activeapps"), (False, "completedapps")):
        if any(one["id"] == application_id for one in answer[kind]):
            return is_running
    return None


def _get(client: HttpClient, url: str, path: str) -> Any:
    return get_json(client, f"{url}{path}")


def _ask_master(server: Server, get: _Get, ended: dict[str, float], now: float) -> None:
    """Ask ``/json/`` (``JsonProtocol.writeMasterState``)."""
    answer = get("/json/")
    server.state = str(answer["status"])
    server.running, server.completed = len(answer["activeapps"]), len(answer["completedapps"])
    finished = (one for one in answer["completedapps"] if one["state"] == "FINISHED")
    ends = {one["id"]: (one["starttime"] + one["duration"]) / 1000 for one in finished}
    ended.update({key: end for key, end in ends.items() if end > now - WINDOW_SECONDS})


def _ask_manager(server: Server, get: _Get, ended: dict[str, float], now: float) -> None:
    """Ask ``/ws/v1/cluster/info``, and of the active one ``…/metrics`` and ``…/apps``."""
    info = get("/ws/v1/cluster/info")["clusterInfo"]
    server.state = str(info.get("haState") or info["state"])
    if server.state == "STANDBY":
        return
    metrics = get("/ws/v1/cluster/metrics")["clusterMetrics"]
    server.running = metrics["appsRunning"]
    server.completed = sum(metrics[f"apps{how}"] for how in ("Completed", "Failed", "Killed"))
    since = f"finishedTimeBegin={(now - WINDOW_SECONDS) * 1000:.0f}"
    query = f"applicationTypes=SPARK&finalStatus=SUCCEEDED&{since}&limit={_MOST_APPLICATIONS}"
    found = (get(f"/ws/v1/cluster/apps?{query}")["apps"] or {}).get("app", ())
    ended.update({one["id"]: one["finishedTime"] / 1000 for one in found})


def _ask_history(server: Server, get: _Get, ended: dict[str, float], now: float) -> None:
    """Ask ``/api/v1/version`` and ``/api/v1/applications``; of the running and the completed it counts up to 10,000."""
    server.state = f"Spark {get('/api/v1/version')['spark']}"
    running, completed = (
        {one["id"] for one in get(f"/api/v1/applications?status={status}&limit={_MOST_APPLICATIONS}")}
        for status in ("running", "completed")
    )
    server.running, server.completed = len(running), len(completed)
    server.missing = sorted(ended.keys() - completed, key=lambda key: ended[key])
    if server.missing:
        server.behind_seconds = round(max(0.0, now - ended[server.missing[0]]), 1)
