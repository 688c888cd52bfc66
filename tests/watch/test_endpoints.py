from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from dialogues import http_connection

from spark_lineage.http_client import Access
from spark_lineage.settings import SettingError
from spark_lineage.watch import endpoints as endpoints_module
from spark_lineage.watch.endpoints import Endpoints

HIDDEN = "s3cr3t"
API = "k8s://https://10.0.0.1:6443"


@pytest.fixture
def service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(endpoints_module, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    (tmp_path / "token").write_text(HIDDEN)
    (tmp_path / "ca.crt").write_text("")
    return tmp_path


def endpoints(master: str = "local[2]", deploy_mode: str = "client", **extra: Any) -> Endpoints:
    return Endpoints(master, deploy_mode, extra)


def sent(access: Access) -> str | None:
    """Return what a request says of who asks."""
    request = httpx.Request("GET", "http://h", headers=access.headers)
    if access.auth is not None:
        request = next(access.auth.auth_flow(request))
    return request.headers.get("Authorization")


def test_nothing_is_needed() -> None:
    bare = Endpoints("local[2]", "client", {})
    assert (bare.access, bare.kubernetes_access, bare.history_server_url) == (Access(), Access(), "")
    assert bare.driver_ui_of("local-1") is None
    bare.client().close()


@pytest.mark.parametrize(
    ("master", "extra", "uis", "rests"),
    [
        ("spark://a:7077", {}, ("http://a:8080",), ("http://a:6066",)),
        ("spark://a:7077,b:7078", {}, ("http://a:8080", "http://b:8080"), ("http://a:6066", "http://b:6066")),
        ("spark://[::1]:7077", {}, ("http://[::1]:8080",), ("http://[::1]:6066",)),
        ("spark://a", {"rest-port": 1, "rest-scheme": "https"}, ("http://a:8080",), ("https://a:1",)),
        ("spark://a:7077", {"rest-port": "7"}, ("http://a:8080",), ("http://a:7",)),
        ("spark://a:7077", {"master_ui_url": "https://x/, y:1,"}, ("https://x", "http://y:1"), ("http://a:6066",)),
        ("yarn", {}, (), ()),
    ],
)
def test_masters(master: str, extra: Mapping[str, Any], uis: tuple[str, ...], rests: tuple[str, ...]) -> None:
    found = Endpoints(master, "cluster", extra)
    assert (tuple(found.master_ui_urls), tuple(found.master_rest_urls)) == (uis, rests)


def test_resource_managers() -> None:
    found = endpoints("yarn", yarn_resourcemanager_webapp_address="rm1:8088, https://rm2:8090/")
    assert found.yarn_urls == ["http://rm1:8088", "https://rm2:8090"]


@pytest.mark.parametrize(
    ("master", "extra", "url"),
    [
        ("k8s://https://api:6443", {}, "https://api:6443"),
        ("k8s://api:6443/", {}, "https://api:6443"),
        ("k8s://http://127.0.0.1:8001", {}, "http://127.0.0.1:8001"),
        ("k8s://https://api", {"kubernetes_api_url": "https://proxy/"}, "https://proxy"),
        ("yarn", {}, ""),
    ],
)
def test_api_servers(master: str, extra: Mapping[str, Any], url: str) -> None:
    found = Endpoints(master, "cluster", extra)
    assert (found.kubernetes_api_url, found.namespace) == (url, "default")
    assert endpoints(master, "cluster", namespace="jobs").namespace == "jobs"


def test_a_driver_ui_of_a_proxy() -> None:
    assert endpoints(driver_ui_url="http://spark/").driver_ui_of(None) == "http://spark"
    proxied = endpoints(driver_ui_url="https://proxy/ui/{application_id}/")
    assert proxied.driver_ui_of("app-1-2") == "https://proxy/ui/app-1-2"
    assert proxied.driver_ui_of(None) is None
    assert proxied.driver_ui_of("../../admin") is None
    assert endpoints(driver_ui_url="https://{application_id}.spark").driver_ui_of("app-1") == "https://app-1.spark"


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        (http_connection("me", "mine"), "Basic bWU6bWluZQ=="),
        (http_connection("me"), "Basic bWU6"),
        (http_connection(None, f" {HIDDEN}\n"), f"Bearer {HIDDEN}"),
        (http_connection(headers={"Authorization": "Token x"}), "Token x"),
        (http_connection(), None),
        (None, None),
    ],
)
def test_authentication(connection: Any, expected: str | None) -> None:
    assert sent(Endpoints("yarn", "client", {}, connection).access) == expected


def test_no_secret_is_shown() -> None:
    found = Endpoints("yarn", "client", {}, http_connection("me", HIDDEN, headers={"X-Key": HIDDEN}))
    assert HIDDEN not in f"{found!r} {found.access!r}"


