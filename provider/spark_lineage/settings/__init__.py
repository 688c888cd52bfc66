"""The settings: operator argument, then connection extra, then ``[spark_lineage]``, then the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from spark_lineage.settings import values
from spark_lineage.settings.values import (
    ConnIds,
    Granularity,
    ListenerSources,
    Patterns,
    SettingError,
    StartDatasets,
    WaitSeconds,
)

__all__ = ["SECTION", "Granularity", "Place", "SettingError", "Settings", "Settled", "StartDatasets", "is_required"]

SECTION = "spark_lineage"

Place = Literal["argument", "extra", "section", "default"]


@dataclass(frozen=True)
class Settled:
    """One setting: its value, and the place that it came from; ``value`` is as given where it does not fit."""

    name: str
    value: Any
    place: Place
    error: str = ""
    """What is wrong with the value, and what fits."""


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
    collect_timeout_seconds: WaitSeconds = 60.0
    tracking_interval_seconds: float = 3600.0
    start_datasets: StartDatasets = "inputs"
    event_log: bool = True
    granularity: Granularity = "task"
    map_index_in_job_name: bool = False
    max_event_bytes: float = 1_000_000.0
    job_status_listeners: ListenerSources = ()
    catalog_modification_listeners: ListenerSources = ()
    listener_timeout_seconds: WaitSeconds = 5.0
    openlineage_conn_id: ConnIds = ()
    driver_openlineage_conn_id: str = ""
    delivery_timeout_seconds: WaitSeconds = 5.0
    outbox_dir: str = ""
    outbox_max_bytes: float = 500_000_000.0
    redaction_patterns: Patterns = ()

    @classmethod
    def each(
        cls,
        arguments: Mapping[str, Any],
        extra: Mapping[str, Any],
        option: Callable[[str], str | None],
    ) -> Iterator[Settled]:
        """Return each setting from the first place that has it, one that does not fit with its error.

        :param arguments: of the operator; None and empty text count as not given
        :param extra: of the Spark connection
        :param option: gives the text of an option of ``[spark_lineage]``, None when it is not set
        """
        for setting in fields(cls):
            given = _given(setting.name, arguments, extra, option)
            if given is None:
                yield Settled(setting.name, getattr(_DEFAULTS, setting.name), "default")
                continue
            value, place, words = given
            try:
                yield Settled(setting.name, _READERS[str(setting.type)](value, words), place)
            except SettingError as error:
                yield Settled(setting.name, value, place, str(error))

    @classmethod
    def resolve(
        cls,
        arguments: Mapping[str, Any],
        extra: Mapping[str, Any],
        option: Callable[[str], str | None],
    ) -> Settings:
        """Return all of them, of the same places.

        :raises SettingError: when a value does not fit
        """
        values: dict[str, Any] = {}
        for settled in cls.each(arguments, extra, option):
            if settled.error:
                raise SettingError(settled.error)
            values[settled.name] = settled.value
        return cls(**values)


_DEFAULTS = Settings()


def is_required(arguments: Mapping[str, Any], extra: Mapping[str, Any], option: Callable[[str], str | None]) -> bool:
    """Return ``lineage_required`` alone, for when another setting is in trouble.

    :raises SettingError: when its own value does not fit
    """
    given = _given("lineage_required", arguments, extra, option)
    return given is not None and values.boolean(given[0], given[2])


def _given(
    name: str, arguments: Mapping[str, Any], extra: Mapping[str, Any], option: Callable[[str], str | None]
) -> tuple[Any, Place, str] | None:
    """Return the value of a setting, the place that it came from, and that place in words."""
    places: tuple[tuple[Any, Place, str], ...] = (
        (arguments.get(name), "argument", f"operator argument {name!r}"),
        (extra.get(name), "extra", f"{name!r} in the extra of the Spark connection"),
        (option(name), "section", f"[{SECTION}] {name}"),
    )
    return next((place for place in places if place[0] is not None and place[0] != ""), None)


# By the annotation of the field, which is text because of the __future__ import.
_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "bool": values.boolean,
    "float": values.number,
    "WaitSeconds": values.wait_seconds,
    "str": values.text,
    "Granularity": values.granularity,
    "StartDatasets": values.start_datasets,
    "ListenerSources": values.listeners,
    "ConnIds": values.conn_ids,
    "Patterns": values.patterns,
    "Mapping[str, str]": values.tags,
}
