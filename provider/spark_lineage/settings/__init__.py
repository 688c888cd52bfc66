"""The settings: operator argument, then connection extra, then ``[spark_lineage]``, then the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, get_args

from spark_lineage.settings import values
from spark_lineage.settings.values import (
    ConnIds,
    EventLogFrom,
    Evidence,
    Granularity,
    ListenerSources,
    Patterns,
    PolicyRules,
    Required,
    SettingError,
    WaitSeconds,
)

__all__ = [
    "ARGUMENTS",
    "SECTION",
    "EventLogFrom",
    "Evidence",
    "Granularity",
    "Place",
    "SettingError",
    "Settings",
    "Settled",
]

SECTION = "spark_lineage"

Place = Literal["argument", "extra", "section", "default"]


@dataclass(frozen=True)
class Settled:
    """One setting: its value, and the place that it came from; ``value`` is as given where it does not fit."""

    name: str
    value: Any
    place: Place
    error: str = ""
    """What is wrong with the value, and what fits."""


def _setting(default: Any, description: str, *, example: str, is_argument: bool = True) -> Any:
    """Describe a setting.

    :param description: as ``airflow config list`` shows it; the first sentence says what it is
    :param is_argument: whether the operator has an argument of this name
    """
    metadata = {"description": description, "example": example, "is_argument": is_argument}
    if isinstance(default, Mapping):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """Every setting by the name that it has as an operator argument, in the connection's extra and in the section.

    This is the one table of them: the section that Airflow knows, ``spark-lineage config``, and what each place may
    hold come out of it; the type says how a value is read. Empty text means the default that the description names. How
    datasets are named is set by keys of any name, which :func:`spark_lineage.naming.options.naming_from` reads from
    the same places.
    """

    lineage_enabled: bool = _setting(
        True,
        "Whether lineage is collected. When False, the operator is a plain ``SparkSubmitOperator``.",
        example="False",
    )
    lineage_required: Required = _setting(
        False,
        "Whether a task fails if its lineage could not be collected. When False, the log says why. ``complete``: also "
        "if its event counts anything as unknown or not understood.",
        example="True",
    )
    lineage_dir: str = _setting(
        "",
        "Directory in which the driver writes its lineage and the worker reads it: an absolute local path that "
        "both share. Each try gets a private directory (0700) below it. Empty: ``{AIRFLOW_HOME}/spark_lineage``.",
        example="/mnt/shared/spark_lineage",
    )
    openlineage_jar: str = _setting(
        "",
        "The OpenLineage listener for Spark: a path, a URL or a Maven coordinate. ``{scala}`` is the Scala version"
        " of the Spark found. A coordinate is fetched once from a Maven repository and kept in "
        "``{XDG_CACHE_HOME}/airflow-provider-spark-lineage``. "
        "Empty: ``io.openlineage:openlineage-spark_{scala}:1.53.0``.",
        example="/opt/jars/openlineage-spark_2.13-1.53.0.jar",
    )
    lineage_tags: Mapping[str, str] = _setting(
        {},
        "Tags of the Spark application's own job: a JSON object, or ``key:value`` pairs separated by semicolons.",
        example="team:finance;tier:gold",
    )
    retention_days: float = _setting(
        30.0, "Age in days after which lineage files of earlier tries are removed.", example="7"
    )
    poll_interval_seconds: float = _setting(
        5.0, "How often the lineage and event log of a running job are read, and its status is polled.", example="1.5"
    )
    lineage_timeout: WaitSeconds = _setting(
        60.0,
        "How many seconds a task waits at its end until its lineage is read; what was not read by then is missing, and "
        "the event says so. Other waits follow it: the first task waits twice as long for the jar of the listener, and "
        "a twelfth of it each for all backends and for all listeners together.",
        example="10",
    )
    event_log_from: EventLogFrom = _setting(
        "auto",
        "Where Spark's event log is collected from. ``directory``: one that this machine sees. ``event_log``: where "
        "``spark.eventLog.dir`` says, on HDFS, S3, GCS or ABFS. ``history``: the History Server. ``auto``: the first "
        "of these that works.",
        example="history",
    )
    event_log_dir: str = _setting(
        "",
        "Where drivers that run elsewhere log their events if no ``spark.eventLog.dir`` is set: an existing "
        "directory that they write to and the worker reads, as a path or as a URL. In that of S3 or GCS, a user is "
        "the Airflow connection to read with. Empty: they log where they are set to, or not at all.",
        example="s3a://aws_default@bucket/event_logs",
        is_argument=False,
    )
    receiver_conn_id: str = _setting(
        "",
        "Connection to a receiver (``spark-lineage receive``): schema, host, port, and its secret as password. Drivers "
        "in deploy mode ``cluster`` send it their events where no ``lineage_dir`` is set.",
        example="receiver",
        is_argument=False,
    )
    tracking_interval_seconds: float = _setting(
        3600.0, "The longest time between two RUNNING events of a task; new datasets are sent sooner.", example="600"
    )
    evidence: Evidence = _setting(
        "auto",
        "The source of the lineage. ``event_log``: Spark's event log alone, without a jar. ``listener``: OpenLineage's "
        "listener alone. ``both``: the two, and the first task waits for the jar. ``auto``: the two where the jar is "
        "at hand, else the event log.",
        example="event_log",
    )
    granularity: Granularity = _setting(
        "task",
        "The jobs that a task has. ``task``: one. ``path``: also a child job for each output.",
        example="path",
    )
    map_index_in_job_name: bool = _setting(
        False,
        "Whether each index of a mapped task is a job of its own, called ``dag_id.task_id[index]``. Otherwise they"
        " are runs of one job, whose graph is that of the index that ended last.",
        example="True",
    )
    max_event_bytes: float = _setting(
        1_000_000.0,
        "Size in bytes above which an event loses detail, never a dataset, and says so in a facet.",
        example="500000",
    )
    emit_assets: bool = _setting(
        False,
        "Whether the outputs that a task has written become Airflow asset events (datasets in Airflow 2), which "
        "trigger the DAGs that are scheduled by them.",
        example="True",
    )
    lineage_listeners: ListenerSources = _setting(
        (),
        "Class paths of listeners, separated by semicolons. Each gets the new job, each change of its status, each "
        "table, view and database that the task created, altered, renamed or dropped, and the lineage at the end.",
        example="spark_lineage.listeners.metrics_listener.MetricsListener;our_package.Glossary",
    )
    lineage_conn_id: ConnIds = _setting(
        (),
        "Connections that get the events of a task, separated by semicolons: of type ``openlineage`` as they are, of "
        "type ``atlas`` as a process in Apache Atlas. Empty: only Airflow's OpenLineage provider sends them.",
        example="marquez;data_rentgen;atlas",
    )
    lineage_url: str = _setting(
        "",
        "The page of a task's job in a backend, which the task links to: a URL with ``{namespace}``, ``{job}``, "
        "``{run_id}``, ``{dag_id}`` or ``{task_id}``.",
        example="http://marquez:3000/lineage/job/{namespace}/{job}",
        is_argument=False,
    )
    policy_rules: PolicyRules = _setting(
        (),
        "Which tasks ``spark_lineage.policy`` gives lineage to: ``dag:``, ``tag:``, ``pool:`` or ``conn:`` and a shell "
        "pattern, separated by semicolons; ``!`` before a rule excludes what it fits. Empty: all of them. Read from "
        "the section alone.",
        example="tag:finance;conn:spark_prod;!dag:sandbox_*",
        is_argument=False,
    )
    outbox_dir: str = _setting(
        "",
        "Absolute path of the directory in which events wait until a backend has accepted them. Empty: "
        "``{AIRFLOW_HOME}/spark_lineage_outbox``.",
        example="/var/lib/airflow/outbox",
        is_argument=False,
    )
    redaction_patterns: Patterns = _setting(
        (),
        "Regular expressions (RE2), one per line, whose matches are masked wherever secrets are. With groups, only the "
        "groups are masked.",
        example="ACME-[0-9]{8}",
        is_argument=False,
    )

    @property
    def jar_seconds(self) -> float:
        """How long the first task waits for the listener's jar; after that its job has the event log alone."""
        return 2 * self.lineage_timeout

    @property
    def brief_seconds(self) -> float:
        """How long a task waits for all its backends, and for all its listeners."""
        return self.lineage_timeout / 12

    @classmethod
    def each(
        cls,
        arguments: Mapping[str, Any],
        extra: Mapping[str, Any],
        option: Callable[[str], str | None],
        *,
        only: str | None = None,
    ) -> Iterator[Settled]:
        """Return each setting from the first place that has it, one that does not fit with its error.

        :param arguments: of the operator; None and empty text count as not given
        :param extra: of the Spark connection
        :param option: gives the text of an option of ``[spark_lineage]``, None when it is not set
        :param only: the name of one, whatever is wrong with the others
        """
        for setting in fields(cls):
            name = setting.name
            if only not in {None, name}:
                continue
            places: tuple[tuple[Any, Place, str], ...] = (
                (arguments.get(name), "argument", f"operator argument {name!r}"),
                (extra.get(name), "extra", f"{name!r} in the extra of the Spark connection"),
                (option(name), "section", f"[{SECTION}] {name}"),
            )
            given = (each for each in places if each[0] is not None and each[0] != "")
            value, place, shown = next(given, (getattr(_DEFAULTS, name), "default", ""))
            try:
                read = value if place == "default" else _READERS[str(setting.type)](value, shown)
                yield Settled(name, read, place)
            except SettingError as error:
                yield Settled(name, value, place, str(error))

    @classmethod
    def resolve(
        cls, arguments: Mapping[str, Any], extra: Mapping[str, Any], option: Callable[[str], str | None]
    ) -> Settings:
        """Return all of them, of the same places; raises ``SettingError`` when a value does not fit."""
        values: dict[str, Any] = {}
        for settled in cls.each(arguments, extra, option):
            if settled.error:
                raise SettingError(settled.error)
            values[settled.name] = settled.value
        return cls(**values)


_DEFAULTS = Settings()
ARGUMENTS = tuple(setting.name for setting in fields(Settings) if setting.metadata["is_argument"])


# By the annotation of the field, which is text because of the __future__ import.
_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "bool": values.boolean,
    "Required": values.required,
    "float": values.number,
    "WaitSeconds": partial(values.number, can_be_zero=True),
    "str": values.text,
    "Granularity": values.one_of(*get_args(Granularity)),
    "Evidence": values.one_of(*get_args(Evidence)),
    "EventLogFrom": values.one_of(*get_args(EventLogFrom)),
    "ListenerSources": values.listeners,
    "ConnIds": values.conn_ids,
    "Patterns": values.patterns,
    "PolicyRules": values.policy_rules,
    "Mapping[str, str]": values.tags,
}
