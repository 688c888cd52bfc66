r"""How a dataset gets its one name: a chain of resolvers, made from flat options of a section or a connection's extra.

``hostnamePattern.<cluster>``, ``hostnameList.<cluster>``, ``hostnameDefault``, ``pathPattern.<label>``, ``resolvers``.
Case does not matter in a key, since Airflow gives keys in lower case, and ``_`` may stand for the dot, which an
environment variable cannot have. Several patterns of one key are one a line, or a list.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pkgutil import resolve_name
from typing import Any, Protocol

from spark_lineage.naming.identity import (
    BUILT_IN,
    STORAGE_BY_SCHEME,
    DatasetName,
    PathPatterns,
    Spelling,
    storage_identifier,
)

# So many names are kept with their answers. A task has hundreds; an archive has more, in events close together.
_MEMORY = 65_536
_PORT = re.compile(r":\d+\Z")
_KEY = re.compile(r"(hostname_?pattern|hostname_?list|path_?pattern)[._](.+)", re.IGNORECASE)
_DEFAULT_KEYS = ("hostnamedefault", "hostname_default")
_FLAGS = re.compile(r"\A(?P<flags>\(\?[aimsux]+\))?(?P<rest>.*)\Z", re.DOTALL)
_CLUSTER = re.compile(r"[A-Za-z0-9_.-]+")
# Airflow's getsection() makes booleans and numbers of such texts; str() makes texts of them again.
_OFF, _ON = ("off", "false", "no", "0"), ("on", "true", "yes", "1")


class Resolver(Protocol):
    """Gives a dataset a better name, by its name alone; returns its own names unchanged, and never raises."""

    def resolve(self, name: DatasetName) -> DatasetName:
        """Return the better name, or the same one."""


class Naming:
    """Names datasets by a chain of resolvers, and remembers the answers: ``name(namespace, name) -> DatasetName``.

    It can be sent to another process; what it remembers stays behind.
    """

    name: Callable[[str, str], DatasetName]

    def __init__(self, resolvers: Iterable[Resolver]) -> None:
        """Take the resolvers in the order in which they are asked, each with the answer of the one before."""
        self.resolvers = tuple(resolvers)
        # Held as an attribute because a call of the cache itself is several times cheaper than a method around it.
        self.name = lru_cache(_MEMORY)(self._resolve)

    def _resolve(self, namespace: str, name: str) -> DatasetName:
        dataset = DatasetName(namespace, name)
        for resolver in self.resolvers:
            dataset = resolver.resolve(dataset)
        return dataset

    @cached_property
    def literal(self) -> Naming:
        """The same for paths that are no globs, whatever they look like."""
        return Naming(each.literal if isinstance(each, PathPatterns) else each for each in self.resolvers)

    def __reduce__(self) -> tuple[type[Naming], tuple[tuple[Resolver, ...]]]:
        return Naming, (self.resolvers,)


class NamingError(ValueError):
    """An option of naming that cannot be used; the text names the key and what fits, and never the value."""


def naming_from(options: Mapping[str, Any]) -> Naming:
    """Return the naming that the options describe; keys of other things are left alone.

    :raises NamingError: when an option cannot be used
    """
    own: list[Resolver] = []
    hosts: list[tuple[str, re.Pattern[str]]] = []
    paths = dict(BUILT_IN)
    default = ""
    for key in sorted(options):
        value = _text(options[key])
        if key.lower() == "resolvers":
            own.extend(_resolvers(key, value))
        elif key.lower() in _DEFAULT_KEYS:
            default = _cluster(key, value) if value else ""
        elif match := _KEY.fullmatch(key):
            kind, label = match[1].lower().replace("_", ""), match[2]
            if kind == "pathpattern":
                _set_path(paths, key, label.lower(), value)
            else:
                if kind == "hostnamelist":
                    value = "|".join(re.escape(host) for host in re.split(r"[;,\s]+", value) if host)
                hosts += [(_cluster(key, label), pattern) for pattern in _regexes(key, value, flags=re.IGNORECASE)]
    # The name that a user's resolver gives is read like that of an event: spelled, then by cluster, then cut.
    spelling: list[Resolver] = [Spelling(), *own, Spelling()] if own else [Spelling()]
    clusters = [HostPatterns(hosts, default)] if hosts or default else []
    return Naming((*spelling, *clusters, PathPatterns(paths)))


def is_naming_key(key: str) -> bool:
    """Whether an option of this name says how datasets are named."""
    return key.lower() in ("resolvers", *_DEFAULT_KEYS) or _KEY.fullmatch(key) is not None


def _text(value: Any) -> str:
    """Return a value as text; a list, also one in JSON, as one element a line."""
    if isinstance(value, str) and value.lstrip().startswith('["'):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    return "\n".join(map(str, value)).strip() if isinstance(value, list | tuple) else str(value).strip()


def _regexes(key: str, text: str, *, end: str = "", flags: re.RegexFlag = re.NOFLAG) -> list[re.Pattern[str]]:
    if not text:
        raise NamingError(f"{key} is empty; give it a value, or leave it out")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = []
    for place, line in enumerate(lines, 1):
        try:
            re.compile(line)
            # Flags for the whole, such as (?i), have to stay at the start.
            found.append(re.compile(_FLAGS.sub(r"\g<flags>(?:\g<rest>)", line) + end, flags))
        except re.error as error:
            where = f"{key}, pattern {place} of {len(lines)}," if len(lines) > 1 else key
            # The fault stands before the first quote; a part of the value follows.
            what = error.msg.partition("'")[0].strip()
            raise NamingError(f"{where} is not a Python regular expression: {what}") from None
    return found


def _set_path(paths: dict[str, re.Pattern[str]], key: str, label: str, value: str) -> None:
    label = label.replace("_", "") if label.replace("_", "") in BUILT_IN else label
    if value.lower() in _OFF:
        paths.pop(label, None)
    elif value.lower() not in _ON:
        paths.pop(label, None)
        paths.update((f"{label} {place}", one) for place, one in enumerate(_regexes(key, value, end=r"\Z")))
    elif label not in BUILT_IN:
        raise NamingError(f"{key} switches on what is not there; give a regular expression, or one of {list(BUILT_IN)}")


def _cluster(key: str, name: str) -> str:
    if not _CLUSTER.fullmatch(name):
        raise NamingError(f"{key} names no cluster; a cluster's name has letters, digits, '.', '-' and '_' only")
    return name


def _resolvers(key: str, value: str) -> Iterator[Resolver]:
    for path in filter(None, (part.strip() for part in value.split(";"))):
        where = f"{key} names {path!r}"
        try:
            found = resolve_name(path)
        except (ImportError, AttributeError, ValueError) as error:
            raise NamingError(
                f"{where}, which cannot be imported here ({type(error).__name__}); give package.module.Class "
                "of a module that is installed wherever lineage is merged"
            ) from error
        try:
            resolver = found() if isinstance(found, type) else found
        except Exception as error:
            raise NamingError(f"{where}, which cannot be made without arguments ({type(error).__name__})") from error
        if not callable(getattr(resolver, "resolve", None)):
            raise NamingError(f"{where}, which has no method resolve(name: DatasetName) -> DatasetName")
        yield resolver


DEFAULT_NAMING = naming_from({})


class HostPatterns:
    """The resolver that puts the name of a cluster in the place of its hosts and their ports.

    A pattern has to match the whole of ``host:port`` or of ``host``. Of several that match, the first cluster by name
    wins, and ``default`` comes last. The name of a cluster is never matched again. It keeps its case; of two names that
    differ in nothing but case, the first in alphabetical order stands for both.
    """

    def __init__(self, patterns: Iterable[tuple[str, re.Pattern[str]]], default: str = "") -> None:
        """Take clusters with their patterns, and the name for hosts that match none; without it they stay."""
        self.patterns = tuple(
            sorted(patterns, key=lambda each: (each[0].lower() == "default", each[0].lower(), each[1].pattern))
        )
        self.default = default
        names = sorted({default, *(cluster for cluster, _ in self.patterns)}, reverse=True)
        self.clusters = {name.lower(): name for name in names}

    def resolve(self, name: DatasetName) -> DatasetName:
        """Return the dataset in the namespace of its cluster; a bucket has no hosts, and an unknown form stays."""
        scheme, is_url, rest = name.namespace.partition("://")
        row = STORAGE_BY_SCHEME.get(scheme)
        if not is_url or row is None or not row.has_hosts or storage_identifier(name) is None:
            return name
        hosts, slash, path = rest.partition("/")
        found = (
            self.cluster_of(host) or self.clusters[self.default.lower()] or host for host in hosts.split(",") if host
        )
        clusters = sorted(set(found))
        return DatasetName(f"{scheme}://{','.join(clusters)}{slash}{path}", name.name) if clusters else name

    def cluster_of(self, address: str) -> str:
        """Return the cluster of a host, with or without its port; empty where no pattern matches."""
        host = _PORT.sub("", address)
        if cluster := self.clusters.get(host.lower()):
            return cluster
        for cluster, pattern in self.patterns:
            if pattern.fullmatch(address) or pattern.fullmatch(host):
                return self.clusters[cluster.lower()]
        return ""
