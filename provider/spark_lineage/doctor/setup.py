"""The subject of the checks: one Spark connection, its settings and backends; and their findings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal

from spark_lineage.inject.installation import PropertiesFileError
from spark_lineage.inject.preparation import Submitter, UserProperties, user_properties
from spark_lineage.inject.properties import SubmitArguments
from spark_lineage.settings import Settings
from spark_lineage.settings.places import Places, option


@dataclass(frozen=True)
class Finding:
    """One line of the doctor: a ``problem`` would lose lineage, a ``warning`` may, or costs something else.

    ``remedy`` says what to do, empty where nothing is to be done.
    """

    level: Literal["ok", "warning", "problem"]
    text: str
    remedy: str = ""


ok, warning, problem = partial(Finding, "ok"), partial(Finding, "warning"), partial(Finding, "problem")


@dataclass(frozen=True)
class Setup:
    """All that the checks look at.

    ``settings`` have the default where a value does not fit; ``conn_ids`` are the backends that events are sent to by
    connection. ``env`` is what spark-submit is going to get.
    """

    conn_id: str
    master: str
    places: Places
    settings: Settings
    conn_ids: Sequence[str]
    env: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, conn_id: str, conn_ids: Sequence[str]) -> Setup:
        """Read connection and configuration, without the Spark provider's hook, which may write a keytab file.

        :param conn_ids: the backends to look at; without one, those of the settings
        :raises Exception: what Airflow raises where it cannot read them
        """
        places = Places.of(conn_id, {})
        each = Settings.each({}, places.extra, option)
        settings = Settings(**{one.name: one.value for one in each if not one.error})
        return cls(
            conn_id=conn_id,
            master=places.master,
            places=places,
            settings=settings,
            conn_ids=tuple(dict.fromkeys(conn_ids)) or settings.lineage_conn_id,
            env=dict(os.environ),
        )

    @property
    def spark_binary(self) -> str:
        """The program that submits."""
        return str(self.places.extra.get("spark-binary") or "spark-submit")

    @property
    def spark_version(self) -> tuple[int, int] | None:
        """Major and minor of that Spark."""
        spark = self.submitter.known_installation
        found = re.match(r"(\d+)\.(\d+)", spark.spark_version) if spark else None
        return (int(found[1]), int(found[2])) if found else None

    @cached_property
    def submitter(self) -> Submitter:
        """How spark-submit is run for a task without arguments of its own."""
        mode = str(self.places.extra.get("deploy-mode") or "")
        return Submitter(
            master=self.master,
            spark_binary=self.spark_binary,
            env=self.env,
            properties_file=None,
            repositories=(),
            deploy_mode=lambda of_file: mode or of_file.get("spark.submit.deployMode") or "client",
        )

    @property
    def user_properties(self) -> UserProperties:
        """The properties of such a task; raises ``PropertiesFileError`` where spark-defaults.conf cannot be read."""
        return user_properties(SubmitArguments({}), self.submitter)

    @property
    def deploy_mode(self) -> str:
        """``client`` or ``cluster``: of the connection, then of spark-defaults.conf where that can be read."""
        try:
            return self.user_properties.deploy_mode
        except PropertiesFileError:
            return self.submitter.deploy_mode({})


def make_connection(conn_id: str) -> str:
    """Return the remedy for a missing connection: on a worker of Airflow 3, only tasks reach the database."""
    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    return f"make it; where this machine does not reach Airflow's database, give it in the variable {variable}"
