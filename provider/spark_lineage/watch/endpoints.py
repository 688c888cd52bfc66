"""The addresses of the sources of status, from a ``spark`` connection, and how they are asked, from an HTTP connection.

Errors name the key, and show no secret.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import httpx

from spark_lineage.http_client import ANSWER_SECONDS, Access, AsyncHttpClient, HttpClient, origin_of
from spark_lineage.launch.launch import Launch
from spark_lineage.launch.log import Guard
from spark_lineage.settings import SettingError, boolean, number, one_of

if TYPE_CHECKING:
    from spark_lineage.settings.places import Places

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# The names of the API server inside of its own cluster; the variable holds its address.
_IN_CLUSTER = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_APPLICATION_ID = re.compile(r"[\w-]+", re.ASCII)
STATUS_CONNECTION = "status_conn_id"


class Endpoints:
    """The REST endpoints of one Spark connection; addresses have no ``/`` at their ends.

    ``driver_ui_url`` may hold ``{application_id}``; it is empty where the driver reports it.

    :param master: as spark-submit gets it: ``local[2]``, ``spark://a:7077,b:7077``, ``yarn``, ``k8s://https://…``
    :param extra: of the connection; the keys are in ``docs/status.md``
    :param status: the HTTP connection that ``status_conn_id`` names, None where there is none of that name
    :param yarn_urls: the ResourceManagers, where the connection names none
    :param webhdfs_urls: the NameNodes, and ``history_url`` the History Server, likewise
    :raises SettingError: when a value does not fit
    """

    def __init__(
        self,
        master: str,
        deploy_mode: str,
        extra: Mapping[str, Any],
        status: Any = None,
        *,
        yarn_urls: Sequence[str] = (),
        webhdfs_urls: Sequence[str] = (),
        history_url: str = "",
    ) -> None:
        read = {key: _read(extra, key) for key in ENDPOINT_KEYS}
        scheme, _, address = master.partition("://")
        hosts = [re.sub(r":\d+$", "", one.strip()) for one in address.split(",") if scheme == "spark" and one.strip()]
        # As Spark has it (KubernetesUtils.parseMasterUrl, Utils.checkAndGetK8sMasterUrl).
        api = (address if "://" in address else f"https://{address}").rstrip("/") if scheme == "k8s" else ""
        self.master = master
        self.is_cluster = _one_of("client", "cluster")(deploy_mode, "the deploy mode of the connection") == "cluster"
        self.driver_ui_url: str = read["driver_ui_url"]
        self.history_server_url: str = read["history_server_url"] or history_url
        self.master_ui_urls: Sequence[str] = read["master_ui_url"] or [f"http://{host}:8080" for host in hosts]
        self.master_rest_urls = [f"{read['rest-scheme']}://{host}:{read['rest-port']:.0f}" for host in hosts]
        self.yarn_urls: Sequence[str] = read["yarn_resourcemanager_webapp_address"] or yarn_urls
        self.kubernetes_api_url: str = read["kubernetes_api_url"] or api
        self.namespace: str = read["namespace"]
        self.webhdfs_urls: Sequence[str] = read["webhdfs_url"] or webhdfs_urls
        if (conn_id := read[STATUS_CONNECTION]) and status is None:
            raise SettingError(f"{_place(STATUS_CONNECTION)} is {conn_id!r}, and there is no such connection")
        self._host = "" if status is None else _host(status)
        self.access = self.kubernetes_access = Access() if status is None else _access(status)
        self._seconds = ANSWER_SECONDS if status is None else _extra(status, "timeout", number) or ANSWER_SECONDS
        if self.kubernetes_api_url and self.access.is_anonymous:
            self.kubernetes_access = _in_cluster(self.access, self.kubernetes_api_url)

    def client(self) -> HttpClient:
        """Return a client that sends the credentials to the hosts that connection or Hadoop name, and to no other."""
        return HttpClient(self._named(), verify=self.access.verify, seconds=self._seconds)

    def async_client(self) -> AsyncHttpClient:
        """Return the same for an event loop."""
        return AsyncHttpClient(self._named(), verify=self.access.verify, seconds=self._seconds)

    def _named(self) -> Mapping[str, Access]:
        urls = (self.driver_ui_url, self.history_server_url, *self.master_ui_urls, *self.master_rest_urls)
        named = {origin_of(url): self.access for url in (*urls, *self.yarn_urls)}
        named[origin_of(self.kubernetes_api_url)] = self.kubernetes_access
        return {url: access for url, access in named.items() if self._host in ("", urlsplit(url).hostname)}

    def driver_ui_of(self, application_id: str | None) -> str | None:
        """Return the address of a driver's UI that the connection names; None where it does not, or needs the id."""
        if "{application_id}" not in self.driver_ui_url:
            return self.driver_ui_url or None
        if application_id is None or not _APPLICATION_ID.fullmatch(application_id):
            return None
        return self.driver_ui_url.replace("{application_id}", application_id)


