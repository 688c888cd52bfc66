"""Reads Spark's event log: what each SQL execution of an application read and wrote, and how it ended.

The log is the newline-separated JSON of ``org.apache.spark.util.JsonProtocol``. Only the events of
``event_log_events`` are decoded; all others, which may be gigabytes, are passed over by their first bytes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

from msgspec import structs

from spark_lineage.launch.line import LineCounts, LineError
from spark_lineage.merge.execution import Execution, rdd_execution_id
from spark_lineage.merge.transition import StatusReport
from spark_lineage.plans.content import PlanContent, joined, read_plan
from spark_lineage.plans.event_log_events import (
    ApplicationStart,
    Environment,
    ExecutionEnd,
    ExecutionStart,
    JobStart,
    Progress,
    QueryProgress,
    Rdd,
    decoded,
)
from spark_lineage.plans.event_log_files import EventLogError, GrowingEventLog, Line, find_event_logs
from spark_lineage.plans.event_log_status import LoggedStatus
from spark_lineage.plans.scope import UNTRACED, Traced
from spark_lineage.plans.streams import sink_mode, streamed
from spark_lineage.plans.tables import Tables

__all__ = ["EventLogError", "EventLogReader", "FollowedEventLog", "read_event_log"]

log = logging.getLogger(__name__)

# Of each file and poll, so that one never takes long; what is left comes with the next.
_POLL_BYTES = 2 * 1024 * 1024
_FORMATTED = re.compile(r"^\(\d+\) ", re.MULTILINE)
_CUT = re.compile(r"\.\.\. \d+ more characters\Z")
# Methods of SparkContext that name the RDDs that they make by the paths that these read.
_READING_FILES = re.compile(
    r'"name":"(?:textFile|wholeTextFiles|binaryFiles|(?:newAPIH|h)adoopFile|sequenceFile|objectFile)"'
)
# What an RDD is called that has no name: by its class.
_CLASS_NAME = re.compile(r"\w+RDD\Z")
_WHOLE_TEXT_FILES = '"name":"wholeTextFiles"'
_RUN_ID = re.compile(r"^runId = (?P<run_id>\S+)$", re.MULTILINE)


def read_event_log(
    path: Path,
    counts: LineCounts | None = None,
    *,
    tell: Callable[[StatusReport], object] | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Execution]:
    """Return the SQL executions of the logs at a path: a log of one file, a rolling one, or a directory of logs.

    ``tell`` is called with what the log says of the application's status, and of that of its parts; ``is_over`` is
    asked between two lines whether to stop there. Lines that cannot be read are set aside and counted in ``counts``.

    :raises EventLogError: when there is no log, or one in a codec that is not read here
    :raises OSError: when a file cannot be read
    """
    for one in find_event_logs(path):
        with FollowedEventLog(one, counts, tell, is_over) as followed:
            yield from followed.finish()


class FollowedEventLog:
    """One event log, read while Spark writes it; a context manager that closes its files.

    :param tell: called with what the log says of the application's status, and of that of its parts
    :param is_over: asked between two lines whether to stop there
    :param remove: what a part is given to once it was read, if it may go
    """

    def __init__(
        self,
        path: Path,
        counts: LineCounts | None,
        tell: Callable[[StatusReport], object] | None,
        is_over: Callable[[], bool],
        *,
        remove: Callable[[Path], object] | None = None,
    ) -> None:
        self._log = GrowingEventLog(path, remove=remove)
        self._reader = EventLogReader(counts, tell)
        self._is_over = is_over

    def __enter__(self) -> Self:
        """Nothing is open before the first line is asked for."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what is open."""
        self._log.close()

    def poll(self) -> Iterator[Execution]:
        """Return the executions that are known in full by what was added since the last call.

        :raises EventLogError: when the log is in a codec that is not read here
        :raises OSError: when a file cannot be read
        """
        yield from self._executions(self._log.lines(_POLL_BYTES))

    def finish(self) -> Iterator[Execution]:
        """Return all executions that have not been given yet; those that have not ended come last.

        :raises EventLogError: when the log is in a codec that is not read here
        :raises OSError: when a file cannot be read
        """
        yield from self._executions(self._log.finish())
        if not self._is_over():
            yield from self._reader.finish()

    def _executions(self, lines: Iterable[Line]) -> Iterator[Execution]:
        for place, line in lines:
            if self._is_over():
                return
            yield from self._reader.add(line, place=place)


