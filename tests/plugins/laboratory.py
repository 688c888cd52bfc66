"""Runs the operator with the real hook of the Spark provider and a fake ``spark-submit`` and ``spark-sql``.

Airflow warns when it is imported, keeps its home for good and changes how all of Python logs. So it lives in a process
of its own (``main``), which imports it once and forks for every scenario; ``Laboratory`` talks to that process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import runpy
import shlex
import signal
import subprocess
import sys
import threading
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
from entered import environment, trace
from own_disk import elsewhere

REPOSITORY = Path(__file__).parents[2]
ROOTS = [str(REPOSITORY / root) for root in ("provider", "operators", "listeners")]
FIXTURES = REPOSITORY / "tests" / "fixtures" / "events"
EVENTS_FILE = "openlineage-events.ndjson"
LIMIT_SECONDS = int(os.environ.get("LABORATORY_SECONDS", "60"))
_MOMENT = datetime(2024, 1, 31, tzinfo=UTC)

# What the fake does is in driver.json beside it; what it was told, it leaves in told.json. Both are the user's own.
FAKE_SPARK_SUBMIT = r"""
import json, os, signal, sys, time
here = os.path.dirname(os.path.abspath(__file__))
script = json.load(open(os.path.join(here, "driver.json")))
argv = sys.argv[1:]
conf = dict(argv[at + 1].split("=", 1) for at, flag in enumerate(argv) if flag == "--conf")
told = {"argv": argv, "conf": conf, "env": dict(os.environ), "pid": os.getpid()}
prefix = "spark.openlineage.transport."
location = conf.get(prefix + "transports.spark_lineage.location") or conf.get(prefix + "location")
config = os.environ.get("OPENLINEAGE_CONFIG")
if config:
    told["config"] = {"mode": os.stat(config).st_mode & 0o777, "text": open(config).read()}
    location = json.loads(told["config"]["text"])["transport"]["transports"]["spark_lineage"]["location"]
if location and os.path.isdir(os.path.dirname(location)):
    told["mode"] = os.stat(os.path.dirname(location)).st_mode & 0o777
    told["files"] = sorted(os.listdir(os.path.dirname(location)))
if "--properties-file" in argv:
    file = argv[argv.index("--properties-file") + 1]
    told["properties"] = {"path": file, "mode": os.stat(file).st_mode & 0o777, "text": open(file).read()}
with open(os.path.join(here, "told.jsonl"), "a") as stream:
    stream.write(json.dumps(told) + "\n")
for source in script["lineage"] if location else []:
    with open(source, "rb") as stream, open(location, "ab") as target:
        target.write(stream.read())
if script["event_log"]:
    source, directory = script["event_log"], os.path.join(os.path.dirname(location), "event-log", "tRuE")
    with open(source, "rb") as stream, open(os.path.join(directory, os.path.basename(source)), "wb") as target:
        target.write(stream.read())
for line in script["log"]:
    sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")
    sys.stdout.flush()
while script["until"] and not os.path.exists(script["until"]):
    time.sleep(0.02)
if script["break_lineage_file"]:
    os.mkdir(location)
if script["signal"]:
    os.kill(os.getppid(), script["signal"])
    time.sleep(50)
