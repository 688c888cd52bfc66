"""Finds out what the pure injection needs to know: Spark, its properties file, and the listener jar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spark_lineage.inject.class_path import Jar, JarNotFoundError, SubmitArguments, brought_files, brought_listeners
from spark_lineage.inject.installation import InstallationNotFoundError, SparkInstallation, find_installation
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.inject.jar_file import check_scala, holds_listener
from spark_lineage.inject.properties import Injection, LineageProperties, inject
from spark_lineage.inject.properties_file import default_properties_file, read_properties_file, write_properties_file
from spark_lineage.inject.transport import TRANSPORT_TYPE
from spark_lineage.launch.directory import PRIVATE_FILE
from spark_lineage.settings.defaults import DEFAULT_JAR

_IVY_SETTINGS = "spark.jars.ivySettings"
_REPOSITORIES = "spark.jars.repositories"
# What Spark masks in its UI.
_REDACTION = "spark.redaction.regex"
_K8S_UPLOAD = "spark.kubernetes.file.upload.path"


class NoRoomError(Exception):
    """The user's own OpenLineage transport cannot be joined by ours."""


@dataclass(frozen=True)
class Submitter:
    """How spark-submit is going to be run; ``deploy_mode`` is asked with the properties of the file."""

    master: str
    spark_binary: str
    env: Mapping[str, str]
    properties_file: str | None
    repositories: Sequence[str]
    deploy_mode: Callable[[Mapping[str, str]], str]
    application: str = ""
    """The primary resource: a jar, or a Python program."""
    named: Sequence[str] = field(default=(), repr=False)
    """What else the program is given: its arguments, and the files that it reads."""


@dataclass(frozen=True)
class ListenerJar:
    """Where the listener jar comes from (path, URL or coordinate; empty: our own), and how long getting it may take."""

    spec: str
    cache_dir: str
    timeout_seconds: float


@dataclass(frozen=True)
class Prepared:
    """What to submit with; ``properties_file`` is a private file to hand over instead of the user's, and to remove."""

    injection: Injection
    properties_file: Path | None
    deploy_mode: str
    properties: Mapping[str, str] = field(repr=False)
    """The user's own, of the file and of ``--conf``."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of spark-submit, in client mode."""

    def with_arguments(self, **changes: Any) -> Prepared:
        """Return the same with other arguments of spark-submit."""
        arguments = replace(self.injection.arguments, **changes)
        return replace(self, injection=replace(self.injection, arguments=arguments))


@dataclass(frozen=True)
class UserProperties:
    """What the user submits with: the properties file, what is in it, all properties, and the deploy mode of all."""

    file: Path | None
    of_file: Mapping[str, str] = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)
    """Of the file and of ``--conf``."""
    deploy_mode: str


def user_properties(user: SubmitArguments, submitter: Submitter, home: Path | None = None) -> UserProperties:
    """Look up what the user submits with.

    :param home: of Spark, None to look for it
    :raises PropertiesFileError: when the user's properties file cannot be read
    """
    given = submitter.properties_file
    home = home or _home(lambda: find_installation(submitter.spark_binary, submitter.env))
    file = Path(given) if given else default_properties_file(home, submitter.env)
    of_file = read_properties_file(file) if file is not None else {}
    return UserProperties(file, of_file, {**of_file, **user.conf}, submitter.deploy_mode(of_file))


