"""Deploy mode cluster of YARN, with nothing said of how to follow it; real containers are in ``tests/clusters``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from cluster_manager import APPLICATION_ID, Cluster
from lineage_backends.hadoop import write_site
from lineage_backends.processes import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOG = [f"INFO YarnClientImpl: Submitted application {APPLICATION_ID}"]
WAITS = "spark-submit stays until the application has ended"
KEY = "yarn_resourcemanager_webapp_address"


@pytest.fixture
def managers() -> Iterator[Callable[..., Cluster]]:
    """Starts ResourceManagers."""
    with ExitStack() as stack:
        yield lambda *states: stack.enter_context(Cluster([*states]).serving())


@pytest.fixture
def submit(bench: Any) -> Callable[..., Any]:
    """Submits to YARN; ``urls`` go into the connection's extra, the others to the operator."""

    def run(urls: str = "", extra: dict[str, Any] | None = None, **arguments: Any) -> Any:
        extra = {"deploy-mode": "cluster", **({KEY: urls} if urls else {}), **(extra or {})}
        bench.connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
        return bench.run(**{"log": LOG, "store": {}, **arguments})

    return run


def address(cluster: Cluster) -> str:
    return f"http://{HOST}:{cluster.port}"


def waits(outcome: Any) -> bool:
    """Whether spark-submit was left to wait for the end; else it ends when the application is submitted."""
    is_told = WAITS in outcome.printed
    assert ("spark.yarn.submit.waitAppCompletion" in outcome.command["conf"]) != is_told
    return is_told


def test_the_resource_manager_of_the_connection(submit: Callable[..., Any], managers: Callable[..., Cluster]) -> None:
    manager = managers("SUCCEEDED")
    outcome = submit(address(manager))
    assert (outcome.error, waits(outcome)) == (None, False), outcome.printed
    assert manager.questions
    assert outcome.store["spark_job_id"] == APPLICATION_ID


def test_what_it_says_is_the_end(submit: Callable[..., Any], managers: Callable[..., Cluster]) -> None:
    outcome = submit(address(managers("FAILED")))
    assert "ended with final status: FAILED" in outcome.error
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["state"] == "FAIL"


@pytest.mark.parametrize("place", ["worker", "env_vars"])
def test_the_resource_manager_of_hadoops_configuration(
    bench: Any, submit: Callable[..., Any], managers: Callable[..., Cluster], place: str
) -> None:
    manager = managers("SUCCEEDED")
    conf = bench.root / "hadoop"
    write_site(conf, "yarn-site", {"yarn.resourcemanager.webapp.address": f"{HOST}:{manager.port}"})
    env = {"HADOOP_CONF_DIR": str(conf)}
    if place == "worker":
        bench.env |= env
    outcome = submit(**({"env_vars": env} if place == "env_vars" else {}))
    assert (outcome.error, waits(outcome)) == (None, False), outcome.printed
    driver = [
        one for one in outcome.lineage["run_facets"]["sparkLineage_status"]["transitions"] if one["subject"] == "DRIVER"
    ]
    assert driver[-1]["source"] == "YARN ResourceManager", "for whoever comes after the try, too"
    assert outcome.store["spark_lineage_launch"]["yarn_urls"] == [address(manager)]


def test_the_active_one_of_several(submit: Callable[..., Any], managers: Callable[..., Cluster]) -> None:
    (dead,) = free_ports(1)
    standby, active = managers("RUNNING"), managers("SUCCEEDED")
    standby.info = {"clusterInfo": {"state": "STARTED", "haState": "STANDBY"}}
    outcome = submit(f"{HOST}:{dead}, {address(standby)},{address(active)}")
    assert (outcome.error, waits(outcome)) == (None, False), outcome.printed
    asked = [line for line in outcome.printed.splitlines() if "failure" in line]
    assert not asked, "the provider has asked the active one only"


@pytest.mark.parametrize("is_known", [True, False])
def test_where_none_can_be_asked_spark_submit_waits(submit: Callable[..., Any], is_known: bool) -> None:
    (dead,) = free_ports(1)
    outcome = submit(f"{HOST}:{dead}" if is_known else "")
    assert (outcome.error, waits(outcome)) == (None, True), outcome.printed
    why = f"http://{HOST}:{dead} does not answer (http://{HOST}:{dead}" if is_known else "no ResourceManager is known"
    assert f"{WAITS}, and a retry submits it again: {why}" in outcome.printed
    assert "spark_job_id" not in outcome.store


