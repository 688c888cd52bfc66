"""Reads Spark's event log: what each SQL execution of an application read and wrote, and how it ended.

The log is the newline-separated JSON of ``org.apache.spark.util.JsonProtocol``. Only the events of
``event_log_lines`` are decoded; all others, which may be gigabytes, are passed over by their first bytes.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from spark_lineage.launch.line import LineCounts, LineError
from spark_lineage.launch.log import Log
from spark_lineage.merge.accounting import PlanPart
from spark_lineage.merge.execution import Execution, LoggedApplication
from spark_lineage.merge.lineage import Statistics
from spark_lineage.merge.observed import Observed, by_name, with_sources
from spark_lineage.merge.state import utc
from spark_lineage.merge.transition import (
    MAX_ACCUMULATORS,
    Report,
    Status,
    StatusReport,
    Subject,
    TaskNumbers,
    accumulators_of,
    own_accumulator,
)
from spark_lineage.naming.identity import DatasetName
from spark_lineage.naming.listener_options import ListenerNames, listener_names
from spark_lineage.plans import event_log_lines as events
from spark_lineage.plans.accounting import REWRITING, Account, Accounts
from spark_lineage.plans.answers import LOCAL
from spark_lineage.plans.content import PlanContent, read_plan, stream_command, streamed
from spark_lineage.plans.database_query import queries_among
from spark_lineage.plans.event_log_files import EventLogError, GrowingEventLog, Remove, find_event_logs
from spark_lineage.plans.event_log_lines import TaskEnd
from spark_lineage.plans.rdds import RddRows
from spark_lineage.plans.running import Running, made, target_versions, unread_columns, with_versions
from spark_lineage.plans.scope import UNTRACED, Traced
from spark_lineage.plans.session import ConnectSession
from spark_lineage.plans.statements import with_text
from spark_lineage.plans.tables import Tables, path_name
from spark_lineage.secrets.redaction import beginning

# All others are failures: also a task whose output went with its executor, and that is run again.
_ENDS = {"Success": "finished", "TaskKilled": "killed", "TaskCommitDenied": "killed"}


class TaskSums:
    """The sums over all tasks that have ended; they grow with nothing but the names of accumulators."""

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        # Each name has the id and the value of its latest accumulator, and the sum of those before.
        self._accumulators: dict[str, tuple[int, float, float]] = {}

    def add(self, event: TaskEnd) -> None:
        """Count one task."""
        self._sums[_ENDS.get(event.end.reason, "failed")] += 1
        if event.metrics is not None:
            self._sums.update(event.metrics.summed())
        for one in event.info.named():
            if total := own_accumulator(one.name, one.value):
                _, update = own_accumulator(one.name, one.update) or ("", 0)
                self._set(one.id, *total, update)

    def _set(self, identity: int, name: str, value: float, update: float) -> None:
        """Take the value that an accumulator has had since a task; a program may make a new one for each batch."""
        if name not in self._accumulators and len(self._accumulators) >= MAX_ACCUMULATORS:
            return
        latest, last, earlier = self._accumulators.get(name, (identity, 0, 0))
        if identity < latest:
            value, earlier = last, earlier + update
        elif identity > latest:
            earlier += last
        self._accumulators[name] = (max(latest, identity), value, earlier)

    def numbers(self, application_id: str, attempt_id: str, source: str) -> TaskNumbers:
        """Return what the tasks come to so far."""
        sums = {name: last + earlier for name, (_, last, earlier) in self._accumulators.items()}
        return TaskNumbers(application_id, attempt_id, source, **self._sums, accumulators=accumulators_of(sums))


def with_listener_names(one: Execution, names: ListenerNames) -> Execution:
    """Return an execution by the listener's names; an option that cannot be read here is counted as an unread part."""

    def named(observed: Observed) -> Observed:
        former = observed.previous_name
        return structs.replace(
            with_sources(observed, {edge[1]: names.name(edge[1]) for edge in observed.edges}),
            dataset=names.name(observed.dataset),
            previous_name=former and names.name(former).whole,
        )

    def part(unnamed: PlanPart) -> PlanPart:
        return structs.replace(unnamed, sources=tuple(_source(source, names) for source in unnamed.sources))

    unread = {option for each in (*one.inputs, *one.outputs) for option in names.unread(each.dataset)}
    return structs.replace(
        one,
        inputs=by_name(map(named, one.inputs)),
        outputs=by_name(map(named, one.outputs)),
        unnamed=tuple(map(part, one.unnamed)),
        feeds=frozenset(names.name(feed).whole for feed in one.feeds),
        unread=(*one.unread, *sorted(unread)),
    )