def prepare(
    user: SubmitArguments,
    submitter: Submitter,
    listener: ListenerJar,
    lineage: LineageProperties,
    transport: Mapping[str, str] = MappingProxyType({}),
) -> Prepared:
    """Extend the user's arguments for lineage, which is going to be written into an existing directory.

    :param transport: properties of another transport that the driver is to use besides, unless the user has set one
    :raises JarNotFoundError: when the listener jar cannot be had, not where the driver runs, or not for its Scala
    :raises PropertiesFileError: when the user's properties file cannot be read
    :raises NoRoomError: when the user's own transport cannot be joined
    """

    @cache
    def installation() -> SparkInstallation:
        return find_installation(submitter.spark_binary, submitter.env)

    home = _home(installation)
    found = user_properties(user, submitter, home)
    file, file_properties, effective = found.file, found.of_file, found.properties
    if TRANSPORT_TYPE not in effective:
        # As if the user's file had them: then what is secret stays in a file that is private.
        file_properties = {**transport, **file_properties}
        masked = {key: transport[key] for key in {_REDACTION} & transport.keys() - effective.keys()}
        user = replace(user, conf={**masked, **user.conf})
    deploy_mode = submitter.deploy_mode(file_properties)
    jar = None
    listeners = brought_listeners(user, file_properties)
    # Spark would find two of them.
    listeners = listeners or [file for file in brought_files(user, file_properties) if holds_listener(file)]
    # In cluster mode the driver runs with another host's Spark.
    listeners = listeners or (_installed(home) if deploy_mode == "client" else [])
    if not listeners:
        properties = {**file_properties, **user.conf}
        jar = _jar(listener, submitter, properties, installation)
        if deploy_mode == "cluster":
            _check_reach(jar, listener.spec, submitter.master, properties)
        listeners = [jar.location]
    if deploy_mode == "client" and home is not None:
        for each in listeners:
            check_scala(each, installation())
    injection = inject(user, file_properties, lineage, jar, deploy_mode=deploy_mode)
    if not injection.has_events_file:
        raise NoRoomError(
            "the job's own OpenLineage transport is given in a form that a second one cannot be added to; write it as "
            "spark.openlineage.transport.type=composite with spark.openlineage.transport.transports.<name>.* members; "
            "or, for Kafka, as a connection that driver_openlineage_conn_id names"
        )
    if not injection.private_properties:
        return Prepared(injection, None, deploy_mode, effective)
    private_file = Path(lineage.events_file).with_name(PRIVATE_FILE)
    write_properties_file(private_file, injection.private_properties, base=file)
    return Prepared(injection, private_file, deploy_mode, effective)


def _home(installation: Callable[[], SparkInstallation]) -> Path | None:
    try:
        return installation().home
    except InstallationNotFoundError:
        # Whoever gives the jar by its path needs no installation that we can find.
        return None


def _installed(home: Path | None) -> list[str]:
    return [str(jar) for jar in (home / "jars").glob("openlineage-spark*.jar")] if home is not None else []


def _check_reach(jar: Jar, spec: str, master: str, properties: Mapping[str, str]) -> None:
    """Refuse a jar that the driver may not find on its host: a listener without its class ends the job.

    YARN's client uploads the jar. A standalone master takes its path as it is, and so a path is believed only where the
    user gave it. The client of Kubernetes refuses to submit a path that it has no place to upload to.
    """
    if not jar.is_local or master.startswith("yarn"):
        return
    if master.startswith("k8s"):
        if _K8S_UPLOAD in properties:
            return
        remedy = f"set openlineage_jar to a local:// path of the driver's image, or {_K8S_UPLOAD}"
    elif spec.startswith(("/", "file:")):
        return
    else:
        remedy = (
            "set openlineage_jar to a path where the hosts of the drivers have it too, or to a URL that Spark reads"
        )
    raise JarNotFoundError(f"in cluster mode on {master} the driver could not load {jar.location}; {remedy}")


def _jar(
    listener: ListenerJar,
    submitter: Submitter,
    properties: Mapping[str, str],
    installation: Callable[[], SparkInstallation],
) -> Jar:
    env = submitter.env
    caches = Path(env.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    repositories = [name.strip() for name in properties.get(_REPOSITORIES, "").split(",") if name.strip()]
    return resolve_jar(
        listener.spec or DEFAULT_JAR,
        installation=installation,
        cache_dir=Path(listener.cache_dir or caches / "airflow-provider-spark-lineage"),
        ivy_settings=properties.get(_IVY_SETTINGS),
        repositories=[*submitter.repositories, *repositories],
        env=env,
        timeout_seconds=listener.timeout_seconds,
    )
