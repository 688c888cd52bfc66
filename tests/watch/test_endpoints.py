from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_lineage.settings import SettingError
from spark_lineage.watch import endpoints as endpoints_module
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.rest import Access

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


def login(access: Access) -> dict[str, Any]:
    """What a request says of who asks."""
    return {} if access.auth is None else vars(access.auth)


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
    ("extra", "expected"),
    [
        ({}, {}),  # the login may be there for something else
        ({"status_auth": "Basic"}, {"username": b"admin", "password": HIDDEN.encode()}),
        ({"status_username": "me", "status_password": "mine"}, {"username": b"me", "password": b"mine"}),
        ({"status_username": "me"}, {"username": b"me", "password": b""}),  # not the password of another
        ({"status_token": HIDDEN}, {"token": HIDDEN, "token_file": ""}),
        ({"status_token": HIDDEN, "status_auth": "none"}, {}),
    ],
)
def test_authentication(extra: Mapping[str, Any], expected: dict[str, Any]) -> None:
    assert login(Endpoints("yarn", "client", extra, "admin", HIDDEN).access) == expected


def test_no_secret_is_shown() -> None:
    found = Endpoints("yarn", "client", {"status_token": HIDDEN, "status_auth": "basic"}, "me", HIDDEN)
    assert HIDDEN not in repr(found)


def test_tls(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).touch()
    files = {f"status_{key}": str(tmp_path / name) for key, name in (("client_cert", "cert"), ("client_key", "key"))}
    access = endpoints(**files, status_ca_file=str(tmp_path / "ca")).access
    assert access.verify == str(tmp_path / "ca")
    assert access.cert == (str(tmp_path / "cert"), str(tmp_path / "key"))
    assert endpoints(status_client_cert=files["status_client_cert"]).access.cert == str(tmp_path / "cert")
    assert endpoints().access.cert is None
    for value, verify in ((False, False), ("no", False), ("True", True), (True, True), ("", True)):
        assert endpoints(status_verify=value).access.verify is verify


def test_the_service_account_is_for_the_api_server_of_its_own_cluster(service_account: Path) -> None:
    found = endpoints(API, "cluster", history_server_url="http://history")
    of_the_pod = {"token": "", "token_file": str(service_account / "token")}
    assert login(found.kubernetes_access) == of_the_pod
    assert found.kubernetes_access.verify == str(service_account / "ca.crt")
    assert found.access.auth is None
    assert login(endpoints("k8s://https://kubernetes.default.svc", "cluster").kubernetes_access) == of_the_pod
    assert endpoints("k8s://https://10.0.0.2:6443", "cluster").kubernetes_access.auth is None
    assert endpoints(API, "cluster", status_auth="none").kubernetes_access.auth is None
    assert endpoints(API, "cluster", status_verify=False).kubernetes_access.verify is False
    mine = endpoints(API, "cluster", status_token=HIDDEN).kubernetes_access
    assert (login(mine), mine.verify) == ({"token": HIDDEN, "token_file": ""}, True)


def test_the_service_account_on_demand(service_account: Path) -> None:
    found = endpoints("yarn", status_auth="bearer")
    assert login(found.access) == {"token": "", "token_file": str(service_account / "token")}


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
        ("yarn", "client", {"status_timeout_seconds": "soon"}, "'status_timeout_seconds' .* above 0"),
        ("yarn", "client", {"status_auth": "ntlm"}, "'ntlm'; give one of none, basic, bearer, kerberos"),
        ("yarn", "client", {"status_auth": "basic"}, "no 'status_username' and no login"),
        (
            "yarn",
            "client",
            {"status_token_file": "/no/token"},
            "'status_token_file' .* '/no/token', which is not",
        ),
        ("yarn", "client", {"status_ca_file": "/no/ca"}, "'status_ca_file' .* not there"),
        ("yarn", "client", {"status_client_cert": "/no/cert"}, "'status_client_cert' .* not there"),
        ("yarn", "client", {"status_verify": "perhaps"}, "'perhaps'; give true or false"),
    ],
)
def test_what_does_not_fit(master: str, deploy_mode: str, extra: Mapping[str, Any], text: str) -> None:
    with pytest.raises(SettingError, match=text) as caught:
        Endpoints(master, deploy_mode, extra)
    assert HIDDEN not in str(caught.value)


def test_who_gets_the_credentials(loopback: Any) -> None:
    loopback.reply("/a", json=1)
    named = endpoints(history_server_url=loopback.url, status_token=HIDDEN)
    assert named.client().get_json(f"{loopback.url}/a") == 1
    others = endpoints(driver_ui_url="http://{application_id}", status_token=HIDDEN)
    assert others.client().get_json(f"{loopback.url}/a") == 1
    assert [headers["Authorization"] for _, headers in loopback.asked] == [f"Bearer {HIDDEN}", None]
