"""The events of a task's run that we make ourselves, as Airflow's OpenLineage provider makes its own.

Besides: whether that provider is on, which events it allows, its transport, and what it overwrites. It has an API for
these from 2.16 on, and the emission policy from 2.19; here only what older ones also have is used.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from urllib.parse import quote

from msgspec import Struct
from openlineage.client.generated.source_code_location_job import SourceCodeLocationJobFacet

from spark_lineage.emit.redacted_lineage import redact_lineage
from spark_lineage.emit.run_event import (
    JOB_KEY,
    PRODUCER,
    STATUS_KEY,
    SparkJobFacet,
    collection_facet,
    input_datasets,
    job_facets,
    output_datasets,
    run_facets,
    value_of,
)
from spark_lineage.emit.size_limit import AIRFLOW_BYTES, cut, reduction_text
from spark_lineage.launch.launch import indexed, without_login
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.client import Event
    from openlineage.client.event_v2 import RunEvent

    from spark_lineage.launch.bounded_run import Deadline
    from spark_lineage.launch.line import LineCounts
    from spark_lineage.launch.log import Guard, Log
    from spark_lineage.merge.lineage import TaskLineage
    from spark_lineage.settings import Settings

EventType = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]

# As Airflow 2 called them; Data.Rentgen (0.3 to 0.7) refuses an event with another word.
_RUN_TYPES = {
    "asset_triggered": "dataset_triggered",
    "asset_materialization": "manual",
    "operator_triggered": "manual",
}
_SCHEME = re.compile(r"[A-Za-z][\w+.\-]*:")


@dataclass(frozen=True)
class AirflowTry:
    """One try as Airflow knows it: its own objects, of the database or of a worker.

    ``task_instance`` has the number of that try. ``dag`` and ``task`` are None where they are gone.
    """

    task_instance: Any
    dag_run: Any
    dag: Any = None
    task: Any = None

    @property
    def date(self) -> datetime:
        """The logical date, or when the DAG run was to start."""
        date: datetime = self.dag_run.logical_date or self.dag_run.run_after
        return date


class JobDetails(Struct, frozen=True):
    """Further details of the task's job: its tags by name, and the facet with the place of its program."""

    tags: Mapping[str, str] = {}
    source: Mapping[str, SourceCodeLocationJobFacet] = {}
    is_map_index_in_name: bool = False

    @classmethod
    def of(cls, settings: Settings, task: Any, task_instance: Any = None) -> Self:
        """Return the details of the job of an operator; None for one that is gone."""
        tags = {redact(key): redact(value) for key, value in settings.lineage_tags.items()}
        source = source_code(getattr(task, "application", None), task_instance)
        return cls(tags, source, settings.map_index_in_job_name)

    def facets(self, *, is_streaming: bool) -> dict[str, Any]:
        """Return ``sourceCodeLocation``, and the facet by which :func:`corrected_event` corrects an event."""
        job = SparkJobFacet(
            processingType="STREAMING" if is_streaming else "BATCH",
            tags=dict(self.tags),
            isMapIndexInName=self.is_map_index_in_name,
            producer=PRODUCER,
        )
        return {JOB_KEY: job, **self.source}


NO_DETAILS = JobDetails()


def operator_lineage(
    lineage: TaskLineage,
    counts: LineCounts | None,
    limit_bytes: int,
    logger: Log,
    *,
    details: JobDetails = NO_DETAILS,
    deadline: Deadline | None = None,
) -> OperatorLineage[Any, Any]:
    """Return the lineage for the OpenLineage provider, small enough for the event that it is going to make.

    :param counts: of the lines that were read, None where nothing was collected
    """
    from airflow.providers.openlineage.extractors import OperatorLineage

    lineage = redact_lineage(lineage)
    made: OperatorLineage[Any, Any] = OperatorLineage(
        inputs=input_datasets(lineage),
        outputs=output_datasets(lineage),
        run_facets=run_facets(lineage) | (collection_facet(lineage, counts) if counts is not None else {}),
        job_facets={**job_facets(lineage), **details.facets(is_streaming=lineage.is_streaming)},
    )
    reduced = cut(made, limit_bytes, reserved_bytes=AIRFLOW_BYTES, deadline=deadline)
    if reduced is not None:
        logger.warning(reduction_text(reduced))
    return made


