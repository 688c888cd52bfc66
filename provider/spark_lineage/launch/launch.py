"""The launch handle: what is needed to find a running job and its lineage again after the try.

A retry that re-attaches to the job needs it, and so does Airflow's own listener when the try's process is gone. It is
in Airflow's task state store (Airflow 3.3 and newer), and as a file beside the lineage.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import LAUNCH_FILE, TRANSITIONS_FILE, path_segment, read_small, replace_private
from spark_lineage.launch.line import LineError, decode_transition
from spark_lineage.launch.log import Log
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.secrets.redaction import redact

# The key in Airflow's task state store, which outlives a try; the provider's own is `spark_job_id`.
STORE_KEY = "spark_lineage_launch"
_YARN_ID = re.compile(r"application_\d+_\d+\Z")
_LOGIN = re.compile(r"(?<=://)[^/@]*@")

log = Log(__name__)


class Part(Struct, frozen=True):
    """One of several jobs that go on when their task has ended; ``child`` begins its name, as that of a launch does."""

    child: str
    application_run_id: str
    external_id: str


class Launch(Struct, frozen=True, omit_defaults=True):
    """One submission: the directory of its lineage files, and the application's run id in them.

    ``external_id`` is what the Spark provider stores to find the job again (driver id, YARN application id, pod),
    ``process_id`` that of spark-submit on ``host``. ``run_id`` is the OpenLineage run of the task's try.
    ``is_closed`` says that the try has handed its lineage over: its terminal event is not missing.
    ``event_conn_ids`` names the connections that it is sent to, ``event_logs`` the directories where Spark's event
    log may lie: paths of this machine, and URLs that are copied from elsewhere. ``yarn_urls``, ``webhdfs_urls`` and
    ``history_url`` are the ResourceManagers, NameNodes and History Server of the client's configuration, which a
    later process may not have. ``events_from`` says how the listener's events come into the directory, if the
    driver does not write them there: ``receiver``, whose connection ``receiver`` is, or ``driver_log``, where
    ``own_run_id`` is the run of the application that the user's own properties name, if any. ``session_id`` is the
    session whose executions are the job's, where the application ``application_id`` runs those of others as well.
    ``service`` names the adapter whose service runs the driver. ``child`` begins the name of the job that goes on when
    its task has ended, whose end is not sent yet; ``parent`` has the properties that name its task. ``parts`` are these
    jobs where there may be several. ``log_delay`` is how many seconds a service takes to copy an event log,
    ``silent_since`` when that of a job which goes on began not to answer (seconds since the epoch).
    """

    directory: str
    application_run_id: str
    external_id: str | None = None
    conn_id: str = ""
    master: str = ""
    deploy_mode: str = "client"
    try_number: int = 0
    run_id: str = ""
    host: str = ""
    process_id: int | None = None
    application_id: str | None = None
    is_closed: bool = False
    event_conn_ids: tuple[str, ...] = ()
    event_logs: tuple[str, ...] = ()
    yarn_urls: tuple[str, ...] = ()
    receiver: str = ""
    events_from: str = ""
    own_run_id: str = ""
    session_id: str = ""
    webhdfs_urls: tuple[str, ...] = ()
    history_url: str = ""
    service: str = ""
    child: str = ""
    parent: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    log_delay: int = 0
    silent_since: float = 0.0

    @property
    def children(self) -> tuple[Launch, ...]:
        """The launch of each job that goes on."""
        parts = (structs.replace(self, **structs.asdict(one), parts=()) for one in self.parts)
        return tuple(parts) or (self,)


def application_ids(application_id: str | None, external_id: str | None) -> set[str]:
    """Return the application, if its cluster manager has reported it: YARN calls a driver by its application."""
    driver_id = external_id or ""
    return {each for each in (application_id, _YARN_ID.match(driver_id) and driver_id) if each}


def without_login(url: str) -> str:
    """Return a master's URL without user and password: the handle is stored, and needs host and port alone."""
    return _LOGIN.sub("", url)


def store_launch(store: Any, launch: Launch) -> None:
    """Keep a launch in its directory, and in the task state store where there is one; the one without the other, too.

    :raises OSError: when the file cannot be written
    """
    file = Path(launch.directory, LAUNCH_FILE)

    def write() -> None:
        if file.parent.is_dir():
            replace_private(file, msgspec.json.encode(launch))

    try:
        LINEAGE_FILES.use(write)
    finally:
        if store is not None:
            store.set(STORE_KEY, storable(launch))


def read_launch(directory: Path) -> Launch | None:
    """Return the launch whose lineage is in a directory, None where it cannot be read."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(read_small(directory / LAUNCH_FILE), type=Launch)
    return None


@LINEAGE_FILES.bounded
def launches_below(root: Path, *names: str) -> list[Launch]:
    """Return the launches below a lineage directory that can be read.

    :param names: what they are of: a DAG, its run, a task, a map index, or the first of these
    """
    depth = "/".join("*" * (5 - len(names)))
    files = root.joinpath(*map(path_segment, names)).glob(f"{depth}/{LAUNCH_FILE}")
    return [launch for launch in map(read_launch, (file.parent for file in files)) if launch is not None]


def storable(launch: Launch) -> Any:
    """Return a launch as values that any of Airflow's stores takes: they refuse what JSON has not, such as tuples."""
    return msgspec.json.decode(msgspec.json.encode(launch))


def stored_launch(stored: Any) -> Launch | None:
    """Return the launch that was :func:`storable`, None for nothing.

    :raises msgspec.ValidationError: for what it did not put there
    """
    return msgspec.convert(stored, Launch) if stored else None


def find_launch(store: Any, external_id_key: str) -> Launch | None:
    """Return the launch of the job that the Spark provider re-attached to, None when there is none for that job."""
    external_id = store.get(external_id_key) if store is not None else None
    launch = stored_launch(store.get(STORE_KEY)) if external_id else None
    return launch if launch is not None and launch.external_id == str(external_id) else None


def indexed(job_name: str, map_index: int | None) -> str:
    """Return the name of the job of one index of a mapped task; None and -1 for another task."""
    return job_name if map_index is None or map_index < 0 else f"{job_name}[{map_index}]"


class TaskKey(Struct, frozen=True):
    """A task instance of whichever try, as Airflow names it; ``map_index`` is -1 where nothing is mapped."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def __str__(self) -> str:
        mapped = "" if self.map_index < 0 else f"[{self.map_index}]"
        return f"{self.dag_id}.{self.task_id}{mapped} of {self.run_id}"

    @classmethod
    def of(cls, task_instance: Any) -> TaskKey:
        """Name Airflow's own task instance, of the database or of a worker."""
        index = task_instance.map_index
        return cls(task_instance.dag_id, task_instance.run_id, task_instance.task_id, -1 if index is None else index)


def storable_transitions(transitions: Iterable[StatusTransition]) -> list[Any]:
    """Return transitions as JSON without secrets, as they are kept."""
    return [
        msgspec.to_builtins(structs.replace(one, detail=redact(one.detail), exception=redact(one.exception)))
        for one in transitions
    ]


def read_transitions(directory: Path) -> Iterator[StatusTransition]:
    """Return the transitions that were kept beside the lineage of a launch; torn lines are skipped.

    :raises OSError: when the file is there and cannot be read
    """
    file = directory / TRANSITIONS_FILE
    for line in read_small(file).splitlines() if os.path.lexists(file) else ():
        try:
            yield decode_transition(line)
        except LineError as error:
            log.debug("Set aside a line of %s: %s", file, error)
