"""The addresses and credentials of the sources of status: read from the extra of a ``spark`` connection.

Errors name the key, and show no secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import requests

from spark_lineage.launch.launch import Launch
from spark_lineage.launch.log import Guard
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.values import SettingError, boolean, number, one_of
from spark_lineage.watch.rest import READ_TIMEOUT_SECONDS, Access, NoAnswerError, RestClient, origin_of

if TYPE_CHECKING:
    from spark_lineage.settings.places import Places

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# What the API server is called inside of its own cluster; the variable holds its address.
_IN_CLUSTER = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_APPLICATION_ID = re.compile(r"[\w-]+", re.ASCII)


class Endpoints:
    """The REST endpoints of one Spark connection; addresses have no ``/`` at their ends.

    ``driver_ui_url`` may hold ``{application_id}``; it is empty where the driver reports it.

    :param master: as spark-submit gets it: ``local[2]``, ``spark://a:7077,b:7077``, ``yarn``, ``k8s://https://…``
    :param extra: of the connection; the keys are in ``docs/status.md``
    :param login: of the connection, for ``status_auth`` ``basic`` without ``status_username``
    :param password: the same, for ``status_password``
    :param yarn_urls: the ResourceManagers, where the connection names none
    :raises SettingError: when a value does not fit
    """

    def __init__(
        self,
        master: str,
        deploy_mode: str,
        extra: Mapping[str, Any],
        login: str | None = None,
        password: str | None = None,
        *,
        yarn_urls: Sequence[str] = (),
    ) -> None:
        read = {key: _read(extra, key) for key in ENDPOINT_KEYS}
        scheme, _, address = master.partition("://")
        hosts = [re.sub(r":\d+$", "", one.strip()) for one in address.split(",") if scheme == "spark" and one.strip()]
        # As Spark has it (KubernetesUtils.parseMasterUrl, Utils.checkAndGetK8sMasterUrl).
        api = (address if "://" in address else f"https://{address}").rstrip("/") if scheme == "k8s" else ""
        self.master = master
        self.is_cluster = _one_of("client", "cluster")(deploy_mode, "the deploy mode of the connection") == "cluster"
        self.driver_ui_url: str = read["driver_ui_url"]
        self.history_server_url: str = read["history_server_url"]
        self.master_ui_urls: Sequence[str] = read["master_ui_url"] or [f"http://{host}:8080" for host in hosts]
        self.master_rest_urls = [f"{read['rest-scheme']}://{host}:{read['rest-port']:.0f}" for host in hosts]
        self.yarn_urls: Sequence[str] = read["yarn_resourcemanager_webapp_address"] or yarn_urls
        self.kubernetes_api_url: str = read["kubernetes_api_url"] or api
        self.namespace: str = read["namespace"]
        self.webhdfs_urls: Sequence[str] = read["webhdfs_url"]
        self.access = self.kubernetes_access = _access(read, login or "", password or "")
        if self.access.auth is None and not read["status_auth"]:
            self.kubernetes_access = _in_cluster(self.access, self.kubernetes_api_url)
        self._timeout_seconds: float = read["status_timeout_seconds"]

    def client(self) -> RestClient:
        """Return a client that sends the credentials to the hosts that connection or Hadoop name, and to no other."""
        urls = (self.driver_ui_url, self.history_server_url, *self.master_ui_urls, *self.master_rest_urls)
        named = {origin_of(url): self.access for url in (*urls, *self.yarn_urls)}
        named[origin_of(self.kubernetes_api_url)] = self.kubernetes_access
        return RestClient(named, verify=self.access.verify, timeout_seconds=self._timeout_seconds)

    def driver_ui_of(self, application_id: str | None) -> str | None:
        """Return the address of a driver's UI that the connection names; None where it does not, or needs the id."""
        if "{application_id}" not in self.driver_ui_url:
            return self.driver_ui_url or None
        if application_id is None or not _APPLICATION_ID.fullmatch(application_id):
            return None
        return self.driver_ui_url.replace("{application_id}", application_id)


def endpoints_of(launch: Launch, places: Places, guard: Guard | None) -> Endpoints:
    """Return the endpoints of a launch; those that need no settings, where one of its connection does not fit.

    :param guard: says what does not fit; None where that is said already
    """
    extra, login, password = places.extra, places.login, places.password
    trouble = "The cluster is not asked as the connection says"
    with guard(trouble, can_fail=False) if guard is not None else suppress(SettingError):
        return Endpoints(launch.master, launch.deploy_mode, extra, login, password, yarn_urls=launch.yarn_urls)
    deploy_mode = "cluster" if launch.deploy_mode == "cluster" else "client"
    return Endpoints(launch.master, deploy_mode, {}, yarn_urls=launch.yarn_urls)


