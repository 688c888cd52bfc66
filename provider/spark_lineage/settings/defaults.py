"""What stands in for settings that are empty: where files go, and what is named how."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.deliver.outbox import outbox
from spark_lineage.inject.jar import DEFAULT_JAR

if TYPE_CHECKING:
    from spark_lineage.settings import Settings


def lineage_directory(settings: Settings) -> str:
    """Give the directory that lineage is written to."""
    return settings.lineage_dir or f"{_airflow_home()}/spark_lineage"


def outbox_directory(settings: Settings) -> Path:
    """Give the directory that events wait in.

    :raises ValueError: for a path that is not absolute
    """
    return outbox.outbox_directory(settings.outbox_dir)


def jar_cache(settings: Settings, env: Mapping[str, str]) -> str:
    """Give the directory of jars that were resolved."""
    caches = env.get("XDG_CACHE_HOME") or "~/.cache"
    return settings.jar_cache_dir or str(Path(caches).expanduser() / "airflow-provider-spark-lineage")


def stand_ins(settings: Settings) -> Mapping[str, str]:
    """Give, by the name of a setting, what counts where it is empty."""
    from airflow.providers.openlineage import conf

    return {
        "lineage_dir": lineage_directory(settings),
        "outbox_dir": str(outbox.outbox_directory("")),
        "jar_cache_dir": jar_cache(settings, os.environ),
        "openlineage_jar": DEFAULT_JAR,
        "lineage_namespace": conf.namespace(),
        "lineage_job_name": "{dag_id}.{task_id}.spark",
    }


def _airflow_home() -> str:
    from airflow.configuration import AIRFLOW_HOME

    return str(AIRFLOW_HOME)
