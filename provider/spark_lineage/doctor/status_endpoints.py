"""Checks whether the REST endpoints with the status of an application answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

from spark_lineage.doctor.setup import Finding, Setup, ok, warning
from spark_lineage.http_client import HttpClient, NoAnswerError, place_of
from spark_lineage.inject.installation import PropertiesFileError
from spark_lineage.settings import SettingError
from spark_lineage.settings.hadoop import history_server, name_nodes, resource_managers
from spark_lineage.watch.dialect import get_json
from spark_lineage.watch.endpoints import Endpoints

_LOGIN = "name a connection with the credentials as status_conn_id in the Spark connection (docs/status.md#credentials)"
_API_SERVER = "API server"
# No pod is called that: 404 means that we were let in.
_NO_POD = "spark-lineage-doctor"


class _Endpoint(NamedTuple):
    name: str
    url: str
    path: str
    key: str
    """Where its address comes from, in the extra of the connection."""
    state: Callable[[dict[str, Any]], Any] = lambda _: "it answers"


def check_status_endpoints(setup: Setup) -> Iterator[Finding]:
    """Ask each that the connection names, and those that follow from its master."""
    try:
        endpoints = endpoints_of(setup)
    except SettingError as error:
        yield warning(str(error), "correct it; until then the cluster is not asked how a job ended")
        return
    with closing(endpoints.client()) as client:
        yield from [_asked(client, endpoint) for endpoint in _endpoints(endpoints)]
    if endpoints.master.startswith("yarn") and endpoints.is_cluster and not endpoints.yarn_urls:
        yield warning(
            "the ResourceManager is not asked: neither yarn_resourcemanager_webapp_address nor yarn-site.xml names one",
            "set it in the extra of the Spark connection: in cluster mode nothing else shows how the driver ended",
        )
    if not endpoints.history_server_url:
        yield ok("no history_server_url: the event log alone has the changes that the driver's UI missed")


def endpoints_of(setup: Setup) -> Endpoints:
    """Return the endpoints of the Spark connection; raises ``SettingError`` where its extra does not fit."""
    places, env = setup.places, setup.env
    properties: Mapping[str, str] = {}
    with suppress(PropertiesFileError):
        properties = setup.user_properties.properties
    return Endpoints(
        setup.master,
        setup.deploy_mode,
        places.extra,
        places.status,
        yarn_urls=resource_managers(env),
        webhdfs_urls=name_nodes(env, properties.get("spark.eventLog.dir", "")),
        history_url=history_server(env, properties),
    )


def _endpoints(found: Endpoints) -> Iterator[_Endpoint]:
    if url := found.history_server_url:
        yield _Endpoint(
            "History Server", url, "/api/v1/version", "history_server_url", lambda it: f"Spark {it['spark']}"
        )
    if found.master.startswith("spark://"):
        for url in found.master_ui_urls:
            yield _Endpoint("UI of the standalone master", url, "/json/", "master_ui_url", lambda it: it["status"])
        for url in found.master_rest_urls if found.is_cluster else ():
            key = "rest-port (and spark.master.rest.enabled of the master)"
            yield _Endpoint("REST server of the standalone master", url, "/v1/submissions/status/driver-0", key)
    if found.master.startswith("yarn"):
        for url in found.yarn_urls:
            key = "yarn_resourcemanager_webapp_address (or HADOOP_CONF_DIR)"
            yield _Endpoint("ResourceManager", url, "/ws/v1/cluster/info", key, lambda it: it["clusterInfo"]["state"])
    if found.master.startswith("k8s://") and found.is_cluster:
        path = f"/api/v1/namespaces/{quote(found.namespace, safe='')}/pods/{_NO_POD}"
        yield _Endpoint(_API_SERVER, found.kubernetes_api_url, path, "kubernetes_api_url")


def _asked(client: HttpClient, endpoint: _Endpoint) -> Finding:
    place = f"{endpoint.name} at {place_of(endpoint.url)}"
    try:
        return ok(f"{place}: {endpoint.state(get_json(client, endpoint.url + endpoint.path, dict[str, Any]))}")
    except NoAnswerError as error:
        text, status = f"{endpoint.name}: {error}", error.http_status
    except (KeyError, TypeError):
        text, status = f"{place} answers JSON of another shape", None
    if endpoint.name == _API_SERVER and status == HTTPStatus.NOT_FOUND:
        return ok(f"{place}: pods may be read")
    if endpoint.name == _API_SERVER and status == HTTPStatus.FORBIDDEN:
        return warning(text, "let the account of the worker 'get' pods in that namespace")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return warning(text, _LOGIN)
    return warning(text, f"correct {endpoint.key} in the extra of the Spark connection, or check that the server runs")