sys.exit(script["exit_code"])
"""


@dataclass
class Outcome:
    """What came of one scenario; ``executions`` has one entry for each time the operator was executed."""

    printed: str
    executions: list[dict[str, Any]]
    told: list[dict[str, Any]]
    store: dict[str, Any] | None
    store_log: list[str]
    threads: list[str]
    pushed: list[tuple[str, str]]
    """The XComs that were pushed: key and value."""
    conf: dict[str, Any] | None

    @property
    def last(self) -> dict[str, Any]:
        """The last execution: ``errors`` (the whole chain), ``lineage`` and what the hook was found to be."""
        return self.executions[-1]

    @property
    def error(self) -> str | None:
        """Type and text of the exception that the last execution ended with."""
        return self.last["errors"][0] if self.last["errors"] else None

    @property
    def lineage(self) -> dict[str, Any] | None:
        """What the last execution gives to the OpenLineage provider."""
        return self.last["lineage"]

    @property
    def command(self) -> dict[str, Any]:
        """What the last spark-submit was told: ``argv``, ``conf``, ``env``, ``mode``, ``files``, ``properties``."""
        return self.told[-1]

    @property
    def logged(self) -> str:
        """The lines that the loggers of this package and of the operator have printed."""
        return "\n".join(line for line in self.printed.splitlines() if "spark_lineage" in line.rpartition(" [")[2])

    def names(self, kind: str) -> list[str]:
        """The names of the inputs or outputs."""
        assert self.lineage is not None, self.printed
        return [one["name"] for one in self.lineage[kind]]

    def attempted(self) -> list[str]:
        """The names of the attempted outputs."""
        assert self.lineage is not None, self.printed
        facet = self.lineage["run_facets"].get("sparkLineage_attemptedOutputs", {"outputs": []})
        return [one["name"] for one in facet["outputs"]]


@dataclass
class Bench:
    """One test's place: a fake Spark, a lineage directory, a listener jar, and the scenario's settings."""

    laboratory: Laboratory
    root: Path
    connection: dict[str, Any] = field(default_factory=lambda: {"conn_type": "spark", "host": "local[2]"})
    env: dict[str, str] = field(default_factory=dict)
    defaults: str | None = None
    operator: str = "lineage_spark_submit:LineageSparkSubmitOperator"
    application: dict[str, Any] = field(default_factory=lambda: {"application": "job.py"})
    limit_seconds: int = LIMIT_SECONDS
    program: str = "laboratory"
    """The module whose ``run`` executes the operator."""
    is_by_policy: bool = False
    """Whether the operator is one of the tests or of the Spark provider, which the policy gives lineage to."""

    def __post_init__(self) -> None:
        (self.spark_home / "jars").mkdir(parents=True)
        (self.spark_home / "jars" / "spark-core_2.13-4.2.0.jar").touch()
        (self.root / "bin").mkdir()
        (self.root / "bin" / "fake.py").write_text(FAKE_SPARK_SUBMIT)
        program = shlex.join([sys.executable, "-IS", str(self.root / "bin" / "fake.py")])
        for name in ("spark-submit", "spark-sql"):
            fake = self.root / "bin" / name
            fake.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
            fake.chmod(0o755)
        with zipfile.ZipFile(self.jar, "w") as archive:
            archive.writestr("io/openlineage/spark/agent/OpenLineageSparkListener.class", b"")

    @property
    def spark_home(self) -> Path:
        """The fake ``SPARK_HOME``."""
        return self.root / "spark"

    @property
    def jar(self) -> Path:
        """A jar to take for the listener's."""
        return self.root / "openlineage-spark_2.13-1.53.0.jar"

    @property
    def lineage_dir(self) -> Path:
        """The lineage directory, unless a scenario names another."""
        return self.root / "lineage"

    @property
    def hangs(self) -> Path:
        """The file that makes the lineage directory hang."""
        return self.root / "hangs"

    def file(self, name: str, content: bytes) -> Path:
        """A file for the driver to append to its lineage."""
        path = self.root / name
        path.write_bytes(content)
        return path

    def run(
        self,
        *,
        lineage: list[Path] | None = None,
        log: list[str] | None = None,
        exit_code: int = 0,
        signal_parent: int = 0,
        task: dict[str, Any] | None = None,
        store: dict[str, Any] | None = None,
        fails: str = "",
        break_lineage_file: bool = False,
        executions: int = 1,
        context: dict[str, Any] | None = None,
        can_hang: bool = False,
        event_log: Path | None = None,
        until: Path | None = None,
        traced: Path | None = None,
        **arguments: Any,
    ) -> Outcome:
        """Execute the operator; ``arguments`` are its own, beside a lineage directory and a jar.

        :param lineage: files whose bytes the driver writes as its lineage
        :param log: lines that the driver prints afterwards
        :param signal_parent: SIGUSR1 kills the task as Airflow does, SIGUSR2 ends it as a timeout does
        :param store: what Airflow's task state store holds; None where there is no store
        :param fails: ``store`` for a store that cannot be written to, ``kept`` for a deferred task that resumes without
            what it has kept, as in ``airflow dags test``
        :param context: what Airflow's context holds besides
        :param can_hang: whether the lineage directory hangs as long as the file ``hangs`` is there
        :param event_log: a file that the driver writes as its event log
        :param until: a file that the driver waits for before it ends
        :param traced: the file for ``entered``
        :param break_lineage_file: whether the driver leaves a lineage file that cannot be read
        """
        script = {
            "lineage": [str(one) for one in lineage or []],
            "log": log or [],
            "exit_code": exit_code,
            "signal": signal_parent,
            "break_lineage_file": break_lineage_file,
            "event_log": event_log and str(event_log),
            "until": until and str(until),
        }
        (self.root / "bin" / "driver.json").write_text(json.dumps(script))
        if self.defaults is not None:
            (self.spark_home / "conf").mkdir(exist_ok=True)
            (self.spark_home / "conf" / "spark-defaults.conf").write_text(self.defaults)
        result = self.root / "result.json"
        scenario = {
            "env": {
                "PATH": os.pathsep.join([str(self.root / "bin"), os.environ["PATH"]]),
                "SPARK_HOME": str(self.spark_home),
                "XDG_CACHE_HOME": str(self.root / "cache"),
                "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(self.connection),
                "AIRFLOW_CONN_SPARK_SQL_DEFAULT": json.dumps(self.connection | {"conn_type": "spark_sql"}),
                **(environment(traced, ROOTS) if traced else {}),
                **self.env,
            },
            "program": self.program,
            "class": self.operator,
            "is_by_policy": self.is_by_policy,
            "operator": {
                "task_id": "load",
                **self.application,
                "lineage_dir": str(self.lineage_dir),
                "openlineage_jar": str(self.jar),
                **arguments,
            },
            "task": task or {},
            "store": store,
            "fails": fails,
            "executions": executions,
            "context": context or {},
            "traced": traced and str(traced),
            "hanging": [str(self.lineage_dir), str(self.hangs)] if can_hang else None,
            "result": str(result),
            "printed": str(self.root / "printed.txt"),
            "limit_seconds": self.limit_seconds,
        }
        result.unlink(missing_ok=True)
        self.laboratory.run(scenario)
        printed = (self.root / "printed.txt").read_text()
        assert result.exists(), printed
        told = self.root / "bin" / "told.jsonl"
        commands = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
        return Outcome(printed=printed, told=commands, **json.loads(result.read_text()))


