"""Hooks of the connection types of this package: ``openlineage``, where events go, and ``atlas``, Apache Atlas."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import requests
from airflow.providers.common.compat.sdk import BaseHook

from spark_lineage.deliver.connection_types import ATLAS_KEYS, connection_types
from spark_lineage.deliver.transports.config import (
    CONN_TYPE,
    base_url_of,
    exchange_config,
    kafka_config,
    namespace_of,
    transport_config,
)
from spark_lineage.deliver.transports.fields import ConnectionFields
from spark_lineage.deliver.transports.opening import connection_fields, make_transport, mask_config
from spark_lineage.deliver.transports.probe import probe
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings import SettingError

if TYPE_CHECKING:
    from openlineage.client.transport.transport import Transport

DEFAULT_TOPIC = "ATLAS_HOOK"
VERSION_PATH = "/api/atlas/admin/version"
_ADVICE = {
    401: "the login or the password is wrong",
    403: "the login may not do this",
    404: "Atlas is not at this address; give the URL before /api/atlas",
}


class FormHook(BaseHook):
    """A hook whose connection type is declared in ``connection_types``; Airflow before 3.2 asks it for its form."""

    conn_name_attr: str
    conn_type: str

    @cached_property
    def fields(self) -> ConnectionFields:
        """The fields of the connection, read once.

        :raises SettingError: when the connection is not there, or does not fit
        """
        return connection_fields(getattr(self, self.conn_name_attr), self.conn_type)

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Return the fields of the extra, as WTForms has them.

        :raises ImportError: without WTForms; Airflow that asks has it
        """
        # Not import statements: Airflow 3 has neither.
        wtforms, babel = import_module("wtforms"), import_module("flask_babel")
        widgets: dict[str, Any] = {}
        for name, field in cls._declared()["conn-fields"].items():
            schema, description = field["schema"], field["description"]
            if choices := ", ".join(filter(None, schema.get("enum", ()))):
                description = f"{description} One of {choices}; {schema['values_display']['null']}."
            # The old form has no sections, and knows text only; numbers and objects are read from text as well.
            label = ": ".join(filter(None, (schema.get("section"), field["label"])))
            widgets[name] = wtforms.StringField(babel.lazy_gettext(label), description=description)
        return widgets

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return how the fields that every connection has are shown."""
        return {key.replace("-", "_"): value for key, value in cls._declared()["ui-field-behaviour"].items()}

    @classmethod
    def _declared(cls) -> dict[str, Any]:
        return next(each for each in connection_types() if each["connection-type"] == cls.conn_type)


class OpenLineageHook(FormHook):
    """Any OpenLineage backend: over HTTP, Kafka, into a file, to the log, or several at once.

    :param openlineage_conn_id: id of a connection of type ``openlineage``
    """

    conn_name_attr = "openlineage_conn_id"
    default_conn_name = "openlineage_default"
    conn_type = CONN_TYPE
    hook_name = "OpenLineage"

    def __init__(self, openlineage_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.openlineage_conn_id = openlineage_conn_id

    @property
    def namespace(self) -> str | None:
        """The OpenLineage namespace of the jobs for this backend; None for that of Airflow's provider."""
        return namespace_of(self.fields)

    def transport_config(self) -> dict[str, Any]:
        """Return the configuration of the transport, as openlineage-python takes it, secrets included.

        :raises SettingError: when the connection is not there, or does not fit
        """
        config = transport_config(self.fields)
        mask_config(config)
        return config

    def get_conn(self) -> Transport:
        """Open the transport: ``emit(event)`` sends one event, and raises unless the backend said yes.

        :raises SettingError: when the connection is not there, does not fit, or is of kind ``composite``
        """
        return make_transport(self.transport_config())

    def test_connection(self) -> tuple[bool, str]:
        """Reach the backend, and leave nothing there; what was found, redacted."""
        try:
            config = self.transport_config()
        except SettingError as error:
            return False, redact(str(error))
        return probe(config)


class AtlasHook(FormHook):
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

    @property
    def kind(self) -> str:
        """``rest`` or ``kafka``."""
        self.fields.check_keys(ATLAS_KEYS)
        return self.fields.choice("kind", ("rest", "kafka"), "rest")

    @property
    def url(self) -> str:
        """What comes before ``/api/atlas``, without a slash at its end.

        :raises SettingError: when the connection is not there, or does not fit
        """
        return base_url_of(self.fields).removesuffix("/api/atlas")

    def get_conn(self) -> requests.Session:
        """Return a session with the credentials, TLS and time-out of the connection, which follows no redirects.

        :raises SettingError: when the connection is not there, does not fit, or is of kind ``kafka``
        """
        if self.kind != "rest":
            problem = "is 'kafka': Atlas gets notifications over Kafka, and has no session; see kafka_config()"
            raise self.fields.error("kind", problem)
        config = exchange_config(self.fields)
        mask_config(config)
        return _BoundedSession(config)

    def kafka_config(self) -> dict[str, Any]:
        """Return the Kafka transport's configuration, ``{"topic": "ATLAS_HOOK", "config": {…}, …}``, secrets included.

        :raises SettingError: when the connection is not there, or does not fit
        """
        config = kafka_config(self.fields, default_topic=DEFAULT_TOPIC)
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


class _BoundedSession(requests.Session):
    """A session whose requests end, and which gives its credentials to no other host."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        tls = config.get("sslContext", {})
        self._seconds: float = config["timeout"]
        self.verify = tls.get("caCertPath") or config["verify"]
        certificate, key = tls.get("clientCertPath"), tls.get("clientKeyPath")
        self.cert = (certificate, key) if key else certificate
        self.headers.update({"Accept": "application/json", **config.get("custom_headers", {})})
        if "auth" in config:
            self.headers["Authorization"] = f"Bearer {config['auth']['apiKey']}"
        # Otherwise requests would put the login of ~/.netrc in the place of ours.
        self.auth = lambda request: request

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request within the time-out of the connection, unless the caller gives another."""
        kwargs.setdefault("timeout", self._seconds)
        # Otherwise REQUESTS_CA_BUNDLE would win over the connection.
        kwargs.setdefault("verify", self.verify)
        kwargs["allow_redirects"] = False
        return super().request(method, url, *args, **kwargs)


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
