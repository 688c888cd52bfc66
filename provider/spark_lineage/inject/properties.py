"""Extends the user's Spark arguments so that the driver writes its lineage; what the user set wins; pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_lineage.launch.directory import LOG_DIRECTORY
from spark_lineage.secrets.redaction import holds_secret

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
_ARTIFACT = "openlineage-spark"
# The property whose pattern names the secrets that Spark masks, in its UI among others.
REDACTION_KEY = "spark.redaction.regex"
PREFIX = "spark.openlineage.transport."
TRANSPORT_TYPE = f"{PREFIX}type"
DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_CONTINUE = f"{PREFIX}continueOnFailure"
_MEMBERS = f"{PREFIX}transports"
_OURS = f"{_MEMBERS}.spark_lineage."
_USERS = f"{_MEMBERS}.user."


def split(text: str, separator: str = ",") -> list[str]:
    """Return the parts of one of Spark's lists."""
    return [part.strip() for part in text.split(separator) if part.strip()]


@dataclass(frozen=True)
class LineageProperties:
    """The properties for the driver, unless the user has set others."""

    events_file: str
    """Absolute path, on the driver's machine, for the listener's file transport."""
    namespace: str
    application_name: str
    application_run_id: str
    parent: Mapping[str, str]
    """``spark.openlineage.parent*`` and ``rootParent*``, as Airflow's OpenLineage provider builds them."""
    tags: Mapping[str, str]
    """Job tags by key; the value of a plain tag is empty."""
    instead: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties, by the listener's names, of a transport that replaces the file."""


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
    :raises TransportConflictError: for a user's transport that cannot be joined
    :raises JarNotFoundError: where Spark would misread the jar's path
    """
    arguments = user
    private: dict[str, str] = {}
    if jar is not None:
        arguments, private = inject_jar(user, file_properties, jar, deploy_mode=deploy_mode)
    is_alone = not {**file_properties, **user.conf}.get(TRANSPORT_TYPE, "").strip()
    transport = lineage.instead or {"type": "file", "location": lineage.events_file}
    conf, private_transport = inject_transport(user.conf, file_properties, transport)
    private_options: dict[str, str] = {}
    if lineage.instead:
        conf, private_options = _as_options(conf, file_properties)
    effective = {**file_properties, **conf}
    listeners = split(effective.get(_LISTENERS, ""))
    conf[_LISTENERS] = ",".join(listeners if LISTENER in listeners else [*listeners, LISTENER])
    conf |= identity_of(lineage, effective)
    if is_alone:  # a backend of the user's must keep getting what it got
        unused = (f"{FACETS_PREFIX}{name}.disabled" for name in UNUSED_FACETS)
        conf |= {key: "true" for key in unused if key not in effective}
    if tags := _tags(effective.get(_JOB_TAGS, ""), lineage.tags):
        conf[_JOB_TAGS] = tags
    return replace(arguments, conf=conf), private | private_transport | private_options


def identity_of(lineage: LineageProperties, effective: Mapping[str, str]) -> dict[str, str]:
    """Return what listener and event log are to say of the application's run, job and parents."""
    identity = {
        NAMESPACE: lineage.namespace,
        APP_NAME: lineage.application_name,
        APP_RUN_ID: lineage.application_run_id,
    }
    # A group (parent, root parent) is added as a whole: half a parent misleads.
    absent = tuple(group for group in _PARENTS if not any(key.startswith(group) for key in effective))
    identity |= {key: value for key, value in lineage.parent.items() if key.startswith(absent)}
    return {key: value for key, value in identity.items() if key not in effective}


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


class JarNotFoundError(Exception):
    """The OpenLineage listener jar cannot be used; the text says the cause and the remedy."""


@dataclass(frozen=True)
class SubmitArguments:
    """The arguments of ``spark-submit`` that concern lineage: the user's, or as injected."""

    conf: Mapping[str, str]
    jars: str | None = None
    driver_class_path: str | None = None
    packages: str | None = None
    py_files: str | None = None