def source_code(application: Any, task_instance: Any = None) -> dict[str, SourceCodeLocationJobFacet]:
    """Return ``sourceCodeLocation`` of a program: in the Git repository of its DAG bundle, else where Spark finds it.

    :param application: as ``spark-submit`` takes it: a path or a URI
    :param task_instance: that of a worker of Airflow 3, which knows the bundle (``GitDagBundle``) that its DAG is from
    """
    text = str(application or "")
    if not text:
        return {}
    where: dict[str, Any] = {"type": "file", "url": text}
    if not _SCHEME.match(text):
        path = Path(text).absolute()
        where["url"] = path.as_uri()
        bundle = getattr(task_instance, "bundle_instance", None)
        if getattr(bundle, "repo_url", None):
            # The bundle asks Git, and may have no repository on this host.
            with suppress(Exception):
                where |= _in_repository(path, bundle)
    where = {key: value and redact(value) for key, value in where.items()}
    return {"sourceCodeLocation": SourceCodeLocationJobFacet(**where, producer=PRODUCER)}


def _in_repository(path: Path, bundle: Any) -> dict[str, str]:
    """Return the place of a file of the bundle; raises ``ValueError`` where it is none."""
    inside = path.resolve().relative_to(Path(bundle.path).resolve()).as_posix()
    subdir, version = bundle.subdir or "", bundle.version or bundle.get_current_version()
    # Known for GitHub, GitLab and Bitbucket, and where `view_url_template` of the bundle gives it.
    template = bundle.view_url_template()
    pages = template and f"{template.format(version=version, subdir=subdir).rstrip('/')}/{quote(inside)}"
    return {
        "type": "git",
        "url": pages or path.as_uri(),
        "repoUrl": without_login(bundle.repo_url),
        "path": str(PurePosixPath(subdir, inside)),
        "version": version,
        "branch": bundle.tracking_ref,
    }


def task_event(
    airflow: AirflowTry,
    lineage: OperatorLineage[Any, Any],
    event_type: EventType,
    guard: Guard,
    *,
    run_id: str = "",
    error: str = "",
) -> RunEvent:
    """Return an event of the run of a try, as the provider would have made it; it is not sent.

    ``eventTime`` is when the task began, for a START, else now: what the provider sends when a state is set by hand, or
    a heartbeat was lost, came before, and a backend takes the latest for the last. Where a facet cannot be made, the
    event is without it.

    :param lineage: from :func:`operator_lineage`
    :param run_id: the OpenLineage run of the try, empty where it is not known: then it is what the provider makes it
    :param error: why the try did not succeed; an ``errorMessage`` of the lineage comes first
    """
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from airflow.providers.openlineage.utils.utils import get_job_name
    from openlineage.client.event_v2 import RunState

    class Unsent(OpenLineageAdapter):
        """Makes the events as the provider does, and returns them; the provider's own knows no ABORT."""

        def emit(self, event: RunEvent) -> RunEvent:
            return event

    instance, dag_run = airflow.task_instance, airflow.dag_run
    own_run_id = run_id or OpenLineageAdapter.build_task_instance_run_id(
        dag_id=instance.dag_id,
        task_id=instance.task_id,
        try_number=instance.try_number,
        logical_date=airflow.date,
        map_index=-1 if instance.map_index is None else instance.map_index,
    )
    names: dict[str, Any] = {
        "run_id": own_run_id,
        "job_name": get_job_name(instance),
        "task": lineage,
        "nominal_start_time": _text(dag_run.data_interval_start),
        "nominal_end_time": _text(dag_run.data_interval_end),
        "owners": None,
        "tags": None,
        "job_description": None,
        "run_facets": {},
    }
    with guard("The event does not say what DAG and task are like"):
        names |= described(airflow)
    with guard("The event names no DAG run as its parent"):
        names["run_facets"] |= _parent(airflow)
    began = _text(getattr(instance, "start_date", None))
    with guard("The event is without Airflow's own facets"):
        names["run_facets"] |= _airflow_facets(airflow, own_run_id, began)
    now = datetime.now(UTC).isoformat()
    if event_type in ("START", "RUNNING"):
        event = Unsent().start_task(**names, event_time=(event_type == "START" and began) or now)
    elif event_type == "COMPLETE":
        event = Unsent().complete_task(**names, end_time=now)
    else:
        text = None if "errorMessage" in lineage.run_facets else error or None
        event = Unsent().fail_task(**names, end_time=now, error=text)
    event.eventType = RunState(event_type)
    return corrected_event(event)  # type: ignore[return-value]  # a RunEvent stays one


