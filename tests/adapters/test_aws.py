"""What the services of AWS are asked for, with what is added, and ends as they name them; no service answers."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.adapters.adapter import AdaptedTask
from spark_lineage.adapters.emr import EmrContainerAdapter, EmrServerlessAdapter
from spark_lineage.adapters.emr_steps import EmrStepsAdapter
from spark_lineage.adapters.glue import GlueAdapter
from spark_lineage.adapters.service import properties_in
from spark_lineage.inject.preparation import PreparedArguments
from spark_lineage.inject.properties import APP_RUN_ID, SubmitArguments
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.places import Places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OURS = {APP_RUN_ID: "0192", "spark.eventLog.enabled": "true", "spark.eventLog.dir": "s3://logs/x", "spark.empty": ""}
SUBMIT = {"sparkSubmit": {"entryPoint": "s3://jobs/a.py", "sparkSubmitParameters": "--conf spark.a=1 -c 'spark.b=x y'"}}


class Events:
    """Takes handlers as botocore does, and calls them."""

    def __init__(self) -> None:
        self.handlers: dict[str, list[Any]] = {}

    def register(self, name: str, handler: Any) -> None:
        self.handlers.setdefault(name, []).append(handler)

    def emit(self, name: str, **values: Any) -> Any:
        return [handler(**values, model=None, context={}) for handler in self.handlers.get(name, ())]


@dataclass
class Service:
    """An adapter with a client whose requests go nowhere."""

    adapter: Any
    name: str
    events: Events = field(default_factory=Events)
    warned: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, kind: Any, **operator: Any) -> Service:
        warned: list[str] = []

        @contextmanager
        def guard(what: str, *, can_fail: bool = True) -> Iterator[None]:
            try:
                yield
            except Exception as error:
                warned.append(f"{what}: {error}")

        def before() -> None:
            adapter.inject(PreparedArguments(SubmitArguments({**adapter.arguments.conf, **OURS}), None, "cluster", {}))

        given = {"wait_for_completion": True, "deferrable": False, "aws_conn_id": "aws_default", **operator}
        task = AdaptedTask(before, lambda: False, Places(), None, "", guard)  # type: ignore[arg-type]
        stock = type("Stock", (SimpleNamespace,), {"_set_job_run_id": lambda *_: None})(**given)
        adapter = kind.of(stock, None, task)
        service = cls(adapter, kind.service, warned=warned)
        meta = SimpleNamespace(events=service.events, region_name="eu-west-1")
        meta.service_model = SimpleNamespace(service_id=SimpleNamespace(hyphenize=lambda: kind.service))
        stock.lineage_connect(SimpleNamespace(meta=meta))
        return service

    def submit(self, params: Mapping[str, Any]) -> Any:
        return self.events.emit(f"provide-client-params.{self.name}.{self.adapter.start}", params=params)[0]

    def answer(self, operation: str, answer: Mapping[str, Any], status: int = 200) -> None:
        response = SimpleNamespace(status_code=status)
        self.events.emit(f"after-call.{self.name}.{operation}", parsed=answer, http_response=response)


def defaults(request: Mapping[str, Any]) -> Any:
    (found,) = [
        one["properties"]
        for one in request["configurationOverrides"]["applicationConfiguration"]
        if one["classification"] == "spark-defaults"
    ]
    return found


@pytest.fixture
def serverless() -> Service:
    return Service.of(EmrServerlessAdapter, application_id="00app", job_driver=SUBMIT, configuration_overrides=None)


def test_properties_are_found_in_every_spelling() -> None:
    given = "--class X --conf spark.a=1 -c 'spark.b=x y' --conf=spark.c=a=b --conf broken s3://a.jar"
    assert properties_in(given) == {"spark.a": "1", "spark.b": "x y", "spark.c": "a=b"}
    assert properties_in("--conf 'spark.a=") == {}


def test_job_of_emr_serverless_has_what_is_added_beside_the_users(serverless: Service) -> None:
    other = {"classification": "spark-driver-log4j2", "properties": {"rootLogger.level": "error"}}
    mine = {"classification": "spark-defaults", "properties": {"spark.mine": "1", APP_RUN_ID: "0192"}}
    given = {
        "jobDriver": SUBMIT,
        "configurationOverrides": {"applicationConfiguration": [mine, other], "monitoringConfiguration": {"a": 1}},
    }
    request = serverless.submit(given)
    assert serverless.adapter.arguments.conf == {
        "spark.mine": "1",
        APP_RUN_ID: "0192",
        "spark.a": "1",
        "spark.b": "x y",
    }
    assert defaults(request) == {"spark.mine": "1", **{key: value for key, value in OURS.items() if value}}
    overrides = request["configurationOverrides"]
    assert (overrides["monitoringConfiguration"], overrides["applicationConfiguration"][0]) == ({"a": 1}, other)
    assert mine["properties"] == {"spark.mine": "1", APP_RUN_ID: "0192"}


def test_properties_of_the_application_are_kept_where_the_job_has_none(serverless: Service) -> None:
    runtime = [{"classification": "spark-defaults", "properties": {"spark.of.application": "1"}}]
    serverless.answer("GetApplication", {"application": {"state": "STARTED", "runtimeConfiguration": runtime}})
    assert defaults(serverless.submit({"jobDriver": SUBMIT}))["spark.of.application"] == "1"


@pytest.mark.parametrize(
    ("job", "application", "place"),
    [
        ("s3://logs/of/job/", "s3://logs/of/application", "s3://aws_default@logs/of/job"),
        (None, "s3://logs", "s3://aws_default@logs"),
        ("", "s3://logs", ""),
    ],
)
def test_place_where_emr_delivers_is_that_of_the_job_or_of_its_application(
    job, application, place, serverless: Service
) -> None:
    of_job, of_application = (
        {} if uri is None else {"s3MonitoringConfiguration": {"logUri": uri} if uri else {}}
        for uri in (job, application)
    )
    serverless.answer("GetApplication", {"application": {"monitoringConfiguration": of_application}})
    serverless.submit({"jobDriver": SUBMIT, "configurationOverrides": {"monitoringConfiguration": of_job}})
    conf, directory = serverless.adapter.arguments.conf, f"{place}/applications/00app/jobs/*/sparklogs"
    assert conf.get("spark.eventLog.dir") == (directory if place else None)
    assert serverless.adapter.log_delay == (40 if place else 0)


def test_job_whose_properties_have_no_room_runs_as_it_is(serverless: Service) -> None:
    full = {"classification": "spark-defaults", "properties": {f"spark.x{number}": "1" for number in range(99)}}
    given = {"jobDriver": SUBMIT, "configurationOverrides": {"applicationConfiguration": [full]}}
    assert serverless.submit(given) == given
    assert "no room" in serverless.warned[0]


@pytest.mark.parametrize(
    ("token", "is_given"), [("orders-2024-01-01", True), ("0192aaaa-bbbb-4ccc-8ddd-0123456789ab", False)]
)
def test_job_with_a_token_of_the_user_is_asked_for_unchanged(token, is_given, serverless: Service) -> None:
    given = {"jobDriver": SUBMIT, "clientToken": token}
    assert (serverless.submit(given) == given) is is_given
    assert bool(serverless.warned) is is_given


def test_refused_job_has_no_id(serverless: Service) -> None:
    serverless.submit({"jobDriver": SUBMIT})
    serverless.answer("StartJobRun", {"Error": {"Code": "ValidationException"}}, 400)
    assert serverless.adapter.driver.driver_id is None


@pytest.mark.parametrize(
    ("state", "status"),
    [("RUNNING", None), ("SUCCESS", "FINISHED"), ("FAILED", "FAILED"), ("CANCELLING", None), ("CANCELLED", "KILLED")],
)
def test_end_is_the_last_state_that_was_answered(state, status, serverless: Service) -> None:
    serverless.submit({"jobDriver": SUBMIT})
    serverless.answer("StartJobRun", {"jobRunId": "00job"})
    run = {"jobRunId": "00job", "state": state, "stateDetails": "out of memory"}
    serverless.answer("GetJobRun", {"jobRun": run})
    assert serverless.adapter.has_driver_ended is (status is not None)
    if status is not None:
        end = serverless.adapter.end()
        assert (end.status, end.source) == (status, "EMR Serverless")
        assert end.detail == ("" if status == "FINISHED" else "out of memory")
    assert serverless.adapter.submitter.master == "emr-serverless:eu-west-1:00app"


def test_job_of_emr_on_eks_has_properties_and_an_end() -> None:
    driver = {"sparkSubmitJobDriver": {"entryPoint": "a.py", "sparkSubmitParameters": "--conf spark.a=1"}}
    service = Service.of(EmrContainerAdapter, virtual_cluster_id="vc", job_driver=driver, configuration_overrides={})
    request = service.submit({"jobDriver": driver, "configurationOverrides": {}})
    assert defaults(request)[APP_RUN_ID] == "0192"
    assert service.adapter.arguments.conf["spark.a"] == "1"
    service.answer("StartJobRun", {"id": "job"})
    service.answer("DescribeJobRun", {"jobRun": {"id": "job", "state": "FAILED", "failureReason": "USER_ERROR"}})
    assert (service.adapter.end().status, service.adapter.end().detail) == ("FAILED", "USER_ERROR")


def test_sql_of_emr_on_eks_has_its_properties_in_parameters_of_its_own() -> None:
    driver = {"sparkSqlJobDriver": {"entryPoint": "a.sql", "sparkSqlParameters": "--conf spark.eventLog.dir=s3://own"}}
    service = Service.of(EmrContainerAdapter, virtual_cluster_id="vc", job_driver=driver, configuration_overrides={})
    service.submit({"jobDriver": driver, "configurationOverrides": {}})
    assert service.adapter.arguments.conf["spark.eventLog.dir"] == "s3://own"


def test_job_of_hive_is_asked_for_unchanged(serverless: Service) -> None:
    given = {"jobDriver": {"hive": {"query": "s3://jobs/a.sql"}}}
    assert serverless.submit(given) == given
    assert (serverless.adapter.driver.is_submitted, serverless.adapter.lacking, serverless.warned) == (True, "", [])


def steps_of(**operator: Any) -> Service:
    return Service.of(EmrStepsAdapter, **{"job_flow_id": "j-1", "steps": [], **operator})


def step(name: str, *words: str) -> dict[str, Any]:
    return {"Name": name, "HadoopJarStep": {"Jar": "command-runner.jar", "Args": list(words)}}


def test_steps_of_spark_have_options_right_after_their_command() -> None:
    service = steps_of()
    given = {
        "JobFlowId": "j-1",
        "Steps": [
            step("copy", "s3-dist-cp", "--src=a"),
            step("load", "sudo", "/usr/bin/spark-submit", "--conf", "spark.a=1", "s3://jobs/a.py", "--conf", "x=1"),
        ],
    }
    copy, load = service.submit(given)["Steps"]
    assert copy == given["Steps"][0]
    words = load["HadoopJarStep"]["Args"]
    assert words[:4] == ["sudo", "/usr/bin/spark-submit", "--conf", f"{APP_RUN_ID}=0192"]
    assert words[-5:] == ["--conf", "spark.a=1", "s3://jobs/a.py", "--conf", "x=1"]
    service.answer("AddJobFlowSteps", {"StepIds": ["s-1", "s-2"]})
    assert service.adapter.driver.driver_id == "s-1,s-2"
    service.answer("DescribeStep", {"Step": {"Id": "s-1", "Status": {"State": "COMPLETED"}}})
    assert not service.adapter.has_driver_ended
    why = {"State": "FAILED", "FailureDetails": {"Reason": "Unknown", "Message": "exit code 1"}}
    service.answer("DescribeStep", {"Step": {"Id": "s-2", "Status": why}})
    assert (service.adapter.end().status, service.adapter.end().detail) == ("FAILED", "exit code 1")
    assert service.adapter.parts == ()


def test_steps_that_are_not_waited_for_have_runs_of_their_own() -> None:
    service = steps_of(wait_for_completion=False)
    spark = ("spark-submit", "a.py")
    names = ["load", "copy", "load", "load_2"]
    steps = [step(name, *(spark if name != "copy" else ("s3-dist-cp",))) for name in names]
    changed = service.submit({"JobFlowId": "j-1", "Steps": steps})["Steps"]
    service.answer("AddJobFlowSteps", {"StepIds": ["s-1", "s-2", "s-3", "s-4"]})
    parts = service.adapter.parts
    assert [(one.child, one.external_id) for one in parts] == [("load", "s-1"), ("load_2", "s-3"), ("load_2_2", "s-4")]
    assert len({one.application_run_id for one in parts}) == 3
    for part, at in zip(parts, (0, 2, 3), strict=True):
        assert f"{APP_RUN_ID}={part.application_run_id}" in changed[at]["HadoopJarStep"]["Args"]


def test_steps_without_spark_are_left_alone() -> None:
    service = steps_of()
    given = {"JobFlowId": "j-1", "Steps": [step("shell", "bash", "-c", "spark-submit a.py")]}
    assert service.submit(given) == given
    assert service.adapter.driver.is_submitted
    assert service.adapter.observer is None


def test_step_of_sql_has_options_right_after_its_command() -> None:
    sql = step("daily", "spark-sql", "-f", "s3://jobs/daily.sql")
    (changed,) = steps_of().submit({"JobFlowId": "j-1", "Steps": [sql]})["Steps"]
    words = changed["HadoopJarStep"]["Args"]
    assert (words[:3], words[-2:]) == (["spark-sql", "--conf", f"{APP_RUN_ID}=0192"], ["-f", "s3://jobs/daily.sql"])


def test_secrets_of_each_step_are_learnt() -> None:
    secrets = {"a.py": "geheim-of-a", "b.py": "geheim-of-b"}
    steps = [step(name, "spark-submit", "--conf", f"spark.my.password={one}", name) for name, one in secrets.items()]
    steps_of().submit({"JobFlowId": "j-1", "Steps": steps})
    assert redact("no geheim-of-a, no geheim-of-b") == "no ***, no ***"


@pytest.mark.parametrize("is_resumed", [False, True])
def test_step_whose_command_is_in_a_text_is_lacking_beside_others(is_resumed: bool) -> None:
    steps = [
        step("shell", "bash", "-c", "spark-submit a.py"),
        step("copy", "s3-dist-cp", "--src=s3://lake/spark-submit-logs"),
        step("b", "spark-submit", "b.py"),
    ]
    service = steps_of(steps=steps if is_resumed else "[]")
    if not is_resumed:
        service.submit({"JobFlowId": "j-1", "Steps": steps})
    assert service.adapter.lacking == "no event log is read: the command of shell is in a text"


def test_step_that_alone_logs_elsewhere_is_read_there_or_lacking() -> None:
    directory = "spark.eventLog.dir="
    steps = [
        step("common", "spark-submit", "a.py"),
        step("own", "spark-submit", "--conf", f"{directory}s3://own/logs/", "b.py"),
        step("cluster", "spark-submit", "--conf", f"{directory}hdfs:///logs", "c.py"),
        step("off", "spark-submit", "--conf", "spark.eventLog.enabled=false", "d.py"),
    ]
    service = steps_of()
    service.submit({"JobFlowId": "j-1", "Steps": steps})
    assert service.adapter.log_places == ("s3://own/logs",)
    assert service.adapter.lacking == "no event log is read: cluster, off logs where no worker reads"


@pytest.fixture
def glue() -> Service:
    return Service.of(GlueAdapter, job_name="orders: daily", script_args={})


def test_glue_job_has_what_is_added_and_a_place_for_its_log(glue: Service) -> None:
    request = glue.submit({"JobName": "orders", "Arguments": {"--day": "1", "--conf": "spark.a=1 --conf spark.b=x y"}})
    assert request["Arguments"] == {
        "--day": "1",
        "--conf": f"spark.a=1 --conf spark.b=x y --conf {APP_RUN_ID}=0192",
        "--spark-event-logs-path": "s3://logs/x",
        "--enable-spark-ui": "true",
        "--enable-spark-ui-legacy-path": "true",
    }
    assert glue.adapter.submitter.master == "glue:eu-west-1:orders: daily"
    glue.answer("StartJobRun", {"JobRunId": "jr_1"})
    glue.answer("GetJobRun", {"JobRun": {"Id": "jr_1", "JobRunState": "TIMEOUT", "ErrorMessage": "too long"}})
    assert (glue.adapter.end().status, glue.adapter.end().detail) == ("FAILED", "too long")


def test_definition_of_a_glue_job_is_respected(glue: Service) -> None:
    defined = {"--conf": "spark.of.job=1", "--spark-event-logs-path": "s3://own/logs/", "--enable-spark-ui": "true"}
    glue.answer("GetJob", {"Job": {"DefaultArguments": defined}})
    arguments = glue.submit({"JobName": "orders", "Arguments": {"--day": "1"}})["Arguments"]
    assert arguments["--conf"].startswith("spark.of.job=1 --conf ")
    assert "--spark-event-logs-path" not in arguments
    assert "--enable-spark-ui" not in arguments
    assert arguments["--enable-spark-ui-legacy-path"] == "true"
    conf = glue.adapter.arguments.conf
    assert (conf["spark.of.job"], conf["spark.eventLog.dir"]) == ("1", "s3://own/logs/")


def test_definition_of_a_glue_job_that_is_updated_has_nothing_of_the_former_one(glue: Service) -> None:
    glue.answer(
        "GetJob", {"Job": {"DefaultArguments": {"--conf": "spark.old=1"}, "NonOverridableArguments": {"--a": "b"}}}
    )
    glue.events.emit("before-parameter-build.glue.UpdateJob", params={"JobName": "orders", "JobUpdate": {"Role": "r"}})
    assert glue.submit({"JobName": "orders", "Arguments": {}})["Arguments"]["--conf"] == f"{APP_RUN_ID}=0192"


@pytest.mark.parametrize("command", ["pythonshell", "glueray"])
def test_glue_job_without_spark_is_asked_for_unchanged(command: str, glue: Service) -> None:
    glue.answer("GetJob", {"Job": {"Command": {"Name": command}}})
    given = {"JobName": "orders", "Arguments": {"--day": "1"}}
    assert glue.submit(given) == given
    assert (glue.adapter.driver.is_submitted, glue.adapter.lacking, glue.warned) == (True, "", [])


def test_glue_job_that_is_made_without_spark_is_asked_for_unchanged(glue: Service) -> None:
    glue.answer("GetJob", {"Error": {"Code": "EntityNotFoundException"}}, 400)
    made = {"Name": "orders", "Command": {"Name": "pythonshell"}}
    glue.events.emit("before-parameter-build.glue.CreateJob", params=made)
    given = {"JobName": "orders", "Arguments": {}}
    assert glue.submit(given) == given


def test_glue_job_that_no_run_may_change_runs_as_it_is(glue: Service) -> None:
    glue.answer("GetJob", {"Job": {"NonOverridableArguments": {"--conf": "spark.of.job=1"}}})
    given = {"JobName": "orders", "Arguments": {}}
    assert glue.submit(given) == given
    assert "no run may change" in glue.warned[0]
    # Nothing is waited for.
    assert glue.adapter.injected == {}


@pytest.mark.parametrize("argument", ["--enable-spark-ui-legacy-path", "--enable-spark-ui"])
def test_glue_job_that_logs_for_its_console_alone_or_not_at_all_has_no_log_to_read(
    argument: str, glue: Service
) -> None:
    defined = {"--spark-event-logs-path": "s3://own/logs/", argument: "false"}
    glue.answer("GetJob", {"Job": {"DefaultArguments": defined}})
    glue.adapter.request = {"Arguments": {}}
    assert glue.adapter.arguments.conf == {"spark.eventLog.enabled": f"false by {argument}"}


def test_client_that_is_connected_twice_is_listened_to_once(serverless: Service) -> None:
    (client,) = serverless.adapter.clients

    serverless.adapter.connect(client)

    name = f"provide-client-params.{serverless.name}.{serverless.adapter.start}"
    assert len(serverless.events.handlers[name]) == 1