def unknown_seconds(extra: Mapping[str, Any]) -> float:
    """Return for how long nobody may know what a remote driver does; a value that does not fit is told elsewhere."""
    key = "driver_unknown_seconds"
    with suppress(SettingError):
        return cast("float", _read(extra, key))
    return cast("float", _READERS[key][1])


def endpoints_of(launch: Launch, places: Places, guard: Guard) -> Endpoints:
    """Return the endpoints of a launch; those that need no settings, where one of its connection does not fit."""
    known: dict[str, Any] = {
        "yarn_urls": launch.yarn_urls,
        "webhdfs_urls": launch.webhdfs_urls,
        "history_url": launch.history_url,
    }
    with guard("The cluster is not asked as the connection says", can_fail=False):
        return Endpoints(launch.master, launch.deploy_mode, places.extra, places.status, **known)
    deploy_mode = "cluster" if launch.deploy_mode == "cluster" else "client"
    return Endpoints(launch.master, deploy_mode, {}, **known)


class _TokenFile(httpx.Auth):
    def __init__(self, file: Path) -> None:
        self.file = file

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Read the file anew for each request: Kubernetes renews it."""
        request.headers["Authorization"] = f"Bearer {self.file.read_text(encoding='ascii').strip()}"
        yield request


def _access(status: Any) -> Access:
    """Return how the endpoints are requested: a login makes Basic, a password alone is a bearer token."""
    headers, cert = _extra(status, "headers", _headers) or {}, _extra(status, "cert", _files)
    verify = _extra(status, "verify", _verify)
    verify = True if verify is None else verify
    if _extra(status, "kerberos", boolean):
        return Access(_kerberos(status), headers, verify, cert, is_blocking=True)
    token = {"Authorization": f"Bearer {status.password.strip()}"} if status.password and not status.login else {}
    try:
        auth = httpx.BasicAuth(status.login, status.password or "") if status.login else None
    except UnicodeError:
        raise SettingError(f"the login of the connection {status.conn_id} has half of a character") from None
    return Access(auth, {**headers, **token}, verify, cert)


def _in_cluster(access: Access, api_url: str) -> Access:
    """Return how the API server of Kubernetes is asked: with the service account of this pod, if it is its own.

    The token of one cluster is not for the API server of another.
    """
    host = urlsplit(api_url).hostname
    token, authorities = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    if host not in (*_IN_CLUSTER, os.environ.get("KUBERNETES_SERVICE_HOST", "")) or not token.exists():
        return access
    verify = str(authorities) if access.verify is True and authorities.exists() else access.verify
    return replace(access, auth=_TokenFile(token), verify=verify)


def _kerberos(status: Any) -> httpx.Auth:
    try:
        # Not an import statement: the package is optional.
        kerberos: Any = import_module("httpx_gssapi")
    except ImportError as error:
        place = _place("kerberos", status)
        raise SettingError(
            f"{place} is set, which needs the package httpx-gssapi; install it on the workers"
        ) from error
    # It logs each ticket that is missing with a traceback; the server's answer says so.
    logging.getLogger("httpx_gssapi").setLevel(logging.CRITICAL)
    # A server without a valid certificate still reports the status.
    return cast("httpx.Auth", kerberos.HTTPSPNEGOAuth(mutual_authentication=kerberos.OPTIONAL))


def _host(status: Any) -> str:
    """Return the only host that gets the credentials; empty for all that the Spark connection names."""
    host = (status.host or "").strip()
    try:
        return urlsplit(host if "://" in host else f"//{host}").hostname or ""
    except ValueError:
        raise SettingError(f"the host of the connection {status.conn_id} is {host!r}; give a name") from None


def _extra(status: Any, key: str, reader: Callable[[Any, str], Any]) -> Any:
    extra = status.extra_dejson
    value = extra.get(key) if isinstance(extra, Mapping) else None
    return None if value is None or value == "" else reader(value, _place(key, status))


def _headers(value: Any, place: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise SettingError(f'{place} is no JSON object of texts; give one, such as {{"X-Api-Key": "…"}}')
    return {str(name): text for name, text in value.items()}


def _verify(value: Any, place: str) -> bool | str:
    with suppress(SettingError):
        return boolean(value, place)
    return _file(value, place)


def _files(value: Any, place: str) -> tuple[str, str | None]:
    """Read the file of a client certificate, or the pair of it and its key, as ``HttpHook`` does."""
    certificate, key = value if isinstance(value, list | tuple) and len(value) == len("ck") else (value, None)
    return _file(certificate, place), None if key is None else _file(key, place)


def _place(key: str, status: Any = None) -> str:
    if status is not None:
        return f"{key!r} in the extra of the connection {status.conn_id}"
    return f"{key!r} in the extra of the Spark connection"


def _read(extra: Mapping[str, Any], key: str) -> Any:
    value, (reader, default) = extra.get(key), _READERS[key]
    value = value.strip() if isinstance(value, str) else value
    return default if value is None or value == "" else reader(value, _place(key))


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{place} is a {type(value).__name__}; give text")
    return value


def _one_of(*choices: str) -> Callable[[Any, str], Any]:
    read = one_of(*choices)
    return lambda value, place: read(_text(value, place).lower(), place)


def _file(value: Any, place: str) -> str:
    if (path := _text(value, place)) and not Path(path).exists():
        raise SettingError(f"{place} is {path!r}, which is not there on this machine")
    return path


def _url(value: Any, place: str) -> str:
    text = _text(value, place)
    # The Spark provider takes a YARN address without a scheme.
    url = (text if "://" in text else f"http://{text}").rstrip("/")
    parts = urlsplit(url if origin_of(url.replace("{application_id}", "id")) else "")
    if "@" in parts.netloc:
        raise SettingError(f"{place} holds a login; give it in the connection that 'status_conn_id' names")
    if not parts.netloc or parts.query or parts.fragment:
        raise SettingError(f"{place} is {text!r}; give an address like http://host:1234")
    return url


def _urls(value: Any, place: str) -> list[str]:
    return [_url(one.strip(), place) for one in _text(value, place).split(",") if one.strip()]


_READERS: Mapping[str, tuple[Callable[[Any, str], Any], Any]] = {
    "rest-scheme": (_one_of("http", "https"), "http"),
    "rest-port": (number, 6066),
    "yarn_resourcemanager_webapp_address": (_urls, ()),
    "namespace": (_text, "default"),
    "driver_ui_url": (_url, ""),
    "history_server_url": (_url, ""),
    "master_ui_url": (_urls, ()),
    "kubernetes_api_url": (_url, ""),
    "webhdfs_url": (_urls, ()),
    STATUS_CONNECTION: (_text, ""),
    "driver_unknown_seconds": (number, 600.0),
}
"""How the value of each key is read, and what holds without one."""
ENDPOINT_KEYS = tuple(_READERS)
"""The keys of the extra that this module reads, in the order of ``docs/status.md``."""
