"""Whether those answer that can tell the status of an application; each is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from spark_lineage.doctor.finding import Finding, ok, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.settings import SettingError
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.rest import NoAnswerError, RestClient, place_of

_LOGIN = "give status_auth and what belongs to it in the extra of the Spark connection (docs/status.md)"
_ADDRESS = "correct {key} in the extra of the Spark connection, or look whether the server runs"
# No pod is called that: 404 means that we were let in.
_NO_POD = "spark-lineage-doctor"
_NO_DRIVER = "driver-0"


def check_status_endpoints(setup: Setup) -> Iterator[Finding]:
    """Ask each that the connection names, and those that follow from its master."""
    spark, places = setup.spark, setup.places
    try:
        endpoints = Endpoints(spark.master, setup.deploy_mode, places.extra, places.login, places.password)
        client = endpoints.client()
    except SettingError as error:
        yield warning(str(error), "correct it; until then the cluster is not asked how a job ended")
        return
    try:
        found = [finding for ask in _questions(endpoints, client) for finding in ask()]
    finally:
        client.close()
    yield from found
    if not endpoints.history_server_url:
        yield ok("no history_server_url: what the driver's UI did not tell in time is told by the event log alone")


def _questions(endpoints: Endpoints, client: RestClient) -> Iterator[Callable[[], Iterator[Finding]]]:
    if endpoints.history_server_url:
        yield lambda: _history(client, endpoints.history_server_url)
    if endpoints.master.startswith("spark://"):
        yield lambda: _masters(client, endpoints.master_ui_urls)
        if endpoints.is_cluster:
            yield lambda: _submissions(client, endpoints.master_rest_urls)
    if endpoints.master.startswith("yarn"):
        yield lambda: _yarn(client, endpoints)
    if endpoints.master.startswith("k8s://") and endpoints.is_cluster:
        yield lambda: _kubernetes(client, endpoints)


def _history(client: RestClient, url: str) -> Iterator[Finding]:
    try:
        told = _object(client.get_json(f"{url}/api/v1/version"))
    except NoAnswerError as error:
        yield _no_answer("History Server", error, "history_server_url")
        return
    yield ok(f"History Server at {place_of(url)}: Spark {told.get('spark', 'of a version that it does not tell')}")


def _masters(client: RestClient, urls: Sequence[str]) -> Iterator[Finding]:
    told: list[str] = []
    for url in urls:
        try:
            told.append(str(_object(client.get_json(f"{url}/json/")).get("status")))
        except NoAnswerError as error:
            yield _no_answer("UI of the standalone master", error, "master_ui_url")
        else:
            yield ok(f"UI of the standalone master at {place_of(url)}: {told[-1]}")
    if told and "ALIVE" not in told:
        yield warning("no standalone master is ALIVE", "start one: nothing can be submitted")


def _submissions(client: RestClient, urls: Sequence[str]) -> Iterator[Finding]:
    for url in urls:
        try:
            _object(client.get_json(f"{url}/v1/submissions/status/{_NO_DRIVER}"))
        except NoAnswerError as error:
            yield _no_answer("REST server of the standalone master", error, "rest-port", "spark.master.rest.enabled")
        else:
            yield ok(f"REST server of the standalone master at {place_of(url)} answers")


def _yarn(client: RestClient, endpoints: Endpoints) -> Iterator[Finding]:
    urls = endpoints.yarn_urls
    if not urls and endpoints.is_cluster:
        yield warning(
            "the ResourceManager is not asked: yarn_resourcemanager_webapp_address is not set",
            "set it in the extra of the Spark connection: in cluster mode nobody else knows how the driver ended",
        )
    for url in urls:
        try:
            told = _object(_object(client.get_json(f"{url}/ws/v1/cluster/info")).get("clusterInfo"))
        except NoAnswerError as error:
            yield _no_answer("ResourceManager", error, "yarn_resourcemanager_webapp_address")
        else:
            yield ok(f"ResourceManager at {place_of(url)}: {told.get('haState') or told.get('state') or 'answers'}")


def _kubernetes(client: RestClient, endpoints: Endpoints) -> Iterator[Finding]:
    url, namespace = endpoints.kubernetes_api_url, endpoints.namespace
    try:
        client.get_json(f"{url}/api/v1/namespaces/{quote(namespace, safe='')}/pods/{_NO_POD}")
    except NoAnswerError as error:
        if error.http_status == HTTPStatus.NOT_FOUND:
            yield ok(f"API server at {place_of(url)}: pods of the namespace {namespace} may be read")
        elif error.http_status == HTTPStatus.FORBIDDEN:
            yield warning(str(error), f"let the account of the worker 'get' pods in the namespace {namespace}")
        else:
            yield _no_answer("API server", error, "kubernetes_api_url")


def _no_answer(name: str, error: NoAnswerError, key: str, also: str = "") -> Finding:
    if error.http_status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return warning(f"{name}: {error}", _LOGIN)
    remedy = _ADDRESS.format(key=key)
    return warning(f"{name}: {error}", f"{remedy}; is {also} set?" if also else remedy)


def _object(answer: Any) -> Mapping[str, Any]:
    if not isinstance(answer, Mapping):
        raise NoAnswerError("answered JSON of another shape", HTTPStatus.OK)
    return answer
