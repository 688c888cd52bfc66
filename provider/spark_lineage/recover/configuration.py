"""The settings of a launch for those who have neither its operator nor its hook: of connection and section."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_lineage.naming.chain import Naming
from spark_lineage.naming.options import DEFAULT_NAMING
from spark_lineage.settings import Settings
from spark_lineage.settings.places import Places, option

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
        places = Places()
        if conn_id:
            try:
                places = Places.of(conn_id, {})
            except Exception as error:
                log.debug("The connection %s cannot be read: %s", conn_id, type(error).__name__)
        return cls(places.settings(), places.naming(), places.extra, places.login, places.password)


def lineage_root() -> Path:
    """Return the lineage directory that the section names, else the default."""
    from airflow.configuration import AIRFLOW_HOME

    return Path(option("lineage_dir") or f"{AIRFLOW_HOME}/spark_lineage")
