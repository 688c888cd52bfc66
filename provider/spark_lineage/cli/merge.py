"""``spark-lineage merge`` and ``show``: merge lineage files outside of Airflow, for a machine and for a person."""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from spark_lineage.cli.output import REPEATED, InputError, print_note
from spark_lineage.cli.terminal import print_lineage
from spark_lineage.emit.child_events import child_events
from spark_lineage.emit.run_event import run_event, to_json
from spark_lineage.emit.size_limit import DEFAULT_LIMIT_BYTES, merged_event, reduction_text
from spark_lineage.launch.directory import (
    EVENTS_FILE,
    RUN_EVENTS_FILE,
    TRANSITIONS_FILE,
    local_directory,
    replace_file,
)
from spark_lineage.merge.conclusion import EndFacts, conclude
from spark_lineage.merge.lineage import ParentRun, TaskLineage
from spark_lineage.merge.task import identity_of, kept_lineage, state_of
from spark_lineage.naming.options import Naming, NamingError, naming_from
from spark_lineage.plans.event_log import EventLogError
from spark_lineage.secrets.redaction import redact_event
from spark_lineage.settings import Granularity
from spark_lineage.submission.collector import Collector
from spark_lineage.submission.lineage_files import is_lineage_file, is_status_file
from spark_lineage.view import compact
from spark_lineage.view.page import page


def add(commands: Any) -> None:
    """Add ``merge`` and ``show`` to the command."""
    merge = commands.add_parser("merge", help="print one RunEvent as JSON, and with --granularity those of child runs")
    merge.add_argument("-o", "--output", metavar="OUT", help="write to this file instead of standard output")
    merge.add_argument("--run-id", metavar="UUID", type=uuid.UUID, help="default: the parent run of the application")
    text = "path: also a child run for each output; one event a line"
    merge.add_argument("--granularity", choices=get_args(Granularity), default="task", help=text)
    text = "above this an event loses detail, never a dataset; default: %(default)s"
    merge.add_argument("--max-event-bytes", type=int, default=DEFAULT_LIMIT_BYTES, metavar="N", help=text)
    merge.set_defaults(run=_merge)
    show = commands.add_parser("show", help="print the same as tables")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    text = "draw it as Airflow's tab does, into one HTML page; FILE may be a file of merged events, too"
    show.add_argument("--html", metavar="OUT", help=text)
    show.set_defaults(run=_show, granularity="task")
    for command in (merge, show):
        command.add_argument(
            "files", nargs="*", metavar="FILE", help="lineage file, directory, glob, or - for standard input"
        )
        text = (
            "Spark's event log of the same application, or a directory of logs, as a path or a file: URI; repeatable,"
        )
        command.add_argument("--event-log", **REPEATED, metavar="PATH", help=f"{text} and enough without a FILE")
        text = "exit code of spark-submit, which decides between COMPLETE and FAIL: the events do not. Default: 0"
        command.add_argument("--exit-code", type=int, metavar="N", help=text)
        text = "how datasets are named, as in [spark_lineage]: hostnamePattern.prod=10\\.1\\..*; repeatable"
        command.add_argument("--naming", **REPEATED, metavar="KEY=VALUE", help=text)
        command.add_argument("--job-namespace", metavar="NS", help="default: the parent job that the application names")
        command.add_argument("--job-name", metavar="NAME", help="default: the parent job that the application names")


def _merge(arguments: argparse.Namespace) -> int:
    lineage, collector = _merged(arguments)
    parent = identity_of(lineage, collector.state)
    task = ParentRun(str(arguments.run_id or parent.run_id), *_job(arguments, parent))
    try:
        event = merged_event(lineage, task, arguments.max_event_bytes)
        children = child_events(lineage, arguments.granularity, task=task, limit_bytes=arguments.max_event_bytes)
        content = b"".join(each + b"\n" for each in (event.content, *map(to_json, children)))
    except ValueError as error:
        raise InputError(f"these events make no RunEvent: {error}; --run-id gives it another run id") from error
    except RecursionError as error:
        raise InputError("these events make no RunEvent: a schema is nested too deeply") from error
    if event.reduced is not None:
        print_note(reduction_text(event.reduced))
    if arguments.output:
        _write(Path(arguments.output), content)
    else:
        # UTF-8, whatever the terminal is.
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    return 0


