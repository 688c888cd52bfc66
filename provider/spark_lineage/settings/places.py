"""Read the settings of a task: operator arguments, Spark connection, Airflow's configuration, defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_lineage.launch.log import Log
from spark_lineage.naming.options import DEFAULT_NAMING, Naming, naming_from
from spark_lineage.secrets.redaction import use_patterns
from spark_lineage.settings import SECTION, SettingError, Settings

# The values of these keys are run, or written to, so that the right to edit connections does not suffice.
_CODE = frozenset({"lineage_listeners", "ndjson_listener_path", "openlineage_jar", "resolvers"})
DEFAULT_JAR = "io.openlineage:openlineage-spark_{scala}:1.53.0"


@dataclass(frozen=True)
class Places:
    """The places of one task; those of a Spark connection alone where its operator is not known."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    has_connection: bool = False
    master: str = "yarn"
    """Of the connection, or the one that the Spark provider takes without one."""
    ignored: tuple[str, ...] = ()
    """The keys of its extra that name code, where the section forbids that."""
    status: Any = field(default=None, repr=False)
    """The connection that ``status_conn_id`` of the extra names; None where there is none."""

    @classmethod
    def of(cls, conn_id: str, arguments: Mapping[str, Any]) -> Places:
        """Read the Spark connection; a missing one is empty, as in the Spark provider. Other errors are Airflow's.

        Where ``extra_names_code`` of the section is off, its extra is without the keys that name code and files.
        """
        from airflow.providers.common.compat.sdk import AirflowException, BaseHook, conf

        try:
            connection = BaseHook.get_connection(conn_id)
        except AirflowException:
            return cls(arguments)
        extra, ignored, host = connection.extra_dejson, (), connection.host or ""
        # As the Spark provider reads it. From a URI, the scheme is the type of the connection.
        is_whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
        is_whole = is_whole or connection.conn_type == "spark_sql"
        master = host if is_whole else f"{connection.conn_type}://{host}"
        master = f"{master}:{connection.port}" if connection.port else master
        if not conf.getboolean(SECTION, "extra_names_code", fallback=True):
            ignored = tuple(key for key in extra if key.lower() in _CODE)
            extra = {key: value for key, value in extra.items() if key not in ignored}
        status = None
        if status_conn_id := extra.get("status_conn_id"):
            with suppress(AirflowException):
                status = BaseHook.get_connection(str(status_conn_id))
        return cls(arguments, extra, has_connection=True, master=master, ignored=ignored, status=status)

    def settings(self) -> Settings:
        """Return the settings; raises ``SettingError`` when a value does not fit."""
        return Settings.resolve(self.arguments, self.extra, option)

    def naming(self) -> Naming:
        """Return how datasets are named; raises ``NamingError`` when an option cannot be used."""
        return naming_from(self.options())

    def options(self) -> Mapping[str, Any]:
        """Return the section and, above it, the extra: they have keys of any name besides those of settings.

        Keys are as they are written, since they hold names. A key of the extra stands for the same one of the section,
        in whatever case each is written.
        """
        return dict({key.lower(): (key, each[key]) for each in (section(), self.extra) for key in each}.values())


class TaskSettings:
    """The settled settings of one task; before ``settle``, and where that raises, lineage is off.

    ``options`` are the section ``[spark_lineage]`` and, above it, the extra of the connection, keys in lower case.
    """

    def __init__(self, arguments: Mapping[str, Any], conn_id: str) -> None:
        self.conn_id = conn_id
        self.settings = Settings(lineage_enabled=False)
        self.naming: Naming = DEFAULT_NAMING
        self.options: Mapping[str, Any] = {}
        self.places, self._is_read = Places(arguments), False

    def is_off(self) -> bool:
        """Whether the user has turned lineage off; the connection is read only if no argument decides that.

        What cannot be read, or does not fit, turns nothing off: ``settle`` raises it.
        """
        try:
            if self.places.arguments.get("lineage_enabled") in (None, ""):
                self.places, self._is_read = Places.of(self.conn_id, self.places.arguments), True
            return self._setting("lineage_enabled") is False
        except Exception:
            return False

    def settle(self) -> None:
        """Read everything; raises ``SettingError`` when a value does not fit."""
        if not self._is_read:
            self.places = Places.of(self.conn_id, self.places.arguments)
        self.settings = self.places.settings()
        use_patterns(self.settings.redaction_patterns)
        options = self.places.options()
        self.options = {key.lower(): value for key, value in options.items()}
        self.naming = naming_from(options)

    def is_required(self) -> bool:
        """Whether an error of lineage fails the task; read again, because the settings may have failed."""
        if self.settings.lineage_required:
            return True
        try:
            value = self._setting("lineage_required")
        except Exception:
            return False
        return value is True or value == "complete"

    def _setting(self, name: str) -> Any:
        (one,) = Settings.each(self.places.arguments, self.places.extra, option, only=name)
        return one.value


def section_settings(logger: Log) -> Settings:
    """Return the settings of ``[spark_lineage]`` alone; one that does not fit is logged, and has its default."""
    found = {}
    for settled in Settings.each({}, {}, option):
        if settled.error:
            logger.warning("%s; the default is used", settled.error)
        else:
            found[settled.name] = settled.value
    return Settings(**found)


def option(name: str) -> str | None:
    """Return the text of an option of ``[spark_lineage]``, its declared default where it is not set."""
    from airflow.providers.common.compat.sdk import conf

    return conf.get(SECTION, name, fallback=None)  # type: ignore[no-any-return]


def section() -> Mapping[str, Any]:
    """Return the whole of ``[spark_lineage]``; Airflow makes numbers and booleans of some texts."""
    from airflow.providers.common.compat.sdk import conf

    return conf.getsection(SECTION) or {}


def lineage_directory(settings: Settings) -> str:
    """Return the directory that lineage is written to."""
    from airflow.configuration import AIRFLOW_HOME

    return settings.lineage_dir or f"{AIRFLOW_HOME}/spark_lineage"


def outbox_directory(setting: str) -> Path:
    """Return the directory of this user in ``outbox_dir``; empty: in ``spark_lineage_outbox`` in the home of Airflow.

    :raises SettingError: for a path that is not absolute: each process would have its own
    """
    if not setting:
        home = os.environ.get("AIRFLOW_HOME") or "~/airflow"
        return Path(home).expanduser() / "spark_lineage_outbox" / str(os.getuid())
    directory = Path(setting).expanduser()
    if not directory.is_absolute():
        raise SettingError(
            f"outbox_dir {setting!r} is not an absolute path: each process would have an outbox of its own"
        )
    return directory / str(os.getuid())


def jar_cache(env: Mapping[str, str]) -> Path:
    """Return the directory of jars that were resolved (XDG Base Directory Specification)."""
    return Path(env.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "airflow-provider-spark-lineage"
