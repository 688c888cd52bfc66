"""Selects the YARN queue of a job by its user, owner or tag: the key ``queues`` in the extra of a Spark connection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_lineage.settings.values import SettingError

KEY = "queues"
_KINDS = ("user", "owner", "tag")
_EVERYBODY = "*"
_FITS = 'give a map such as {"owner:etl": ["etl", "etl_fast"], "tag:finance": "finance", "*": "default"}'


def queues_of(value: Any, place: str) -> Mapping[str, tuple[str, ...]]:
    """Read the map: of each ``user:…``, ``owner:…``, ``tag:…`` or ``*`` the queues that are allowed, the default first.

    :param value: a map, or its JSON
    :raises SettingError: when it is something else
    """
    try:
        read = json.loads(value) if isinstance(value, str) else value
        rules = {":".join(map(str.strip, str(key).split(":", 1))): _queues(one) for key, one in read.items()}
    except (ValueError, AttributeError, TypeError):
        raise SettingError(f"{place} is not a map of lists of queues; {_FITS}") from None
    for key in rules:
        kind, _, name = key.partition(":")
        if key != _EVERYBODY and (kind not in _KINDS or not name):
            raise SettingError(f"{place}: {key!r} is neither user:…, owner:…, tag:… nor *; {_FITS}")
    return rules


def choose_queue(
    rules: Mapping[str, tuple[str, ...]], named: str, *, user: str, owners: Sequence[str], tags: Sequence[str]
) -> str:
    """Return the queue of a task; empty where no rule is for it.

    The first rule counts, of the user, of an owner, of a tag, of everyone.

    :param named: the queue that the task asks for, empty for none
    :param user: who the job runs as on YARN, empty where that is not known
    :raises SettingError: when the task asks for a queue that is not allowed
    """
    keys = [*_keys("user", [user]), *_keys("owner", owners), *_keys("tag", sorted(tags)), _EVERYBODY]
    key = next((one for one in keys if one in rules), None)
    if key is None:
        return named
    allowed = rules[key]
    if not named:
        return allowed[0]
    if _plain(named) not in map(_plain, allowed):
        raise SettingError(
            f"the task asks for the YARN queue {named!r}, and {KEY!r} in the extra of its Spark connection allows "
            f"{key!r} only {', '.join(allowed)}: name one of them (yarn_queue, spark.yarn.queue), or none"
        )
    return named


def _queues(value: Any) -> tuple[str, ...]:
    queues = (value,) if isinstance(value, str) else tuple(value)
    if isinstance(value, Mapping) or not queues or not all(isinstance(one, str) and one.strip() for one in queues):
        raise ValueError
    return tuple(one.strip() for one in queues)


def _keys(kind: str, names: Sequence[str]) -> Iterator[str]:
    return (f"{kind}:{name}" for name in names if name)


def _plain(queue: str) -> str:
    # YARN takes a queue by its path as well.
    return queue.removeprefix("root.")
