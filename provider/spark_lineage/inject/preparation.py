"""Finds out what the pure injection needs: Spark, its properties file, and the listener jar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spark_lineage.inject.installation import (
    InstallationNotFoundError,
    SparkInstallation,
    default_properties_file,
    find_installation,
    read_properties_file,
    write_properties_file,
)
from spark_lineage.inject.jar import check_scala, holds_listener, resolve_jar
from spark_lineage.inject.properties import (
    JarNotFoundError,
    LineageProperties,
    SubmitArguments,
    identity_of,
    inject,
    is_listener,
    split,
    users_class_path,
)
from spark_lineage.launch.directory import PRIVATE_FILE
from spark_lineage.settings import Settings
from spark_lineage.settings.places import DEFAULT_JAR, jar_cache

_YARN_JARS = "spark.yarn.jars"
_REPOSITORIES = "spark.jars.repositories"
K8S_UPLOAD = "spark.kubernetes.file.upload.path"
NO_PYTHON = (
    "a standalone cluster takes no Python program in deploy mode cluster",
    "Set deploy-mode to client, in the extra of its connection or in the arguments of the task.",
)
"""What is wrong with a program that is submitted so, and what to do."""


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

    def installation(self) -> SparkInstallation:
        """Return the Spark that is going to be run; raises ``InstallationNotFoundError`` where none is found."""
        return find_installation(self.spark_binary, self.env)

    @cached_property
    def known_installation(self) -> SparkInstallation | None:
        """The same, if one is found; whoever gives the jar by its path needs none that we can find."""
        try:
            return self.installation()
        except InstallationNotFoundError:
            return None

    @property
    def home(self) -> Path | None:
        """The home of Spark, if it is found."""
        return self.known_installation.home if self.known_installation else None


@dataclass(frozen=True)
class PreparedArguments:
    """The arguments to submit with; ``properties_file`` is private, goes in the place of the user's, and is removed."""

    arguments: SubmitArguments
    properties_file: Path | None
    deploy_mode: str
    properties: Mapping[str, str] = field(repr=False)
    """The user's own, of the file and of ``--conf``."""
    jar: str = ""
    """Of the listener that was added; empty where the job has one anyway, or none."""
    has_listener: bool = True
    declares: Mapping[str, str] = field(default_factory=dict)
    """What ``declare`` has to know in a driver whose Python is this process."""

    @property
    def conf(self) -> Mapping[str, str]:
        """The Spark properties that the job is submitted with, but for those of the private file."""
        return {**self.properties, **self.arguments.conf}

    def with_arguments(self, **changes: Any) -> PreparedArguments:
        """Return the same with other arguments of spark-submit."""
        return replace(self, arguments=replace(self.arguments, **changes))


@dataclass(frozen=True)
class UserProperties:
    """The user's own properties: the properties file, its content, all properties, and their deploy mode."""

    file: Path | None
    of_file: Mapping[str, str] = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)
    """Of the file and of ``--conf``."""
    deploy_mode: str


def user_properties(user: SubmitArguments, submitter: Submitter) -> UserProperties:
    """Look up what the user submits with; raises ``PropertiesFileError`` when their properties file cannot be read."""
    given = submitter.properties_file
    file = Path(given) if given else default_properties_file(submitter.home, submitter.env)
    of_file = read_properties_file(file) if file is not None else {}
    return UserProperties(file, of_file, {**of_file, **user.conf}, submitter.deploy_mode(of_file))


