"""Send everything that waits in the outboxes of this host, with the connections that the events name."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_lineage.deliver.outbox.database import FILE
from spark_lineage.deliver.outbox.outbox import DEFAULT_BYTES, Delivered, Outbox
from spark_lineage.deliver.outbox.transport import CLASS_PATH, DESTINATION
from spark_lineage.settings.defaults import outbox_directory

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

SECONDS = 300.0


@dataclass(frozen=True)
class Flushed:
    """What was sent to one destination from one directory."""

    directory: Path
    destination: str
    delivered: Delivered


def flush(
    directories: Iterable[Path] | None = None, destinations: Iterable[str] = (), *, seconds: float = SECONDS
) -> Sequence[Flushed]:
    """Send what waits, also to backends whose breaker is open.

    :param directories: of outboxes; those that Airflow's configuration names where it is None
    :param destinations: only these; all where there are none
    :param seconds: for all together
    :raises OutboxError: when an outbox cannot be read
    """
    until = time.monotonic() + seconds
    only = set(destinations)
    flushed = []
    for directory in known_directories() if directories is None else directories:
        if not (directory / FILE).exists():
            continue
        outbox = Outbox(directory, max_bytes=DEFAULT_BYTES)
        try:
            waiting = [one.destination for one in outbox.destinations() if one.waiting]
            for destination in (one for one in waiting if not only or one in only):
                left = max(0.0, until - time.monotonic())
                delivered = outbox.deliver([destination], open_destination, left, is_asked_for=True)
                flushed.append(Flushed(directory, destination, delivered))
        finally:
            outbox.close()
    return flushed


def known_directories() -> Sequence[Path]:
    """Return the directories of the settings, and of an outbox in ``[openlineage] transport`` that has another one."""
    from spark_lineage.settings.places import option

    default = outbox_directory(option("outbox_dir") or "")
    named = [Path(config["directory"]) for config in airflow_outboxes().values() if config.get("directory")]
    return tuple(dict.fromkeys([default, *named]))


def open_destination(destination: str) -> Transport:
    """Open the transport of a destination: of a connection, or the one inside of an outbox of ``[openlineage]``.

    :raises ValueError: when there is no such connection or outbox, or it cannot be used
    """
    from spark_lineage.deliver.transports.opening import make_transport, open_transport

    if destination != DESTINATION and not destination.startswith(f"{DESTINATION}/"):
        return open_transport(destination)
    config = airflow_outboxes().get(destination)
    if config is None:
        name = destination.removeprefix(DESTINATION).removeprefix("/")
        which = f"no outbox called {name!r}" if name else "no outbox"
        raise ValueError(f"[openlineage] transport of Airflow's configuration has {which} (type {CLASS_PATH})")
    return make_transport(config["transport"])


def airflow_outboxes() -> Mapping[str, Mapping[str, Any]]:
    """Return the configurations of the outboxes that Airflow's events go through, by their destinations."""
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from openlineage.client import OpenLineageClient
    from openlineage.client.transport.noop import NoopConfig, NoopTransport

    # With a transport given, the client only reads: also its own file and variables.
    nothing = NoopTransport(NoopConfig())
    client = OpenLineageClient(config=OpenLineageAdapter().get_openlineage_config(), transport=nothing)
    found = {}
    for config in _all_of(copy.deepcopy(client.config.transport or {}), ""):
        if config.get("type") == CLASS_PATH and isinstance(config.get("transport"), Mapping):
            name = config.get("name")
            found[f"{DESTINATION}/{name}" if name else DESTINATION] = config
    return found


def _all_of(config: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    """Return a transport and those inside of it; members of a composite may have their names as keys."""
    yield {"name": name, **config} if name else config
    members = config.get("transports") or ()
    named = members.items() if isinstance(members, Mapping) else (("", member) for member in members)
    for key, member in named:
        if isinstance(member, Mapping):
            yield from _all_of(member, key)
