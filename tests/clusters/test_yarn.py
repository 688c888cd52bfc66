"""Programs in the containers of a real YARN: what their tasks say of them, with the defaults of the operator."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from spark_lineage.supervision.health import ask_servers
from spark_lineage.watch.endpoints import Endpoints

if TYPE_CHECKING:
    from laboratory import Outcome

MANAGER = "YARN ResourceManager"

pytestmark = [pytest.mark.spark, pytest.mark.shares("hadoop"), pytest.mark.truth]


def state(outcome: Outcome) -> str:
    assert outcome.lineage is not None, outcome.printed
    return str(outcome.lineage["run_facets"]["sparkLineage_status"]["state"])


def has_datasets(yarn: Any, outcome: Outcome) -> None:
    """Whatever its end was: it had read and written by then."""
    assert outcome.lineage is not None, outcome.printed
    for kind, name in (("inputs", "orders.csv"), ("outputs", "counts")):
        found = [(one["namespace"], one["name"]) for one in outcome.lineage[kind]]
        assert found == [(yarn.hadoop.hdfs, f"{yarn.directory}/{name}")], outcome.printed


def application_id(outcome: Outcome) -> str:
    assert outcome.lineage is not None, outcome.printed
    (application,) = outcome.lineage["run_facets"]["sparkLineage_application"]["applications"]
    return str(application["applicationId"])


def test_deploy_mode_cluster_works_with_the_defaults(yarn: Any, statuses: Callable[..., Any]) -> None:
    # Nothing of ours has a driver warn of anything.
    strict = {"spark.yarn.appMasterEnv.PYTHONWARNINGS": "error::RuntimeWarning"}
    outcome = yarn.run("cluster", "declares", store={}, conf=strict, yarn_queue="night")
    assert outcome.error is None, outcome.printed
    assert f"YARN is polled at {yarn.hadoop.resource_manager_url} for the end of the application" in outcome.printed
    assert state(outcome) == "COMPLETE"
    declared = [one for one in outcome.lineage["outputs"] if one["name"].endswith("_report")]
    assert [one["outputFacets"]["outputStatistics"]["rowCount"] for one in declared] == [2], outcome.printed
    outcome.lineage["outputs"].remove(declared[0])
    has_datasets(yarn, outcome)
    first, *_, last = statuses(outcome, "DRIVER")
    assert (first[0], last) == ("SUBMITTED", ("FINISHED", MANAGER))
    assert outcome.store["spark_job_id"] == outcome.store["spark_lineage_launch"]["external_id"]
    application = yarn.hadoop.application(application_id(outcome))
    assert (application["finalStatus"], application["queue"]) == ("SUCCEEDED", "root.night")
    (manager,) = ask_servers(
        Endpoints("yarn", "cluster", {}, yarn_urls=[yarn.hadoop.resource_manager_url]), time.time()
    )
    assert (manager.is_up, manager.state, bool(manager.completed)) == (True, "ACTIVE", True), manager


@pytest.mark.parametrize("end", ["success", pytest.param("exception", marks=pytest.mark.nightly)])
def test_a_task_that_is_deferred(yarn: Any, statuses: Callable[..., Any], end: str) -> None:
    waits, deferred = (yarn.run("cluster", end, deferrable=one, conf={}) for one in (False, True))
    assert (deferred.error is None) == (end == "success"), deferred.printed
    assert [state(one) for one in (waits, deferred)] == ["COMPLETE" if end == "success" else "FAIL"] * 2
    has_datasets(yarn, deferred)
    for kind in ("inputs", "outputs"):
        assert deferred.lineage[kind] == waits.lineage[kind]
    assert deferred.lineage["run_facets"].keys() == waits.lineage["run_facets"].keys()
    first, *_, last = statuses(deferred, "DRIVER")
    assert (first, last) == (statuses(waits, "DRIVER")[0], statuses(waits, "DRIVER")[-1])


@pytest.mark.nightly
def test_deploy_mode_client(yarn: Any, statuses: Callable[..., Any]) -> None:
    outcome = yarn.run("client", "success")
    assert (outcome.error, state(outcome)) == (None, "COMPLETE"), outcome.printed
    has_datasets(yarn, outcome)
    told = statuses(outcome, "APPLICATION")
    assert MANAGER in {source for _, source in told}, "its address is in Hadoop's configuration"
    assert told[-1][0] == "FINISHED"


@pytest.fixture
def nameless(yarn: Any, tmp_path: Path) -> Any:
    """The cluster, by a configuration that says nothing of the ResourceManager's page, which Spark does not need."""
    conf = tmp_path / "conf"
    shutil.copytree(yarn.hadoop.conf_dir, conf)
    address = yarn.hadoop.resource_manager_url.removeprefix("http://")
    site = (conf / "yarn-site.xml").read_text()
    assert address in site
    (conf / "yarn-site.xml").write_text(site.replace(address, ""))
    yarn.spark.bench.env = {"HADOOP_CONF_DIR": str(conf)}
    return yarn