def _source(source: str, names: ListenerNames) -> str:
    """Return the path that a leaf reads as the listener has it; a table's name stays."""
    if "/" not in source:
        return source
    former = path_name(source)
    new = names.name(former).name
    return source if new == former.name else f"/{new.lstrip('/')}"


__all__ = ["EventLogError", "EventLogReader", "FollowedEventLog", "read_event_log"]

log = Log(__name__)

SOURCE = "event log"
# The message of an exception goes on with the stack trace: it is cut, redacted, and cut again.
_MESSAGE_LENGTH, _ERROR_LENGTH = 64_000, 1000

# A poll reads so many bytes of each file, so that it never takes long; the next poll reads the rest.
_POLL_BYTES = 2 * 1024 * 1024
# The reader waits so long for the end of a session, and pauses between two looks for it.
_SESSION_SECONDS, _PAUSE_SECONDS = 5.0, 0.1
_FORMATTED = re.compile(r"^\(\d+\) ", re.MULTILINE)
_CUT = re.compile(r"\.\.\. \d+ more characters\Z")
# With this property the catalog answers an aggregate of columns that a table is partitioned by.
_METADATA_ONLY = "spark.sql.optimizer.metadataOnly"
_ANSWER = re.compile(rf"Aggregate \(\d+\)(?:\n.*)*- (?:\* )?{LOCAL} \(\d+\)")
_RUN_ID = re.compile(r"^runId = (?P<run_id>\S+)$", re.MULTILINE)

Reporter = Callable[[Report], object] | None
Describe = Callable[[LoggedApplication], object] | None


def read_event_log(
    path: Path,
    counts: LineCounts | None = None,
    *,
    report: Reporter = None,
    describe: Describe = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Execution]:
    """Return the SQL executions of the logs at a path: a log of one file, a rolling one, or a directory of logs.

    ``report`` takes those of the status of the application and its parts, ``describe`` what is known of the application
    itself, when it begins and when it ends; ``is_over`` is asked between two lines whether to stop there. Lines that
    cannot be read are counted in ``counts``.

    :raises EventLogError: when there is no log, or one in a codec that is not read here
    :raises OSError: when a file cannot be read
    """
    for one in find_event_logs(path):
        with closing(FollowedEventLog(one, counts, report=report, describe=describe, is_over=is_over)) as followed:
            yield from followed.finish()


class FollowedEventLog:
    """One event log, read while Spark writes it; parameters and errors are those of ``read_event_log``.

    :param remove: called with each part that was read and may go
    :param session: of which alone the executions are returned; its server goes on
    :param pull: copies what was added to the log, where it lies elsewhere
    """

    def __init__(
        self,
        path: Path,
        counts: LineCounts | None,
        *,
        report: Reporter,
        describe: Describe,
        is_over: Callable[[], bool],
        remove: Remove = None,
        session: ConnectSession | None = None,
        pull: Callable[[], object] = lambda: None,
    ) -> None:
        self._pull = pull
        self._log = GrowingEventLog(path, remove=remove, since=session.since if session is not None else 0.0)
        self._session = session
        self._reader = EventLogReader(counts, report, describe, session)
        self._is_over = is_over
        self.close = self._log.close

    def poll(self, *, is_last: bool = False) -> Iterator[Execution]:
        """Return the executions that are known in full by what was added since the last call."""
        for place, line in self._log.finish() if is_last else self._log.lines(_POLL_BYTES):
            if self._is_over():
                return
            yield from self._reader.add(line, place=place)
        self._reader.report_numbers()

    def finish(self) -> Iterator[Execution]:
        """Return all executions that are left, those that have not ended last."""
        yield from self.poll(is_last=True) if self._session is None else self._of_session(self._session)
        if not self._is_over():
            yield from self._reader.finish()

    def _of_session(self, session: ConnectSession) -> Iterator[Execution]:
        """Return what is left of a session, whose end its server writes a moment later than the client sees it."""
        until = time.monotonic() + _SESSION_SECONDS
        while not (session.is_closed or self._is_over()):
            self._pull()
            yield from self.poll()
            if not self._log.is_behind:
                if time.monotonic() > until:
                    break
                time.sleep(_PAUSE_SECONDS)
        self._log.close()


