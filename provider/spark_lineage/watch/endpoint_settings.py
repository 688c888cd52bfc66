"""Reads what the extra of a ``spark`` connection says about endpoints; errors name the key, and show no secret."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.values import SettingError, number
from spark_lineage.watch.access import Access, Scheme
from spark_lineage.watch.address import origin_of

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# What the API server is called inside of its own cluster; the variable holds its address.
_IN_CLUSTER = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def text_of(extra: Mapping[str, Any], key: str) -> str:
    """Return the text under a key, empty for none.

    :raises SettingError: when it is no text
    """
    value = extra.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise SettingError(f"{_place(key)} is a {type(value).__name__}; give text")
    return value.strip()


def number_of(extra: Mapping[str, Any], key: str, default: float) -> float:
    """Return the number under a key.

    :raises SettingError: when it is none above 0
    """
    value = extra.get(key)
    if value is None or value == "":
        return default
    return number(value, _place(key))


def urls_of(extra: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the addresses under a key, separated by commas.

    :raises SettingError: when one is no http or https address
    """
    return tuple(_url(each.strip(), key) for each in text_of(extra, key).split(",") if each.strip())


def url_of(extra: Mapping[str, Any], key: str) -> str:
    """Return the address under a key, empty for none.

    :raises SettingError: when it is no http or https address
    """
    text = text_of(extra, key)
    return _url(text, key) if text else ""


def access_of(extra: Mapping[str, Any], login: str | None, password: str | None) -> Access:
    """Return how the endpoints are asked.

    Without ``status_auth`` it is what the other keys are for: ``bearer`` with a token, ``basic`` with a user name. The
    login of the connection alone is no such key: it may be there for something else.

    :raises SettingError: when the keys do not fit together, or name files that are not there
    """
    token, token_file = text_of(extra, "status_token"), text_of(extra, "status_token_file")
    username = text_of(extra, "status_username")
    implied = "bearer" if token or token_file else "basic" if username else "none"
    scheme = text_of(extra, "status_auth").lower() or implied
    if scheme not in get_args(Scheme):
        raise SettingError(f"{_place('status_auth')} is {redact(scheme)!r}; give one of {', '.join(get_args(Scheme))}")
    if scheme == "bearer" and not token:
        token_file = token_file or str(SERVICE_ACCOUNT / "token")
        _existing(token_file, "status_token_file")
    if scheme == "basic" and not (username or login):
        raise SettingError(f"{_place('status_auth')} is 'basic', and there is no 'status_username' and no login")
    has_own_name = bool(username)
    return Access(
        scheme=cast("Scheme", scheme),
        username=username or login or "",
        password=text_of(extra, "status_password") or ("" if has_own_name else password or ""),
        token=token,
        token_file=token_file,
        verify=_verify(extra),
        client_cert=_existing(text_of(extra, "status_client_cert"), "status_client_cert"),
        client_key=_existing(text_of(extra, "status_client_key"), "status_client_key"),
    )


def complaint_of(extra: Mapping[str, Any], key: str) -> str:
    """Say what is wrong with one of ``ENDPOINT_KEYS`` by itself; empty text where it fits."""
    try:
        _READERS[key](extra, key)
    except SettingError as error:
        return str(error)
    return ""


def in_cluster_access(extra: Mapping[str, Any], access: Access, api_url: str) -> Access:
    """Return how the API server of Kubernetes is asked: with the service account of this pod, if it is its own.

    What the connection says wins. The token of one cluster is not for the API server of another.
    """
    host = urlsplit(api_url).hostname or ""
    token = SERVICE_ACCOUNT / "token"
    is_own = host in _IN_CLUSTER or host == os.environ.get("KUBERNETES_SERVICE_HOST")
    if access.scheme != "none" or text_of(extra, "status_auth") or not is_own or not token.exists():
        return access
    authorities = SERVICE_ACCOUNT / "ca.crt"
    verify = str(authorities) if access.verify is True and authorities.exists() else access.verify
    return replace(access, scheme="bearer", token_file=str(token), verify=verify)


def _verify(extra: Mapping[str, Any]) -> bool | str:
    value = extra.get("status_verify", True)
    text = str(value).strip().lower()
    if text and text not in (*_TRUE, *_FALSE):
        raise SettingError(f"{_place('status_verify')} is {redact(text)!r}; give true or false")
    if text in _FALSE:
        return False
    return _existing(text_of(extra, "status_ca_file"), "status_ca_file") or True


def _existing(path: str, key: str) -> str:
    if path and not Path(path).exists():
        raise SettingError(f"{_place(key)} is {path!r}, which is not there on this machine")
    return path


def _url(text: str, key: str) -> str:
    # The Spark provider takes a YARN address without a scheme.
    url = (text if "://" in text else f"http://{text}").rstrip("/")
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.username is not None or parts.password is not None:
        raise SettingError(f"{_place(key)} holds a login; give it as 'status_username' and 'status_password'")
    if not origin_of(url.replace("{application_id}", "id")) or parts.query or parts.fragment:
        raise SettingError(f"{_place(key)} is {redact(text)!r}; give an address like http://host:1234")
    return url


def _place(key: str) -> str:
    return f"{key!r} in the extra of the Spark connection"


_READERS: Mapping[str, Callable[[Mapping[str, Any], str], object]] = {
    "rest-scheme": text_of,
    "rest-port": lambda extra, key: number_of(extra, key, 1.0),
    "yarn_resourcemanager_webapp_address": urls_of,
    "namespace": text_of,
    "driver_ui_url": url_of,
    "history_server_url": url_of,
    "master_ui_url": urls_of,
    "kubernetes_api_url": url_of,
    "status_auth": text_of,
    "status_username": text_of,
    "status_password": text_of,
    "status_token": text_of,
    "status_token_file": text_of,
    "status_verify": lambda extra, _: _verify(extra),
    "status_ca_file": lambda extra, key: _existing(text_of(extra, key), key),
    "status_client_cert": lambda extra, key: _existing(text_of(extra, key), key),
    "status_client_key": lambda extra, key: _existing(text_of(extra, key), key),
    "status_timeout_seconds": lambda extra, key: number_of(extra, key, 1.0),
}
ENDPOINT_KEYS = tuple(_READERS)
"""The keys of the extra that this room reads, in the order of ``docs/status.md``."""