@pytest.mark.nightly
def test_without_a_known_resource_manager_spark_submit_waits(nameless: Any, statuses: Callable[..., Any]) -> None:
    # Without the listener, which would have to be uploaded and loaded for what other tests look at.
    outcome = nameless.run("cluster", "exception", evidence="event_log")
    assert "spark-submit stays until the application has ended" in outcome.printed
    assert "no ResourceManager is known" in outcome.printed
    assert outcome.error is not None
    failed = re.search(r"Application (application_\d+_\d+) finished with failed status \(exit code 1\)", outcome.error)
    assert failed, outcome.error
    assert state(outcome) == "FAIL"
    assert nameless.hadoop.application(failed[1])["finalStatus"] == "FAILED"


@pytest.mark.parametrize("end", ["exception", pytest.param("sys_exit", marks=pytest.mark.nightly)])
def test_a_program_that_fails_in_cluster_mode(yarn: Any, statuses: Callable[..., Any], end: str) -> None:
    outcome = yarn.run("cluster", end)
    assert outcome.error is not None, outcome.printed
    assert "ended with final status: FAILED" in outcome.error
    assert "hunter2" not in outcome.printed
    assert "::group::The end of the driver's log: stdout" in outcome.printed
    why = "User application exited with status 1 (YARN ResourceManager)"
    if end == "exception":
        why = f"RuntimeError: failed after the write, password=*** ({why})"
        assert 'counts.py", line' in outcome.printed, "the traceback"
    assert outcome.lineage["run_facets"]["sparkLineage_status"]["error"] == why
    assert why in outcome.error
    assert state(outcome) == "FAIL"
    has_datasets(yarn, outcome)
    assert statuses(outcome, "DRIVER")[-1] == ("FAILED", MANAGER)


def test_a_program_that_fails_in_client_mode_though_yarn_says_otherwise(yarn: Any) -> None:
    outcome = yarn.run("client", "exception")
    assert (state(outcome), yarn.hadoop.application(application_id(outcome))["finalStatus"]) == ("FAIL", "SUCCEEDED")
    has_datasets(yarn, outcome)


def meanwhile(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.mark.nightly
@pytest.mark.parametrize("deploy_mode", ["client", "cluster"])
def test_an_application_that_is_killed_through_the_resource_manager(
    yarn: Any, statuses: Callable[..., Any], deploy_mode: str
) -> None:
    killing = meanwhile(lambda: yarn.hadoop.kill(yarn.written()))
    outcome = yarn.run(deploy_mode, "killed")
    killing.join()
    assert outcome.error is not None, outcome.printed
    assert state(outcome) == "FAIL", "Airflow did not ask for it"
    has_datasets(yarn, outcome)
    assert ("KILLED", MANAGER) in statuses(outcome, "DRIVER" if deploy_mode == "cluster" else "APPLICATION")
    assert f"({MANAGER})" in outcome.lineage["run_facets"]["sparkLineage_status"]["error"]
    assert MANAGER in outcome.error


def test_a_task_that_is_killed_kills_its_application(yarn: Any, statuses: Callable[..., Any]) -> None:
    found: list[str] = []

    def kill() -> None:
        found.append(yarn.written())
        (task,) = psutil.Process(yarn.spark.bench.laboratory._process.pid).children()
        os.kill(task.pid, signal.SIGUSR1)

    killing = meanwhile(kill)
    outcome = yarn.run("cluster", "killed")
    killing.join()
    assert state(outcome) == "ABORT", outcome.printed
    assert yarn.hadoop.application(found[0])["finalStatus"] == "KILLED"
    assert ("KILLING", "Airflow") in statuses(outcome, "DRIVER")


@pytest.mark.nightly
def test_a_driver_that_is_lost_and_attempted_again(yarn: Any, statuses: Callable[..., Any]) -> None:
    def kill() -> None:
        application_id = yarn.written()
        (driver,) = [one for one in psutil.process_iter() if is_driver(one, application_id)]
        driver.kill()

    killing = meanwhile(kill)
    outcome = yarn.run("cluster", "second_attempt", conf={"spark.yarn.maxAppAttempts": "2"})
    killing.join()
    assert (outcome.error, state(outcome)) == (None, "COMPLETE"), outcome.printed
    has_datasets(yarn, outcome)
    assert statuses(outcome, "DRIVER")[-1] == ("FINISHED", MANAGER)


def is_driver(process: psutil.Process, application_id: str) -> bool:
    """Whether it is the JVM of the application's first container."""
    with contextlib.suppress(psutil.Error):
        is_its = application_id in process.environ().get("CONTAINER_ID", "").replace("container", "application")
        return is_its and "ApplicationMaster" in " ".join(process.cmdline()) and process.name() == "java"
    return False


@pytest.mark.nightly
def test_a_resource_manager_that_is_restarted(yarn: Any, statuses: Callable[..., Any]) -> None:
    released = yarn.spark.bench.root / "released"
    with ThreadPoolExecutor() as pool:
        running = pool.submit(yarn.run, "cluster", str(released))
        yarn.written()
        # Not in a thread of its own: Linux ends what a thread has started as soon as that is over (PR_SET_PDEATHSIG).
        yarn.hadoop.restart_manager()
        released.touch()
        outcome = running.result()
    assert (outcome.error, state(outcome)) == (None, "COMPLETE"), outcome.printed
    has_datasets(yarn, outcome)
    assert statuses(outcome, "DRIVER")[-1] == ("FINISHED", MANAGER)
    assert yarn.hadoop.application(application_id(outcome))["finalStatus"] == "SUCCEEDED"
