"""Tells of every setting its value, and where that was set; secrets are masked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from dataclasses import dataclass
from typing import Any

from spark_lineage.naming.options import NamingError, is_naming_key, naming_from
from spark_lineage.secrets.redaction import redact, redact_value
from spark_lineage.settings import SECTION, SettingError, Settings
from spark_lineage.settings.defaults import stand_ins
from spark_lineage.settings.places import Places, option, section
from spark_lineage.watch.endpoints import ENDPOINT_KEYS, Endpoints, complaint_of

ENVIRONMENT_PREFIX = f"AIRFLOW__{SECTION.upper()}__"
NDJSON_PATH = "ndjson_listener_path"
"""An option that a listener reads by itself (``spark_lineage.listeners.ndjson_listener``)."""


@dataclass(frozen=True)
class Told:
    """One setting as it may be shown.

    ``value`` is JSON, None for a key of the extra that is not set; ``source`` is where it was set, for a person.
    """

    name: str
    value: Any
    source: str
    error: str = ""
    """What is wrong with it, and what fits."""


def settings_told(places: Places, conn_id: str) -> Iterator[Told]:
    """Tell of every setting that has a fixed name."""
    each = list(Settings.each(places.arguments, places.extra, option))
    instead = stand_ins(Settings(**{one.name: one.value for one in each if not one.error}))
    for one in each:
        sources = {
            "argument": "argument of the operator",
            "extra": _of_extra(conn_id),
            "section": section_source(one.name),
            "default": "default",
        }
        value = instead.get(one.name, one.value) if one.value == "" else one.value
        yield Told(one.name, shown(one.name, value), sources[one.place], redact(one.error))


def options_told(places: Places, conn_id: str) -> Iterator[Told]:
    """Tell of the options that name datasets, whatever they are called, and of those of our listeners."""
    own = {key.lower(): key for key in places.extra}
    written = {key.lower(): key for key in section()} | own
    options = places.options()
    for key in sorted(options):
        if is_naming_key(key) or key == NDJSON_PATH:
            source = _of_extra(conn_id) if key in own else section_source(key)
            yield Told(written[key], shown(key, options[key]), source, _complaint(key, options[key]))


def endpoints_told(places: Places, conn_id: str) -> Iterator[Told]:
    """Tell how the status of the connection's applications is asked; only keys that are set, and what is wrong."""
    has_error = False
    for key in ENDPOINT_KEYS:
        if (value := places.extra.get(key)) not in (None, ""):
            error = redact(complaint_of(places.extra, key))
            has_error = has_error or bool(error)
            yield Told(key, shown(key, value), _of_extra(conn_id), error)
    if not has_error and (error := _complaint_of_all(places)):
        yield Told("status endpoints", None, _of_extra(conn_id), error)


def section_source(name: str) -> str:
    """Say where the text of an option of ``[spark_lineage]`` comes from."""
    from airflow.configuration import AIRFLOW_CONFIG
    from airflow.providers.common.compat.sdk import conf

    variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
    if variable in os.environ:
        return f"environment variable {variable}"
    # Of the parser itself: Airflow's own would count declared defaults too, and its as_dict() would run the commands
    # that give the secrets of all other sections.
    is_in_file = ConfigParser.has_section(conf, SECTION)
    if is_in_file and name.lower() in map(str.lower, ConfigParser.options(conf, SECTION)):
        return f"[{SECTION}] in {AIRFLOW_CONFIG}"
    return "default"


def shown(name: str, value: Any) -> Any:
    """Return a value as JSON, masked by its key and by its shape."""
    masked: Any = redact_value({name: _plain(value)})
    return masked[name]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    # A listener, or what makes one.
    kind = value if isinstance(value, type) else type(value)
    name = getattr(value, "__qualname__", None) or kind.__qualname__
    return f"{getattr(value, '__module__', None) or kind.__module__}.{name}"


def _of_extra(conn_id: str) -> str:
    return f"extra of the connection {conn_id}"


def _complaint(key: str, value: Any) -> str:
    try:
        naming_from({key: value})
    except NamingError as error:
        return redact(str(error))
    return ""


def _complaint_of_all(places: Places) -> str:
    """Say what is wrong with keys that fit by themselves, and not together."""
    mode = places.extra.get("deploy-mode") or "client"
    try:
        Endpoints("local", str(mode), places.extra, places.login, places.password)
    except SettingError as error:
        return redact(str(error))
    return ""
