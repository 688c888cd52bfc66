"""The hook of connections of type ``atlas``, and their settings of how lineage looks in Atlas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import httpx

from spark_lineage.atlas.datasets import DEFAULT_NAMESPACE, Datasets
from spark_lineage.atlas.entities import AtlasOptions
from spark_lineage.atlas.rest import AtlasRest
from spark_lineage.atlas.types import TASK
from spark_lineage.deliver.connection_types import ATLAS_KEYS
from spark_lineage.deliver.connections import base_url_of, exchange_config, kafka_config, mask_config, probe
from spark_lineage.deliver.hooks import FormHook
from spark_lineage.deliver.http_sender import http_headers, trusted
from spark_lineage.deliver.sender import Later, Refused
from spark_lineage.naming.options import NamingError, is_naming_key, naming_from
from spark_lineage.secrets.redaction import clean_errors
from spark_lineage.settings import SettingError
from spark_lineage.settings.places import section

DEFAULT_TOPIC = "ATLAS_HOOK"
# So many are counted at most.
_COUNTED = 1000
VERSION_PATH = "/api/atlas/admin/version"
_ADVICE = {
    401: "the login or the password is wrong",
    403: "the login has no right to do this",
    404: "Atlas is not at this address; give the URL before /api/atlas",
}


class AtlasHook(FormHook):
    """Apache Atlas 2: its REST API (``kind: rest``), or the notifications of its hooks (``kind: kafka``)."""

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
        self.fields.check_keys(ATLAS_KEYS | set(filter(is_naming_key, self.fields.extra)))
        return self.fields.choice("kind", ("rest", "kafka"), "rest")

    @property
    def options(self) -> AtlasOptions:
        """How lineage looks there."""
        granularity = self.fields.choice("granularity", ("task", "path"), "task")
        columns = self.fields.choice("columns", ("lineage", "none"), "lineage")
        return AtlasOptions(granularity == "path", columns == "lineage")

    @property
    def datasets(self) -> Datasets:
        """What datasets are there, by the clusters and resolvers of the section and of the connection's extra."""
        try:
            naming = naming_from({**section(), **self.fields.extra})
        except NamingError as error:
            raise SettingError(str(error)) from error
        warehouses = [each.strip() for each in self.fields.text("warehouse").replace(";", "\n").splitlines()]
        namespace = self.fields.text("namespace") or DEFAULT_NAMESPACE
        return Datasets(naming, namespace, [each for each in warehouses if each])

    @property
    def url(self) -> str:
        """What comes before ``/api/atlas``, without a slash at its end."""
        return base_url_of(self.fields).removesuffix("/api/atlas")

    @clean_errors()
    def get_conn(self) -> httpx.Client:
        """Return a client with the credentials, TLS and time-out of the connection, which follows no redirects.

        :raises SettingError: also for a connection of kind ``kafka``
        """
        if self.kind != "rest":
            problem = "is 'kafka': Atlas gets notifications over Kafka, and has no session; see kafka_config()"
            raise self.fields.error("kind", problem)
        config = mask_config(exchange_config(self.fields))
        headers = {"Accept": "application/json", **http_headers(config)}
        return httpx.Client(headers=headers, timeout=config["timeout"], verify=trusted(config))

    @contextmanager
    def rest(self) -> Iterator[AtlasRest]:
        """Open Atlas's REST API; errors are those of ``get_conn``."""
        with self.get_conn() as session:
            yield AtlasRest(session, self.url)

    @property
    def types_hook(self) -> AtlasHook | None:
        """The hook by which types are made: this one, or that of ``rest_conn_id``; None where there is none."""
        if self.kind == "rest":
            return self
        conn_id = self.fields.text("rest_conn_id")
        return AtlasHook(conn_id) if conn_id else None

    def kafka_config(self) -> dict[str, Any]:
        """Return the Kafka transport's configuration, ``{"topic": "ATLAS_HOOK", "config": {…}}``, secrets included."""
        return mask_config(kafka_config(self.fields, default_topic=DEFAULT_TOPIC))

    def _tested(self) -> tuple[bool, str]:
        if self.kind == "kafka":
            is_good, text = probe(self.kafka_config())
            return is_good, f"{text}; {self._arrived()}"
        try:
            with self.get_conn() as session:
                return _version(session.get(f"{self.url}{VERSION_PATH}"))
        except httpx.TimeoutException:
            return False, f"{self.url} did not answer in time"
        except httpx.HTTPError as error:
            return False, f"{self.url} cannot be reached: {error}"

    def _arrived(self) -> str:
        """Say whether Atlas has processed notifications, which have no answer."""
        if (other := self.types_hook) is None:
            return "give rest_conn_id, an atlas connection of kind rest, to see whether Atlas accepts its messages"
        try:
            with other.rest() as atlas:
                count = sum(1 for _ in islice(atlas.all_of(TASK), _COUNTED))
        except (Later, Refused) as error:
            return f"it is unknown whether Atlas accepts its messages: {error}"
        more = "or more " if count == _COUNTED else ""
        return f"{count} {more}tasks have arrived in Atlas" if count else "no task has arrived in Atlas yet"


def _version(answer: httpx.Response) -> tuple[bool, str]:
    where = f"{answer.url} answered {answer.status_code}"
    if answer.status_code != httpx.codes.OK:
        advice = _ADVICE.get(answer.status_code, "check the URL, and Atlas' log")
        return False, f"{where}: {advice}"
    try:
        version = str(answer.json()["Version"])
    except (ValueError, KeyError, TypeError):
        return False, f"{where}, and not with Atlas' version, as a login in front of it does; look at the URL"
    return True, f"Atlas {version} is reached"
