"""The settings of a launch for those who have neither its operator nor its hook: of connection and section."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_lineage.naming.chain import Naming
from spark_lineage.naming.options import DEFAULT_NAMING, naming_from
from spark_lineage.settings import SECTION, Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Configuration:
    """What the connection and ``[spark_lineage]`` say; arguments of the operator are not known here."""

    settings: Settings = field(default_factory=Settings)
    naming: Naming = DEFAULT_NAMING
    extra: Mapping[str, Any] = field(default_factory=dict)
    login: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, conn_id: str) -> Configuration:
        """Read the connection, which may be gone, and the section.

        :raises SettingError: when a value does not fit
        """
        from airflow.providers.common.compat.sdk import BaseHook, conf

        connection: Any = None
        if conn_id:
            try:
                connection = BaseHook.get_connection(conn_id)
            except Exception as error:
                log.debug("The connection %s cannot be read: %s", conn_id, type(error).__name__)
        extra = connection.extra_dejson if connection is not None else {}
        section = conf.getsection(SECTION) or {}
        return cls(
            settings=Settings.resolve({}, extra, _option),
            naming=naming_from({**section, **{key.lower(): value for key, value in extra.items()}}),
            extra=extra,
            login=connection.login if connection is not None else None,
            password=connection.password if connection is not None else None,
        )


def lineage_root() -> Path:
    """Give the lineage directory that the section names, else the default."""
    from airflow.configuration import AIRFLOW_HOME

    return Path(_option("lineage_dir") or f"{AIRFLOW_HOME}/spark_lineage")


def _option(name: str) -> str | None:
    from airflow.providers.common.compat.sdk import conf

    return conf.get(SECTION, name, fallback=None)  # type: ignore[no-any-return]
