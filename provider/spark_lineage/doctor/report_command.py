"""Make an archive for a bug report about a task: lineage files, event logs, settings, doctor and outbox, no secrets.

Run it where the task ran, as its user. Exit code 1 if no launch of the task is found.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spark_lineage.cli.output import InputError, airflow_on_stderr, print_line, print_note
from spark_lineage.doctor.command import findings, setup_of
from spark_lineage.doctor.config_command import read_settings
from spark_lineage.launch.directory import (
    EVENTS_FILE,
    LAUNCH_FILE,
    local_directory,
    open_to_read,
    path_segment,
    write_new,
)
from spark_lineage.launch.launch import Launch, application_ids, read_launch
from spark_lineage.launch.line import LineError
from spark_lineage.launch.retention import EVENT_LOG
from spark_lineage.plans.event_log_files import EventLogError, GrowingEventLog, logs_of
from spark_lineage.secrets.redaction import redact, redact_event, redact_value, remember_texts, remember_values
from spark_lineage.secrets.secret_keys import is_secret_key
from spark_lineage.submission.collector import Collector
from spark_lineage.submission.lineage_files import is_lineage_file, lines

_NO_LAUNCH = 1
# The limits: bytes kept of one file, half from each end, and of all files; bytes read of one.
_FILE_BYTES, _ALL_BYTES, _READ_BYTES = 8 * 1024 * 1024, 32 * 1024 * 1024, 1024 * 1024 * 1024
_PROPERTIES = ("spark.", "java.", "sun.")

_Lines = Iterable[bytes | LineError]


@dataclass
class _Kept:
    """The lines of one file that go into the archive, and how many do not."""

    lines: list[bytes]
    left_out: int = 0
    unreadable: int = 0
    is_read_whole: bool = True

    def __str__(self) -> str:
        parts = [f"{len(self.lines)} lines"]
        parts += [f"{self.left_out} left out of its middle"] if self.left_out else []
        parts += [f"{self.unreadable} are no JSON and left out"] if self.unreadable else []
        parts += [] if self.is_read_whole else ["its end was not read"]
        return ", ".join(parts)


@dataclass
class _Report:
    """The files of the archive, by name, and those that were not found."""

    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, _Kept] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def add_lines(self, name: str, found: _Lines) -> None:
        """Add the lines of a file, as many as there is space for."""
        space = _ALL_BYTES - sum(len(line) for kept in self.files.values() for line in kept.lines)
        try:
            self.files[name] = _kept(found, min(space, _FILE_BYTES))
        except (OSError, EventLogError) as error:
            self.missing.append(f"{name}: {error}")

    def archive(self) -> bytes:
        """Return the archive; what one file shows under a secret key is masked in all files."""
        for kept in self.files.values():
            _remember(map(json.loads, kept.lines))
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, kept in self.files.items():
                with archive.open(redact(name), "w") as file:
                    file.writelines(_redacted(line) for line in kept.lines)
            for name, value in self.values.items():
                archive.writestr(name, json.dumps(redact_value(value), indent=1, default=str) + "\n")
            archive.writestr("README.txt", "".join(f"{redact(line)}\n" for line in self.described()))
        return content.getvalue()

    def described(self) -> Iterator[str]:
        """Return a line for each file of the archive, and for what was not found."""
        yield from (f"{name}: {kept}" for name, kept in self.files.items())
        yield from self.values
        yield from (f"not found: {text}" for text in self.missing)


def add(commands: Any) -> None:
    """Add ``report`` to the command."""
    report = commands.add_parser(
        "report", help="make an archive about a task for a bug report, without secrets", description=__doc__
    )
    report.add_argument("task", metavar="DAG.TASK", help="ids of the DAG and of the task")
    report.add_argument("--run-id", metavar="ID", help="of the DAG run; default: that of the latest launch")
    report.add_argument("--map-index", type=int, metavar="N", help="of a mapped task")
    report.add_argument("--try", type=int, dest="try_number", metavar="N", help="default: the latest")
    report.add_argument("--spark-conn-id", metavar="ID", help="default: that of the launch, else spark_default")
    report.add_argument("--lineage-dir", type=Path, metavar="DIR", help="default: that of the settings")
    report.add_argument("-o", "--output", type=Path, metavar="ZIP", help="a new file; default: one in this directory")
    report.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    report = _Report()
    with airflow_on_stderr():
        setup = setup_of(arguments.spark_conn_id or "spark_default")
        # On purpose here: it imports Airflow, which takes seconds.
        from spark_lineage.settings.places import lineage_directory

        root = arguments.lineage_dir or Path(lineage_directory(setup.settings))
        launch = _latest(root, arguments)
        if launch is None:
            report.missing.append(f"a launch of {arguments.task} in {root}")
        else:
            _add_launch(report, launch)
        conn_id = arguments.spark_conn_id or (launch and launch.conn_id) or "spark_default"
        _remember_environment([conn_id, *(launch.event_conn_ids if launch else ())])
        _add_installation(report, conn_id, launch)
    path = arguments.output or Path(
        f"spark-lineage-report-{_file_name(arguments.task)}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.zip"
    )
    content = report.archive()
    try:
        write_new(path, content)
    except FileExistsError:
        raise InputError(f"{path} exists and stays as it is: name another file by -o") from None
    print_line(f"{path}: {len(content):,} bytes")
    for line in report.described():
        print_line(f"  {line}")
    print_note("Look into the archive before you send it: a secret that has no key and no known form may be in it.")
    return 0 if launch is not None else _NO_LAUNCH


def _file_name(task: str) -> str:
    return re.sub(r"[^\w.\-]", "_", redact(task))


def _latest(root: Path, arguments: argparse.Namespace) -> Launch | None:
    """Return the launch that was written last among those that the arguments name."""
    run = path_segment(arguments.run_id) if arguments.run_id else "*"
    index = "*" if arguments.map_index is None else str(arguments.map_index)
    attempt = "*" if arguments.try_number is None else f"{arguments.try_number}-*"
    files: list[tuple[float, Path]] = []
    # Both ids may hold dots.
    parts = arguments.task.split(".")
    for at in range(1, len(parts)):
        dag_id, task_id = ".".join(parts[:at]), ".".join(parts[at:])
        task = path_segment(task_id)
        for file in (root / path_segment(dag_id)).glob(f"{run}/{task}/{index}/{attempt}/{LAUNCH_FILE}"):
            with suppress(OSError):
                files.append((file.stat().st_mtime, file))
    return read_launch(max(files)[1].parent) if files else None


def _add_launch(report: _Report, launch: Launch) -> None:
    """Add the files of the launch's directory, and the event logs of its applications."""
    directory, collector = Path(launch.directory), Collector()
    logs = set[Path]()
    for path in sorted(directory.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        name = f"launch/{path.relative_to(directory)}"
        if EVENT_LOG.fullmatch(path.name) or EVENT_LOG.fullmatch(path.parent.name):
            logs.add(path if EVENT_LOG.fullmatch(path.name) else path.parent)
        elif is_lineage_file(path.name) or path.suffix in (".json", ".jsonl"):
            report.add_lines(name, _file_lines(path))
    events = directory / EVENTS_FILE
    if events.is_file():
        with open_to_read(events) as stream:
            collector.read(stream, source=str(events))
    else:
        report.missing.append(f"the listener's lineage file {events}: a run by the event log alone has none")
    ids = application_ids(launch.application_id, launch.external_id) | collector.application_ids
    places = {*launch.event_logs, *collector.event_log_directories.values()}
    for place in sorted(places):
        if local := local_directory(place):
            with suppress(OSError):
                logs |= set(logs_of(Path(local), ids))
    for log in sorted(logs):
        report.add_lines(f"event-log/{log.name}", (line for _, line in GrowingEventLog(log).finish()))
    if not logs:
        application = ", ".join(sorted(ids)) or "its application"
        others = [one for one in sorted(places) if str(directory) not in (local_directory(one) or "")]
        where = ", ".join(others) or directory
        report.missing.append(f"an event log of {application} in {where}: a task removes its own when it is read")


def _file_lines(path: Path) -> Iterator[bytes | LineError]:
    with open_to_read(path) as stream:
        yield from lines(stream, path.name)


def _kept(found: _Lines, most_bytes: int) -> _Kept:
    """Return lines of JSON from the beginning and the end of a file."""
    kept, end = _Kept([]), deque[bytes]()
    space, end_bytes, read_bytes = most_bytes // 2, 0, 0
    for line in found:
        if isinstance(line, LineError) or not _is_json(line):
            kept.unreadable += 1
            continue
        read_bytes += len(line)
        if len(line) <= space and not end:
            kept.lines.append(line)
            space -= len(line)
            continue
        end.append(line)
        end_bytes += len(line)
        while end and end_bytes > most_bytes // 2:
            end_bytes -= len(end.popleft())
            kept.left_out += 1
        if read_bytes > _READ_BYTES:
            kept.is_read_whole = False
            break
    kept.lines += end
    return kept


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _remember(values: Iterable[Any]) -> None:
    """Learn the values under secret keys, which may stand elsewhere without their keys."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if any(str(key).startswith(_PROPERTIES) for key in value):
                remember_values(value)
            else:
                remember_texts(each for key, each in value.items() if isinstance(each, str) and is_secret_key(str(key)))
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _redacted(line: bytes) -> bytes:
    value = json.loads(line)
    redacted = redact_event(value) if "eventType" in value and "run" in value else redact_value(value)
    return json.dumps(redacted, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _remember_environment(conn_ids: Iterable[str]) -> None:
    """Learn what a task knows to be secret: variables and connections."""
    from airflow.providers.common.compat.sdk import BaseHook

    remember_values(os.environ)
    for conn_id in conn_ids:
        # One that Airflow does not return has no secret here.
        with suppress(Exception):
            connection: Any = BaseHook.get_connection(conn_id)
            remember_values({"password": connection.password or "", **connection.extra_dejson})


def _add_installation(report: _Report, conn_id: str, launch: Launch | None) -> None:
    """Add the settings, what the doctor finds, and the events of the run that wait or were refused."""
    shown, notes = read_settings(conn_id)
    report.values["settings.json"] = {key: list(map(asdict, rows)) for key, rows in shown.items()} | {"notes": notes}
    report.values["doctor.json"] = [{"check": name, **asdict(finding)} for name, finding in findings(conn_id)]
    waiting = list(_in_outbox(launch.run_id)) if launch is not None and launch.run_id else []
    report.values["outbox.json"] = waiting
    if not waiting:
        report.missing.append("events of this run in the outbox: nothing waits, and nothing was refused")


def _in_outbox(run_id: str) -> Iterator[Mapping[str, Any]]:
    from spark_lineage.deliver.outbox import Outbox, default_directory
    from spark_lineage.deliver.outgoing import SpoolError

    with suppress(SpoolError):
        for destination, spool in Outbox(default_directory()).spools().items():
            for is_dead, entries in ((False, spool.waiting()), (True, spool.dead())):
                for entry in entries:
                    if entry.run_id == run_id:
                        why = spool.why(entry) if is_dead else spool.pauses.why(run_id) or spool.pauses.why("")
                        yield {"destination": destination, "id": entry.id, "is_dead": is_dead, "answer": why}
