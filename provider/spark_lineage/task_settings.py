"""Settles the settings of one task: its operator's arguments, its Spark connection, and Airflow's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_lineage.naming.chain import Naming
from spark_lineage.naming.options import DEFAULT_NAMING, naming_from
from spark_lineage.settings import SECTION, Settings, is_required


class TaskSettings:
    """What is settled; before ``settle``, and where that raises, lineage is off.

    ``options`` are the section ``[spark_lineage]`` and, above it, the extra of the connection, keys in lower case.
    """

    def __init__(self, arguments: Mapping[str, Any], conn_id: str) -> None:
        self.conn_id = conn_id
        self.settings = Settings(lineage_enabled=False)
        self.naming: Naming = DEFAULT_NAMING
        self.options: Mapping[str, Any] = {}
        self.extra: Mapping[str, Any] = {}
        self.login: str | None = None
        self.password: str | None = None
        self._arguments = arguments

    def settle(self) -> None:
        """Read everything.

        :raises SettingError: when a value does not fit
        """
        connection = _connection(self.conn_id)
        if connection is not None:
            self.extra, self.login, self.password = connection.extra_dejson, connection.login, connection.password
        self.settings = Settings.resolve(self._arguments, self.extra, _option)
        # A key of the extra stands for the same one of the section, in whatever case it is written.
        self.options = {**_section(), **{key.lower(): value for key, value in self.extra.items()}}
        self.naming = naming_from(self.options)

    def is_required(self) -> bool:
        """Whether trouble with lineage is to fail the task; asked for anew, because the settings may be in trouble."""
        if self.settings.lineage_required:
            return True
        try:
            return is_required(self._arguments, self.extra, _option)
        except Exception:
            return False


def _connection(conn_id: str) -> Any:
    from airflow.providers.common.compat.sdk import AirflowException, BaseHook

    try:
        return BaseHook.get_connection(conn_id)
    except AirflowException:
        # The Spark provider goes on with defaults then, and so do we.
        return None


def _option(name: str) -> str | None:
    from airflow.providers.common.compat.sdk import conf

    return conf.get(SECTION, name, fallback=None)  # type: ignore[no-any-return]


def _section() -> Mapping[str, Any]:
    from airflow.providers.common.compat.sdk import conf

    return conf.getsection(SECTION) or {}