class Laboratory:
    """The process with Airflow in it."""

    def __init__(self, home: Path, repository: Path = REPOSITORY, *, disk: Path | None = None) -> None:
        """Start it.

        :param disk: what it alone finds in its home, as a worker that shares no disk with the drivers
        """
        self.home = home
        roots = [str(repository / root) for root in ("provider", "operators", "listeners")]
        self._process = subprocess.Popen(
            [*(elsewhere() if disk is not None else ()), sys.executable, __file__],
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "SPARK"))},
                "PYTHONPATH": os.pathsep.join(roots),
                "AIRFLOW_HOME": str(home),
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                # Secrets must not be in the debug log either.
                "AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG",
                "AIRFLOW__OPENLINEAGE__NAMESPACE": "airflow-of-the-test",
                "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "console"}),
                "WORKER_DISK": str(disk),
                "WORKER_NAME": "worker",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def killing(
        self, due: Path, before: Callable[[], object] = lambda: None, number: int = signal.SIGUSR1
    ) -> Iterator[None]:
        """Have the scenario that runs within killed as Airflow kills a task, two seconds after a file is there.

        :param before: called right before that
        :param number: SIGUSR2 ends it as a timeout does, SIGALRM is the signal of Airflow's own
        """

        def kill() -> None:
            while not due.exists():
                time.sleep(0.1)
            # Until Spark has begun the next job.
            time.sleep(2)
            before()
            (task,) = psutil.Process(self._process.pid).children()
            task.send_signal(number)

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        yield
        thread.join(10)

    def run(self, scenario: dict[str, Any]) -> None:
        """Run one scenario to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(scenario) + "\n")
        self._process.stdin.flush()
        while (answer := self._process.stdout.readline()) != "done\n":
            assert answer, "the process with Airflow has died"

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=LIMIT_SECONDS)
        self._process.stdout.close()


class Store(dict[str, Any]):
    """Airflow's task state store, as far as it is used: JSON values by key."""

    log: list[str]
    is_broken = False

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        if self.is_broken:
            raise ConnectionError("the API server is away")
        self[key] = json.loads(json.dumps(value))
        self.log.append(f"{key}={json.dumps(value)}")