def prepare(
    user: SubmitArguments,
    submitter: Submitter,
    settings: Settings,
    lineage: LineageProperties,
) -> PreparedArguments:
    """Extend the user's arguments by the listener, which is going to write into an existing directory.

    The jar is downloaded unless ``evidence`` is ``auto``.

    :raises JarNotFoundError: when the listener jar cannot be found, not on the driver's host, or not for its Scala
    :raises PropertiesFileError: when the user's properties file cannot be read
    :raises TransportConflictError: when the user's own transport cannot be joined
    """
    found = user_properties(user, submitter)
    file_properties, deploy_mode = found.of_file, found.deploy_mode
    jar = None
    of_user = users_class_path(user, file_properties)
    # Beside one of the user's, Spark would find two.
    listeners = list(filter(is_listener, of_user)) or list(filter(holds_listener, of_user))
    if not listeners and deploy_mode == "client" and submitter.home is not None:
        # In cluster mode the driver runs with another host's Spark.
        listeners = [str(jar) for jar in (submitter.home / "jars").glob("openlineage-spark*.jar")]
    if not listeners and deploy_mode == "cluster" and submitter.master.startswith("yarn"):
        listeners = _in_yarn_jars(found.properties.get(_YARN_JARS, ""))
    if not listeners:
        jar = resolve_jar(
            settings.openlineage_jar or DEFAULT_JAR,
            installation=submitter.installation,
            cache_dir=jar_cache(submitter.env),
            repositories=[*submitter.repositories, *split(found.properties.get(_REPOSITORIES, ""))],
            default_repository=submitter.env.get("DEFAULT_ARTIFACT_REPOSITORY"),
            timeout_seconds=None if settings.evidence == "auto" else settings.jar_seconds,
        )
        if deploy_mode == "cluster":
            _check_reach(jar, settings.openlineage_jar, submitter.master, found.properties)
        listeners = [jar]
    if deploy_mode == "client" and submitter.known_installation is not None:
        for each in listeners:
            check_scala(each, submitter.known_installation)
    arguments, private = inject(user, file_properties, lineage, jar, deploy_mode=deploy_mode)
    private_file = None
    if private:
        private_file = Path(lineage.events_file).with_name(PRIVATE_FILE)
        write_properties_file(private_file, private, base=found.file)
    return PreparedArguments(arguments, private_file, deploy_mode, found.properties, jar or "")


def prepare_unlistened(user: SubmitArguments, submitter: Submitter, lineage: LineageProperties) -> PreparedArguments:
    """Extend the arguments by what the event log is to say of the application; raises ``PropertiesFileError``."""
    found = user_properties(user, submitter)
    arguments = replace(user, conf={**user.conf, **identity_of(lineage, found.properties)})
    return PreparedArguments(arguments, None, found.deploy_mode, found.properties, has_listener=False)


def _in_yarn_jars(jars: str) -> list[str]:
    """Return the listeners among the jars that all containers have; ``local:`` paths are taken for those of here."""
    names = [(name, Path(urlsplit(name).path)) for name in split(jars)]
    local = [str(each) for name, path in names if name.startswith("local:") for each in path.parent.glob(path.name)]
    return [name for name in (*(name for name, _ in names), *local) if is_listener(name) and not name.endswith("*")]


def _check_reach(jar: str, spec: str, master: str, properties: Mapping[str, str]) -> None:
    """Refuse a jar that the driver may not find on its host: a listener without its class ends the job.

    YARN's client uploads the jar, but for a ``local:`` path, which is believed where this machine has it. A standalone
    master takes its path as it is, and so a path is believed only where the user gave it. The client of Kubernetes
    refuses to submit a path that it has no place to upload to.
    """
    is_on_kubernetes, is_on_yarn = master.startswith("k8s"), master.startswith("yarn")
    if is_on_yarn and jar.startswith("local:") and not Path(urlsplit(jar).path).exists():
        remedy = "set openlineage_jar to a path of this machine, which YARN uploads"
        raise JarNotFoundError(f"in cluster mode on yarn the driver may not find {jar}, which is not here; {remedy}")
    is_reached = K8S_UPLOAD in properties if is_on_kubernetes else spec.startswith(("/", "file:"))
    if not jar.startswith("/") or is_on_yarn or is_reached:
        return
    remedy = "set openlineage_jar to a path where the hosts of the drivers have it too, or to a URL that Spark reads"
    if is_on_kubernetes:
        remedy = f"set openlineage_jar to a local:// path of the driver's image, or {K8S_UPLOAD}"
    raise JarNotFoundError(f"in cluster mode on {master} the driver could not load {jar}; {remedy}")
