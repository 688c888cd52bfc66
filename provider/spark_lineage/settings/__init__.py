"""The settings: operator argument, then connection extra, then ``[spark_lineage]``, then the default.

Each reader returns a valid value, or says what is valid; pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, get_args

Granularity = Literal["task", "path"]
# The source of lineage: OpenLineage's listener, Spark's event log, or both.
Evidence = Literal["auto", "both", "event_log", "listener"]
# Where the event log of a driver on another machine is read from.
EventLogFrom = Literal["auto", "directory", "event_log", "history"]
# Whether a task fails without lineage: never, if none came, or if any of it is unknown too.
Required = bool | Literal["complete"]
# Ids of Airflow connections of type ``openlineage``.
ConnIds = tuple[str, ...]
Patterns = tuple[str, ...]
PolicyRules = tuple[str, ...]
# Class paths, and from the operator's argument also factories and listeners.
ListenerSources = tuple[Any, ...]
# How long the task waits for others at most; 0 is not at all.
WaitSeconds = float

# More than any size or time that is meant; a thread cannot wait as long as a float can say.
_MAX_NUMBER = 1e9
_RULE = re.compile(r"!?(dag|tag|pool|conn):.")


class SettingError(ValueError):
    """A setting that cannot be used; the text says which, where it was set, and what fits."""


def boolean(value: Any, place: str) -> bool:
    """Read true or false, in the words of Airflow and of people."""
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on", "t", "y"):
        return True
    if text in ("false", "0", "no", "off", "f", "n"):
        return False
    raise SettingError(f"{place} is {_shown(value)}; give true or false")


def required(value: Any, place: str) -> Required:
    """Read true, false or ``complete``."""
    if str(value).strip().lower() == "complete":
        return "complete"
    try:
        return boolean(value, place)
    except SettingError as error:
        raise SettingError(f"{error}, or complete") from None


def number(value: Any, place: str, *, can_be_zero: bool = False) -> float:
    """Read a number above 0, or from 0 on."""
    try:
        # True is 1 to Python, and no number to the one who wrote it.
        found = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = -1.0
    # NaN fails the comparisons too.
    if not (0 < found <= _MAX_NUMBER or (can_be_zero and found == 0)):
        least = "from 0 on" if can_be_zero else "above 0"
        raise SettingError(f"{place} is {_shown(value)}; give a number {least}, and at most {_MAX_NUMBER:g}")
    return found


def text(value: Any, place: str) -> str:
    """Read text."""
    if not isinstance(value, str):
        raise SettingError(f"{place} is {_shown(value)}; give text")
    return value


def one_of(*choices: str) -> Callable[[Any, str], str]:
    """Return what reads one of these words."""

    def read(value: Any, place: str) -> str:
        if value not in choices:
            raise SettingError(f"{place} is {_shown(value)}; give one of {', '.join(choices)}")
        return str(value)

    return read


def listeners(value: Any, place: str) -> ListenerSources:  # noqa: ARG001 - what names no listener is said by who looks
    """Read a list, or text with semicolons."""
    if isinstance(value, str):
        value = [path.strip() for path in value.split(";")]
    if not isinstance(value, list | tuple):
        value = (value,)
    return tuple(one for one in value if one != "")


def conn_ids(value: Any, place: str) -> ConnIds:
    """Read ids, each once: a backend must not get an event twice."""
    if isinstance(value, str):
        value = value.split(";")
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise SettingError(f"{place} is {_shown(value)}; give the id of a connection, or a list of them")
    return tuple(dict.fromkeys(one.strip() for one in value if one.strip()))


def patterns(value: Any, place: str) -> Patterns:
    """Read regular expressions of RE2: a list, or text with one a line. They are not shown: they may hold a secret."""
    if isinstance(value, str):
        value = [line.strip() for line in value.splitlines() if line.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise SettingError(f"{place} is not a list of regular expressions, or text with one per line")
    # On purpose here: settings are read without it, and masking reads some of them.
    from spark_lineage.secrets.redaction import PatternError, compile_pattern

    for position, one in enumerate(value, 1):
        try:
            compile_pattern(one)
        except PatternError as error:
            raise SettingError(f"{place} is unusable in line {position}: {error}") from None
    return tuple(value)


def policy_rules(value: Any, place: str) -> PolicyRules:
    """Read rules such as ``tag:finance`` and ``!dag:sandbox_*``, with semicolons between them."""
    rules = tuple(one.strip() for one in text(value, place).split(";") if one.strip())
    if wrong := [one for one in rules if not _RULE.match(one)]:
        choices = "a pattern after dag:, tag:, pool: or conn:, with or without ! before it"
        raise SettingError(f"{place} has the rule {_shown(wrong[0])}; give {choices}")
    return rules


def tags(value: Any, place: str) -> Mapping[str, str]:
    """Read a mapping, a list, or either as JSON, or ``key:value`` pairs with semicolons."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise SettingError(f"{place} is not a JSON object or list: {error}") from error
    if isinstance(value, str):
        value = value.split(";")
    if isinstance(value, Mapping):
        return {str(key): "" if one is None else str(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        pairs = (tag.partition(":") for tag in sorted(map(str, value)) if tag.strip())
        return {key.strip(): one.strip() for key, _, one in pairs}
    raise SettingError(f"{place} is {_shown(value)}; give a mapping, a list, or text like 'team:sales;nightly'")


def _shown(value: Any) -> str:
    return repr(value)


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
    records_dir: str = _setting(
        "",
        "Where the last end of each task is kept: a path, or a URL, such as one of S3, whose user is an Airflow "
        "connection. The next START and ``evidence`` ``auto`` use it. Empty: below the lineage directory. For workers "
        "that share no disk.",
        example="s3://aws_default@bucket/records",
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
        "at hand, but the event log alone where an earlier run has shown that this is enough.",
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
    "bool": boolean,
    "Required": required,
    "float": number,
    "WaitSeconds": partial(number, can_be_zero=True),
    "str": text,
    "Granularity": one_of(*get_args(Granularity)),
    "Evidence": one_of(*get_args(Evidence)),
    "EventLogFrom": one_of(*get_args(EventLogFrom)),
    "ListenerSources": listeners,
    "ConnIds": conn_ids,
    "Patterns": patterns,
    "PolicyRules": policy_rules,
    "Mapping[str, str]": tags,
}