def described(airflow: AirflowTry) -> dict[str, Any]:
    """Owners, tags and documentation, of the task where it has its own, else of the DAG."""
    from airflow.providers.openlineage.utils.utils import get_dag_documentation, get_task_documentation

    task, dag = airflow.task, airflow.dag
    if task is None or dag is None:
        return {}
    # Upstream fault (Airflow 3.3): a mapped task of the database may lack the attribute ``doc``.
    own = get_task_documentation(task) if hasattr(task, "doc") else (None, None)
    text, kind = own if own[0] else get_dag_documentation(dag)
    owner = (task if task.owner != "airflow" else dag).owner
    return {
        "owners": [each.strip() for each in owner.split(",")],
        "tags": dag.tags,
        "job_description": text,
        "job_description_type": kind,
    }


def job_texts(airflow: AirflowTry) -> dict[str, Any]:
    """Return the same for the job of a child run, as ``child_events`` takes them."""
    text = described(airflow)
    return {
        "owners": text.get("owners", ()),
        "tags": text.get("tags") or (),
        "description": text.get("job_description"),
    }


def dag_run_facet(dag_run: Mapping[str, Any], date: datetime) -> dict[str, Any]:
    """Return ``dagRun`` of the facet ``airflow``, with a data interval and run type that readers of Airflow 2's know.

    A run without a data interval has one of no length, at ``date`` (logical date, or when the run was to start), as
    Airflow 2 had it. ``run_id`` still names the kind of the run in Airflow 3's word.
    """
    moment = date.isoformat()
    run_type = dag_run.get("run_type")
    run_type = getattr(run_type, "value", run_type)  # an enumeration, which is no text in a worker
    return {
        **dag_run,
        "run_type": _RUN_TYPES.get(str(run_type), run_type),
        "data_interval_start": dag_run.get("data_interval_start") or moment,
        "data_interval_end": dag_run.get("data_interval_end") or moment,
    }


def _parent(airflow: AirflowTry) -> dict[str, Any]:
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from airflow.providers.openlineage.utils.utils import get_task_parent_run_facet

    dag_run = airflow.dag_run
    dag_run_id = OpenLineageAdapter.build_dag_run_id(
        dag_id=dag_run.dag_id, logical_date=airflow.date, clear_number=getattr(dag_run, "clear_number", 0)
    )
    facet: dict[str, Any] = get_task_parent_run_facet(
        parent_run_id=dag_run_id, parent_job_name=dag_run.dag_id, dr_conf=getattr(dag_run, "conf", None) or {}
    )
    return facet


def _airflow_facets(airflow: AirflowTry, run_id: str, began: str | None) -> dict[str, Any]:
    from airflow.providers.openlineage.utils.utils import get_airflow_mapped_task_facet, get_airflow_run_facet

    facets: dict[str, Any] = get_airflow_mapped_task_facet(airflow.task_instance)
    if airflow.task is not None and airflow.dag is not None:
        facets |= get_airflow_run_facet(airflow.dag_run, airflow.dag, airflow.task_instance, airflow.task, run_id)
        facets["airflow"].dagRun = dag_run_facet(facets["airflow"].dagRun, airflow.date)
        # Marquez takes the time of a RUNNING event for the beginning (``Profile``).
        facets["airflow"].taskInstance = {**facets["airflow"].taskInstance, "start_date": began}
    return facets