def main() -> None:
    """Answer to each scenario on standard input with ``done``."""
    # Imported before the forks, so that only the first scenario waits for it.
    import spark_lineage.operators.lineage_spark_submit
    import spark_lineage.task.session  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run_in_child(json.loads(line))
        os.waitpid(child, 0)
        print("done", flush=True)  # noqa: T201


def _run_in_child(scenario: dict[str, Any]) -> None:
    with Path(scenario["printed"]).open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    signal.alarm(scenario["limit_seconds"])
    try:
        os.environ.update(scenario["env"])
        if scenario["hanging"]:
            directory, flag = map(Path, scenario["hanging"])
            import_module("hanging_share").hang(directory, flag)
        result = (
            _executed(scenario)
            if scenario["program"] == "laboratory"
            else import_module(scenario["program"]).run(scenario)
        )
        Path(scenario["result"]).write_text(json.dumps(result))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def _executed(scenario: dict[str, Any]) -> dict[str, Any]:
    from airflow.sdk.exceptions import AirflowTaskTimeout, TaskDeferred
    from airflow.sdk.execution_time.context import OutletEventAccessors

    store = None if scenario["store"] is None else Store(scenario["store"])
    if store is not None:
        store.log = []
        store.is_broken = scenario["fails"] == "store"
    operator = _operator(scenario)

    def time_out(*_: object) -> None:
        raise AirflowTaskTimeout("the time of the task was over")

    signal.signal(signal.SIGUSR1, lambda *_: operator.on_kill())
    for number in (signal.SIGUSR2, signal.SIGALRM):
        signal.signal(number, time_out)
    ti = _task_instance(operator, scenario["task"])
    context = {"ti": ti, "dag_run": ti.dag_run, "dag": operator.dag, "task": operator, "task_state_store": store}
    context |= {"outlet_events": OutletEventAccessors(), **scenario["context"]}
    executions = []
    if scenario["traced"]:
        trace(Path(scenario["traced"]))
    for _ in range(scenario["executions"]):
        error: BaseException | None = None
        returned = None
        at_start = operator.get_openlineage_facets_on_start()
        try:
            try:
                returned = _begun(operator, context)
            except TaskDeferred as deferred:
                waiting: Any = deferred
                while waiting is not None:
                    operator = _operator(scenario)
                    waiting = _wake(operator, waiting, context, forgets=scenario["fails"] == "kept")
        except BaseException as raised:
            error = raised
            if isinstance(raised, AirflowTaskTimeout):
                operator.on_kill()  # as Airflow does after a timeout
        executions.append(_seen(operator, error) | {"at_start": _as_json(at_start), "returned": returned})
    sys.setprofile(None)
    threading.setprofile(None)
    return {
        "executions": executions,
        "store": None if store is None else dict(store),
        "store_log": [] if store is None else store.log,
        "threads": [thread.name for thread in threading.enumerate()],
        "pushed": ti.pushed,
        "conf": getattr(operator, "conf", None),
    }


def _operator(scenario: dict[str, Any]) -> Any:
    from airflow.sdk import DAG

    module, _, name = scenario["class"].partition(":")
    make = getattr(import_module(module if scenario["is_by_policy"] else f"spark_lineage.operators.{module}"), name)
    arguments = dict(scenario["operator"])
    # The operator has no such arguments.
    ours = {key: arguments.pop(key) for key in ("lineage_dir", "openlineage_jar") if scenario["is_by_policy"]}
    if function := arguments.get("python_callable"):
        file, _, name = function.rpartition(":")
        arguments["python_callable"] = runpy.run_path(file)[name]
    if seconds := arguments.get("execution_timeout"):
        arguments["execution_timeout"] = timedelta(seconds=seconds)
    dag = DAG("shop", start_date=_MOMENT, schedule=None, tags={"nightly"}, default_args={"owner": "the-shop"})
    operator = make(**arguments, dag=dag)
    if scenario["is_by_policy"]:
        from spark_lineage.policy import task_policy

        task_policy(operator)
        vars(operator).update(ours)
    return operator


def _begun(operator: Any, context: dict[str, Any]) -> Any:
    """Execute an operator; one that begins with its trigger has that run, as a scheduler does, without a worker."""
    from airflow.sdk.exceptions import TaskDeferred

    if not operator.start_from_trigger:
        return operator.execute(context)
    first = operator.start_trigger_args
    module, _, name = first.trigger_cls.rpartition(".")
    trigger = getattr(import_module(module), name)(**first.trigger_kwargs)
    raise TaskDeferred(trigger=trigger, method_name=first.next_method)


