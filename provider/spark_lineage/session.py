"""The story of one task: settle, inject, submit, collect, merge, and hand over, as one context manager.

Trouble with lineage is logged with its cause and never fails the task, unless ``lineage_required`` asks for that.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from spark_lineage.collect.collector import DirectoryCollector, Log
from spark_lineage.collect.declared import declared_events, declared_span
from spark_lineage.collect.directory import (
    DECLARE_ARCHIVE,
    EVENT_LOG_DIRECTORY,
    clean_up,
    create_private,
    remove_empty,
    root_of,
)
from spark_lineage.collect.event_log_files import logs_of
from spark_lineage.collect.follower import Follower
from spark_lineage.emit.redacted_error import redact_error
from spark_lineage.emit.redaction import redact
from spark_lineage.emit.through_airflow import operator_lineage, send_children
from spark_lineage.inject.airflow_task import lineage_properties
from spark_lineage.inject.declarations import CannotShipError, ship_declare
from spark_lineage.inject.event_log import EventLogInjection, inject_event_log
from spark_lineage.inject.preparation import ListenerJar, Prepared, Submitter, prepare
from spark_lineage.inject.properties import is_writable_tag
from spark_lineage.merge.lineage import Application, TaskLineage
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.state import LineageState
from spark_lineage.merge.task import task_lineage
from spark_lineage.naming.options import DEFAULT_NAMING, naming_from
from spark_lineage.settings import SECTION, Settings, is_required
from spark_lineage.submit.hook import HookAdapter
from spark_lineage.submit.launch import Launch, find_launch, store_launch

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

_NAMED_DATASETS = 20


class LineageRequiredError(RuntimeError):
    """There is no lineage, and the task asked to fail then (``lineage_required``)."""


class LineageSession:
    """One execution of a task.

    Opened around the provider's ``execute``; ``attach`` takes the hook when the operator makes it. What was collected
    is in ``operator_lineage`` after the end, for the OpenLineage provider to ask for.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        conn_id: str,
        external_id_key: str,
        context: Context,
        logger: Log,
    ) -> None:
        self.operator_lineage: OperatorLineage[Any, Any] | None = None
        self._arguments = arguments
        self._conn_id = conn_id
        self._external_id_key = external_id_key
        self._context = context
        self._log = logger
        self._settings = Settings(lineage_enabled=False)
        self._adapter: HookAdapter | None = None
        self._launch: Launch | None = None
        self._follower: Follower | None = None
        self._directory: Path | None = None
        self._private_files: list[Path] = []
        self._naming = DEFAULT_NAMING
        self._event_log: EventLogInjection | None = None
        self._is_killed = False
        self._started = datetime.now(UTC)

    def __enter__(self) -> Self:
        """Settle the settings."""
        with self._tolerating("The job runs without lineage"):
            extra = self._extra()
            self._settings = Settings.resolve(self._arguments, extra, _option)
            # A key of the extra stands for the same one of the section, in whatever case it is written.
            self._naming = naming_from({**_section(), **{key.lower(): value for key, value in extra.items()}})
        return self

    def attach(self, hook: SparkSubmitHook) -> SparkSubmitHook:
        """Stand between the operator and its hook."""
        with self._tolerating("The job runs without lineage"):
            if self._settings.lineage_enabled:
                self._adapter = HookAdapter(
                    hook, before_submit=self._before_submit, on_external_id=self._remember_external_id
                )
        return hook

    def kill(self) -> None:
        """Learn that the task is being killed: its lineage ends as ABORT, whatever Spark says afterwards (M4)."""
        self._is_killed = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Collect to the last line, merge, and keep the result for the OpenLineage provider."""
        if error is not None:
            with self._tolerating("The text of the task's error may hold secrets", can_fail=False):
                redact_error(error)
            # A timeout and a SIGTERM are no Exceptions; on_kill comes after the former.
            self._is_killed = self._is_killed or not isinstance(error, Exception)
        try:
            with self._tolerating("The task's event carries no lineage", can_fail=error is None):
                self._collect(is_succeeded=error is None)
        finally:
            self._tidy()

    def _extra(self) -> Mapping[str, Any]:
        from airflow.providers.common.compat.sdk import AirflowException, BaseHook

        try:
            return BaseHook.get_connection(self._conn_id).extra_dejson
        except AirflowException:
            # The Spark provider goes on with defaults then, and so do we.
            return {}

    def _before_submit(self) -> None:
        with self._tolerating("The job runs without lineage"):
            self._inject()

    def _inject(self) -> None:
        adapter, settings = self._adapter, self._settings
        if adapter is None:
            return
        lineage = lineage_properties(self._context, settings)
        for key, value in lineage.tags.items():
            if not is_writable_tag(key, value):
                name = redact(repr(key))
                self._log.warning("The tag %s is left out: the listener takes no ':' and ';' in tags.", name)
        self._directory = directory = Path(lineage.events_file).parent
        create_private(directory)
        listener = ListenerJar(settings.openlineage_jar, settings.jar_cache_dir, settings.jar_timeout_seconds)
        prepared = prepare(adapter.arguments, adapter.submitter, listener, lineage)
        if prepared.properties_file is not None:
            self._private_files.append(prepared.properties_file)
        prepared = self._with_event_log(prepared, directory / EVENT_LOG_DIRECTORY)
        adapter.take(self._with_declare(prepared, adapter.submitter, directory))
        self._launch = Launch(str(directory), prepared.injection.application_run_id)
        self._follower = Follower(DirectoryCollector(directory, self._log), settings.poll_interval_seconds)
        self._follower.start()
        self._store_launch()
        self._log.info("The driver writes its lineage to %s", lineage.events_file)

    def _with_declare(self, prepared: Prepared, submitter: Submitter, directory: Path) -> Prepared:
        """Let the program declare lineage; without that it still runs, and its other lineage is collected."""
        self._private_files.append(directory / DECLARE_ARCHIVE)
        with self._tolerating("The program cannot declare lineage", can_fail=False):
            try:
                return ship_declare(prepared, submitter, directory)
            except CannotShipError as error:
                self._log.info("The program cannot declare lineage: %s", error)
        return prepared

    def _with_event_log(self, prepared: Prepared, directory: Path) -> Prepared:
        """Have Spark tell what the listener does not; without that the event says what is unknown."""
        if not self._settings.event_log:
            return prepared
        with self._tolerating("No event log is read", can_fail=False):
            arguments = prepared.injection.arguments
            injected = inject_event_log(
                arguments.conf, prepared.properties, str(directory), deploy_mode=prepared.deploy_mode
            )
            if injected.is_ours:
                create_private(directory)
            elif injected.directory is None:
                self._log.info("No event log is read: %s", injected.reason)
            self._event_log = injected
            arguments = replace(arguments, conf=injected.conf)
            return replace(prepared, injection=replace(prepared.injection, arguments=arguments))
        return prepared

    def _read_event_log(self, collector: DirectoryCollector) -> None:
        """Read what the driver logged, in its own directory or in the user's; ours has then served its purpose."""
        log = self._event_log
        if log is None or log.directory is None:
            return
        with self._tolerating("Some lineage may be missing, because the event log cannot be read", can_fail=False):
            for path in logs_of(Path(log.directory), collector.application_ids):
                collector.read_event_log(path)
        if log.is_ours:
            with self._tolerating("An event log stays", can_fail=False):
                shutil.rmtree(log.directory)

    def _remember_external_id(self, external_id: str) -> None:
        if self._launch is not None:
            self._launch = structs.replace(self._launch, external_id=external_id)
            self._store_launch()

    def _store_launch(self) -> None:
        with self._tolerating("A retry will not find the lineage of this job", can_fail=False):
            if self._launch is not None:
                store_launch(self._context.get("task_state_store"), self._launch)

    def _collect(self, *, is_succeeded: bool) -> None:
        collector = self._collected()
        if collector is None:
            return
        self._read_event_log(collector)
        self._add_inlets_and_outlets(collector.state)
        state = task_state(is_succeeded=is_succeeded, is_killed=self._is_killed)
        settings = self._settings
        lineage = self._described(
            task_lineage(collector.state, state, naming=self._naming, has_actions=settings.granularity != "task")
        )
        limit_bytes = int(settings.max_event_bytes)
        self.operator_lineage = operator_lineage(lineage, collector.counts, limit_bytes, self._log)
        with self._tolerating("Child runs are not told", can_fail=False):
            send_children(lineage, settings.granularity, limit_bytes, self._context["ti"], self._log)
        if collector.counts.read:
            self._log_summary(lineage, collector)
        else:
            text = self._nothing_came(collector)
            if self._settings.lineage_required and is_succeeded:
                raise LineageRequiredError(text)
            self._log.warning(text)

    def _add_inlets_and_outlets(self, state: LineageState) -> None:
        """Add what the DAG declares of the task."""
        inlets, outlets = self._context.get("inlets") or [], self._context.get("outlets") or []
        if not (inlets or outlets):
            return
        with self._tolerating("Inlets and outlets are missing in the lineage", can_fail=False):
            from airflow.providers.openlineage import conf
            from airflow.providers.openlineage.plugins.macros import lineage_job_name
            from openlineage.client.uuid import generate_new_uuid

            started, ended = declared_span(state, self._started, datetime.now(UTC))
            events = declared_events(
                inlets,
                outlets,
                run_id=str(generate_new_uuid()),
                job_namespace=self._settings.lineage_namespace or conf.namespace(),
                job_name=f"{lineage_job_name(self._context['ti'])}.declared",
                started=started,
                ended=ended,
            )
            for event in events:
                state.add(*event)

    def _collected(self) -> DirectoryCollector | None:
        """Give what the driver wrote; after a re-attachment, where the try that submitted the job had it written."""
        if self._follower is not None:
            self._follower.stop()
            return self._follower.collector
        if self._adapter is None or self._adapter.submission.is_started:
            return None
        launch = find_launch(self._context.get("task_state_store"), self._external_id_key)
        if launch is None:
            text = "Re-attached to a job that was submitted without lineage, or by another operator."
            if self._settings.lineage_required:
                raise LineageRequiredError(text)
            self._log.warning(text)
            return None
        self._launch = launch
        collector = DirectoryCollector(Path(launch.directory), self._log)
        collector.finish()
        return collector

    def _described(self, lineage: TaskLineage) -> TaskLineage:
        """Add the application id that spark-submit logged where no event told it."""
        launch, adapter = self._launch, self._adapter
        if launch is None or adapter is None or adapter.submission.application_id is None or lineage.applications:
            return lineage
        known = Application(launch.application_run_id, "", "", application_id=adapter.submission.application_id)
        return structs.replace(lineage, applications=(known,))

    def _log_summary(self, lineage: TaskLineage, collector: DirectoryCollector) -> None:
        counts = collector.counts
        self._log.info(
            "Lineage: %s, %d inputs, %d outputs, %d attempted outputs (%d events of %d Spark runs, %d lines set aside)",
            lineage.state,
            len(lineage.inputs),
            len(lineage.outputs),
            len(lineage.attempted),
            counts.read,
            lineage.run_count,
            counts.set_aside_total,
        )
        named = (("Input", lineage.inputs), ("Output", lineage.outputs), ("Attempted", lineage.attempted))
        for kind, datasets in named:
            for one in datasets[:_NAMED_DATASETS]:
                self._log.info("%s: %s", kind, redact(f"{one.dataset.namespace} {one.dataset.name}"))

    def _nothing_came(self, collector: DirectoryCollector) -> str:
        counts = collector.counts
        return (
            f"No lineage came from the driver: no event in {collector.directory}/*.ndjson "
            f"({counts.set_aside_total} lines set aside). The three most likely causes: "
            "(1) the listener jar was not resolved or not loaded: look for 'openlineage' in the driver's log above; "
            "(2) the driver ran on another host, or as another user, and could not write to that directory: in cluster "
            "mode set lineage_dir to a path that worker and driver share; "
            "(3) the listener was switched off: look for spark.openlineage.disabled, spark.extraListeners or "
            "spark.openlineage.transport.* set by the program itself."
        )

    def _tidy(self) -> None:
        with self._tolerating("Old lineage files stay", can_fail=False):
            for file in self._private_files:
                file.unlink(missing_ok=True)
            if self._directory is not None:
                root = root_of(self._directory)
                # A driver that wrote nothing leaves nothing; one that is still to come makes its directory itself.
                remove_empty(self._directory, root)
                if root.is_dir():
                    clean_up(root, self._settings.retention_days, keep=self._directory)

    @contextmanager
    def _tolerating(self, consequence: str, *, can_fail: bool = True) -> Iterator[None]:
        """Log what goes wrong, with its cause and what follows from it; only a task that asked for it fails."""
        try:
            yield
        except Exception as error:
            # In place, because the debug log shows the traceback, and Airflow the chain of what fails the task.
            redact_error(error)
            cause = redact(f"{type(error).__name__}: {error}")
            if can_fail and self._is_required():
                if isinstance(error, LineageRequiredError):
                    raise
                raise LineageRequiredError(f"lineage_required is set, and there is none: {cause}") from None
            self._log.warning("%s: %s", consequence, cause)
            self._log.debug("Where it happened:", exc_info=True)

    def _is_required(self) -> bool:
        # Asked for anew, because it may be the settings that are in trouble.
        if self._settings.lineage_required:
            return True
        try:
            return is_required(self._arguments, self._extra(), _option)
        except Exception:
            return False


def _option(name: str) -> str | None:
    from airflow.providers.common.compat.sdk import conf

    return conf.get(SECTION, name, fallback=None)  # type: ignore[no-any-return]


def _section() -> Mapping[str, Any]:
    from airflow.providers.common.compat.sdk import conf

    return conf.getsection(SECTION) or {}
