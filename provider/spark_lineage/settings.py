"""The settings: operator argument, then connection extra, then ``[spark_lineage]``, then the default."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

Granularity = Literal["task", "path", "action"]
# Ids of Airflow connections of type ``openlineage``.
ConnIds = tuple[str, ...]
Patterns = tuple[str, ...]
# Class paths, and from the operator's argument also factories and listeners.
ListenerSources = tuple[Any, ...]

SECTION = "spark_lineage"
# More than any size or time that is meant; a thread cannot wait as long as a float can say.
_MAX_NUMBER = 1e9


class SettingError(ValueError):
    """A setting that cannot be used; the text says which, where it was set, and what fits."""


@dataclass(frozen=True)
class Settings:
    """Every setting by the name that it has as an operator argument, in the connection's extra and in the section.

    Empty text means the default that is described in ``[spark_lineage]``. How datasets are named is told by keys of any
    name, which :func:`spark_lineage.naming.options.naming_from` reads from the same places.
    """

    lineage_enabled: bool = True
    lineage_required: bool = False
    lineage_dir: str = ""
    openlineage_jar: str = ""
    jar_cache_dir: str = ""
    jar_timeout_seconds: float = 120.0
    lineage_namespace: str = ""
    lineage_job_name: str = ""
    lineage_tags: Mapping[str, str] = field(default_factory=dict)
    retention_days: float = 30.0
    poll_interval_seconds: float = 5.0
    tracking_interval_seconds: float = 3600.0
    event_log: bool = True
    granularity: Granularity = "task"
    max_event_bytes: float = 1_000_000.0
    job_status_listeners: ListenerSources = ()
    catalog_modification_listeners: ListenerSources = ()
    listener_timeout_seconds: float = 5.0
    openlineage_conn_id: ConnIds = ()
    driver_openlineage_conn_id: str = ""
    delivery_timeout_seconds: float = 5.0
    outbox_dir: str = ""
    outbox_max_bytes: float = 500_000_000.0
    redaction_patterns: Patterns = ()

    @classmethod
    def resolve(
        cls,
        arguments: Mapping[str, Any],
        extra: Mapping[str, Any],
        option: Callable[[str], str | None],
    ) -> Settings:
        """Give each setting from the first place that has it.

        :param arguments: of the operator; None and empty text count as not given
        :param extra: of the Spark connection
        :param option: gives the text of an option of ``[spark_lineage]``, None when it is not set
        :raises SettingError: when a value does not fit
        """
        values: dict[str, Any] = {}
        for setting in fields(cls):
            given = _given(setting.name, arguments, extra, option)
            if given is not None:
                values[setting.name] = _PARSERS[str(setting.type)](*given)
        return cls(**values)


def is_required(arguments: Mapping[str, Any], extra: Mapping[str, Any], option: Callable[[str], str | None]) -> bool:
    """Give ``lineage_required`` alone, for when another setting is in trouble.

    :raises SettingError: when its own value does not fit
    """
    given = _given("lineage_required", arguments, extra, option)
    return given is not None and _boolean(*given)


def _given(
    name: str, arguments: Mapping[str, Any], extra: Mapping[str, Any], option: Callable[[str], str | None]
) -> tuple[Any, str] | None:
    """Give the value of a setting, and the place that it came from."""
    places = (
        (arguments.get(name), f"operator argument {name!r}"),
        (extra.get(name), f"{name!r} in the extra of the Spark connection"),
        (option(name), f"[{SECTION}] {name}"),
    )
    return next(((value, place) for value, place in places if value is not None and value != ""), None)


def _boolean(value: Any, place: str) -> bool:
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on", "t", "y"):
        return True
    if text in ("false", "0", "no", "off", "f", "n"):
        return False
    raise SettingError(f"{place} is {value!r}; give true or false")


def _number(value: Any, place: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    # NaN fails the comparison too.
    if not 0 < number <= _MAX_NUMBER:
        raise SettingError(f"{place} is {value!r}; give a number above 0, and at most {_MAX_NUMBER:g}")
    return number


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{place} is {value!r}; give text")
    return value


def _granularity(value: Any, place: str) -> str:
    if value not in get_args(Granularity):
        raise SettingError(f"{place} is {value!r}; give one of {', '.join(get_args(Granularity))}")
    return str(value)


def _listeners(value: Any, place: str) -> ListenerSources:  # noqa: ARG001 - what names no listener is said by who looks
    if isinstance(value, str):
        value = [path.strip() for path in value.split(";")]
    if not isinstance(value, list | tuple):
        value = (value,)
    return tuple(one for one in value if one != "")


def _conn_ids(value: Any, place: str) -> ConnIds:
    if isinstance(value, str):
        value = value.split(";")
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise SettingError(f"{place} is {value!r}; give the id of a connection, or a list of them")
    # Each once: a backend must not get an event twice.
    return tuple(dict.fromkeys(one.strip() for one in value if one.strip()))


def _patterns(value: Any, place: str) -> Patterns:
    if isinstance(value, str):
        value = [line.strip() for line in value.splitlines() if line.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise SettingError(f"{place} is no list of regular expressions, or text with one a line")
    for one in value:
        try:
            re.compile(one)
        except re.error as error:
            raise SettingError(f"{place} has a regular expression that cannot be used, {one!r}: {error}") from error
    return tuple(value)


def _tags(value: Any, place: str) -> Mapping[str, str]:
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise SettingError(f"{place} is no JSON object or list: {error}") from error
    if isinstance(value, str):
        value = value.split(";")
    if isinstance(value, Mapping):
        return {str(key): "" if text is None else str(text) for key, text in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        pairs = (tag.partition(":") for tag in sorted(map(str, value)) if tag.strip())
        return {key.strip(): text.strip() for key, _, text in pairs}
    raise SettingError(f"{place} is {value!r}; give a mapping, a list, or text like 'team:sales;nightly'")


# By the annotation of the field, which is text because of the __future__ import.
_PARSERS: Mapping[str, Callable[[Any, str], Any]] = {
    "bool": _boolean,
    "float": _number,
    "str": _text,
    "Granularity": _granularity,
    "ListenerSources": _listeners,
    "ConnIds": _conn_ids,
    "Patterns": _patterns,
    "Mapping[str, str]": _tags,
}
