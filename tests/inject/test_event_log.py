"""The driver is made to log its events for us, unless the user has decided about event logs."""

from __future__ import annotations

import pytest

from spark_lineage.inject.event_log import UNREAD_EVENTS, inject_event_log

OURS = "/data/lab/lineage/1-run"


def inject(conf=None, file_properties=None, deploy_mode="client", directory=OURS):
    return inject_event_log(conf or {}, file_properties or {}, directory, deploy_mode=deploy_mode)


def test_a_driver_that_logs_no_events_logs_them_for_us() -> None:
    injection = inject({"spark.app.name": "x"})
    assert injection.directory == OURS
    assert injection.is_ours
    assert injection.conf == {
        "spark.app.name": "x",
        "spark.sql.debug.maxToStringFields": "5000",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{OURS}",
        "spark.eventLog.excludedPatterns": ",".join(UNREAD_EVENTS),
        "spark.eventLog.includeTaskMetricsAccumulators": "false",
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
        "spark.eventLog.rolling.enabled": "false",
    }


@pytest.mark.parametrize("log", [{}, {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "/logs"}])
def test_plans_name_all_columns_unless_the_user_has_said_how_many(log: dict[str, str]) -> None:
    fields = "spark.sql.debug.maxToStringFields"
    assert inject(log).conf[fields] == "5000"
    assert inject({**log, fields: "25"}).conf[fields] == "25"
    assert fields not in inject(log, file_properties={fields: "25"}).conf


def test_injecting_a_second_time_changes_nothing() -> None:
    once = inject({"spark.app.name": "x"})
    assert inject(once.conf) == once


def test_what_the_user_set_for_a_log_that_they_do_not_write_gives_way() -> None:
    conf = inject({"spark.eventLog.dir": "hdfs://nn/logs", "spark.eventLog.compression.codec": "lz4"}).conf
    assert conf["spark.eventLog.dir"] == f"file://{OURS}"
    assert conf["spark.eventLog.compression.codec"] == "zstd"


def test_a_directory_with_special_characters_is_written_as_a_url() -> None:
    injection = inject(directory="/data/a b%20/1-run")
    assert injection.conf["spark.eventLog.dir"] == "file:///data/a%20b%2520/1-run"
    assert inject(injection.conf, directory="/data/a b%20/1-run") == injection


@pytest.mark.parametrize("place", ["conf", "file_properties"])
def test_a_log_that_the_user_turned_off_stays_off(place) -> None:
    injection = inject(**{place: {"spark.eventLog.enabled": "false"}})
    assert injection.directory is None
    assert "spark.eventLog.enabled is false" in injection.reason
    assert "spark.eventLog.dir" not in injection.conf


@pytest.mark.parametrize("place", ["conf", "file_properties"])
@pytest.mark.parametrize(
    ("given", "directory"),
    [
        ("file:///var/logs", "/var/logs"),
        ("file:/var/logs", "/var/logs"),
        ("/var/logs", "/var/logs"),
        ("file:///var/my%20logs", "/var/my logs"),
    ],
)
def test_a_log_of_the_users_own_is_read_where_it_is(place, given, directory) -> None:
    properties = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": given}
    injection = inject(**{place: properties})
    assert (injection.directory, injection.is_ours) == (directory, False)
    fields = {"spark.sql.debug.maxToStringFields": "5000"}
    assert injection.conf == (properties if place == "conf" else {}) | fields


def test_a_log_of_the_users_own_without_a_directory_is_where_spark_puts_it() -> None:
    assert inject({"spark.eventLog.enabled": "TRUE"}).directory == "/tmp/spark-events"  # noqa: S108 - Spark's default


@pytest.mark.parametrize("given", ["hdfs://nn:8020/logs", "s3a://bucket/logs", "logs"])
def test_a_log_that_cannot_be_read_here_is_said_to_be_so(given) -> None:
    injection = inject({"spark.eventLog.enabled": "true", "spark.eventLog.dir": given})
    assert injection.directory is None
    assert "spark.eventLog.dir" in injection.reason


def test_a_driver_on_another_machine_is_given_no_directory_that_it_may_lack() -> None:
    injection = inject({"spark.app.name": "x"}, deploy_mode="cluster")
    assert injection.conf == {"spark.app.name": "x"}
    assert injection.directory is None
    assert "another machine" in injection.reason


def test_in_cluster_mode_the_users_directory_is_believed_to_be_shared() -> None:
    shared = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file:///shared/logs"}
    assert inject(shared, deploy_mode="cluster").directory == "/shared/logs"
    assert inject({"spark.eventLog.enabled": "true"}, deploy_mode="cluster").directory is None
