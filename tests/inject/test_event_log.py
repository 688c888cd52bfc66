"""The driver is made to log its events for us, unless the user has decided about event logs."""

from __future__ import annotations

import pytest

from spark_lineage.inject.task_injection import inject_event_log
from spark_lineage.launch.directory import split_connection

OURS = "/data/lab/lineage/1-run"


def inject(conf=None, file_properties=None, deploy_mode="client", directory=OURS, **known):
    return inject_event_log(conf or {}, file_properties or {}, directory, deploy_mode=deploy_mode, **known)


def test_a_driver_that_logs_no_events_logs_them_for_us() -> None:
    injection = inject({"spark.app.name": "x"})
    assert injection.directory == f"{OURS}/tRuE"
    assert injection.is_ours
    assert injection.programs_directory == "/tmp/spark-events"  # noqa: S108 - Spark's default
    assert injection.conf == {
        "spark.app.name": "x",
        "spark.sql.debug.maxToStringFields": "5000",
        "spark.sql.maxMetadataStringLength": "100000",
        "spark.eventLog.enabled": "tRuE",
        "spark.eventLog.dir": f"file://{OURS}/${{spark.eventLog.enabled}}",
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
    }


@pytest.mark.parametrize("log", [{}, {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "/logs"}])
def test_plans_name_all_columns_unless_the_user_has_said_how_many(log: dict[str, str]) -> None:
    fields = "spark.sql.debug.maxToStringFields"
    assert inject(log).conf[fields] == "5000"
    assert inject({**log, fields: "25"}).conf[fields] == "25"
    assert fields not in inject(log, file_properties={fields: "25"}).conf


def test_a_directory_of_the_user_is_where_the_program_would_log() -> None:
    injection = inject({"spark.eventLog.dir": "file:/var/logs", "spark.eventLog.compression.codec": "lz4"})
    assert injection.directory == f"{OURS}/tRuE"
    assert injection.programs_directory == "/var/logs"
    assert injection.conf["spark.eventLog.compression.codec"] == "zstd"


def test_where_the_program_could_not_be_led_to_its_directory_nothing_is_asked_for() -> None:
    injection = inject({"spark.eventLog.dir": "hdfs://nn/logs"})
    assert injection.directory is None
    assert injection.conf == {"spark.eventLog.dir": "hdfs://nn/logs"}
    assert "the program may turn its log on" in injection.reason


ALONE = {"spark.openlineage.transport.type": "file", "spark.openlineage.facets.spark_properties.disabled": "true"}
FIELDS = {"spark.sql.debug.maxToStringFields": "5000", "spark.sql.maxMetadataStringLength": "100000"}
TOLD = {
    "spark.openlineage.facets.spark_properties.disabled": "false",
    "spark.openlineage.capturedProperties": "spark.eventLog.dir",
}


@pytest.mark.parametrize("enabled", [{}, {"spark.eventLog.enabled": "true"}, {"spark.eventLog.enabled": "false"}])
def test_a_program_with_settings_of_its_own_is_left_alone_and_tells_its_directory(enabled: dict[str, str]) -> None:
    conf = {**ALONE, **enabled, "spark.eventLog.dir": "/var/logs"}
    injection = inject(conf, is_programs=True)
    assert (injection.directory, injection.is_ours) == ("/var/logs", False)
    assert injection.conf == {**conf, **TOLD, **FIELDS}


@pytest.mark.parametrize(
    "users",
    [{"spark.openlineage.capturedProperties": "spark.master"}, {"spark.openlineage.transport.type": "composite"}],
)
def test_events_that_others_get_too_tell_nothing_more(users: dict[str, str]) -> None:
    conf = {**ALONE, **users}
    assert inject(conf, is_programs=True).conf == {**conf, **FIELDS}


BREAKER = "spark.openlineage.circuitBreaker."


def test_listener_beside_a_log_of_ours_has_limits() -> None:
    added = inject(ALONE).conf
    limits = {key: value for key, value in added.items() if key.startswith(BREAKER)}
    assert limits == {f"{BREAKER}type": "javaRuntime", f"{BREAKER}timeoutInSeconds": "60"}


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {**ALONE, "spark.openlineage.transport.type": "composite"},
        {**ALONE, f"{BREAKER}type": "timeout"},
        {**ALONE, "spark.eventLog.enabled": "true", "spark.eventLog.dir": "/logs"},
        {**ALONE, "spark.eventLog.enabled": "false"},
    ],
    ids=["no listener", "a backend of the user", "limits of the user", "a log of the user", "no log"],
)
def test_limits_of_the_listener_are_left_as_they_are(conf: dict[str, str]) -> None:
    kept = {key for key in inject(conf).conf if key.startswith(BREAKER)}
    assert kept == {key for key in conf if key.startswith(BREAKER)}


def test_a_directory_with_special_characters_is_written_as_a_url() -> None:
    injection = inject(directory="/data/a b%20/1-run")
    assert injection.conf["spark.eventLog.dir"] == "file:///data/a%20b%2520/1-run/${spark.eventLog.enabled}"


@pytest.mark.parametrize("place", ["conf", "file_properties"])
@pytest.mark.parametrize("directory", [{}, {"spark.eventLog.dir": "hdfs://[nn/logs"}])
def test_a_log_that_the_user_turned_off_stays_off(place, directory) -> None:
    injection = inject(**{place: {"spark.eventLog.enabled": "false", **directory}})
    assert injection.directory is None
    assert "spark.eventLog.enabled is false" in injection.reason
    assert injection.conf == ({"spark.eventLog.enabled": "false", **directory} if place == "conf" else {})


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
    fields = FIELDS
    assert injection.conf == (properties if place == "conf" else {}) | fields