class _Running:
    """An execution that has started."""

    def __init__(self, start: ExecutionStart, root_id: int, content: PlanContent, query_id: str) -> None:
        # The text of the plan may be megabytes, and is read.
        self.start = structs.replace(start, physicalPlanDescription="", description="", modifiedConfigs={})
        self.root_id = root_id
        self.content = content
        self.query_id = query_id
        self.ended: int | None = None
        self.is_failed: bool | None = None
        self.has_jobs = False
        self.inside: list[PlanContent] = []


class EventLogReader:
    """Puts the executions of one application together from the lines of its log, in their order.

    An execution is given when it ends; a micro-batch, with all inside of it, when its query has told of its progress,
    and what never ended by ``finish``.
    """

    def __init__(self, counts: LineCounts | None = None, tell: Callable[[StatusReport], object] | None = None) -> None:
        self.counts = counts if counts is not None else LineCounts()
        self._status = LoggedStatus(tell) if tell is not None else None
        self._application_id = ""
        self._tables = Tables()
        self._open: dict[int, _Running] = {}
        self._ended: dict[str, list[_Running]] = {}
        self._told: dict[str, Progress] = {}

    def add(self, line: bytes | LineError, *, place: str = "") -> Iterator[Execution]:
        """Return the executions that are known in full now that this line was read."""
        try:
            event = decoded(line)
        except LineError as error:
            self.counts.add(error.reason)
            # The text of the error never quotes the line, which may hold a secret.
            log.debug("Set aside %s: %s", place, error)
            return
        if event is None:
            return
        self.counts.read += 1
        if self._status is not None:
            self._status.add(event)
        match event:
            case ExecutionStart():
                self._start(event)
            case ExecutionEnd():
                yield from self._end(event)
            case JobStart():
                yield from self._job(event)
            case QueryProgress():
                yield from self._progress(event.progress)
            case ApplicationStart():
                self._application_id = event.id or ""
            case Environment():
                self._tables.configure(event.spark, event.system.get("user.dir", ""))

    def finish(self) -> Iterator[Execution]:
        """Return what is left: executions that never ended, and micro-batches whose progress was never told."""
        for query_id, batches in self._ended.items():
            for running in batches:
                # A batch that failed has no progress; the sink is that of the batches before.
                yield self._execution(running, self._told.get(query_id))
        for running in self._open.values():
            yield self._execution(running)
        self._ended.clear()
        self._open.clear()

    def _start(self, event: ExecutionStart) -> None:
        root_id = event.executionId if event.rootExecutionId is None else event.rootExecutionId
        root = self._open.get(root_id)
        batch = root.content.traced if root is not None and root.query_id else UNTRACED
        content = self._content(event, batch)
        run_id = _RUN_ID.search(event.description)
        running = _Running(event, root_id, content, run_id["run_id"] if run_id else "")
        self._open[event.executionId] = running
        # Inside a micro-batch all have the batch as root, also the query of a command that has none of its own.
        for around in self._open.values():
            if around is not running and root_id in {around.start.executionId, around.root_id}:
                around.inside.append(content)
        if root is not None and not root.content.has_data and content.command is None:
            # The command that it runs for tells of what it reads.
            running.content = PlanContent(unread=content.unread)

    def _content(self, event: ExecutionStart, batch: Traced) -> PlanContent:
        content, trouble = PlanContent(), ""
        if _CUT.search(event.physicalPlanDescription):
            trouble = "a plan cut by spark.sql.maxPlanStringLength"
        elif event.physicalPlanDescription and not _FORMATTED.search(event.physicalPlanDescription):
            trouble = "a plan that spark.sql.ui.explainMode does not make formatted"
        try:
            # Half of a plan tells things that are not so.
            text = "" if trouble else event.physicalPlanDescription
            content = read_plan(text, self._tables, batch, event.modifiedConfigs)
        except Exception as error:
            # Plans have no specification, and sources may print in theirs what they like.
            trouble = "not a known plan"
            log.debug("Set aside the plan of execution %d: %s", event.executionId, type(error).__name__)
        if content.traced.is_cut and not content.is_bookkeeping:
            trouble = trouble or "a plan cut by spark.sql.debug.maxToStringFields"
        if trouble:
            self.counts.add(trouble)
            content = replace(content, unread=(*content.unread, trouble))
        return content

    def _end(self, event: ExecutionEnd) -> Iterator[Execution]:
        running = self._open.pop(event.executionId, None)
        if running is None:
            return
        running.ended = event.time
        running.is_failed = None if event.errorMessage is None else bool(event.errorMessage)
        if running.query_id:
            self._ended.setdefault(running.query_id, []).append(running)
        else:
            yield self._execution(running)

    def _job(self, event: JobStart) -> Iterator[Execution]:
        """Note that an execution has a job; one of an RDD's own is given with the files that its RDDs are named by."""
        if event.properties and event.properties.execution:
            running = self._open.get(int(event.properties.execution))
            if running is not None:
                running.has_jobs = True
                running.content = running.content.committed(event.properties.description or "", self._tables)
            return
        named = {
            path.strip()
            for stage in event.stages
            for rdd in stage.rdds
            if rdd.name and _is_named_by_path(rdd)
            for path in rdd.name.split(",")
        }
        if named:
            number = rdd_execution_id(event.id)
            inputs = joined(self._tables.at(path) for path in sorted(named))
            started = event.submitted / 1000
            yield Execution(self._application_id, number, number, started, has_jobs=True, inputs=inputs)

    def _progress(self, progress: Progress) -> Iterator[Execution]:
        self._told[progress.runId] = progress
        for running in self._ended.pop(progress.runId, ()):
            yield self._execution(running, progress)

    def _execution(self, running: _Running, progress: Progress | None = None) -> Execution:
        content = running.content.completed(running.inside)
        inputs, outputs, output_mode = content.inputs, content.outputs, content.output_mode
        if progress is not None:
            sources = [source.description for source in progress.sources]
            is_batch = running.root_id == running.start.executionId and not content.is_bookkeeping
            sink = progress.sink.description if progress.sink and is_batch else ""
            inputs, outputs = streamed(content, sources, sink, self._tables)
            output_mode = output_mode or sink_mode(sink)
        # CREATE TABLE AS SELECT has its write inside of it.
        commands = [each.command for each in (content, *running.inside) if each.command]
        start = running.start
        return Execution(
            application_id=self._application_id,
            execution_id=start.executionId,
            root_execution_id=running.root_id,
            started=start.time / 1000,
            ended=None if running.ended is None else running.ended / 1000,
            is_failed=running.is_failed,
            has_jobs=running.has_jobs,
            command=content.command.name if content.command else "",
            mode=content.command.mode if content.command else "",
            is_partial=content.command.is_partial if content.command else False,
            partition=content.command.partition if content.command else (),
            partitioned_by=next((each.partitioned_by for each in commands if each.partitioned_by), ()),
            is_merge=content.command.is_merge if content.command else False,
            query_id=running.query_id,
            output_mode=output_mode,
            inputs=inputs,
            outputs=outputs,
            is_whole=content.is_whole,
            unread=running.content.unread,
            statement=content.statement,
        )


def _is_named_by_path(rdd: Rdd) -> bool:
    """Whether the name of an RDD is the path that it reads, and none that the program gave it (``setName``).

    ``HadoopRDD``, ``NewHadoopRDD`` and ``BinaryFileRDD`` have it, which a program never holds: it is given what is made
    from them. Of ``wholeTextFiles`` that alone has it.
    """
    scope = rdd.scope or ""
    if not _READING_FILES.search(scope) or _CLASS_NAME.fullmatch(rdd.name or ""):
        return False
    return bool(rdd.parents) == (_WHOLE_TEXT_FILES in scope)