def _write(path: Path, content: bytes) -> None:
    """Write whole or not at all; what is there and no file (``/dev/null``, a pipe) is written to, never replaced."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            replace_file(path, content, 0o666)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _show(arguments: argparse.Namespace) -> int:
    if arguments.html and (event := _kept_event(arguments)) is not None:
        _draw(event, arguments.html)
        return 0
    lineage, collector = _merged(arguments)
    parent = identity_of(lineage, collector.state)
    namespace, name = _job(arguments, parent)
    if arguments.html:
        made = run_event(lineage, collector.counts, job_namespace=namespace, job_name=name, run_id=parent.run_id)
        _draw(json.loads(to_json(made)), arguments.html)
    else:
        print_lineage(lineage, collector.counts, namespace=namespace, name=name, as_json=arguments.json)
    return 0


def _kept_event(arguments: argparse.Namespace) -> Mapping[str, Any] | None:
    """Return the last event of a task in a file of merged events, without secrets; None for any other file."""
    if len(arguments.files) != 1 or arguments.event_log:
        return None
    path = Path(arguments.files[0])
    # A launch has the end that its task has sent.
    if path.is_dir() and arguments.exit_code is None and not arguments.naming:
        path /= RUN_EVENTS_FILE
    if not path.is_file():
        return None
    found: dict[str, Mapping[str, Any]] = {}
    with contextlib.suppress(ValueError, LookupError, TypeError), path.open("rb") as lines:
        for event in map(json.loads, filter(bytes.strip, lines)):
            if "sparkLineage_collection" in event["run"].get("facets", {}):
                found[event["job"]["name"]] = event
    names = [arguments.job_name] if arguments.job_name in found else list(found)
    if len(names) > 1:
        raise InputError(f"{path} has events of several tasks: choose one by --job-name: {', '.join(names)}")
    return redact_event(found[names[0]]) if names else None


def _draw(event: Mapping[str, Any], target: str) -> None:
    """Write the page, which has each detail that the event has."""
    _write(Path(target), page(compact(event, sys.maxsize)).encode())


def _job(arguments: argparse.Namespace, parent: ParentRun) -> tuple[str, str]:
    return arguments.job_namespace or parent.job_namespace, arguments.job_name or parent.job_name


def _merged(arguments: argparse.Namespace) -> tuple[TaskLineage, Collector]:
    if not (arguments.files or arguments.event_log):
        raise InputError("give a lineage FILE, an --event-log, or both")
    collector = Collector()
    path = ""
    try:
        sources = _sources(arguments.files)
        for path in arguments.event_log:
            # As spark.eventLog.dir has it.
            place = local_directory(path) if path.startswith("file:") else None
            collector.read_event_log(Path(place or path).resolve())
        for path in sources:
            if path == "-":
                collector.read(sys.stdin.buffer, source="standard input")
            else:
                with Path(path).open("rb") as stream:
                    collector.read(stream, source=path)
    except EventLogError as error:
        raise InputError(f"--event-log: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read {error.filename or path}: {error.strerror}") from error
    counts = collector.counts
    if not (counts.read or collector.state.logged):
        all_counts = Counter(counts.set_aside) + Counter(collector.log_counts.set_aside)
        reasons = "".join(f", {number} {reason}" for reason, number in sorted(all_counts.items()))
        given = " ".join((*arguments.files, *arguments.event_log))
        raise InputError(f"no lineage of a driver in the {all_counts.total()} lines of {given}{reasons}")
    lineage = kept_lineage(
        collector.state,
        None if arguments.exit_code is None else conclude(EndFacts(exit_code=arguments.exit_code)),
        naming=_naming(arguments.naming),
        has_actions=arguments.granularity != "task",
    )
    print_note("\n".join(_remarks(arguments, lineage, collector)))
    return lineage, collector


def _naming(options: Sequence[str]) -> Naming:
    try:
        return naming_from(dict(option.split("=", 1) for option in options))
    except NamingError as error:
        raise InputError(f"--naming: {error}") from error
    except ValueError as error:
        raise InputError("--naming wants KEY=VALUE") from error


def _sources(patterns: Sequence[str]) -> list[str]:
    """Return the files meant, each once, sorted, so that the order of arguments changes nothing."""
    sources: set[str] = set()
    for pattern in patterns:
        path = Path(pattern)
        if pattern == "-":
            found = [pattern]
        elif not pattern:
            raise InputError("FILE is empty")
        elif path.is_dir():
            found = [str(each) for each in path.rglob("*") if is_lineage_file(each.name)]
            if all(is_status_file(each) for each in found):
                hint = "; of a run by the event log alone, show --html draws what was sent"
                raise InputError(f"no *.ndjson file in the directory {pattern}, plain or compressed{hint}")
        elif path.exists():
            # What the operator keeps beside the driver's file knows how the driver ended.
            beside = path.with_name(TRANSITIONS_FILE)
            found = [pattern, str(beside)] if path.name == EVENTS_FILE and beside.is_file() else [pattern]
        else:
            # Not Path.glob, which takes no absolute pattern.
            found = [each for each in glob.glob(pattern, recursive=True) if Path(each).is_file()]  # noqa: PTH207
            if not found:
                raise InputError(f"there is no file {pattern}")
        sources.update(found)
    return sorted(sources)


def _remarks(arguments: argparse.Namespace, lineage: TaskLineage, collector: Collector) -> Iterator[str]:
    """Say what was read, what was set aside, and what was not given."""
    counts, logs = collector.counts, collector.log_counts
    if arguments.files:
        yield f"{counts.read} events of {lineage.run_count} runs read, {counts.set_aside_total} lines set aside"
    yield from (f"  {number} {reason}" for reason, number in sorted(counts.set_aside.items()))
    if not arguments.event_log:
        yield "no --event-log given: details that only Spark's event log has are missing here"
    else:
        yield f"{logs.read} lines of event logs read, {logs.set_aside_total} set aside or read in part"
        yield from (f"  {number} {reason}" for reason, number in sorted(logs.set_aside.items()))
        if not any(application in collector.application_ids for application, *_ in collector.state.executions):
            yield "no SQL execution of this application is in the event logs: are they of another one?"
    if arguments.exit_code is None and (lineage.status is None or state_of(lineage.status) is None):
        yield "no --exit-code given, 0 assumed: neither events nor event log show whether the program failed"
        if not all(application.is_ended for application in lineage.applications):
            yield "the application never reported an end: was it killed? Then give its --exit-code"
    if len(lineage.applications) > 1:
        yield f"{len(lineage.applications)} applications were merged into one event"