def inject_jar(
    user: SubmitArguments, file_properties: Mapping[str, str], jar: str, *, deploy_mode: str
) -> tuple[SubmitArguments, dict[str, str]]:
    """Return the arguments with ``jar``, a local path or a URL, and the properties that must stay in a file.

    A flag replaces its property, in spark-submit as here, so whatever is effective today is kept in what we set.

    :raises JarNotFoundError: where Spark would misread its path
    """
    jars, packages, class_path = effective_paths(user, file_properties)
    is_local = jar.startswith("/")
    # On the driver's class path, the 43 MB are not shipped to the executors. But a jar there sees no class of --jars
    # and --packages, which Spark loads in a child class loader: with Iceberg in --packages and the listener on the
    # class path, every Iceberg dataset is lost, silently; with the listener in --jars none is (measured).
    if deploy_mode == "client" and is_local and not jars.strip() and not packages.strip():
        return replace(user, driver_class_path=_append(class_path, jar, os.pathsep)), {}
    if is_local and (misread := misread_in_lists(jar)):
        raise JarNotFoundError(
            f"the path of the OpenLineage listener jar, {jar}, holds {misread}, which --jars does not take as "
            "it is; choose another openlineage_jar or XDG_CACHE_HOME"
        )
    all_jars = _append(jars, jar, ",")
    if user.jars is None and "spark.jars" not in user.conf and holds_secret("", jars):
        return user, {"spark.jars": all_jars}
    return replace(user, jars=all_jars), {}


def users_class_path(user: SubmitArguments, file_properties: Mapping[str, str]) -> list[str]:
    """Return what the user has on the driver's class path: files, and the names of artifacts."""
    jars, packages, class_path = effective_paths(user, file_properties)
    artifacts = [coordinate.split(":")[1] for coordinate in split(packages) if ":" in coordinate]
    return [*split(jars), *split(class_path, os.pathsep), *artifacts]


def is_listener(name: str) -> bool:
    """Whether a file or an artifact is an ``openlineage-spark`` by its name."""
    # Only the last part of a path counts, or `openlineage-spark/iceberg.jar` would do; `openlineage-spark/*` does.
    return _ARTIFACT in name.rstrip("/*").rpartition("/")[2]


def misread_in_lists(path: str) -> str:
    """Return what of a path Spark takes for something else in its lists of files: separators, patterns, fragments.

    A list with such a path stops the job, or its Python cannot import the file (measured, Spark 3.5 and 4.2).
    """
    return " ".join(sorted(set(path) & set(",:#?*[]{}\\")))


def effective_paths(user: SubmitArguments, file_properties: Mapping[str, str]) -> tuple[str, str, str]:
    """Return jars, packages and driver class path as spark-submit sees them: a flag replaces its property."""
    properties = {**file_properties, **user.conf}
    jars = properties.get("spark.jars", "") if user.jars is None else user.jars
    packages = properties.get("spark.jars.packages", "") if user.packages is None else user.packages
    class_path = user.driver_class_path
    return jars, packages, properties.get("spark.driver.extraClassPath", "") if class_path is None else class_path


def _append(text: str, part: str, separator: str) -> str:
    return f"{text.rstrip(separator)}{separator}{part}" if text.strip() else part


class TransportConflictError(Exception):
    """The user's own OpenLineage transport cannot be joined by ours."""


