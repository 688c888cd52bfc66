"""What is examined: one Spark connection, the settings that count for it, and the backends."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_lineage.doctor.spark_connection import SparkConnection
from spark_lineage.inject.class_path import SubmitArguments
from spark_lineage.inject.preparation import Submitter, UserProperties, user_properties
from spark_lineage.inject.properties_file import PropertiesFileError
from spark_lineage.settings import Settings
from spark_lineage.settings.places import Places, option


@dataclass(frozen=True)
class Setup:
    """All that the checks look at.

    ``settings`` have the default where a value does not fit; ``conn_ids`` are the backends that events are sent to by
    connection, ``driver_conn_id`` the one that the driver is to send to. ``env`` is what spark-submit is going to get.
    """

    spark: SparkConnection
    places: Places
    settings: Settings
    conn_ids: Sequence[str]
    driver_conn_id: str
    env: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, spark_conn_id: str, conn_ids: Sequence[str]) -> Setup:
        """Read connection and configuration.

        :param conn_ids: the backends to look at; without one, those of the settings
        :raises Exception: what Airflow raises where it cannot tell
        """
        places = Places.of(spark_conn_id, {})
        each = Settings.each(places.arguments, places.extra, option)
        settings = Settings(**{one.name: one.value for one in each if not one.error})
        return cls(
            spark=SparkConnection.of(spark_conn_id),
            places=places,
            settings=settings,
            conn_ids=tuple(dict.fromkeys(conn_ids)) or settings.openlineage_conn_id,
            driver_conn_id=settings.driver_openlineage_conn_id,
            env=dict(os.environ),
        )

    @property
    def submitter(self) -> Submitter:
        """How spark-submit is run for a task without arguments of its own."""
        return Submitter(
            master=self.spark.master,
            spark_binary=self.spark.spark_binary,
            env=self.env,
            properties_file=None,
            repositories=(),
            deploy_mode=lambda of_file: self.spark.deploy_mode or of_file.get("spark.submit.deployMode") or "client",
        )

    @property
    def user_properties(self) -> UserProperties:
        """What such a task is submitted with.

        :raises PropertiesFileError: when spark-defaults.conf cannot be read
        """
        return user_properties(SubmitArguments({}), self.submitter)

    @property
    def deploy_mode(self) -> str:
        """``client`` or ``cluster``: of the connection, then of spark-defaults.conf where that can be read."""
        try:
            return self.user_properties.deploy_mode
        except PropertiesFileError:
            return self.spark.deploy_mode or "client"
