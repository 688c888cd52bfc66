"""The user's Spark arguments, extended so that the driver writes its lineage; what the user set wins; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_lineage.inject.class_path import SubmitArguments, inject_jar
from spark_lineage.inject.transport import TRANSPORT_TYPE, inject_transport

LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
FACETS_PREFIX = "spark.openlineage.facets."
UNUSED_FACETS = (
    "spark_properties",
    "environment-properties",
    "spark_jobDetails",
    "spark.logicalPlan",
    "spark_unknown",
    "debug",
    "sql",
    "dataSource",
    "spark.exception",
)
_LISTENERS = "spark.extraListeners"
NAMESPACE = "spark.openlineage.namespace"
APP_NAME = "spark.openlineage.appName"
APP_RUN_ID = "spark.openlineage.applicationRunId"
_JOB_TAGS = "spark.openlineage.job.tags"
_PARENTS = ("spark.openlineage.parent", "spark.openlineage.rootParent")


@dataclass(frozen=True)
class LineageProperties:
    """What the driver should be told, where the user did not tell it something else."""

    events_file: str
    """Absolute path, on the driver's machine, for the listener's file transport."""
    namespace: str
    application_name: str
    application_run_id: str
    parent: Mapping[str, str]
    """``spark.openlineage.parent*`` and ``rootParent*``, as Airflow's OpenLineage provider builds them."""
    tags: Mapping[str, str]
    """Job tags by key; the value of a plain tag is empty."""


def inject(
    user: SubmitArguments,
    file_properties: Mapping[str, str],
    lineage: LineageProperties,
    jar: str | None,
    *,
    deploy_mode: str,
) -> tuple[SubmitArguments, dict[str, str]]:
    """Extend ``user`` by listener, jar, transport, identity, parents and tags.

    Return the arguments, and the properties that must stay in a file: they came from one and hold secrets. What is put
    into ``--conf`` replaces the property of the file, so it holds that too. A tag that the listener would misread is
    left out (``is_writable_tag``).

    :param jar: None where the user or Spark has the listener already
    :raises NoRoomError: for a user's transport that cannot be joined
    :raises JarNotFoundError: where Spark would misread the jar's path
    """
    arguments = user
    private: dict[str, str] = {}
    if jar is not None:
        arguments, private = inject_jar(user, file_properties, jar, deploy_mode=deploy_mode)
    conf, private_transport = inject_transport(user.conf, file_properties, lineage.events_file)
    effective = {**file_properties, **conf}
    listeners = [name.strip() for name in effective.get(_LISTENERS, "").split(",") if name.strip()]
    conf[_LISTENERS] = ",".join(listeners if LISTENER in listeners else [*listeners, LISTENER])
    defaults = {
        NAMESPACE: lineage.namespace,
        APP_NAME: lineage.application_name,
        APP_RUN_ID: lineage.application_run_id,
        **_absent_parents(lineage.parent, effective),
    }
    if conf.get(TRANSPORT_TYPE) == "file":  # a backend of the user's must keep getting what it got
        defaults |= {f"{FACETS_PREFIX}{name}.disabled": "true" for name in UNUSED_FACETS}
    conf |= {key: value for key, value in defaults.items() if key not in effective}
    if tags := _tags(effective.get(_JOB_TAGS, ""), lineage.tags):
        conf[_JOB_TAGS] = tags
    return replace(arguments, conf=conf), private | private_transport


def _absent_parents(parents: Mapping[str, str], effective: Mapping[str, str]) -> dict[str, str]:
    """Those of our parent properties whose group (parent, root parent) the user left alone; half a parent misleads."""
    absent = tuple(group for group in _PARENTS if not any(key.startswith(group) for key in effective))
    return {key: value for key, value in parents.items() if key.startswith(absent)}


def is_writable_tag(key: str, value: str) -> bool:
    """Whether the listener can be given this tag: it separates tags by ``;`` and key from value by ``:``."""
    return bool(key.strip()) and not any(separator in part for part in (key, value) for separator in ":;")


def _tags(users: str, ours: Mapping[str, str]) -> str:
    """``key:value;plain``, as the listener reads job tags (measured)."""
    tags = [tag for tag in users.split(";") if tag.strip()]
    taken = {tag.partition(":")[0].strip() for tag in tags}
    for key, value in ours.items():
        if key.strip() not in taken and is_writable_tag(key, value):
            tags.append(f"{key}:{value}" if value else key)
    return ";".join(tags)
