"""``spark-lineage merge`` and ``show``: merge lineage files outside of Airflow, for a machine and for a person."""

from __future__ import annotations

import argparse
import glob
import io
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from msgspec import to_builtins
from rich.console import Console

from spark_lineage.cli.output import STDOUT, InputError, told, write, write_json
from spark_lineage.cli.terminal import render
from spark_lineage.collect.collector import Collector
from spark_lineage.collect.lineage_files import is_lineage_file, is_status_file
from spark_lineage.emit.child_events import child_events
from spark_lineage.emit.run_event import to_json
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES, merged_event, reduction_text
from spark_lineage.launch.directory import EVENTS_FILE, TRANSITIONS_FILE
from spark_lineage.merge.kept_task import identity_of, kept_lineage, state_of
from spark_lineage.merge.lineage import ParentRun, TaskLineage
from spark_lineage.merge.outcome import task_state
from spark_lineage.naming.chain import Naming
from spark_lineage.naming.options import NamingError, naming_from
from spark_lineage.notify.redacted_lineage import redact_lineage
from spark_lineage.plans.event_log import EventLogError
from spark_lineage.secrets.redaction import redact_name
from spark_lineage.settings import Granularity

# What each line of an event log begins with, unless it is compressed.
_EVENT_LOG = b'{"Event":'


def add(commands: Any) -> None:
    """Add ``merge`` and ``show`` to the command."""
    merge = commands.add_parser("merge", help="print one RunEvent as JSON, and with --granularity those of child runs")
    merge.add_argument("-o", "--output", metavar="OUT", help="write to this file instead of standard output")
    merge.add_argument(
        "--run-id", metavar="UUID", type=_uuid, help="default: the run that the application has as parent"
    )
    merge.add_argument(
        "--granularity",
        choices=get_args(Granularity),
        default="task",
        help="path: also a child run for each output; action: also one for each Spark action; one event a line",
    )
    merge.add_argument(
        "--max-event-bytes",
        type=int,
        default=DEFAULT_LIMIT_BYTES,
        metavar="N",
        help="above this an event loses detail, never a dataset; default: %(default)s",
    )
    merge.set_defaults(run=_merge)
    show = commands.add_parser("show", help="print the same for a person")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    show.set_defaults(run=_show, granularity="task")
    for command in (merge, show):
        command.add_argument(
            "files", nargs="*", metavar="FILE", help="lineage file, directory, glob, or - for standard input"
        )
        command.add_argument(
            "--event-log",
            action="extend",
            nargs="+",
            default=[],
            metavar="PATH",
            help="Spark's event log of the same application, or a directory of logs: it knows what events do not",
        )
        command.add_argument(
            "--exit-code",
            type=int,
            metavar="N",
            help="exit code of spark-submit, which decides between COMPLETE and FAIL: the events cannot. Default: 0",
        )
        command.add_argument(
            "--naming",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="how datasets are named, as in [spark_lineage]: hostnamePattern.prod=10\\.1\\..*; may be repeated",
        )
        command.set_defaults(parser=command)
        command.add_argument("--job-namespace", metavar="NS", help="default: the parent job that the application names")
        command.add_argument("--job-name", metavar="NAME", help="default: the parent job that the application names")


def _merge(arguments: argparse.Namespace) -> int:
    lineage, collector = _merged(arguments)
    task = _identity(arguments, lineage, collector)
    try:
        content = b"".join(event + b"\n" for event in _events(arguments, lineage, task))
    except ValueError as error:
        raise InputError(f"these events make no RunEvent: {error}; --run-id gives it another run id") from error
    except RecursionError as error:
        raise InputError("these events make no RunEvent: a schema is nested too deeply") from error
    if arguments.output:
        write(Path(arguments.output), content)
    else:
        with told(STDOUT):
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
    return 0


def _events(arguments: argparse.Namespace, lineage: TaskLineage, task: ParentRun) -> Iterator[bytes]:
    """Return the task's event, kept under the size limit, and those of its child runs."""
    event = merged_event(lineage, task, arguments.max_event_bytes)
    if event.reduced is not None:
        print(reduction_text(event.reduced), file=sys.stderr)  # noqa: T201
    yield event.content
    for child in child_events(lineage, arguments.granularity, task=task, limit_bytes=arguments.max_event_bytes):
        yield to_json(child)


def _show(arguments: argparse.Namespace) -> int:
    lineage, collector = _merged(arguments)
    task = _identity(arguments, lineage, collector)
    if arguments.json:
        job = {"namespace": redact_name(task.job_namespace), "name": redact_name(task.job_name)}
        counts = {"read": collector.counts.read, "set_aside": collector.counts.set_aside}
        write_json({"job": job, "lineage": to_builtins(redact_lineage(lineage)), "lines": counts})
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that knows only ASCII shows the escape of a character, not a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    with told(STDOUT):
        render(lineage, collector.counts, job=f"{task.job_namespace} {task.job_name}", console=Console())
        sys.stdout.flush()
    return 0