def test_what_spark_submit_failed_of_is_told(submit: Callable[..., Any]) -> None:
    why = f"Application {APPLICATION_ID} finished with failed status"
    outcome = submit(exit_code=1, log=[*LOG, f'Exception in thread "main" X: {why}'])
    status = outcome.lineage["run_facets"]["sparkLineage_status"]
    assert status["state"] == "FAIL"
    assert status["error"] == f"X: {why} (exit code 1)"


def test_another_server_is_none(submit: Callable[..., Any], managers: Callable[..., Cluster]) -> None:
    other = managers("SUCCEEDED")
    other.info = {"action": "SubmissionStatusResponse"}
    outcome = submit(address(other))
    assert (outcome.error, waits(outcome)) == (None, True), outcome.printed


def test_settings_of_the_status_that_do_not_fit_fail_no_task(submit: Callable[..., Any]) -> None:
    outcome = submit(extra={"driver_unknown_seconds": "soon"})
    assert (outcome.error, waits(outcome)) == (None, True), outcome.printed


def test_a_job_of_an_earlier_try_is_not_submitted_again(submit: Callable[..., Any]) -> None:
    (dead,) = free_ports(1)
    extra = {"driver_unknown_seconds": 1e-9}
    outcome = submit(f"{HOST}:{dead}", extra, store={"spark_job_id": APPLICATION_ID}, task={"try_number": 2})
    assert "its end is not known; it may still run" in outcome.error
    assert outcome.told == [], "it may still run"


@pytest.mark.parametrize("arguments", [{"durable": False}, {"conf": {"spark.yarn.submit.waitAppCompletion": "true"}}])
def test_what_the_user_has_chosen_stays(
    submit: Callable[..., Any], managers: Callable[..., Cluster], arguments: dict[str, Any]
) -> None:
    manager = managers("SUCCEEDED")
    outcome = submit(address(manager), **arguments)
    assert outcome.error is None, outcome.printed
    assert outcome.command["conf"].get("spark.yarn.submit.waitAppCompletion") in (None, "true")
    assert "spark_job_id" not in outcome.store


@pytest.mark.parametrize("exit_code", [0, 1])
def test_commands_after_the_job_wait_for_its_end(bench: Any, submit: Callable[..., Any], exit_code: int) -> None:
    done = bench.root / "done"
    is_done: list[bool] = []
    with Cluster(["SUCCEEDED"], lambda: is_done.append(done.exists())).serving() as manager:
        submit(address(manager), exit_code=exit_code, post_submit_commands=[f"touch {done}"])
    assert done.exists()
    # What is not submitted has no end to wait for.
    assert is_done[0] is (exit_code == 1)


# The bench gives each task a directory.
NO_DIRECTORY = {"lineage_dir": None}
HISTORY = {"history_server_url": f"http://{HOST}:1"}
LOGGED = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "hdfs:///logs"}


@pytest.mark.parametrize(
    ("extra", "arguments", "why"),
    [
        (
            {},
            NO_DIRECTORY,
            "(the driver runs on another machine; set event_log_dir, or spark.eventLog.enabled",
        ),
        (
            {},
            NO_DIRECTORY | {"conf": LOGGED},
            "(spark.eventLog.dir is not an absolute path on this machine, and is not read from",
        ),
        (
            HISTORY,
            NO_DIRECTORY,
            "(the driver runs on another machine; set event_log_dir, or spark.eventLog.enabled",
        ),
        (HISTORY, NO_DIRECTORY | {"conf": LOGGED, "evidence": "listener"}, "(evidence=listener)"),
        (HISTORY, NO_DIRECTORY | {"conf": LOGGED}, ""),
        ({}, {}, ""),
    ],
)
def test_yarn_cluster_from_which_nothing_can_come_back_says_so_before_it_is_submitted(
    submit: Callable[..., Any], extra: dict[str, Any], arguments: dict[str, Any], why: str
) -> None:
    outcome = submit(extra=extra, durable=False, lineage_timeout=1, **arguments)
    printed = outcome.printed.split("Spark-Submit cmd:")[0]
    assert ("No lineage can come back from YARN: no event log is read" in printed) == bool(why), printed
    assert why in printed
    assert not why or "yarn_resourcemanager_webapp_address in the extra of the Spark connection" in printed