def test_a_log_of_the_users_own_without_a_directory_is_where_spark_puts_it() -> None:
    assert inject({"spark.eventLog.enabled": "TRUE"}).directory == "/tmp/spark-events"  # noqa: S108 - Spark's default


@pytest.mark.parametrize("given", ["hdfs://nn:8020/logs", "s3a://bucket/logs", "logs"])
def test_a_log_that_cannot_be_read_here_is_said_to_be_so(given) -> None:
    injection = inject({"spark.eventLog.enabled": "true", "spark.eventLog.dir": given})
    assert injection.directory is None
    assert "spark.eventLog.dir" in injection.reason


@pytest.mark.parametrize("is_programs", [False, True])
@pytest.mark.parametrize(("codec", "compress", "spark", "is_read"), [
    ("lz4", "true", "3.5.2", False),
    ("LZF", " True ", "", False),
    ("lz4", "false", "4.2.0", True),
    ("zstd", "true", "4.2.0", True),
    # Where nobody says so, Spark compresses from 4.0 on.
    ("snappy", None, "4.0.1-amzn-0", False),
    ("lz4", None, "3.5.2", True),
    ("lz4", None, "", True),
    ("zstd", None, "4.2.0", True),
])  # fmt: skip
def test_a_log_of_a_codec_that_is_not_read_is_said_to_be_so(codec, compress, spark, is_read, is_programs) -> None:
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "/logs", "spark.eventLog.compression.codec": codec}
    users = log if compress is None else {**log, "spark.eventLog.compress": compress}
    injection = inject(users, spark_version=spark, is_programs=is_programs)
    reason = f"spark.eventLog.compression.codec is {codec.lower()}, and only zstd is read"
    assert (injection.directory, injection.reason) == (("/logs", "") if is_read else (None, reason))


def test_a_driver_on_another_machine_is_given_no_directory_that_it_may_lack() -> None:
    injection = inject({"spark.app.name": "x"}, deploy_mode="cluster")
    assert injection.conf == {"spark.app.name": "x"}
    assert injection.directory is None
    assert "another machine" in injection.reason


def test_in_cluster_mode_the_users_directory_is_believed_to_be_shared() -> None:
    shared = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file:///shared/logs"}
    assert inject(shared, deploy_mode="cluster").directory == "/shared/logs"
    assert inject({"spark.eventLog.enabled": "true"}, deploy_mode="cluster").directory is None


ALL_DRIVERS = "s3a://aws_default@bucket/logs"


@pytest.mark.parametrize("users", [{}, {"spark.eventLog.enabled": "true"}, {"spark.eventLog.compress": "false"}])
def test_driver_elsewhere_without_a_directory_logs_in_that_of_all_drivers(users, tmp_path) -> None:
    injection = inject(users, deploy_mode="cluster", shared_directory=ALL_DRIVERS, why_not_copied=lambda _: "")
    assert injection.conf["spark.eventLog.enabled"] == "true"
    # The connection is Airflow's; Spark would take it for a key.
    assert injection.conf["spark.eventLog.dir"] == "s3a://bucket/logs"
    assert injection.conf["spark.eventLog.compression.codec"] == "zstd"
    assert users.items() <= injection.conf.items()
    assert (injection.places, injection.is_certain) == ((ALL_DRIVERS,), True)
    shared = str(tmp_path)
    assert inject(users, deploy_mode="cluster", shared_directory=shared).directory == shared


def test_driver_elsewhere_does_not_log_into_a_directory_that_is_not_there(tmp_path) -> None:
    (tmp_path / "file").touch()
    for name in ("gone", "file"):
        injection = inject({}, deploy_mode="cluster", shared_directory=str(tmp_path / name))
        assert (injection.conf, injection.places) == ({}, ())
        assert injection.reason == (
            f"event_log_dir {tmp_path / name} is no directory, and Spark fails a job that would log there: make it"
        )


@pytest.mark.parametrize(
    ("users", "how"),
    [
        ({"spark.eventLog.enabled": "false"}, {}),
        ({"spark.eventLog.enabled": "true", "spark.eventLog.dir": "/own"}, {}),
        ({"spark.eventLog.dir": "/own"}, {}),
        ({}, {"is_programs": True}),
        ({}, {"why_not_copied": lambda _: "its driver is not installed"}),
    ],
)
def test_directory_of_all_drivers_overrides_nothing_of_the_user(users, how) -> None:
    how = {"why_not_copied": lambda _: "", **how}
    injection = inject(users, deploy_mode="cluster", shared_directory=ALL_DRIVERS, **how)
    assert injection.conf.get("spark.eventLog.dir") == users.get("spark.eventLog.dir")
    assert injection.conf.get("spark.eventLog.enabled") == users.get("spark.eventLog.enabled")


def test_driver_on_this_machine_does_not_log_in_that_of_all_drivers() -> None:
    assert "shared" not in inject(deploy_mode="client", shared_directory="/shared").conf["spark.eventLog.dir"]


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3a://my_aws@bucket/logs", ("s3a://bucket/logs", "my_aws")),
        ("gs://bucket/a@b", ("gs://bucket/a@b", "")),
        ("abfss://container@account.dfs.core.windows.net/logs", None),
        ("hdfs://alice@nn:8020/logs", None),
        ("/shared/a@b", None),
    ],
)
def test_connection_of_a_url_is_split_off(url, parts) -> None:
    assert split_connection(url) == (parts or (url, ""))
