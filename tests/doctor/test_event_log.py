"""The event log of drivers that run elsewhere: whether this machine reads it, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from lineage_backends.hadoop import write_site

from spark_lineage.doctor.event_log import check_event_log
from spark_lineage.doctor.setup import Setup

CLUSTER = {"deploy-mode": "cluster"}
LOGS = "memory://spark-logs"


@pytest.fixture
def found(setup: Callable[..., Setup], tmp_path: Path) -> Callable[..., list[tuple[str, str]]]:
    """Check with the event log in a directory; gives level and text of each finding."""

    def check(directory: str = "", *, extra: dict[str, Any] = CLUSTER, **settings: Any) -> list[tuple[str, str]]:
        conf = tmp_path / "conf"
        conf.mkdir(exist_ok=True)
        lines = f"spark.eventLog.enabled true\nspark.eventLog.dir {directory}\n" if directory else ""
        (conf / "spark-defaults.conf").write_text(lines)
        env = {"SPARK_CONF_DIR": str(conf), "HADOOP_CONF_DIR": str(conf)}
        findings = check_event_log(setup(master="yarn", extra=extra, env=env, **settings))
        return [(one.level, f"{one.text} -> {one.remedy}") for one in findings]

    return check


@pytest.fixture
def logs() -> Iterator[Any]:
    """A file system of fsspec's own."""
    fs = fsspec.filesystem("memory")
    fs.mkdir("/spark-logs")
    yield fs
    fs.rm("/spark-logs", recursive=True)


def test_event_log_that_can_be_read_is_ok(found: Callable[..., Any], logs: Any) -> None:
    assert found(LOGS) == [("ok", f"{LOGS} can be read, and has no event log -> ")]
    logs.pipe_file("/spark-logs/application_1_0001", b"{}\n")
    assert found(LOGS) == [("ok", f"{LOGS} can be read, as application_1_0001 was -> ")]
    logs.rm("/spark-logs/application_1_0001")
    logs.pipe_file("/spark-logs/eventlog_v2_application_1_0002/events_1", b"{}\n")
    assert found(LOGS) == [("ok", f"{LOGS} can be read, as eventlog_v2_application_1_0002 was -> ")]


def test_event_log_that_is_gone_is_a_problem(found: Callable[..., Any]) -> None:
    ((level, text),) = found("memory://gone")
    assert level == "problem"
    assert "memory://gone cannot be read: FileNotFoundError" in text
    assert "let the user of tasks read there" in text


def test_event_log_on_hdfs_without_an_address_names_webhdfs_url(found: Callable[..., Any]) -> None:
    ((level, text),) = found("hdfs://nn:8020/logs")
    assert (level, "webhdfs_url" in text) == ("problem", True)
    ((level, text),) = found("hdfs://nn:8020/logs", extra={**CLUSTER, "history_server_url": "http://history:18080"})
    assert (level, "come from the History Server" in text) == ("ok", True)


def test_event_log_on_hdfs_is_read_by_the_address_of_hdfs_site(
    found: Callable[..., Any], tmp_path: Path, server: Any
) -> None:
    refused = {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied: user=dr.who"}}
    url = server({"*": (403, refused)})
    write_site(tmp_path / "conf", "core-site", {"fs.defaultFS": "hdfs://nn:8020"})
    write_site(tmp_path / "conf", "hdfs-site", {"dfs.namenode.http-address": url.removeprefix("http://")})
    ((level, text),) = found("hdfs:///logs")
    assert (level, "Permission denied" in text) == ("problem", True)


@pytest.mark.parametrize(
    ("directory", "extra", "settings", "expected"),
    [
        ("", CLUSTER, {}, ["ok"]),
        ("/tmp/spark-events", CLUSTER, {}, ["warning"]),  # noqa: S108
        (LOGS, {}, {}, []),
        (LOGS, CLUSTER, {"evidence": "listener"}, []),
        (LOGS, {**CLUSTER, "rest-port": "x"}, {}, []),
    ],
)
def test_event_log_that_is_not_read(
    found: Callable[..., Any], directory: str, extra: Any, settings: Any, expected: list[str]
) -> None:
    assert [level for level, _ in found(directory, extra=extra, **settings)] == expected


def test_directory_of_all_drivers_is_read_like_one_that_is_set(
    found: Callable[..., Any], logs: Any, tmp_path: Path
) -> None:
    assert found(event_log_dir=LOGS) == [("ok", f"{LOGS} can be read, and has no event log -> ")]
    assert found(event_log_dir=str(tmp_path))[0][0] == "ok"
    gone = tmp_path / "gone"
    assert found(event_log_dir=str(gone))[0] == (
        "problem",
        f"event_log_dir {gone} cannot be read -> make it, on a disk that drivers and workers share",
    )


@pytest.mark.parametrize("extra", [{}, CLUSTER])
@pytest.mark.parametrize("directory", ["", "memory://others"])
def test_directory_of_services_is_read_whatever_the_spark_connection_is(
    found: Callable[..., Any], logs: Any, directory: str, extra: Any
) -> None:
    assert found(directory, extra=extra, event_log_dir=LOGS)[0] == (
        "ok",
        f"{LOGS} can be read, and has no event log -> ",
    )
    ((level, text), *_) = found(directory, extra=extra, event_log_dir="memory://gone")
    assert level == "problem"
    assert "correct event_log_dir" in text
