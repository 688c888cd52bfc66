"""Add the file transport that the package collects from to whatever transport the user has; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_lineage.secrets.redaction import redact
from spark_lineage.secrets.secret_keys import is_secret_key

PREFIX = "spark.openlineage.transport."
TRANSPORT_TYPE = f"{PREFIX}type"
_LOCATION = f"{PREFIX}location"
_CONTINUE = f"{PREFIX}continueOnFailure"
_MEMBERS = f"{PREFIX}transports"
_OURS = f"{_MEMBERS}.spark_lineage."
_USERS = f"{_MEMBERS}.user."
_SECRET_KEY = re.compile(r"auth|api.?key|token|password|secret|headers|sasl|jaas|credential", re.IGNORECASE)


class NoRoomError(Exception):
    """The user's own OpenLineage transport cannot be joined by ours."""


def looks_secret(key: str, value: str) -> bool:
    """Whether a property must not reach the command line, where every process of the machine can read it."""
    return _SECRET_KEY.search(key) is not None or is_secret_key(key) or redact(value) != value


def inject_transport(
    conf: Mapping[str, str], file_properties: Mapping[str, str], events_file: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return ``--conf`` with a transport to ``events_file``, beside the user's own, and what must stay in a file.

    :raises NoRoomError: for a user's transport that cannot be joined
    """
    effective = {**file_properties, **conf}
    kind = effective.get(TRANSPORT_TYPE, "").strip()
    if not kind:  # without a type the listener has no transport, whatever other keys there are
        return {**conf, TRANSPORT_TYPE: "file", _LOCATION: events_file}, {}
    if not _can_join(kind, effective):
        raise NoRoomError(
            "the job's own OpenLineage transport is given in a form that a second one cannot be added to; write it as "
            "spark.openlineage.transport.type=composite with spark.openlineage.transport.transports.<name>.* members; "
            "or, for Kafka, as a connection that driver_openlineage_conn_id names"
        )
    composite, private = (dict(conf), {}) if kind == "composite" else _wrap(kind, conf, file_properties)
    if _CONTINUE not in effective:
        composite[_CONTINUE] = "true"
    return composite | {f"{_OURS}type": "file", f"{_OURS}location": events_file}, private


def _can_join(kind: str, effective: Mapping[str, str]) -> bool:
    """Whether a member beside what is there leaves the user's transport what it is.

    A list and a member cannot stand together: the events of both are lost (measured). And members that the user's conf
    put to sleep with a single type would wake in a composite; they cannot be taken out of the user's file. The listener
    misreads the properties of a Kafka producer in a member, and then loses all events (1.53, measured).
    """
    if kind == "kafka":
        return False
    if kind == "composite":
        return _MEMBERS not in effective
    return not any(key == _MEMBERS or key.startswith(f"{_MEMBERS}.") for key in effective)


def _wrap(
    kind: str, conf: Mapping[str, str], file_properties: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Turn the user's single transport into the member ``user`` of a composite.

    The originals of those that came from the file stay there: beside a composite the listener ignores them (measured).
    """
    composite = {_member(key): value for key, value in conf.items()}
    composite[f"{_USERS}type"] = kind
    composite[TRANSPORT_TYPE] = "composite"
    private: dict[str, str] = {}
    for key, value in _belonging_to(kind, file_properties).items():
        if key not in conf and _member(key) not in composite:
            (private if looks_secret(key, value) else composite)[_member(key)] = value
    return composite, private


def _belonging_to(kind: str, file_properties: Mapping[str, str]) -> dict[str, str]:
    """The file's keys of a single transport, unless they describe one of another kind than ``kind``.

    The listener ignores a key that its transport does not know, but refuses it in a member of a composite (measured).
    """
    if file_properties.get(TRANSPORT_TYPE, kind).strip() != kind:
        return {}
    return {key: value for key, value in file_properties.items() if _is_single(key)}


def _is_single(key: str) -> bool:
    return key.startswith(PREFIX) and key != _CONTINUE and not key.startswith(f"{_MEMBERS}.")


def _member(key: str) -> str:
    """The key of a single transport as a key of the member ``user``; any other key as it is."""
    return _USERS + key.removeprefix(PREFIX) if _is_single(key) else key
