"""What ``SparkKubernetesOperator`` is given for lineage, and what an API server says of the end, which is made up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from http_server import Handler, serving

if TYPE_CHECKING:
    from pathlib import Path

    from laboratory import Bench, Outcome

CREATED = "2026-11-01T00:00:00Z"
RUN_ID = "spark.openlineage.applicationRunId"


@dataclass
class ApiServer:
    """Its one driver ends at once; ``created`` are the objects that it was given, ``asked`` all requests."""

    bench: Bench
    exit_code: int = 0
    reason: str = "Completed"
    log: str = ""
    object_state: str = "RUNNING"
    message: str = ""
    has_pod: bool = True
    url: str = ""
    earlier: bool = False
    created: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def pod(self) -> dict[str, Any]:
        """The pod of the driver."""
        end = {"exitCode": self.exit_code, "reason": self.reason, "startedAt": CREATED, "finishedAt": CREATED}
        container = {"name": "spark-kubernetes-driver", "image": "spark", "imageID": "", "ready": False}
        status = {"phase": "Failed" if self.exit_code else "Succeeded"}
        status |= {"containerStatuses": [{**container, "restartCount": 0, "state": {"terminated": end}}]}  # type: ignore[dict-item]
        name = self.created[-1]["metadata"]["name"] if self.created else "earlier"
        labels = {"spark-app-selector": "spark-7", "spark-role": "driver", "try_number": "1"}
        metadata = {"name": f"{name}-driver", "namespace": "jobs", "labels": labels, "creationTimestamp": CREATED}
        return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}, "status": status}

    def answer_to(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the content of an answer."""
        self.asked.append(f"{method} {path}")
        if method == "POST":
            self.created.append(body)
            return 201, body
        state = {"state": self.object_state, "errorMessage": self.message}
        answers: dict[str, Any] = {
            "status": {"status": {"applicationState": state}},
            "log": self.log,
            "pods": {"kind": "PodList", "items": [self.pod] if self.earlier or self.created else []},
        }
        if method == "GET" and path.endswith("-driver"):
            return (200, self.pod) if self.has_pod else (404, {"kind": "Status", "message": "not found"})
        return 200, answers.get(path.rpartition("/")[2], {"kind": "Status", "items": []})

    def run(self, spec: dict[str, Any] | None = None, **arguments: Any) -> Outcome:
        """Run the operator; ``spec`` is that of the user's object."""
        cluster = {"name": "tests", "cluster": {"server": self.url}}
        context = {"name": "tests", "context": {"cluster": "tests", "user": "tests"}}
        users = [{"name": "tests", "user": {}}]
        config = {"current-context": "tests", "clusters": [cluster], "contexts": [context], "users": users}
        (self.bench.root / "kubeconfig").write_text(json.dumps(config))
        extra = {"kube_config_path": str(self.bench.root / "kubeconfig"), **arguments.pop("extra", {})}
        connection = {"conn_type": "kubernetes", "extra": extra}
        self.bench.env |= {"AIRFLOW_CONN_KUBERNETES_DEFAULT": json.dumps(connection)}
        if "application_file" not in arguments:
            arguments["template_spec"] = arguments.get("template_spec", body(spec))
        return self.bench.run(**{"namespace": "jobs", "context": {"run_id": "manual"}, "get_logs": False, **arguments})

    @property
    def conf(self) -> dict[str, str]:
        """The properties of the last object."""
        found: dict[str, str] = self.created[-1]["spec"]["sparkConf"]
        return found


