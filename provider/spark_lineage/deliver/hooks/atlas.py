"""The hook of ``atlas`` connections: Apache Atlas, over REST or its Kafka topic of notifications."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import requests
from airflow.providers.common.compat.sdk import BaseHook
from requests.auth import AuthBase, HTTPBasicAuth

from spark_lineage.deliver.hooks.forms import field_behaviour, form_widgets
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.http_address import base_url_of
from spark_lineage.deliver.transports.http_headers import check_header, headers_of
from spark_lineage.deliver.transports.kafka_config import KAFKA_KEYS, kafka_config
from spark_lineage.deliver.transports.masking import mask_config
from spark_lineage.deliver.transports.opening import connection_fields
from spark_lineage.deliver.transports.probe import probe
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

DEFAULT_TIMEOUT_SECONDS = 10.0
DEFAULT_TOPIC = "ATLAS_HOOK"
VERSION_PATH = "/api/atlas/admin/version"
_KEYS = frozenset({"kind", "headers", "verify", "client_cert", "client_key", "timeout_seconds"} | KAFKA_KEYS)
_ADVICE = {
    401: "the login or the password is wrong",
    403: "the login may not do this",
    404: "Atlas is not at this address; give the URL before /api/atlas",
}


class AtlasHook(BaseHook):
    """Apache Atlas 2: its REST API (``kind: rest``), or the notifications of its hooks (``kind: kafka``).

    :param atlas_conn_id: id of a connection of type ``atlas``
    """

    conn_name_attr = "atlas_conn_id"
    default_conn_name = "atlas_default"
    conn_type = "atlas"
    hook_name = "Apache Atlas"

    def __init__(self, atlas_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.atlas_conn_id = atlas_conn_id

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Return the fields of the form to Airflow before 3.2."""
        return form_widgets(cls.conn_type)

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return the labels of the form to Airflow before 3.2."""
        return field_behaviour(cls.conn_type)

    @property
    def kind(self) -> str:
        """``rest`` or ``kafka``."""
        self._fields.check_keys(_KEYS)
        return self._fields.choice("kind", ("rest", "kafka"), "rest")

    @property
    def url(self) -> str:
        """What comes before ``/api/atlas``, without a slash at its end.

        :raises SettingError: when the connection is not there, or does not fit
        """
        return base_url_of(self._fields).removesuffix("/api/atlas")

    def get_conn(self) -> requests.Session:
        """Return a session with the credentials, TLS and time-out of the connection, which follows no redirects.

        :raises SettingError: when the connection is not there, does not fit, or is of kind ``kafka``
        """
        fields = self._fields
        if self.kind != "rest":
            raise fields.error("kind", "is 'kafka': Atlas is told over Kafka, and has no session; see kafka_config()")
        return _BoundedSession(fields)

    def kafka_config(self) -> dict[str, Any]:
        """Return the Kafka transport's configuration, ``{"topic": "ATLAS_HOOK", "config": {…}, …}``, secrets included.

        :raises SettingError: when the connection is not there, or does not fit
        """
        config = kafka_config(
            self._fields, default_timeout_seconds=DEFAULT_TIMEOUT_SECONDS, default_topic=DEFAULT_TOPIC
        )
        mask_config(config)
        return config

    def test_connection(self) -> tuple[bool, str]:
        """Ask Atlas for its version, or Kafka for the topic; what was found, redacted."""
        try:
            if self.kind == "kafka":
                return probe(self.kafka_config())
            with self.get_conn() as session:
                return _version(session.get(f"{self.url}{VERSION_PATH}"))
        except SettingError as error:
            return False, redact(str(error))
        except requests.Timeout:
            return False, f"{redact(self.url)} did not answer in time"
        except requests.RequestException as error:
            return False, f"{redact(self.url)} cannot be reached: {redact(str(error))}"

    @cached_property
    def _fields(self) -> ConnectionFields:
        return connection_fields(self.atlas_conn_id, self.conn_type)


class _BoundedSession(requests.Session):
    """A session whose requests end, and which gives its credentials to no other host."""

    def __init__(self, fields: ConnectionFields) -> None:
        super().__init__()
        self._seconds = fields.seconds("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)
        self.verify = fields.boolean_or_path("verify")
        certificate, key = fields.path("client_cert"), fields.path("client_key")
        if key and not certificate:
            raise fields.error("client_key", "is given without 'client_cert'; give the certificate too")
        self.cert = (certificate, key) if key else certificate or None
        headers, is_password_used = headers_of(fields)
        self.headers.update({"Accept": "application/json", **headers})
        if fields.login:
            self.auth = HTTPBasicAuth(fields.login.encode(), fields.password.encode())
        elif fields.password and not is_password_used:
            self.auth = _Bearer(check_header(fields, "password", fields.password.strip()))

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request within the time-out of the connection, unless the caller gives another."""
        kwargs.setdefault("timeout", self._seconds)
        # Otherwise REQUESTS_CA_BUNDLE would win over the connection.
        kwargs.setdefault("verify", self.verify)
        kwargs["allow_redirects"] = False
        return super().request(method, url, *args, **kwargs)


class _Bearer(AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _version(answer: requests.Response) -> tuple[bool, str]:
    where = f"{redact(answer.url)} answered {answer.status_code}"
    if answer.status_code != requests.codes.ok:
        advice = _ADVICE.get(answer.status_code, "look at the URL, and at Atlas' log")
        return False, f"{where}: {advice}"
    try:
        version = str(answer.json()["Version"])
    except (ValueError, KeyError, TypeError):
        return False, f"{where}, and not with Atlas' version, as a login in front of it does; look at the URL"
    return True, f"Atlas {redact(version)} is reached"
