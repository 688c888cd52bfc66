"""The story of one task: settle, inject, submit, watch, collect, merge, and hand over, as one context manager.

Trouble with lineage is logged with its cause and never fails the task, unless ``lineage_required`` asks for that.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from spark_lineage.collect.collector import DirectoryCollector, Log
from spark_lineage.collect.follower import Follower
from spark_lineage.collect.listener_status import begun_applications
from spark_lineage.collect.task_collection import add_inlets_and_outlets, declared_lineage, read_event_logs
from spark_lineage.emit.hand_over import HandOver
from spark_lineage.emit.redacted_error import explain_error, redact_error
from spark_lineage.emit.task_log import log_lineage, log_status, nothing_came
from spark_lineage.emit.tracking import Tracking
from spark_lineage.inject.airflow_task import task_run_id
from spark_lineage.inject.task_injection import TaskInjection, inject_task
from spark_lineage.kill import Kill
from spark_lineage.merge.lineage import TaskLineage, TaskState
from spark_lineage.merge.outcome import task_state
from spark_lineage.merge.task import task_lineage
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.notify.task_notifications import TaskNotifications
from spark_lineage.settings.task import TaskSettings
from spark_lineage.submit.hook import HookAdapter, Submission
from spark_lineage.submit.launch import Launch, find_launch, store_launch, with_application, without_login
from spark_lineage.task_end import conclude
from spark_lineage.tolerance import LineageRequiredError, Tolerance
from spark_lineage.watch.endpoints import endpoints_of
from spark_lineage.watch.sources import Known, sources_for
from spark_lineage.watch.task_watch import TaskWatch

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

_SECONDS = 5.0


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
        self._task = TaskSettings(arguments, conn_id)
        self._external_id_key = external_id_key
        self._context = context
        self._log = logger
        self._tolerating = Tolerance(self._task.is_required, logger)
        self._adapter: HookAdapter | None = None
        self._injection: TaskInjection | None = None
        self._launch: Launch | None = None
        self._follower: Follower | None = None
        self._tracking: Tracking | None = None
        self._watch: TaskWatch | None = None
        self._known = Known()
        self._notifications: TaskNotifications | None = None
        self._kill = Kill()
        self._hand_over = HandOver(context, self._kill, tolerating=self._tolerating, logger=logger)
        self._started = datetime.now(UTC)

    def __enter__(self) -> Self:
        """Settle the settings."""
        with self._tolerating("The job runs without lineage"):
            self._task.settle()
            if self._task.settings.lineage_enabled:
                self._hand_over.open(self._task.settings)
        return self

    def attach(self, hook: SparkSubmitHook) -> SparkSubmitHook:
        """Stand between the operator and its hook."""
        with self._tolerating("The job runs without lineage"):
            if self._task.settings.lineage_enabled:
                self._adapter = HookAdapter(
                    hook,
                    before_submit=self._before_submit,
                    is_killed=lambda: self._kill.is_asked,
                    on_started=self._on_started,
                    on_learnt=self._learn,
                    on_external_id=self._remember_external_id,
                )
        return hook

    def kill(self, why: str) -> None:
        """Learn that the task is being killed: its lineage ends as ABORT, whatever Spark says afterwards (M4).

        A driver that has ended by itself cannot be killed any more.
        """
        if self._submission.exit_code is not None and self._is_client:
            return
        self._kill.ask(why)
        if self._watch is not None:
            with self._tolerating("The timeline is without the kill", can_fail=False):
                self._watch.kill_asked(why)

    def killed(self) -> None:
        """Leave no process behind, once the hook has killed what it knows of."""
        if self._adapter is not None:
            with self._tolerating("A process of the driver may be left", can_fail=False):
                self._adapter.end_processes()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Collect to the last line, merge, and keep the result for the OpenLineage provider."""
        if error is not None and not isinstance(error, Exception):
            self._kill.ask(type(error).__name__)
        try:
            self._end_story(error)
        except BaseException as late:
            # The time of the task was over while we collected; the job had succeeded within it.
            if error is not None or type(late).__name__ != "AirflowTaskTimeout":
                raise
            self._log.warning("The execution timeout came when the job had succeeded; lineage may be missing.")

    def _end_story(self, error: BaseException | None) -> None:
        failure = error
        try:
            with self._tolerating("The task's event carries no lineage", can_fail=error is None):
                self._collect(error)
        except LineageRequiredError as lacking:
            failure = lacking
            raise
        finally:
            if error is not None:
                with self._tolerating("The text of the task's error may hold secrets", can_fail=False):
                    redact_error(error)
            with self._tolerating("The end of the task is not told", can_fail=False):
                self._hand_over.begin(self._declared)
                self._hand_over.end(TaskLineage(self._airflow_state(failure)), None, failure, self._directory)
            self._hand_over.deliver()
            self._tidy(error)

    def _airflow_state(self, error: BaseException | None) -> TaskState:
        return task_state(is_killed=self._kill.is_asked, is_succeeded=error is None)

    def polling(self) -> None:
        """Learn that the provider waits for a driver that runs elsewhere: its own, or that of an earlier try."""
        with self._tolerating("The driver of the earlier try is not watched", can_fail=False):
            if self._adapter is not None and not self._adapter.submission.is_started:
                self._reattach()

    def _before_submit(self) -> None:
        with self._tolerating("The job runs without lineage"):
            self._inject()
        # Now that its launch is kept, somebody will find it if this process is killed, and tell its end.
        self._hand_over.begin(self._declared)

    def _inject(self) -> None:
        adapter, settings = self._adapter, self._task.settings
        if adapter is None:
            return
        self._injection = injection = inject_task(
            self._context,
            settings,
            adapter.arguments,
            adapter.submitter,
            tolerating=self._tolerating,
            logger=self._log,
        )
        adapter.take(injection.prepared)
        self._launch = Launch(
            directory=str(injection.directory),
            application_run_id=injection.prepared.injection.application_run_id,
            conn_id=self._task.conn_id,
            master=without_login(adapter.submitter.master),
            deploy_mode=injection.prepared.deploy_mode,
            try_number=self._context["ti"].try_number,
            run_id=injection.parent_run_id,
            host=socket.gethostname(),
            openlineage_conn_id=settings.openlineage_conn_id,
        )
        self._follow(injection.directory)
        self._notify(injection.conf)
        self._watch = self._watched(self._launch)
        self._keep_launch()
        self._log.info("The driver writes its lineage to %s", injection.directory)

    def _follow(self, directory: Path) -> None:
        collector = DirectoryCollector(directory, self._log)
        settings = self._task.settings
        self._tracking = tracking = Tracking(
            settings.tracking_interval_seconds,
            naming=self._task.naming,
            send=self._hand_over.go_on,
            status=lambda: self._watch.log.summary() if self._watch is not None else None,
            tolerating=self._tolerating,
        )

        def after_poll(collector: DirectoryCollector) -> None:
            self._observe(collector)
            tracking.tell(collector)

        self._follower = Follower(collector, settings.poll_interval_seconds, after_poll)
        self._follower.start()

    def _observe(self, collector: DirectoryCollector) -> None:
        """Tell the sources, and the timeline, what the events have told so far."""
        self._submission.learn(collector.state.applications.values())
        self._learn()
        if self._watch is not None:
            self._watch.tell(begun_applications(collector.state))

    def _watched(self, launch: Launch) -> TaskWatch | None:
        """Watch a launch; without that, its event lacks the timeline."""
        task = self._task
        self._known.driver_id = launch.external_id
        with self._tolerating("The application is not watched", can_fail=False):
            watch = TaskWatch(
                sources_for(endpoints_of(launch, task.extra, task.login, task.password, self._tolerating), self._known),
                Path(launch.directory),
                deploy_mode=launch.deploy_mode,
                interval_seconds=task.settings.poll_interval_seconds,
                has_event_log=self._injection is not None and self._injection.has_event_log,
                on_transition=self._on_transition,
                logger=self._log,
            )
            watch.start()
            return watch
        return None

    def _on_started(self, process_id: int) -> None:
        launch = self._keep_launch(process_id=process_id)
        if launch is not None and launch.deploy_mode == "client":
            self._tell_submitted(f"{launch.host}:{process_id}")

    def _learn(self) -> None:
        """Tell the sources what the log and the events have told so far."""
        submission = self._submission
        self._known.application_id = submission.application_id
        self._known.ui_url = submission.ui_address or submission.ui_url

    def _remember_external_id(self, external_id: str) -> None:
        self._known.driver_id = external_id
        if self._keep_launch(external_id=external_id) is not None:
            self._tell_submitted(external_id)

    def _tell_submitted(self, driver_id: str) -> None:
        if self._watch is not None:
            with self._tolerating("The timeline is without the submission", can_fail=False):
                self._watch.submitted(driver_id)

    def _keep_launch(self, **changes: Any) -> Launch | None:
        if self._launch is not None:
            self._launch = structs.replace(self._launch, **changes)
            with self._tolerating("A retry will not find the lineage of this job", can_fail=False):
                store_launch(self._context.get("task_state_store"), self._launch)
        return self._launch

    def _reattach(self) -> bool:
        """Take over the job of an earlier try, with the lineage that it has written."""
        launch = find_launch(self._context.get("task_state_store"), self._external_id_key)
        if launch is None:
            return False
        task_instance = self._context["ti"]
        try_number, run_id = task_instance.try_number, task_run_id(task_instance)
        # From now on it is this try that has to tell its end.
        conn_ids = self._task.settings.openlineage_conn_id
        self._launch = launch = structs.replace(
            launch, try_number=try_number, run_id=run_id, is_closed=False, openlineage_conn_id=conn_ids
        )
        self._follow(Path(launch.directory))
        self._notify({})
        self._watch = self._watched(launch)
        if self._watch is not None:
            self._watch.reattached(launch.external_id or "", try_number)
        self._keep_launch()
        self._hand_over.begin(self._declared)
        return True

    def _notify(self, configuration: Mapping[str, str]) -> None:
        with self._tolerating("No listener is told of the job", can_fail=False):
            self._notifications = TaskNotifications(
                self._context,
                self._task.settings,
                configuration=configuration,
                options=self._task.options,
                declared=self._declared,
                logger=self._log,
            )

    @property
    def _declared(self) -> TaskLineage | None:
        return declared_lineage(self._context, self._task.settings.lineage_namespace, self._started, self._tolerating)

    def _on_transition(self, transition: StatusTransition) -> None:
        self._log.debug("%s %s: %s", transition.subject, transition.subject_id, transition.new_status)
        if self._notifications is not None:
            self._notifications.changed(transition)

    def _collect(self, error: BaseException | None) -> None:
        follower = self._follower or self._found()
        if follower is None:
            return
        with self._tolerating("Some lineage is missing, because a file cannot be read", can_fail=error is None):
            follower.stop()
        self._observe(follower.collector)
        if self._tracking is not None:
            self._tracking.stop(self._kill.seconds(_SECONDS))
        collector, settings, watch = follower.collector, self._task.settings, self._watch
        log = self._injection.event_log if self._injection is not None else None
        read_event_logs(collector, log, watch.log.tell if watch else None, self._tolerating)
        namespace = settings.lineage_namespace
        add_inlets_and_outlets(collector.state, self._context, namespace, self._started, self._tolerating)
        state, status = conclude(
            self._submission,
            watch,
            self._kill,
            collector.application_ids,
            error,
            is_client=self._is_client,
            tolerating=self._tolerating,
        )
        if isinstance(error, Exception) and status is not None:
            explain_error(error, status.error)
        lineage = task_lineage(
            collector.state, state, naming=self._task.naming, has_actions=settings.granularity != "task"
        )
        lineage = with_application(lineage, self._launch, self._submission.application_id)
        self._tell(structs.replace(lineage, status=status), collector, error)

    def _tell(self, lineage: TaskLineage, collector: DirectoryCollector, error: BaseException | None) -> None:
        """Tell the lineage to everybody.

        :raises LineageRequiredError: when there is none, and the task asked to fail then; its event says so, too
        """
        lacking = None
        if not collector.counts.read:
            lacking = LineageRequiredError(nothing_came(collector.directory, collector.counts))
        is_failing = lacking is not None and error is None and self._task.settings.lineage_required
        self._hand_over.end(lineage, collector.counts, lacking if is_failing else error, self._directory)
        if self._notifications is not None:
            with self._tolerating("The listeners are not told the lineage", can_fail=False):
                self._notifications.ended(lineage, str(error or ""))
        if lineage.status is not None:
            log_status(lineage.status, self._log)
        if lacking is None:
            log_lineage(lineage, collector.counts, self._log)
        elif is_failing:
            raise lacking
        else:
            self._log.warning(str(lacking))

    def _found(self) -> Follower | None:
        """Give the lineage of a job that had ended before this try came."""
        if self._adapter is not None and not self._submission.is_started and not self._reattach():
            text = "Re-attached to a job that was submitted without lineage, or by another operator."
            if self._task.settings.lineage_required:
                raise LineageRequiredError(text)
            self._log.warning(text)
        return self._follower

    @property
    def _is_client(self) -> bool:
        return self._launch is None or self._launch.deploy_mode == "client"

    @property
    def _submission(self) -> Submission:
        return self._adapter.submission if self._adapter is not None else Submission()

    @property
    def operator_lineage(self) -> OperatorLineage[Any, Any] | None:
        """What was collected, after the end; for the OpenLineage provider to ask for."""
        return self._hand_over.operator_lineage

    @property
    def _directory(self) -> Path | None:
        return Path(self._launch.directory) if self._launch is not None else None

    def _tidy(self, error: BaseException | None) -> None:
        if self._watch is not None:
            self._watch.stop()
        if self._notifications is not None:
            with self._tolerating("Listeners may have missed events", can_fail=False):
                seconds = self._kill.seconds(self._task.settings.listener_timeout_seconds)
                self._notifications.close(self._airflow_state(error), str(error or ""), seconds)
        with self._tolerating("Old lineage files stay", can_fail=False):
            if self._injection is not None:
                self._injection.tidy(self._task.settings.retention_days)
