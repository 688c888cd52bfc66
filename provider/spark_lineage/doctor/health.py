"""Whether the servers of a Spark installation are up, what runs there, and how far the History Server is behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.rest import NoAnswerError, RestClient, place_of

WINDOW_SECONDS = 3600.0
"""Applications that ended longer ago are not looked for on the History Server."""
_MOST_APPLICATIONS = 10_000


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
    """Ask all servers that the endpoints name: masters and ResourceManagers, and then the History Server.

    :param now: in epoch seconds
    """
    asked: list[tuple[str, str, _Ask]] = []
    if endpoints.master.startswith("spark://"):
        asked += [("standalone master", url, _ask_master) for url in endpoints.master_ui_urls]
    if endpoints.master.startswith("yarn"):
        asked += [("YARN ResourceManager", url, _ask_manager) for url in endpoints.yarn_urls]
    if endpoints.history_server_url:
        asked.append(("History Server", endpoints.history_server_url, _ask_history))
    servers: list[Server] = []
    ended: dict[str, float] = {}
    client = endpoints.client()
    try:
        for name, url, ask in asked:
            server = Server(name, place_of(url))
            servers.append(server)
            try:
                ask(server, partial(_get, client, url), ended, now)
            except NoAnswerError as error:
                server.is_up, server.state = False, str(error)
            except (LookupError, TypeError, ValueError, AttributeError):
                server.is_up, server.state = False, "it answers JSON of another shape"
    finally:
        client.close()
    return servers


def who_runs(clusters: Iterable[Endpoints]) -> Callable[[str], bool | None]:
    """Ask the cluster managers which applications they have not ended.

    :return: whether an application runs, by its id; None for one whose kind of cluster was not asked, or has not
        answered
    """
    running: set[str] = set()
    answers: dict[str, list[bool]] = {}
    for endpoints in clusters:
        is_yarn = endpoints.master.startswith("yarn")
        if not is_yarn and not endpoints.master.startswith("spark://"):
            continue
        client = endpoints.client()
        has_answered = False
        for url in endpoints.yarn_urls if is_yarn else endpoints.master_ui_urls:
            with closing(client), suppress(NoAnswerError, LookupError, TypeError, ValueError, AttributeError):
                running |= (_running_on_yarn if is_yarn else _running_on_master)(partial(_get, client, url))
                has_answered = True
        answers.setdefault("application_" if is_yarn else "app-", []).append(has_answered)

    def is_running(application_id: str) -> bool | None:
        asked = next((answers[prefix] for prefix in answers if application_id.startswith(prefix)), [False])
        return application_id in running or (False if all(asked) else None)

    return is_running


def _running_on_yarn(get: _Get) -> set[str]:
    states = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
    return {one["id"] for one in (get(f"/ws/v1/cluster/apps?states={states}")["apps"] or {}).get("app", ())}


def _running_on_master(get: _Get) -> set[str]:
    answer = get("/json/")
    if answer["status"] != "ALIVE":
        raise ValueError(answer["status"])
    return {one["id"] for one in answer["activeapps"]}


def _get(client: RestClient, url: str, path: str) -> Any:
    return client.get_json(f"{url}{path}")


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