def _wake(operator: Any, deferred: Any, context: dict[str, Any], *, forgets: bool) -> Any:
    """Have the trigger wait, and a new operator go on with its event, which may defer again; it is returned then.

    What is kept between them is JSON; it goes on in another process, which knows no secret yet.
    """
    from airflow.sdk.exceptions import TaskDeferred

    from spark_lineage.secrets import redaction

    redaction._owner.remembered = frozenset()
    path, arguments = deferred.trigger.serialize()
    module, _, name = path.rpartition(".")
    # Airflow keeps a time as it is.
    times = {key: each for key, each in arguments.items() if isinstance(each, datetime)}
    others = json.loads(json.dumps({key: each for key, each in arguments.items() if key not in times}))
    trigger = getattr(import_module(module), name)(**others, **times)

    async def event() -> Any:
        return await anext(trigger.run())

    try:
        kept = {
            **((not forgets and deferred.kwargs) or {}),
            "event": json.loads(json.dumps(asyncio.run(event()).payload)),
        }
        operator.resume_execution(deferred.method_name, kept, context)
    except TaskDeferred as again:
        return again
    return None


def _seen(operator: Any, error: BaseException | None) -> dict[str, Any]:
    session, driver = operator._session, None
    if session is not None and session._prepared is not None:
        driver = vars(session._prepared.adapter.driver)
    get = operator.get_openlineage_facets_on_complete if error is None else operator.get_openlineage_facets_on_failure
    return {
        "errors": list(_chain(error)),
        "traceback": "".join(traceback.format_exception(error)) if error is not None else "",
        "lineage": _as_json(get(None)),
        "driver": driver,
        "session_id": id(session),
        "hook_id": id(getattr(operator, "_hook", None)),
        "keep": _KEPT.append((session, getattr(operator, "_hook", None))),
    }


# Whatever the OpenLineage provider knows of an operator without lineage.
_OF_STOCK = "unknownSourceAttribute"
# Or a second session could get the id of the first one.
_KEPT: list[Any] = []


def _chain(error: BaseException | None) -> Any:
    """Everything that hangs on an exception, shown to the user or not."""
    todo, seen = [error], set()
    while todo:
        one = todo.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        try:
            yield f"{type(one).__name__}: {one} {one.args!r} {getattr(one, '__notes__', '')}"
        except Exception as no_text:
            # The text of an error of Java is in its JVM.
            yield f"{type(one).__name__}: {type(no_text).__name__}"
        todo += [one.__cause__, one.__context__]


def _as_json(lineage: Any) -> Any:
    from openlineage.client.serde import Serde

    if not (lineage.inputs or lineage.outputs or lineage.job_facets or set(lineage.run_facets) - {_OF_STOCK}):
        return None
    return {
        "inputs": [Serde.to_dict(one) for one in lineage.inputs],
        "outputs": [Serde.to_dict(one) for one in lineage.outputs],
        "run_facets": {key: Serde.to_dict(facet) for key, facet in lineage.run_facets.items()},
        "job_facets": {key: Serde.to_dict(facet) for key, facet in lineage.job_facets.items()},
    }


def _task_instance(operator: Any, task: dict[str, Any]) -> Any:
    """What the macros of the OpenLineage provider and the resumable operator ask a task instance for."""
    from airflow.sdk.api.datamodels._generated import DagRun

    run = DagRun(
        dag_id="shop",
        run_id="manual",
        logical_date=_MOMENT,
        data_interval_start=_MOMENT,
        data_interval_end=_MOMENT,
        run_after=_MOMENT,
        start_date=_MOMENT,
        run_type="manual",
        state="running",
        conf={},
        end_date=None,
        partition_key=None,
        clear_number=0,
        consumed_asset_events=[],
    )
    values = {"dag_id": "shop", "task_id": "load", "run_id": "manual", "try_number": 1, "map_index": -1, **task}
    ti = SimpleNamespace(**values, dag_run=run, logical_date=_MOMENT, start_date=_MOMENT, stats_tags={}, task=operator)
    ti.get_template_context = lambda: {"dag_run": run}
    ti.pushed = []
    ti.xcom_push = lambda key, value: ti.pushed.append((key, value))
    return ti


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