def inject_transport(
    conf: Mapping[str, str], file_properties: Mapping[str, str], ours: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return ``--conf`` with a transport of ours, beside the user's own, and what must stay in a file.

    :raises TransportConflictError: for a user's transport that cannot be joined
    """
    effective = {**file_properties, **conf}
    kind = effective.get(TRANSPORT_TYPE, "").strip()
    if not kind:  # without a type the listener has no transport, whatever other keys there are
        return _with_ours(dict(conf), {}, effective, {f"{PREFIX}{key}": value for key, value in ours.items()})
    if kind == ours["type"] == "console":
        # There is one already, and events are collected from where it sends them.
        own = {key: value for key, value in file_properties.items() if _is_single(key) and key not in conf}
        secret = {key: value for key, value in own.items() if holds_secret(key, value)}
        return {key: value for key, value in {**own, **conf}.items() if key not in secret}, secret
    if kind == "kafka":
        raise TransportConflictError(
            "the job's own OpenLineage transport to Kafka stays its only one: nothing can be added to it"
        )
    if not _can_join(kind, effective):
        raise TransportConflictError(
            "the job's own OpenLineage transport is given in a form that a second one cannot be added to; write it as "
            "spark.openlineage.transport.type=composite with spark.openlineage.transport.transports.<name>.* members"
        )
    composite, private = (dict(conf), {}) if kind == "composite" else _wrap(kind, conf, file_properties)
    if _CONTINUE not in effective:
        composite[_CONTINUE] = "true"
    return _with_ours(composite, private, effective, {f"{_OURS}{key}": value for key, value in ours.items()})


def transports(conf: Mapping[str, str]) -> set[str]:
    """Return the types of the transports that a job is submitted with: of the user, and ours."""
    return {value for key, value in conf.items() if key in (TRANSPORT_TYPE, f"{_OURS}type")}


def _with_ours(
    conf: dict[str, str], private: dict[str, str], effective: Mapping[str, str], ours: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Add our transport; Spark masks what is secret of it, in its UI and its logs, whatever else it is to mask."""
    secret = {key: value for key, value in ours.items() if holds_secret(key, value)}
    if secret and REDACTION_KEY in effective:
        names = (re.escape(key.rpartition(".")[2]) for key in secret)
        conf[REDACTION_KEY] = "|".join([effective[REDACTION_KEY], *names])
    return conf | {key: value for key, value in ours.items() if key not in secret}, private | secret


def _as_options(conf: dict[str, str], file_properties: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return ``--conf``, and what must stay in a file; what names a container's log directory is an option of the JVM.

    Spark takes such an option for one of its properties.
    """
    ours = {key: value for key, value in conf.items() if value.startswith(LOG_DIRECTORY)}
    if not ours:
        return conf, {}
    users = {**file_properties, **conf}.get(DRIVER_OPTIONS, "")
    options = " ".join(filter(None, (users, *(f"-D{key}={value}" for key, value in ours.items()))))
    is_private = DRIVER_OPTIONS not in conf and holds_secret("", users)
    conf = {key: value for key, value in conf.items() if key not in ours}
    return (conf, {DRIVER_OPTIONS: options}) if is_private else ({**conf, DRIVER_OPTIONS: options}, {})


def _can_join(kind: str, effective: Mapping[str, str]) -> bool:
    """Whether a member beside what is there leaves the user's transport what it is.

    A list and a member cannot stand together: the events of both are lost (measured). And members that the user's conf
    put to sleep with a single type would wake in a composite; they cannot be taken out of the user's file.
    """
    if kind == "composite":
        return _MEMBERS not in effective
    return not any(key == _MEMBERS or key.startswith(f"{_MEMBERS}.") for key in effective)


def _wrap(
    kind: str, conf: Mapping[str, str], file_properties: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Turn the user's single transport into the member ``user`` of a composite.

    The originals of those that came from the file stay there: beside a composite the listener ignores them (measured).
    """
    composite = {_member(key): value for key, value in conf.items()}
    composite |= {f"{_USERS}type": kind, TRANSPORT_TYPE: "composite"}
    private: dict[str, str] = {}
    # Not of another kind: the listener ignores a key that its transport does not know, but refuses it in a member of a
    # composite (measured).
    is_of_kind = file_properties.get(TRANSPORT_TYPE, kind).strip() == kind
    for key, value in file_properties.items() if is_of_kind else ():
        if _is_single(key) and key not in conf and _member(key) not in composite:
            (private if holds_secret(key, value) else composite)[_member(key)] = value
    return composite, private


def _is_single(key: str) -> bool:
    return key.startswith(PREFIX) and key != _CONTINUE and not key.startswith(f"{_MEMBERS}.")


def _member(key: str) -> str:
    """The key of a single transport as a key of the member ``user``; any other key as it is."""
    return _USERS + key.removeprefix(PREFIX) if _is_single(key) else key