def test_tls(tmp_path: Path) -> None:
    ca, cert, key = (str(tmp_path / name) for name in ("ca", "cert", "key"))
    for name in (ca, cert, key):
        Path(name).touch()
    access = Endpoints("yarn", "client", {}, http_connection(verify=ca, cert=[cert, key])).access
    assert (access.verify, access.cert) == (ca, (cert, key))
    assert Endpoints("yarn", "client", {}, http_connection(cert=cert)).access.cert == (cert, None)
    for value, verify in ((False, False), ("no", False), ("True", True), (True, True), ("", True), (None, True)):
        assert Endpoints("yarn", "client", {}, http_connection(verify=value)).access.verify is verify


def test_the_service_account_is_for_the_api_server_of_its_own_cluster(service_account: Path) -> None:
    def found(connection: Any = None, api: str = API) -> Endpoints:
        return Endpoints(api, "cluster", {"history_server_url": "http://history"}, connection)

    assert sent(found().kubernetes_access) == f"Bearer {HIDDEN}"
    assert found().kubernetes_access.verify == str(service_account / "ca.crt")
    assert found().access.auth is None
    assert sent(found(api="k8s://https://kubernetes.default.svc").kubernetes_access) == f"Bearer {HIDDEN}"
    assert found(api="k8s://https://10.0.0.2:6443").kubernetes_access.auth is None
    assert found(http_connection(verify=False)).kubernetes_access.verify is False
    mine = found(http_connection(None, "mine")).kubernetes_access
    assert (sent(mine), mine.verify) == ("Bearer mine", True)


def test_the_token_of_the_service_account_is_read_for_each_request(service_account: Path) -> None:
    access = Endpoints(API, "cluster", {}).kubernetes_access
    (service_account / "token").write_text("renewed\n")
    assert sent(access) == "Bearer renewed"


@pytest.mark.parametrize(
    ("master", "deploy_mode", "extra", "text"),
    [
        ("yarn", "local", {}, "'local'; give one of client, cluster"),
        ("yarn", "client", {"history_server_url": 7}, "'history_server_url' in the extra .* is a int; give text"),
        ("yarn", "client", {"history_server_url": "ftp://h"}, "'ftp://h'; give an address"),
        ("yarn", "client", {"history_server_url": "http://h:port"}, "give an address"),
        ("yarn", "client", {"history_server_url": "http://[h"}, "give an address"),
        ("yarn", "client", {"history_server_url": "http://h/?a=b"}, "give an address"),
        ("yarn", "client", {"history_server_url": f"http://me:{HIDDEN}@h"}, "holds a login"),
        ("yarn", "client", {"yarn_resourcemanager_webapp_address": "a:1,http://"}, "give an address"),
        ("spark://a", "client", {"rest-port": "x"}, "'rest-port' .* give a number above 0"),
        ("spark://a", "client", {"rest-port": -1}, "'rest-port' .* give a number above 0"),
        ("spark://a", "client", {"rest-scheme": "ftp"}, "'rest-scheme' .* give one of http, https"),
        ("yarn", "client", {"driver_unknown_seconds": "soon"}, "'driver_unknown_seconds' .* above 0"),
        ("yarn", "client", {"status_conn_id": "gone"}, "'status_conn_id' .* is 'gone', and there is no such"),
    ],
)
def test_what_does_not_fit(master: str, deploy_mode: str, extra: Mapping[str, Any], text: str) -> None:
    with pytest.raises(SettingError, match=text) as caught:
        Endpoints(master, deploy_mode, extra)
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize(
    ("connection", "text"),
    [
        (http_connection(verify="/no/ca"), "'verify' .* status_http is '/no/ca', which is not there"),
        (http_connection(cert="/no/cert"), "'cert' .* '/no/cert', which is not there"),
        (http_connection(cert=[HIDDEN]), "'cert' .* is a list; give text"),
        (http_connection(timeout="soon"), "'timeout' .* above 0"),
        (http_connection(headers="X: y"), "'headers' .* no JSON object"),
        (http_connection(headers={"X": 1}), "'headers' .* no JSON object"),
        (http_connection(kerberos="perhaps"), "'perhaps'; give true or false"),
        (http_connection("\ud800", HIDDEN), "login of the connection status_http has half of a character"),
        (http_connection(host="http://[h"), "host of the connection status_http is"),
    ],
)
def test_what_does_not_fit_of_the_http_connection(connection: Any, text: str) -> None:
    with pytest.raises(SettingError, match=text) as caught:
        Endpoints("yarn", "client", {"status_conn_id": "status_http"}, connection)
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize(("host", "asked"), [("", {"a", "history"}), ("history", {"history"}), ("other", set())])
def test_credentials_are_for_the_host_of_their_connection(host: str, asked: set[str]) -> None:
    status = http_connection(host=host, login="me", password=HIDDEN)
    named = Endpoints("spark://a:7077", "client", {"history_server_url": "http://history:18080"}, status)._named()
    assert {httpx.URL(url).host for url, access in named.items() if url and sent(access)} == asked