def _merged(arguments: argparse.Namespace) -> tuple[TaskLineage, Collector]:
    collector = Collector()
    try:
        files, logs = _told_apart(arguments)
        sources = _sources(files)
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error
    for log in logs:
        try:
            collector.read_event_log(Path(log))
        except EventLogError as error:
            raise InputError(f"--event-log: {error}") from error
        except OSError as error:
            raise InputError(f"cannot read the event log {log}: {error.strerror}") from error
    for source in sources:
        try:
            if source == "-":
                collector.read(sys.stdin.buffer, source="standard input")
            else:
                with Path(source).open("rb") as stream:
                    collector.read(stream, source=source)
        except OSError as error:
            raise InputError(f"cannot read {source}: {error.strerror}") from error
    counts = collector.counts
    if not counts.read:
        reasons = "".join(f", {number} {reason}" for reason, number in sorted(counts.set_aside.items()))
        raise InputError(f"no lineage of a driver in the {counts.set_aside_total} lines of {' '.join(files)}{reasons}")
    lineage = kept_lineage(
        collector.state,
        None if arguments.exit_code is None else task_state(exit_code=arguments.exit_code),
        naming=_naming(arguments.naming),
        has_actions=arguments.granularity != "task",
    )
    _complain(arguments, lineage, collector)
    return lineage, collector


def _naming(options: Sequence[str]) -> Naming:
    try:
        return naming_from(dict(option.split("=", 1) for option in options))
    except NamingError as error:
        raise InputError(f"--naming: {error}") from error
    except ValueError as error:
        raise InputError("--naming wants KEY=VALUE") from error


def _told_apart(arguments: argparse.Namespace) -> tuple[Sequence[str], Sequence[str]]:
    """Lineage files and event logs; ``--event-log LOG FILE`` swallows the file, which is told by what it holds."""
    files, event_logs = arguments.files, arguments.event_log
    if not files:
        files = [path for path in event_logs if path == "-" or not _is_event_log(Path(path))]
        event_logs = [path for path in event_logs if path not in files]
    if not files:
        arguments.parser.error("no FILE is given; name the lineage files before --event-log")
    return files, event_logs


def _is_event_log(path: Path) -> bool:
    if path.is_dir():
        return not any(is_lineage_file(file.name) for file in path.rglob("*"))
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(len(_EVENT_LOG))
    return head == _EVENT_LOG or not head.lstrip().startswith(b"{")


def _sources(patterns: Sequence[str]) -> list[str]:
    """Return the files meant, each once, sorted, so that the order of arguments changes nothing."""
    sources: set[str] = set()
    for pattern in patterns:
        if not pattern:
            raise InputError("an empty FILE is none")
        if pattern == "-":
            sources.add(pattern)
        elif Path(pattern).is_dir():
            found = [str(path) for path in Path(pattern).rglob("*") if is_lineage_file(path.name)]
            if all(is_status_file(path) for path in found):
                raise InputError(f"no *.ndjson file in the directory {pattern}, plain or compressed")
            sources.update(found)
        elif Path(pattern).exists():
            sources.add(pattern)
            # What the operator keeps beside the driver's file knows how the driver ended.
            beside = Path(pattern).with_name(TRANSITIONS_FILE)
            if Path(pattern).name == EVENTS_FILE and beside.is_file():
                sources.add(str(beside))
        else:
            # Not Path.glob, which takes no absolute pattern.
            found = [path for path in glob.glob(pattern, recursive=True) if Path(path).is_file()]  # noqa: PTH207
            if not found:
                raise InputError(f"there is no file {pattern}")
            sources.update(found)
    return sorted(sources)


def _identity(arguments: argparse.Namespace, lineage: TaskLineage, collector: Collector) -> ParentRun:
    """Return run and job of the task as asked for, else as the files tell."""
    told = identity_of(lineage, collector.state)
    run_id = getattr(arguments, "run_id", None) or told.run_id
    return ParentRun(run_id, arguments.job_namespace or told.job_namespace, arguments.job_name or told.job_name)


def _complain(arguments: argparse.Namespace, lineage: TaskLineage, collector: Collector) -> None:
    counts = collector.counts
    lines = [f"{counts.read} events of {lineage.run_count} runs read, {counts.set_aside_total} lines set aside"]
    lines += [f"  {number} {reason}" for reason, number in sorted(counts.set_aside.items())]
    if not arguments.event_log:
        lines.append(
            "no --event-log given: what only Spark's event log tells is missing, so the task's event may say more"
        )
    else:
        logs = collector.log_counts
        lines.append(f"{logs.read} lines of event logs read, {logs.set_aside_total} set aside or read in part")
        lines += [f"  {number} {reason}" for reason, number in sorted(logs.set_aside.items())]
        if not any(application in collector.application_ids for application, _ in collector.state.executions):
            lines.append("no SQL execution of this application is in the event logs: are they of another one?")
    if arguments.exit_code is None and (lineage.status is None or state_of(lineage.status) is None):
        lines.append("no --exit-code given, 0 assumed: a lineage file cannot tell whether the program failed")
        if not all(application.is_ended for application in lineage.applications):
            lines.append("the application never reported an end: was it killed? Then give its --exit-code")
    if len(lineage.applications) > 1:
        lines.append(f"{len(lineage.applications)} applications were merged into one event")
    print("\n".join(lines), file=sys.stderr)  # noqa: T201


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no UUID") from None
