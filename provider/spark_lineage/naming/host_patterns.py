"""Which hosts are which cluster, so that a cluster has one name whichever of its hosts a program was given."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spark_lineage.naming.dataset_name import DatasetName
from spark_lineage.naming.storage import storage_identifier
from spark_lineage.naming.storage_types import storage_type

_PORT = re.compile(r":\d+\Z")


class HostPatterns:
    """The resolver that puts the name of a cluster in the place of its hosts and their ports.

    A pattern has to match the whole of ``host:port`` or of ``host``. Of several that match, the first cluster by name
    wins, and one that is called ``default`` comes last. The name of a cluster is never matched again, so that naming
    twice changes nothing. It keeps its case, though hosts are written in lower case; of two names that differ in
    nothing but case, the first in alphabetical order stands for both.
    """

    def __init__(self, patterns: Iterable[tuple[str, re.Pattern[str]]], default: str = "") -> None:
        """Take clusters with their patterns, and the name for hosts that match none; without it they stay."""
        self.patterns = tuple(sorted(patterns, key=_rank))
        self.default = default
        names = sorted({default, *(cluster for cluster, _ in self.patterns)}, reverse=True)
        self.clusters = {name.lower(): name for name in names}

    def resolve(self, name: DatasetName) -> DatasetName:
        """Return the dataset in the namespace of its cluster; a bucket has no hosts, and an unknown form stays."""
        scheme, is_url, rest = name.namespace.partition("://")
        row = storage_type(scheme)
        if not is_url or row is None or not row.has_hosts or storage_identifier(name) is None:
            return name
        hosts, slash, path = rest.partition("/")
        clusters = sorted({self._cluster(host) for host in hosts.split(",") if host})
        if not clusters:
            return name
        return DatasetName(f"{scheme}://{','.join(clusters)}{slash}{path}", name.name)

    def _cluster(self, address: str) -> str:
        host = _PORT.sub("", address)
        if cluster := self.clusters.get(host.lower()):
            return cluster
        for cluster, pattern in self.patterns:
            if pattern.fullmatch(address) or pattern.fullmatch(host):
                return self.clusters[cluster.lower()]
        return self.clusters[self.default.lower()] or address


def _rank(entry: tuple[str, re.Pattern[str]]) -> tuple[bool, str, str]:
    cluster, pattern = entry
    return cluster.lower() == "default", cluster.lower(), pattern.pattern