class _Bearer(requests.auth.AuthBase):
    def __init__(self, token: str, token_file: str) -> None:
        self.token, self.token_file = token, token_file

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.token or self._read()}"
        return request

    def _read(self) -> str:
        """Read the file anew for each request: Kubernetes and others renew it."""
        try:
            return Path(self.token_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            cause = getattr(error, "strerror", None) or type(error).__name__
        raise NoAnswerError(redact(f"the token file {self.token_file} cannot be read: {cause}"))


def _access(read: Mapping[str, Any], login: str, password: str) -> Access:
    """Return how the endpoints are asked.

    Without ``status_auth`` it is what the other keys are for: ``bearer`` with a token, ``basic`` with a user name. The
    login of the connection alone is no such key: it may be there for something else.
    """
    token, token_file, username = read["status_token"], read["status_token_file"], read["status_username"]
    auth: requests.auth.AuthBase | None = None
    match read["status_auth"] or ("bearer" if token or token_file else "basic" if username else "none"):
        case "bearer":
            if not token and not token_file:
                token_file = _file(str(SERVICE_ACCOUNT / "token"), _place("status_token_file"))
            auth = _Bearer(token, token_file)
        case "basic":
            if not (username or login):
                place = _place("status_auth")
                raise SettingError(f"{place} is 'basic', and there is no 'status_username' and no login")
            # Not the password of another.
            own = read["status_password"] or ("" if username else password)
            auth = requests.auth.HTTPBasicAuth((username or login).encode(), own.encode())
        case "kerberos":
            auth = _kerberos()
    verify = read["status_verify"] and (read["status_ca_file"] or True)
    cert, key = read["status_client_cert"], read["status_client_key"]
    return Access(auth, verify, (cert, key) if cert and key else cert or None)


def _in_cluster(access: Access, api_url: str) -> Access:
    """Return how the API server of Kubernetes is asked: with the service account of this pod, if it is its own.

    The token of one cluster is not for the API server of another.
    """
    host = urlsplit(api_url).hostname
    token, authorities = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    if host not in (*_IN_CLUSTER, os.environ.get("KUBERNETES_SERVICE_HOST", "")) or not token.exists():
        return access
    verify = str(authorities) if access.verify is True and authorities.exists() else access.verify
    return replace(access, auth=_Bearer("", str(token)), verify=verify)


def _kerberos() -> requests.auth.AuthBase:
    try:
        # Not an import statement: the package is optional, and comes without types.
        kerberos: Any = import_module("requests_kerberos")
    except ImportError as error:
        remedy = "install it on the workers, or choose none, basic or bearer"
        text = f"{_place('status_auth')} is 'kerberos', which needs the package requests-kerberos; {remedy}"
        raise SettingError(text) from error
    # A server without a valid certificate still reports the status.
    return cast("requests.auth.AuthBase", kerberos.HTTPKerberosAuth(mutual_authentication=kerberos.OPTIONAL))


def _place(key: str) -> str:
    return f"{key!r} in the extra of the Spark connection"


def _read(extra: Mapping[str, Any], key: str) -> Any:
    value, (reader, default) = extra.get(key), _READERS[key]
    value = value.strip() if isinstance(value, str) else value
    return default if value is None or value == "" else reader(value, _place(key))


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{place} is a {type(value).__name__}; give text")
    return value


def _one_of(*words: str) -> Callable[[Any, str], Any]:
    read = one_of(*words)
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
        raise SettingError(f"{place} holds a login; give it as 'status_username' and 'status_password'")
    if not parts.netloc or parts.query or parts.fragment:
        raise SettingError(f"{place} is {redact(text)!r}; give an address like http://host:1234")
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
    "status_auth": (_one_of("none", "basic", "bearer", "kerberos"), ""),
    "status_username": (_text, ""),
    "status_password": (_text, ""),
    "status_token": (_text, ""),
    "status_token_file": (_file, ""),
    "status_verify": (boolean, True),
    "status_ca_file": (_file, ""),
    "status_client_cert": (_file, ""),
    "status_client_key": (_file, ""),
    "status_timeout_seconds": (number, READ_TIMEOUT_SECONDS),
}
"""How the value of each key is read, and what holds without one."""
ENDPOINT_KEYS = tuple(_READERS)
"""The keys of the extra that this room reads, in the order of ``docs/status.md``."""
