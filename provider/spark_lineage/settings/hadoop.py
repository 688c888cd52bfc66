"""The addresses of YARN's ResourceManagers in Hadoop's own configuration, which spark-submit uses, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

# As spark-submit has them on its class path, where the first file of a name counts.
_DIRECTORIES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_MANAGER = "yarn.resourcemanager"
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_ADDRESS = re.compile(r"(?:[\w.-]+|\[[\da-fA-F:]+\]):\d+")


def resource_managers(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses of the ResourceManagers' pages (``http://host:8088``), several for high availability.

    There are none where there is no ``yarn-site.xml``, or where it names neither an address nor a host.

    :param env: of spark-submit
    """
    folders = [Path(env[name]) for name in _DIRECTORIES if env.get(name)]
    common, yarn = (
        next((found for folder in folders if (found := dict(_properties(folder / file)))), {})
        for file in ("core-site.xml", "yarn-site.xml")
    )
    return tuple(dict.fromkeys(_addresses(common | yarn)))


def _addresses(values: Mapping[str, str]) -> Iterator[str]:
    is_https = values.get("yarn.http.policy") == "HTTPS_ONLY"
    key, port, scheme = ("webapp.https.address", 8090, "https") if is_https else ("webapp.address", 8088, "http")
    has_several = values.get(f"{_MANAGER}.ha.enabled", "").lower() == "true"
    ids = values.get(f"{_MANAGER}.ha.rm-ids", "").split(",") if has_several else []
    for suffix in [f".{one.strip()}" for one in ids] or [""]:
        address = values.get(f"{_MANAGER}.{key}{suffix}") or values.get(f"{_MANAGER}.hostname{suffix}", "")
        # A variable stands for another property; it may name one in turn.
        for _ in range(3):
            address = _VARIABLE.sub(lambda found: values.get(found[1], ""), address)
        address = address if ":" in address else f"{address}:{port}"
        if _ADDRESS.fullmatch(address):
            yield f"{scheme}://{address}"


def _properties(file: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError, ET.ParseError):
        for one in ET.parse(file).iter("property"):  # noqa: S314 (spark-submit believes this file as well)
            yield (one.findtext("name") or "").strip(), (one.findtext("value") or "").strip()
