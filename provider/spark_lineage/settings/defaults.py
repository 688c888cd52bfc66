"""What stands in for settings that are empty: where files go, and what is named how."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_lineage.settings import Settings

DEFAULT_JAR = "io.openlineage:openlineage-spark_{scala}:1.53.0"


def lineage_directory(settings: Settings) -> str:
    """Return the directory that lineage is written to."""
    return settings.lineage_dir or f"{_airflow_home()}/spark_lineage"


def outbox_directory(setting: str) -> Path:
    """The directory that the setting ``outbox_dir`` means; empty: ``spark_lineage_outbox`` in the home of Airflow.

    :raises ValueError: for a path that is not absolute: each process would have its own
    """
    if not setting:
        home = os.environ.get("AIRFLOW_HOME") or "~/airflow"
        return Path(home).expanduser() / "spark_lineage_outbox"
    directory = Path(setting).expanduser()
    if not directory.is_absolute():
        raise ValueError(
            f"outbox_dir {setting!r} is not an absolute path: each process would have an outbox of its own"
        )
    return directory


def jar_cache(settings: Settings, env: Mapping[str, str]) -> str:
    """Return the directory of jars that were resolved."""
    caches = env.get("XDG_CACHE_HOME") or "~/.cache"
    return settings.jar_cache_dir or str(Path(caches).expanduser() / "airflow-provider-spark-lineage")


def stand_ins(settings: Settings) -> Mapping[str, str]:
    """Return, by the name of a setting, what counts where it is empty."""
    from airflow.providers.openlineage import conf

    return {
        "lineage_dir": lineage_directory(settings),
        "outbox_dir": str(outbox_directory("")),
        "jar_cache_dir": jar_cache(settings, os.environ),
        "openlineage_jar": DEFAULT_JAR,
        "lineage_namespace": conf.namespace(),
        "lineage_job_name": "{dag_id}.{task_id}.spark",
    }


def _airflow_home() -> str:
    from airflow.configuration import AIRFLOW_HOME

    return str(AIRFLOW_HOME)
