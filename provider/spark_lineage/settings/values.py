"""The valid values of settings: each reader returns the value, or says what is valid; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

Granularity = Literal["task", "path"]
# The source of lineage: OpenLineage's listener, Spark's event log, or both.
Evidence = Literal["auto", "both", "event_log", "listener"]
# Where the event log of a driver on another machine is read from.
EventLogFrom = Literal["auto", "directory", "event_log", "history"]
# Whether a task fails without lineage: never, if none came, or if any of it is unknown too.
Required = bool | Literal["complete"]
# Ids of Airflow connections of type ``openlineage``.
ConnIds = tuple[str, ...]
Patterns = tuple[str, ...]
PolicyRules = tuple[str, ...]
# Class paths, and from the operator's argument also factories and listeners.
ListenerSources = tuple[Any, ...]
# How long the task waits for others at most; 0 is not at all.
WaitSeconds = float

# More than any size or time that is meant; a thread cannot wait as long as a float can say.
_MAX_NUMBER = 1e9
_RULE = re.compile(r"!?(dag|tag|pool|conn):.")


class SettingError(ValueError):
    """A setting that cannot be used; the text says which, where it was set, and what fits."""


def boolean(value: Any, place: str) -> bool:
    """Read true or false, in the words of Airflow and of people."""
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on", "t", "y"):
        return True
    if text in ("false", "0", "no", "off", "f", "n"):
        return False
    raise SettingError(f"{place} is {_shown(value)}; give true or false")


def required(value: Any, place: str) -> Required:
    """Read true, false or ``complete``."""
    if str(value).strip().lower() == "complete":
        return "complete"
    try:
        return boolean(value, place)
    except SettingError as error:
        raise SettingError(f"{error}, or complete") from None


def number(value: Any, place: str, *, can_be_zero: bool = False) -> float:
    """Read a number above 0, or from 0 on."""
    try:
        # True is 1 to Python, and no number to the one who wrote it.
        found = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = -1.0
    # NaN fails the comparisons too.
    if not (0 < found <= _MAX_NUMBER or (can_be_zero and found == 0)):
        least = "from 0 on" if can_be_zero else "above 0"
        raise SettingError(f"{place} is {_shown(value)}; give a number {least}, and at most {_MAX_NUMBER:g}")
    return found


def text(value: Any, place: str) -> str:
    """Read text."""
    if not isinstance(value, str):
        raise SettingError(f"{place} is {_shown(value)}; give text")
    return value


def one_of(*choices: str) -> Callable[[Any, str], str]:
    """Return what reads one of these words."""

    def read(value: Any, place: str) -> str:
        if value not in choices:
            raise SettingError(f"{place} is {_shown(value)}; give one of {', '.join(choices)}")
        return str(value)

    return read


def listeners(value: Any, place: str) -> ListenerSources:  # noqa: ARG001 - what names no listener is said by who looks
    """Read a list, or text with semicolons."""
    if isinstance(value, str):
        value = [path.strip() for path in value.split(";")]
    if not isinstance(value, list | tuple):
        value = (value,)
    return tuple(one for one in value if one != "")


def conn_ids(value: Any, place: str) -> ConnIds:
    """Read ids, each once: a backend must not get an event twice."""
    if isinstance(value, str):
        value = value.split(";")
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise SettingError(f"{place} is {_shown(value)}; give the id of a connection, or a list of them")
    return tuple(dict.fromkeys(one.strip() for one in value if one.strip()))


def patterns(value: Any, place: str) -> Patterns:
    """Read regular expressions of RE2: a list, or text with one a line. They are not shown: they may hold a secret."""
    if isinstance(value, str):
        value = [line.strip() for line in value.splitlines() if line.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise SettingError(f"{place} is not a list of regular expressions, or text with one per line")
    # On purpose here: settings are read without it, and masking reads some of them.
    from spark_lineage.secrets.registered_secrets import PatternError, compile_pattern

    for position, one in enumerate(value, 1):
        try:
            compile_pattern(one)
        except PatternError as error:
            raise SettingError(f"{place} is unusable in line {position}: {error}") from None
    return tuple(value)


def policy_rules(value: Any, place: str) -> PolicyRules:
    """Read rules such as ``tag:finance`` and ``!dag:sandbox_*``, with semicolons between them."""
    rules = tuple(one.strip() for one in text(value, place).split(";") if one.strip())
    if wrong := [one for one in rules if not _RULE.match(one)]:
        choices = "a pattern after dag:, tag:, pool: or conn:, with or without ! before it"
        raise SettingError(f"{place} has the rule {_shown(wrong[0])}; give {choices}")
    return rules


def tags(value: Any, place: str) -> Mapping[str, str]:
    """Read a mapping, a list, or either as JSON, or ``key:value`` pairs with semicolons."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise SettingError(f"{place} is not a JSON object or list: {error}") from error
    if isinstance(value, str):
        value = value.split(";")
    if isinstance(value, Mapping):
        return {str(key): "" if one is None else str(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        pairs = (tag.partition(":") for tag in sorted(map(str, value)) if tag.strip())
        return {key.strip(): one.strip() for key, _, one in pairs}
    raise SettingError(f"{place} is {_shown(value)}; give a mapping, a list, or text like 'team:sales;nightly'")


def _shown(value: Any) -> str:
    return repr(value)