def _text(moment: Any) -> str | None:
    return moment.isoformat() if isinstance(moment, datetime) else moment


class Emission(NamedTuple):
    """Whether the provider emits events of a task, and its lineage in them."""

    is_sent: bool
    has_lineage: bool


def is_active() -> bool:
    """Whether the provider sends anything."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    return not conf.is_disabled() and get_openlineage_listener() is not None


def transport_text() -> str:
    """Return what the provider sends by: a connection, or a kind of transport; empty where it sends nothing."""
    if not is_active():
        return ""
    from airflow.providers.openlineage import conf

    transport = conf.transport()
    if "conn_id" in transport:
        return f"the connection {transport['conn_id']}"
    return f"the transport {transport['type']}" if "type" in transport else "its own configuration"


def send(event: RunEvent) -> bool:
    """Send an event over the provider's transport; False where that is switched off."""
    if not is_active():
        return False
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    get_openlineage_listener().adapter.emit(event)
    return True


def emission(task: Any, dag_id: str, task_id: str) -> Emission:
    """Return what the provider's configuration, and the task's own, say of a task."""
    try:
        from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy
    except ImportError:
        return _older_emission(task)
    policy = resolve_task_emission_policy(task, dag_id, task_id)
    return Emission(policy.emit, policy.extract_operator_metadata)


def _older_emission(task: Any) -> Emission:
    """Decide as the listener of a provider without emission policy does."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.utils.selective_enable import is_task_lineage_enabled
    from airflow.providers.openlineage.utils.utils import is_operator_disabled

    is_wanted = not conf.selective_enable() or is_task_lineage_enabled(task)
    return Emission(is_wanted and not is_operator_disabled(task), has_lineage=True)


def corrected_event(event: Event) -> Event:
    """Correct the provider's event of a task with lineage; return any other event as it is.

    The provider (2.20) reports BATCH for every job, puts the tags of the DAG in the place of the task's, and reports
    FAIL for a task that was killed. The facets ``sparkLineage_job`` and ``sparkLineage_status`` have the right values.
    """
    from openlineage.client.event_v2 import RunEvent
    from openlineage.client.generated.tags_job import TagsJobFacet, TagsJobFacetFields

    if not isinstance(event, RunEvent):
        return event
    ours = (event.job.facets or {}).get(JOB_KEY)
    is_fail = event.eventType is not None and event.eventType.value == "FAIL"
    is_killed = is_fail and value_of((event.run.facets or {}).get(STATUS_KEY), "state") == "ABORT"
    if not is_killed and not isinstance(ours, SparkJobFacet):
        return event
    meant = copy.copy(event)
    if is_killed:
        meant.eventType = type(event.eventType)("ABORT")  # type: ignore[misc]
    if isinstance(ours, SparkJobFacet):
        facets: dict[str, Any] = {key: each for key, each in (event.job.facets or {}).items() if key != JOB_KEY}
        if (job_type := facets.get("jobType")) is not None:
            facets["jobType"] = copy.copy(job_type)
            facets["jobType"].processingType = ours.processingType
        if ours.tags:
            others = [one for one in getattr(facets.get("tags"), "tags", None) or () if one.key not in ours.tags]
            own = [TagsJobFacetFields(key=key, value=text or key, source="USER") for key, text in ours.tags.items()]
            facets["tags"] = TagsJobFacet(tags=[*others, *own], producer=PRODUCER)
        meant.job = copy.copy(event.job)
        meant.job.facets = facets
        if ours.isMapIndexInName:
            index = value_of(value_of((event.run.facets or {}).get("airflow"), "taskInstance"), "map_index")
            meant.job.name = indexed(event.job.name, index)
    return meant