def body(spec: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the object of a user."""
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "/nowhere"}
    own = {"image": "spark", "sparkConf": conf, "driver": {}, "executor": {}, **(spec or {})}
    return {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "spec": own}


@pytest.fixture
def api(bench: Bench) -> Iterator[ApiServer]:
    """An API server, and a task that uses it."""
    bench.operator, bench.application = "lineage_spark_kubernetes:LineageSparkKubernetesOperator", {}
    found = ApiServer(bench)

    class Asked(Handler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            given = json.loads(self.rfile.read(length) or "null") if length else None
            status, content = found.answer_to(self.command, urlsplit(self.path).path, given)
            text = content if isinstance(content, str) else json.dumps(content)
            self.answer(text.encode(), status, {"Content-Type": "application/json"})

        do_GET = do_POST = do_DELETE = do_PATCH = _answer

    with serving(Asked) as found.url:
        yield found


def status(outcome: Outcome) -> dict[str, Any]:
    assert outcome.lineage is not None, outcome.printed
    found: dict[str, Any] = outcome.lineage["run_facets"]["sparkLineage_status"]
    return found


def test_properties_go_into_the_object_and_the_users_own_win(api: ApiServer) -> None:
    own = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "/own", "spark.sql.debug.maxToStringFields": "7"}
    outcome = api.run({"sparkConf": own})

    assert outcome.error is None, outcome.printed[-3000:]
    assert own.items() <= api.conf.items()
    assert api.conf["spark.openlineage.parentJobName"] == "shop.load"
    assert RUN_ID in api.conf
    assert all(isinstance(value, str) for value in api.conf.values())
    assert outcome.last["driver"]["application_id"] == "spark-7"
    assert status(outcome)["state"] == "COMPLETE"


@pytest.mark.parametrize("form", ["spark", "json", "yaml", "file"])
def test_each_form_of_the_object(api: ApiServer, tmp_path: Path, form: str) -> None:
    text = json.dumps(body())
    if form == "yaml":
        text = "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nspec:\n  driver: {}\n  executor: {}\n"
        text += '  sparkConf:\n    "spark.eventLog.enabled": "true"\n    "spark.eventLog.dir": "/own"\n'
    if form == "file":
        (tmp_path / "application.yml").write_text(text)
        text = str(tmp_path / "application.yml")
    given = {"template_spec": {"spark": body()}} if form == "spark" else {"application_file": text}
    outcome = api.run(**given)

    assert outcome.error is None, outcome.printed[-3000:]
    assert RUN_ID in api.conf


def test_object_of_the_user_stays_for_the_next_execution(api: ApiServer) -> None:
    # Without it the provider creates what it was given.
    outcome = api.run(executions=2, reattach_on_restart=False)

    assert outcome.error is None, outcome.printed[-3000:]
    first, second = (one["spec"]["sparkConf"] for one in api.created)
    assert first.keys() == second.keys()
    assert first[RUN_ID] != second[RUN_ID]


def test_directory_of_the_connection_is_used_where_the_user_has_none(api: ApiServer, tmp_path: Path) -> None:
    api.run({"sparkConf": None}, extra={"event_log_dir": str(tmp_path)})

    assert api.conf["spark.eventLog.enabled"] == "true"
    assert api.conf["spark.eventLog.dir"] == str(tmp_path)


def test_reason_of_a_driver_that_fails_is_read_before_it_is_deleted(api: ApiServer) -> None:
    api.exit_code, api.reason = 137, "OOMKilled"
    outcome = api.run()

    assert outcome.error is not None
    assert status(outcome)["state"] == "FAIL"
    assert "exit code 137, OOMKilled" in status(outcome)["error"]
    deleted = next(at for at, one in enumerate(api.asked) if one.startswith("DELETE"))
    assert any(one.startswith("GET") and one.endswith("/log") for one in api.asked[:deleted])


def test_exception_in_the_log_of_the_driver_is_the_reason(api: ApiServer) -> None:
    api.exit_code, api.reason = 1, "Error"
    api.log = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nRuntimeError: no orders\n'

    assert "RuntimeError: no orders" in status(api.run())["error"]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("no such image", "no such image"),
        (
            'WARN a\nException in thread "main" java.lang.IllegalArgumentException: no policy\n\tat a.B.c(B.scala:1)\n',
            "java.lang.IllegalArgumentException: no policy (FAILED)",
        ),
    ],
)
def test_object_without_a_pod_says_why_it_failed(api: ApiServer, message: str, reason: str) -> None:
    api.object_state, api.has_pod, api.message = "FAILED", False, message
    outcome = api.run()

    assert "Spark Job Failed" in (outcome.error or "")
    assert status(outcome)["error"] == f"{reason} (SparkApplication)"


def test_store_that_fails_does_not_fail_the_task(api: ApiServer) -> None:
    outcome = api.run(store={}, fails="store")

    assert outcome.error is None, outcome.printed[-3000:]


@pytest.mark.parametrize("spec", [{"sparkConf": ["odd"]}, {"hadoopConf": 7}, {"driver": {"env": 7}}])
def test_odd_object_is_created_as_without_lineage(api: ApiServer, spec: dict[str, Any]) -> None:
    with_lineage, errors = [], []
    for enabled in (True, False):
        errors.append(api.run(spec, lineage_enabled=enabled, reattach_on_restart=False).error)
        with_lineage.append(len(api.created))
    assert (errors[0] is None) == (errors[1] is None)
    assert with_lineage[0] * 2 == with_lineage[1]


def test_driver_of_another_operator_is_followed_without_lineage(api: ApiServer) -> None:
    api.earlier = True
    outcome = api.run()

    assert outcome.error is None, outcome.printed[-3000:]
    assert not api.created
    assert "re-attached to one without lineage" in outcome.printed


def test_secrets_of_the_object_are_known(api: ApiServer) -> None:
    api.exit_code, api.reason = 1, "Error"
    api.log = 'Traceback (most recent call last):\n  File "a.py", line 1\nRuntimeError: denied for dGhpc2lzYXNlY3JldA\n'
    spec = {"hadoopConf": {"fs.s3a.secret.key": "dGhpc2lzYXNlY3JldA"}}

    assert "dGhpc2lzYXNlY3JldA" not in json.dumps(api.run(spec).lineage)
