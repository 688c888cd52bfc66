"""Settles the settings of one task: its operator's arguments, its Spark connection, and Airflow's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_lineage.naming.chain import Naming
from spark_lineage.naming.options import DEFAULT_NAMING
from spark_lineage.secrets.registered_secrets import use_patterns
from spark_lineage.settings import Settings
from spark_lineage.settings.places import Places


class TaskSettings:
    """What is settled; before ``settle``, and where that raises, lineage is off.

    ``options`` are the section ``[spark_lineage]`` and, above it, the extra of the connection, keys in lower case.
    """

    def __init__(self, arguments: Mapping[str, Any], conn_id: str) -> None:
        self.conn_id = conn_id
        self.settings = Settings(lineage_enabled=False)
        self.naming: Naming = DEFAULT_NAMING
        self.options: Mapping[str, Any] = {}
        self._places = Places(arguments)

    @property
    def extra(self) -> Mapping[str, Any]:
        """That of the connection."""
        return self._places.extra

    @property
    def login(self) -> str | None:
        """That of the connection."""
        return self._places.login

    @property
    def password(self) -> str | None:
        """That of the connection."""
        return self._places.password

    def settle(self) -> None:
        """Read everything.

        :raises SettingError: when a value does not fit
        """
        self._places = Places.of(self.conn_id, self._places.arguments)
        self.settings = self._places.settings()
        use_patterns(self.settings.redaction_patterns)
        self.options = self._places.options()
        self.naming = self._places.naming()

    def is_required(self) -> bool:
        """Whether trouble with lineage is to fail the task; asked for anew, because the settings may be in trouble."""
        if self.settings.lineage_required:
            return True
        try:
            return self._places.is_required()
        except Exception:
            return False
