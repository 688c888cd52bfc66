"""The addresses of YARN, HDFS and the History Server in the configuration that spark-submit uses, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
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
    return tuple(dict.fromkeys(_addresses(_site(env, "yarn-site.xml"))))


def name_nodes(env: Mapping[str, str], url: str) -> tuple[str, ...]:
    """Return the addresses of WebHDFS (``http://host:9870``) for a URL on HDFS, several for high availability.

    There are none for another file system, and for an HDFS that Hadoop's configuration does not know.

    :param env: of spark-submit
    """
    values = _site(env, "hdfs-site.xml")
    known = urlsplit(values.get("fs.defaultFS", ""))
    parts = urlsplit(url)
    place = parts.netloc or known.netloc
    if (parts.scheme or known.scheme) != "hdfs":
        return ()
    if place in _list(values.get("dfs.nameservices", "")):
        ids = _list(values.get(f"dfs.ha.namenodes.{place}", ""))
        return tuple(dict.fromkeys(_web_addresses(values, "", [f".{place}.{each}" for each in ids] or [f".{place}"])))
    is_known = place == known.netloc or place == values.get("dfs.namenode.rpc-address")
    return tuple(_web_addresses(values, place, [""])) if is_known else ()


def history_server(env: Mapping[str, str], properties: Mapping[str, str]) -> str:
    """Return the address of the History Server that YARN's pages lead to, empty where the log is off or it has none.

    :param env: of spark-submit
    :param properties: of Spark
    """
    if not is_event_log_on(properties):
        return ""
    address = properties.get("spark.yarn.historyServer.address", "").strip().rstrip("/")
    values = _site(env, "yarn-site.xml") if "${" in address else {}
    address = _VARIABLE.sub(lambda found: values.get(found[1].removeprefix("hadoopconf-"), ""), address)
    scheme, _, rest = address.rpartition("://")
    return f"{scheme or 'http'}://{rest}" if _ADDRESS.fullmatch(rest) else ""


def is_event_log_on(properties: Mapping[str, str]) -> bool:
    """Whether Spark's properties turn its event log on."""
    return properties.get("spark.eventLog.enabled", "").strip().lower() == "true"


def _site(env: Mapping[str, str], name: str) -> Mapping[str, str]:
    """Return the properties of one of Hadoop's files, and those of ``core-site.xml``."""
    folders = [Path(env[name]) for name in _DIRECTORIES if env.get(name)]
    common, own = (
        next((found for folder in folders if (found := dict(_properties(folder / file)))), {})
        for file in ("core-site.xml", name)
    )
    return common | own


def _web_addresses(values: Mapping[str, str], place: str, suffixes: Iterable[str]) -> Iterator[str]:
    is_https = values.get("dfs.http.policy") == "HTTPS_ONLY"
    key, port, scheme = ("https-address", 9871, "https") if is_https else ("http-address", 9870, "http")
    for suffix in suffixes:
        host = (values.get(f"dfs.namenode.rpc-address{suffix}") or place).rpartition(":")[0] or place
        address = _expanded(values.get(f"dfs.namenode.{key}{suffix}") or f"{host}:{port}", values)
        # 0.0.0.0 means all interfaces of the host.
        address = address.replace("0.0.0.0:", f"{host}:") if host else address
        if _ADDRESS.fullmatch(address):
            yield f"{scheme}://{address}"


def _list(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _expanded(address: str, values: Mapping[str, str]) -> str:
    """Return an address without variables, each of which stands for another property, and may name one in turn."""
    for _ in range(3):
        address = _VARIABLE.sub(lambda found: values.get(found[1], ""), address)
    return address


def _addresses(values: Mapping[str, str]) -> Iterator[str]:
    is_https = values.get("yarn.http.policy") == "HTTPS_ONLY"
    key, port, scheme = ("webapp.https.address", 8090, "https") if is_https else ("webapp.address", 8088, "http")
    has_several = values.get(f"{_MANAGER}.ha.enabled", "").lower() == "true"
    ids = values.get(f"{_MANAGER}.ha.rm-ids", "").split(",") if has_several else []
    for suffix in [f".{one.strip()}" for one in ids] or [""]:
        address = values.get(f"{_MANAGER}.{key}{suffix}") or values.get(f"{_MANAGER}.hostname{suffix}", "")
        address = _expanded(address, values)
        address = address if ":" in address else f"{address}:{port}"
        if _ADDRESS.fullmatch(address):
            yield f"{scheme}://{address}"


def _properties(file: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError, ET.ParseError):
        for one in ET.parse(file).iter("property"):  # noqa: S314 (spark-submit believes this file as well)
            yield (one.findtext("name") or "").strip(), (one.findtext("value") or "").strip()