class EventLogReader:
    """Puts the executions of one application together from the lines of its log, in their order.

    An execution is returned when it ends; a micro-batch, with all inside of it, when its query reports its progress;
    what never ended by ``finish``. ``report`` takes those of status with Spark's own times, some of them twice.
    """

    def __init__(
        self,
        counts: LineCounts | None = None,
        report: Reporter = None,
        describe: Describe = None,
        session: ConnectSession | None = None,
    ) -> None:
        self.counts = counts if counts is not None else LineCounts()
        self._report = report
        self._describe = describe
        self._session = session
        self._application: LoggedApplication | None = None
        self._application_id = self._attempt_id = ""
        self._version = ""
        self._environment = events.Environment()
        self._names = listener_names({})
        self._latest = 0
        self._sums = TaskSums()
        self._tables = Tables()
        self._accounts = Accounts()
        self._rdds = RddRows(self._tables)
        self._collected_at = -1
        self._open: dict[int, Running] = {}
        self._ended: dict[str, list[Running]] = {}
        self._progress: dict[str, events.Progress] = {}
        self._saving: dict[int, Execution] = {}
        # States are kept by root: Delta reads the state of its tables before the execution starts that reads them.
        self._states: dict[int, set[tuple[DatasetName, str]]] = {}
        self._touched: set[DatasetName] = set()
        self._written: set[DatasetName] = set()

    def add(self, line: bytes | LineError, *, place: str = "") -> Iterator[Execution]:
        """Return the executions that are known in full now that this line was read."""
        session = self._session
        if session is not None and isinstance(line, bytes) and not session.may_pass(line):
            return
        try:
            event = events.decoded(line)
            is_read = event is not None and (session is None or session.passes(event))
        except LineError as error:
            self.counts.add(error.reason)
            # The text of the error never quotes the line, which may hold a secret.
            log.debug("Set aside %s: %s", place, error)
            return
        if not is_read:
            return
        if isinstance(event, events.TaskEnd):
            self._sums.add(event)
            return
        self.counts.read += 1
        match event:
            case events.LogStart():
                self._version = event.version
                self._tables.has_encoded_places = event.version.startswith("3.")
            case events.Environment():
                self._environment = event
                self._names = listener_names(event.openlineage)
                self._tables.configure(event.spark, event.system.get("user.dir", ""))
            case events.ApplicationStart() | events.ApplicationEnd():
                self._of_application(event)
            case _:
                yield from self._named(self._of_execution(event))

    def _of_application(self, event: events.ApplicationStart | events.ApplicationEnd) -> None:
        if isinstance(event, events.ApplicationStart):
            self._application_id, self._attempt_id = event.id or "", event.attempt_id or ""
            self._application = events.logged_application(event, self._environment, self._version)
            self._note("APPLICATION", self._application_id, "RUNNING", event.millis)
        else:
            if self._application is not None and event.timestamp is not None:
                self._application = structs.replace(self._application, ended=event.timestamp / 1000)
            # Programs that failed have this event, too: it is no more than an end.
            self._note("APPLICATION", self._application_id, "FINISHED", event.timestamp, detail="context stopped")
        if self._application is not None and self._describe is not None:
            self._describe(self._application)

    def _of_execution(self, event: Any) -> Iterator[Execution]:
        """Report the status that an event states, if any, and return the executions that are known in full by it."""
        match event:
            case events.ExecutionStart():
                self._note("SQL_EXECUTION", str(event.executionId), "RUNNING", event.time)
                self._start(event)
            case events.AdaptiveUpdate() | events.DriverUpdates():
                self._measure(event)
            case events.ExecutionEnd():
                status: Status = "FAILED" if event.errorMessage else "FINISHED"
                self._note("SQL_EXECUTION", str(event.executionId), status, event.time, error=event.errorMessage or "")
                yield from self._end(event)
            case events.JobStart():
                self._note("SPARK_JOB", str(event.id), "RUNNING", event.submitted)
                yield from self._job(event)
            case events.JobEnd(result=result):
                is_failed = result.result != "JobSucceeded"
                status = "FAILED" if is_failed else "FINISHED"
                text = result.exception.message if result.exception else ""
                self._note("SPARK_JOB", str(event.id), status, event.completed, error=text)
                if one := self._saving.pop(event.id, None):
                    yield structs.replace(one, ended=event.completed / 1000, is_failed=is_failed)
            case _:
                yield from self._of_query(event)

    def _of_query(
        self, event: events.QueryStarted | events.QueryProgress | events.QueryTerminated
    ) -> Iterator[Execution]:
        match event:
            case events.QueryStarted():
                millis = None if event.timestamp is None else int(event.timestamp.timestamp() * 1000)
                self._note("STREAMING_QUERY", event.runId, "RUNNING", millis, detail=event.name or "")
            case events.QueryProgress():
                self._progress[event.progress.runId] = event.progress
                for running in self._ended.pop(event.progress.runId, ()):
                    yield self._execution(running, event.progress)
            case events.QueryTerminated():
                # The event has no time of its own.
                status: Status = "FAILED" if event.exception else "FINISHED"
                self._note("STREAMING_QUERY", event.runId, status, None, error=event.exception or "")

    def report_numbers(self) -> None:
        """Report what the tasks come to so far, where any has ended."""
        numbers = self._sums.numbers(self._application_id, self._attempt_id, SOURCE)
        if numbers.tasks and self._report is not None:
            self._report(numbers)

    def _note(
        self, subject: Subject, name: str, status: Status, millis: int | None, *, detail: str = "", error: str = ""
    ) -> None:
        self._latest = max(self._latest, millis or 0)
        # A server has begun before its sessions, and ends after them.
        if self._report is not None and not (self._session is not None and subject == "APPLICATION"):
            # With its attempt where it has several, as Spark's REST API names what is inside of an application.
            whole_id = "/".join(filter(None, (self._application_id, self._attempt_id)))
            application_id = "" if subject == "APPLICATION" else whole_id
            time = utc((millis or self._latest) / 1000)
            text = error[:_MESSAGE_LENGTH]
            self._report(
                StatusReport(subject, name, status, time, SOURCE, application_id, detail=detail, exception=text)
            )

    def finish(self) -> Iterator[Execution]:
        """Return what is left: executions that never ended, and micro-batches whose progress was never reported."""
        return self._named(self._left())

    def _named(self, executions: Iterator[Execution]) -> Iterator[Execution]:
        has_options = self._names.has_options
        return (with_listener_names(one, self._names) for one in executions) if has_options else executions

    def _left(self) -> Iterator[Execution]:
        for query_id, batches in self._ended.items():
            for running in batches:
                # A batch that failed has no progress; the sink is that of the batches before.
                yield self._execution(running, self._progress.get(query_id))
        for running in self._open.values():
            running.states = self._states.get(running.known.root_execution_id, set())
            yield self._execution(running)
        self._ended.clear()
        self._open.clear()

    def _start(self, event: events.ExecutionStart) -> None:
        root_id = event.executionId if event.rootExecutionId is None else event.rootExecutionId
        root = self._open.get(root_id)
        batch = root.content.traced if root is not None and root.known.query_id else UNTRACED
        run_id = _RUN_ID.search(event.description)
        account = self._accounts.open(event, root.account if root is not None else None, is_batch=bool(run_id))
        content = self._content(event, batch, account, root_id)
        known = Execution(
            self._application_id,
            event.executionId,
            root_id,
            started=event.time / 1000,
            query_id=run_id["run_id"] if run_id else "",
            attempt_id=self._attempt_id,
        )
        printed = content
        is_told = root is not None and not root.content.command.has_data and not content.command.name
        if is_told or REWRITING.match(event.description):
            # The command that it runs for names what it reads; a compaction writes the rows of its table anew.
            content = PlanContent(unread=content.unread)
        metrics = event.sparkPlanInfo.written() if event.sparkPlanInfo else {}
        scans = event.sparkPlanInfo.found() if event.sparkPlanInfo else {}
        if printed.states:
            self._states.setdefault(root_id, set()).update(printed.states)
        running = Running(known, content, printed, account, metrics=metrics, scans=scans)
        # Inside a micro-batch all have the batch as root, also the query of a command that has none of its own.
        for identity, around in self._open.items():
            if identity != event.executionId and root_id in {identity, around.known.root_execution_id}:
                around.inside.append(running)
        self._open[event.executionId] = running

    def _content(self, event: events.ExecutionStart, batch: Traced, account: Account, root_id: int) -> PlanContent:
        content, trouble = PlanContent(), ""
        if _CUT.search(event.physicalPlanDescription):
            trouble = "a plan cut by spark.sql.maxPlanStringLength"
        elif event.physicalPlanDescription and not _FORMATTED.search(event.physicalPlanDescription):
            trouble = "a plan that spark.sql.ui.explainMode does not make formatted"
        try:
            # Half of a plan would give wrong lineage.
            text = "" if trouble else event.physicalPlanDescription
            located = {node.metadata.location for node in event.sparkPlanInfo.walk()} if event.sparkPlanInfo else set()
            configs = self._environment.spark | event.modifiedConfigs
            content = read_plan(text, self._tables, batch, configs, located, root_id=root_id)
            if configs.get(_METADATA_ONLY) == "true" and _ANSWER.search(text):
                content = replace(content, unread=(*content.unread, f"{LOCAL}: the partitions of its table"))
        except Exception as error:
            # Plans have no specification, and sources may print in theirs what they like.
            trouble = "not a known plan"
            log.debug("Set aside the plan of execution %d: %s", event.executionId, type(error).__name__)
        if content.statement is not None and content.statement.change == "CREATE":
            content = replace(content, statement=with_text(content.statement, event.description))
        if content.traced.is_cut and not (content.is_bookkeeping or account.is_of_delta_log):
            trouble = trouble or "a plan cut by spark.sql.debug.maxToStringFields"
        if trouble:
            self.counts.add(trouble)
            content = replace(content, unread=(*content.unread, trouble))
        return content

    def _measure(self, event: events.AdaptiveUpdate | events.DriverUpdates) -> None:
        running = self._open.get(event.executionId)
        if running is None:
            return
        if isinstance(event, events.AdaptiveUpdate):
            running.metrics = event.sparkPlanInfo.written()
            running.scans |= event.sparkPlanInfo.found()
            running.account.add(event.sparkPlanInfo)
        else:
            running.measure(event.accumUpdates)

    def _end(self, event: events.ExecutionEnd) -> Iterator[Execution]:
        running = self._open.pop(event.executionId, None)
        self._tables.answers.end(event.executionId)
        states = self._states.pop(event.executionId, set())
        if running is None:
            return
        running.states = self._states.get(running.known.root_execution_id, states)
        is_failed = None if event.errorMessage is None else bool(event.errorMessage)
        if running.content.statement is not None and not is_failed:
            self._tables.learn(running.content.statement)
        error = beginning((event.errorMessage or "")[:_MESSAGE_LENGTH], _ERROR_LENGTH)
        running.known = structs.replace(running.known, ended=event.time / 1000, is_failed=is_failed, error=error)
        if running.known.query_id:
            self._ended.setdefault(running.known.query_id, []).append(running)
        else:
            yield self._execution(running)

    def _job(self, event: events.JobStart) -> Iterator[Execution]:
        """Note that an execution has a job; one of an RDD's own that reads or saves files is an execution itself."""
        if event.properties and event.properties.execution:
            running = self._open.get(int(event.properties.execution))
            if running is not None:
                running.content = running.content.committed(event.properties.description or "", self._tables)
                root = self._open.get(running.known.root_execution_id, running)
                running.feed(self._rdds, event, root)
                # It is of those around as well: of the root, and of a CREATE TABLE AS SELECT in between.
                for one in self._open.values():
                    if one.known.root_execution_id == running.known.root_execution_id:
                        one.known = structs.replace(one.known, has_jobs=True)
            return
        rows = self._rdds.of_job(event)
        if rows.is_of_dataset or event.saving:
            number = -1 - event.id  # below that of each SQL execution
            job = Execution(
                self._application_id,
                number,
                number,
                event.submitted / 1000,
                has_jobs=True,
                command=event.saving,
                inputs=by_name(rows.reads),
                unread=rows.parts,
                attempt_id=self._attempt_id,
            )
            self._saving |= {event.id: job} if event.saving else {}
            yield job

    def _execution(self, running: Running, progress: events.Progress | None = None) -> Execution:
        inside = [each.whole for each in running.inside]
        known, content = running.known, running.content.fed(running.rows).completed(inside, self._tables.names)
        # An execution that failed may not have begun to read.
        unread = running.content.unread if known.is_failed else content.unread
        command, inputs, outputs, output_mode = content.command, content.inputs, content.outputs, content.output_mode
        sink = ""
        if progress is not None:
            is_batch = known.root_execution_id == known.execution_id and not content.is_bookkeeping
            sink = progress.sink.description if progress.sink and is_batch else ""
            inputs, outputs = streamed(content, progress.sources, sink, self._tables)
            # The only mode for files.
            output_mode = output_mode or ("append" if sink.startswith("FileSink[") else "")
        inputs = with_versions(running.with_found(inputs), outputs, running.states)
        if running.written and len(outputs) == 1:
            outputs = (structs.replace(outputs[0], statistics=Statistics(**running.written)),)
        # CREATE TABLE AS SELECT has its write inside of it.
        partitioned_by = (each.command.partitioned_by for each in (content, *inside))
        statement, outputs = made(content, outputs, self._touched, running.states)
        self._touched.update(one.dataset for one in (*inputs, *outputs))
        if running.account.is_collecting and inputs and not (known.is_failed or self._accounts.has_collected):
            self._accounts.has_collected = True
            self._collected_at = self._rdds.newest
        self._written.update(one.dataset.whole for one in outputs)
        return structs.replace(
            known,
            command=command.name or stream_command(outputs),
            mode=command.mode,
            is_partial=command.is_partial,
            partition=command.partition,
            constants=content.constants,
            partitioned_by=next(filter(None, partitioned_by), ()),
            is_merge=command.is_merge,
            output_mode=output_mode,
            inputs=inputs,
            outputs=outputs,
            is_whole=content.is_whole,
            unread=(*unread, *running.rows.parts, *unread_columns(content, outputs), *content.moves(self._written)),
            has_rdds=content.rows.is_of_dataset,
            unnamed=running.account.remaining(
                inputs, outputs, sink, is_failed=known.is_failed, has_values=running.newest_values > self._collected_at
            ),
            statement=statement,
            queries=queries_among(inputs),
            feeds=content.feeds.union(*(each.feeds for each in inside)),
            # A command that makes a table looks up the version that it made.
            target_versions=() if statement else target_versions(outputs, running.states),
        )
