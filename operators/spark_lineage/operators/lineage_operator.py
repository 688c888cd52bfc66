"""The base of all operators with lineage: their arguments, and the session around the stock operator.

Every DAG file imports a module of this package, so these import what only a running task needs when it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, BaseOperator, TaskDeferred
from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_0_PLUS

from spark_lineage.task.links import LINKS

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from spark_lineage.task.session import LineageSession
# The argument with which a deferred operator resumes.
_KEPT = "spark_lineage"


class LineageOperator(BaseOperator):
    """Runs what the stock operator does within a lineage session; the first base of an operator, before the stock one.

    Each of the arguments overrides the key of the same name in the extra of the connection, which overrides the option
    of the same name in ``[spark_lineage]``.

    :param lineage_enabled: whether to collect lineage at all (default True); without, this is the stock operator
    :param lineage_required: whether an error of lineage fails the task; by default it is only logged, with its cause;
        with ``"complete"`` the task also fails if its event counts anything as unknown
    :param lineage_dir: absolute path of a directory that worker and driver share (templated)
    :param openlineage_jar: the OpenLineage Spark listener: path, URL or Maven coordinate, in which ``{scala}`` stands
        for the Scala version of the Spark found (templated)
    :param lineage_tags: tags of the Spark application's jobs: a mapping, a list, or ``k:v;k2:v2`` (templated)
    :param retention_days: how long lineage files are kept after they were last written to
    :param poll_interval_seconds: how often new lineage is read, and the status polled, while the job runs
    :param lineage_timeout: seconds that the task waits at its end until its lineage is read (default 60), and a twelfth
        of it each for all backends and for all listeners together; what backends have not taken stays in the outbox
    :param event_log_from: where the event log is read: ``directory``, ``event_log`` (where Spark writes it),
        ``history`` (the History Server), or ``auto`` (default): the first that works
    :param tracking_interval_seconds: the longest time between two RUNNING events (default 3600)
    :param evidence: source of the lineage: ``event_log``, ``listener``, ``both``, or ``auto`` (default): both if the
        jar of the listener is at hand, else the event log
    :param granularity: ``task`` (default): one job; ``path``: also a child job for each output
    :param map_index_in_job_name: whether each index of a mapped task is a job of its own (default False)
    :param max_event_bytes: size above which an event loses detail, never a dataset (default 1 MB)
    :param emit_assets: whether the written outputs become Airflow asset events, which trigger DAGs (default False)
    :param lineage_listeners: class paths, as a list or as text with semicolons, of listeners that get the job, its
        status, and each change of a catalog
    :param lineage_conn_id: the connection of type ``openlineage`` or ``atlas`` that the events of the task are sent to,
        or several, as a list or as text with semicolons (templated); without one, the OpenLineage provider sends them
    """

    template_fields: Sequence[str] = (
        *("lineage_dir", "openlineage_jar", "lineage_tags", "lineage_conn_id", "lineage_enabled"),
    )
    # Airflow 3 pushes an XCom for each of a class; there the plugin has them.
    operator_extra_links = () if AIRFLOW_V_3_0_PLUS else LINKS
    # The stock operator has these.
    _hook: Any
    _conn_id: str
    # The class has the defaults, because the policy changes objects that another class has made.
    _session: LineageSession | None = None
    _is_stock = False
    _why_stock = ""
    """The reason why nothing can be added to the job; then the task is one of the stock operator."""
    _task_instance: Any = None
    _waits_in: int | None = None
    """The thread that waits for a driver that runs elsewhere."""
    stock_attributes = frozenset[str]()
    """The names that the stock operator's objects have, and its class has not, and that are overridden here."""
    _own_methods = frozenset({"execute", "__fail__"})
    """The methods that open a session themselves when they resume a task, and ``__fail__``, which is none."""

    def __init__(
        self,
        *,
        lineage_enabled: bool | None = None,
        lineage_required: bool | str | None = None,
        lineage_dir: str | None = None,
        openlineage_jar: str | None = None,
        lineage_tags: Mapping[str, str] | Sequence[str] | str | None = None,
        retention_days: float | None = None,
        poll_interval_seconds: float | None = None,
        lineage_timeout: float | None = None,
        event_log_from: str | None = None,
        tracking_interval_seconds: float | None = None,
        evidence: str | None = None,
        granularity: str | None = None,
        map_index_in_job_name: bool | None = None,
        max_event_bytes: int | None = None,
        emit_assets: bool | None = None,
        lineage_listeners: Sequence[str] | str | None = None,
        lineage_conn_id: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.lineage_enabled = lineage_enabled
        self.lineage_required = lineage_required
        self.lineage_dir = lineage_dir
        self.openlineage_jar = openlineage_jar
        self.lineage_tags = lineage_tags
        self.retention_days = retention_days
        self.poll_interval_seconds = poll_interval_seconds
        self.lineage_timeout = lineage_timeout
        self.event_log_from = event_log_from
        self.tracking_interval_seconds = tracking_interval_seconds
        self.evidence = evidence
        self.granularity = granularity
        self.map_index_in_job_name = map_index_in_job_name
        self.max_event_bytes = max_event_bytes
        self.emit_assets = emit_assets
        self.lineage_listeners = lineage_listeners
        self.lineage_conn_id = lineage_conn_id

    def execute(self, context: Context) -> Any:
        """Run the job as the stock operator does, within a lineage session; what a subclass returns is kept."""
        # Airflow guards `execute`: it warns of one within another, as of a call outside of a task. Decorators of the
        # user's are below its own.
        guarded = super().execute.__func__  # type: ignore[attr-defined]
        execute = getattr(guarded, "__wrapped__", guarded)
        return self._in_session(context, lambda: execute(self, context))

    def on_kill(self) -> None:
        """Kill the job as the stock operator does, with all its processes here, and note that in the lineage.

        :raises AirflowException: within the handler of a signal, where the task waits for a driver that runs elsewhere:
            it may look at it again too late, because the process is killed before that
        """
        try:
            if self._session is None:
                super().on_kill()
            else:
                self._session.kill("on_kill", super().on_kill)
        finally:
            # The wait ends also where the service refuses: else its loop takes the error for its own, and goes on.
            if self._waits_in == threading.get_ident():
                self._stop_if_killed()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Wait for a driver that runs elsewhere, as long as the task is not killed."""
        self._waits_in = threading.get_ident()
        try:
            yield
        finally:
            self._waits_in = None

    def _stop_if_killed(self) -> None:
        # A caller may have caught the exception of `on_kill`; a driver that is gone looks like one that ended.
        if self._session is not None and self._session.is_killed:
            raise AirflowException("The driver was killed with its task.")

    def defer(self, *, trigger: Any, method_name: str, kwargs: dict[str, Any] | None = None, **how: Any) -> NoReturn:
        """Defer as every operator does; the process that resumes gets what is known of a job that a service runs."""
        kept = self._session.handover_of_service() if self._session is not None else None
        kwargs = {**(kwargs or {}), _KEPT: kept} if kept else kwargs
        super().defer(trigger=trigger, method_name=method_name, kwargs=kwargs, **how)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on as every operator does; a subclass that has deferred itself may submit its job only now."""
        kwargs = dict(next_kwargs or {})
        kept = kwargs.pop(_KEPT, None)
        resume = partial(super().resume_execution, next_method, kwargs, context)
        if next_method in self._own_methods and kept is None:
            return resume()
        return self._in_session(context, resume, is_resumed=True, kept=kept)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copy as every operator does, but for the session and the task instance, which cannot be copied."""
        memo |= {id(one): one for one in (self._session, self._task_instance)}
        return super().__deepcopy__(memo)

    def _in_session(
        self,
        context: Context,
        run: Callable[[], object],
        *,
        is_resumed: bool = False,
        is_deferred: bool = False,
        kept: Mapping[str, Any] | None = None,
    ) -> object:
        from spark_lineage.settings.places import TaskSettings
        from spark_lineage.task.session import LineageSession

        task = TaskSettings(self._lineage_arguments, self._conn_id)
        is_off = not is_deferred and task.is_off()
        self._why_stock = "" if is_off or is_deferred else self._why_unreached(is_resumed=is_resumed, kept=kept)
        self._is_stock = is_off or bool(self._why_stock)
        if self._is_stock:
            if self._why_stock:
                LineageSession.absent(self.log, self._why_stock)
            self._session = None
            return run()
        # A hook of a former execution of this object would go on with that execution's session.
        self._hook = None
        self._session = LineageSession.opened(
            task,
            self.log,
            # Providers before 6.1 cannot re-attach, and have no such key.
            external_id_key=getattr(self, "external_id_key", "spark_job_id"),
            context=context,
            is_resumed=is_resumed,
        )
        if self._session is None:
            return run()
        with self._session:
            try:
                self._attach_adapter(self._session)
                if kept is not None:
                    self._session.resume(kept, ())
                return run()
            except TaskDeferred:
                raise
            except BaseException as error:
                self._session.kill_after(error, super().on_kill)
                raise

    def _why_unreached(self, *, is_resumed: bool, kept: Mapping[str, Any] | None) -> str:  # noqa: ARG002
        """Return why nothing can be added to the job; then the task is one of the stock operator."""
        return ""

    def _attach_adapter(self, session: LineageSession) -> None:
        """Attach the adapter, where the operator does not ask for its hook by ``_get_hook``."""

    @property
    def _lineage_arguments(self) -> dict[str, Any]:
        from spark_lineage.settings import ARGUMENTS

        return {name: getattr(self, name) for name in ARGUMENTS}

    @property
    def has_session(self) -> bool:
        """Whether this object has executed, in this process."""
        return self._session is not None

    def _get_hook(self, *arguments: Any, **keywords: Any) -> Any:
        hook = super()._get_hook(*arguments, **keywords)  # type: ignore[misc]
        return self._session.attach(self, hook) if self._session is not None else hook

    def _do_render_template_fields(
        self, parent: Any, template_fields: Any, context: Context, *rendering: Any, **how: Any
    ) -> None:
        """Render as every operator does, and keep the task instance: Airflow does not pass it when the run begins.

        This alone is called for a mapped task, too.
        """
        # Airflow forks for START after this: a module that is imported before is imported once.
        import spark_lineage.task.session  # noqa: F401

        self._task_instance = context.get("ti", self._task_instance)
        super()._do_render_template_fields(parent, template_fields, context, *rendering, **how)

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Return what the last successful run named, so that the job keeps a graph while it runs."""
        from spark_lineage.task.task_events import lineage_at_start

        # A job that a worker has submitted has had this event before.
        why_unreached = partial(self._why_unreached, is_resumed=getattr(self, "deferrable", False), kept=None)
        return lineage_at_start(
            self,
            self._lineage_arguments,
            self._conn_id,
            self.log,
            task_instance=self._task_instance,
            why_unreached=why_unreached,
        )

    def get_openlineage_facets_on_complete(self, task_instance: object) -> OperatorLineage[Any, Any]:  # noqa: ARG002
        """Return what ``execute`` merged; the OpenLineage provider warns of an operator that returns nothing."""
        from airflow.providers.openlineage.extractors import OperatorLineage

        if self._is_stock:
            from spark_lineage.task.task_events import lineage_of_stock

            return lineage_of_stock(self, self._why_stock)
        merged = self._session.operator_lineage if self._session is not None else None
        return merged if merged is not None else OperatorLineage()

    def get_openlineage_facets_on_failure(self, task_instance: object) -> OperatorLineage[Any, Any]:
        """Return the same after a failure: what was read, what had been finished, and what was tried in vain."""
        return self.get_openlineage_facets_on_complete(task_instance)


class HookOperator(LineageOperator):
    """Runs a stock operator that has its hook in ``hook``: one for each execution, also where a subclass makes more."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Keep what a property returns that a subclass has in place of the stock operator's."""
        super().__init_subclass__(**arguments)
        own = getattr_static(cls, "hook", None)
        make = getattr(own, "fget", None) or getattr(own, "func", None)
        if make is not None and make.__module__ != __name__:
            hook = cached_property(lambda self: self._made(make(self)))
            hook.__set_name__(cls, "hook")
            cls.hook = hook  # type: ignore[method-assign,assignment]

    @cached_property
    def hook(self) -> Any:
        """The hook that the stock operator makes."""
        return self._made(super().hook)  # type: ignore[misc]

    def _made(self, hook: Any) -> Any:
        """Return a hook that was made, for an operator that has to change it."""
        return hook

    def _attach_adapter(self, session: LineageSession) -> None:
        # The hook of a former execution has another session.
        vars(self).pop("hook", None)
        session.attach(self, self.hook)


class PollingOperator(LineageOperator):
    """Runs what a stock operator does that waits for its job by ``poll_until_complete``."""

    def poll_until_complete(self, external_id: Any, context: Context) -> None:
        """Wait for the job as the stock operator does, also for that of an earlier try."""
        if self._session is not None:
            self._session.polling()
        super().poll_until_complete(external_id, context)  # type: ignore[misc]
