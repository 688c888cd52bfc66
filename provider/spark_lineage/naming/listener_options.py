"""The names that OpenLineage's Spark listener gives datasets by the user's options, ``spark.openlineage.dataset.*``.

They are those of ``RemovePathPatternUtils`` and of the ``DatasetNamespaceResolver`` classes of release 1.53.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from spark_lineage.naming.identity import BUILT_IN, DATA_FILE, DatasetName, PathPatterns

_REMOVED = "dataset.removePath.pattern"
_RESOLVER = re.compile(r"dataset\.namespaceResolvers\.(?P<name>[^.]+)\.(?P<option>[^.]+)")
_GROUP = "remove"
# Spark keeps its properties in no order, and the listener takes the first resolver that changes a namespace.
_ORDER = "spark.openlineage.dataset.namespaceResolvers: their order"
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# Java reads these otherwise than Python: a class in a class, an intersection, and comments.
_OTHERWISE = re.compile(r"\[[^\]]*(?:\[|&&)|\(\?[a-z]*x")
_OTHER_ESCAPES = frozenset("v0")
# The listener removes its own folders first.
_OWN_FOLDERS = PathPatterns(BUILT_IN).literal

_Resolve = Callable[[str], str]


class ListenerNames:
    """What the listener calls datasets; without ``has_options`` what they are called."""

    def __init__(self, removed: re.Pattern[str] | None, resolvers: Sequence[_Resolve], unread: Sequence[str]) -> None:
        """Take what is removed from names, what resolves namespaces, and the options that cannot be read here."""
        self.has_options = bool(removed or resolvers or unread)
        self._unread = tuple(unread)
        self._removed = removed
        self._resolvers = resolvers

    def name(self, former: DatasetName) -> DatasetName:
        """Return the listener's name; what was removed from a path is a partition, and what has no namespace stays."""
        if not former.namespace:
            return former
        namespaces = self._resolved(former.namespace)
        namespace = namespaces.pop() if len(namespaces) == 1 else former.namespace
        whole = _OWN_FOLDERS.resolve(former.whole).name
        match = self._removed.search(whole) if self._removed else None
        if match is None or not match[_GROUP]:
            return DatasetName(namespace, former.name, former.partition)
        left = whole[: match.start(_GROUP)] + whole[match.end(_GROUP) :]
        parts = (match[_GROUP].strip("/"), DATA_FILE.sub("", former.name[len(whole) :]).strip("/"), former.partition)
        return DatasetName(namespace, left, "/".join(filter(None, parts)))

    def unread(self, name: DatasetName) -> tuple[str, ...]:
        """Return the options of which it is not known whether the listener's name is another by them."""
        if not name.namespace:
            return ()
        return self._unread if len(self._resolved(name.namespace)) <= 1 else (*self._unread, _ORDER)

    def _resolved(self, namespace: str) -> set[str]:
        return {resolve(namespace) for resolve in self._resolvers} - {namespace}


def listener_names(options: Mapping[str, str]) -> ListenerNames:
    """Return the names that options give, by what follows ``spark.openlineage.`` in their keys."""
    unread = []
    removed = _pattern(options[_REMOVED]) if _REMOVED in options else None
    if removed is None and _REMOVED in options:
        unread.append(f"spark.openlineage.{_REMOVED}")
    resolvers = []
    for name, own in sorted(_by_resolver(options).items()):
        resolver = _resolver(name, own)
        if resolver is None:
            unread.append(f"spark.openlineage.dataset.namespaceResolvers.{name}")
        else:
            resolvers.append(resolver)
    # The listener leaves names as they are without the group.
    return ListenerNames(removed if removed and _GROUP in removed.groupindex else None, resolvers, unread)


def _by_resolver(options: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, value in options.items():
        if match := _RESOLVER.fullmatch(key):
            found.setdefault(match["name"], {})[match["option"]] = value
    return found


def _resolver(name: str, options: Mapping[str, str]) -> _Resolve | None:
    """Return what a resolver makes of a namespace, None where that is not known."""
    kind = options.get("type", "").lower()
    if kind == "hostlist":
        patterns = [re.compile(re.escape(host), re.IGNORECASE) for host in _hosts(options.get("hosts", ""))]
    else:
        patterns = [pattern for pattern in [_pattern(options.get("regex", ""))] if pattern and pattern.pattern]
    group = options.get("matchingGroup", "")
    is_known = kind in {"hostlist", "pattern"} or (
        kind == "patterngroup" and any(group in each.groupindex for each in patterns)
    )
    if not patterns or not is_known:
        return None
    scheme = f"{options['schema']}://" if options.get("schema") else ""

    def resolve(namespace: str) -> str:
        matches = (pattern.search(namespace) for pattern in patterns if namespace.startswith(scheme))
        match = next(filter(None, matches), None)
        new = name if match is None or kind != "patterngroup" else match[group]
        return match.re.sub(lambda _: new, namespace) if match and new else namespace

    return resolve


def _hosts(text: str) -> Iterator[str]:
    """Return the hosts of a list as Spark's properties have it: ``[a;b]``."""
    return filter(None, (host.strip() for host in text.removeprefix("[").removesuffix("]").split(";")))


def _pattern(text: str) -> re.Pattern[str] | None:
    """Return a regular expression of Java, None for one that Python does not read, or reads otherwise."""
    if _OTHERWISE.search(_ESCAPE.sub("", text)) or _OTHER_ESCAPES.intersection(_ESCAPE.findall(text)):
        return None
    named = re.sub(r"(\\.)|\(\?<(?=[A-Za-z])", lambda match: match[1] or "(?P<", text, flags=re.DOTALL)
    try:
        return re.compile(named, re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError):
        return None
